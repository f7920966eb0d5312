"""The transformer's encoder block, also as a causal layer that streams."""

from __future__ import annotations

from typing import Any

import jax

from seqmem_ros.nn.attention import MultiHeadSelfAttention
from seqmem_ros.nn.dense import Dense
from seqmem_ros.nn.dense import Dropout
from seqmem_ros.nn.dense import LayerNorm
from seqmem_ros.nn.module import Module
from seqmem_ros.nn.padding import zero_padding


class TransformerBlock(Module):
    """
    Self-attention and a two-layer network, each with a residual and a normalisation after it.

    ::

        x = LayerNorm(x + Dropout(SelfAttention(x)))
        x = LayerNorm(x + Dropout(W_2 f(W_1 x + b_1) + b_2))

    Vaswani et al., *Attention is all you need*, NeurIPS 2017 (arXiv:1706.03762), sections 3.1,
    3.3 (Eq. 2, f = relu) and 5.4: the post-norm form, dropout on each sub-layer's output before
    the addition.

    :param d_model: width of input and output
    :param n_heads: number of heads, a divisor of d_model
    :param d_ff: width between the two dense layers
    :param key: random key
    :param dropout: rate
    :param activation: f: ``relu``, ``gelu``, ``tanh`` or ``sigmoid``
    :param attention_options: ``causal``, ``window``, ``positions``, ``bias``, ``initializer`` of
        :class:`MultiHeadSelfAttention`
    :raises ValueError: as that class does
    """

    def __init__(
        self,
        d_model: int,
        n_heads: int,
        d_ff: int,
        key: jax.Array,
        *,
        dropout: float = 0.0,
        activation: str = 'relu',
        **attention_options: Any,
    ):
        keys = jax.random.split(key, 3)
        self.attention = MultiHeadSelfAttention(d_model, n_heads, keys[0], **attention_options)
        self.norm_1 = LayerNorm(d_model)
        self.dense_1 = Dense(d_model, d_ff, keys[1], activation=activation)
        self.dense_2 = Dense(d_ff, d_model, keys[2])
        self.norm_2 = LayerNorm(d_model)
        self.dropout = Dropout(dropout)

    def forward(self, seq: jax.Array, rng_key: jax.Array | None = None) -> jax.Array:
        """
        Run a whole sequence through the block.

        :param seq: shape (T, d_model) or (batch, T, d_model)
        :param rng_key: random key of the dropout; None for no dropout
        :returns: the same shape
        :raises ValueError: if the width is not d_model
        """
        return self._after_attention(seq, self.attention.forward(seq), rng_key)

    def forward_padded(
        self, seq: jax.Array, lengths: jax.Array, rng_key: jax.Array | None = None
    ) -> jax.Array:
        seq, _ = zero_padding(seq, lengths)
        attended = self.attention.forward_padded(seq, lengths)
        return zero_padding(self._after_attention(seq, attended, rng_key), lengths)[0]

    def why_not_streaming(self) -> str | None:
        return self.attention.why_not_streaming()

    def init_state(self, batch: int | None = None, n_in: int | None = None) -> Any:
        """
        Make the empty memory of the attention.

        :param batch: number of independent streams that begin together, None for a single one
        :param n_in: not used
        :returns: see :meth:`MultiHeadSelfAttention.init_cache`
        :raises ValueError: if the attention is not causal
        """
        self.require_streaming()
        return self.attention.init_state(batch)

    def step(self, x: jax.Array, state: Any) -> tuple[jax.Array, Any]:
        """
        Take one sample.

        :param x: sample, shape (d_model,) or (batch, d_model)
        :param state: from :meth:`init_state` or the step before
        :returns: the same shape, and the new state
        :raises ValueError: if the attention is not causal or the width is not d_model
        """
        self.require_streaming()
        attended, state = self.attention.step(x, state)
        return self._after_attention(x, attended, None), state

    def _after_attention(
        self, x: jax.Array, attended: jax.Array, rng_key: jax.Array | None
    ) -> jax.Array:
        keys = (None, None) if rng_key is None else jax.random.split(rng_key)
        x = self.norm_1.forward(x + self.dropout.forward(attended, keys[0]))
        y = self.dense_2.forward(self.dense_1.forward(x))
        return self.norm_2.forward(x + self.dropout.forward(y, keys[1]))
