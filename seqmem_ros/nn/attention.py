"""Multi-head self-attention that can stream."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from seqmem_ros.nn.attention_cache import ages_of
from seqmem_ros.nn.attention_cache import empty_cache
from seqmem_ros.nn.attention_cache import GrowingCache
from seqmem_ros.nn.attention_cache import remember
from seqmem_ros.nn.attention_cache import WindowCache
from seqmem_ros.nn.initializers import get_initializer
from seqmem_ros.nn.initializers import Initializer
from seqmem_ros.nn.input_check import check_input
from seqmem_ros.nn.module import Module
from seqmem_ros.nn.module import Param
from seqmem_ros.nn.padding import zero_padding
from seqmem_ros.nn.positions import rotate
from seqmem_ros.nn.scaled_dot_product import scaled_dot_product_attention

__all__ = ['MultiHeadSelfAttention', 'WindowCache', 'scaled_dot_product_attention']


class MultiHeadSelfAttention(Module):
    """
    Self-attention in several heads.

    ::

        head_h = Attention(W_q,h x, W_k,h x, W_v,h x)      h = 1 .. n_heads
        y      = W_o [head_1, .., head_n]

    Vaswani et al., *Attention is all you need*, NeurIPS 2017 (arXiv:1706.03762), section 3.2.2.
    The heads' matrices lie one under another in W_q, W_k, W_v, all of shape (d_model, d_model).

    With ``causal`` a sample attends to itself and earlier ones; with ``window`` W only to the
    last W samples, itself among them. Then it can stream: earlier keys and values are kept, see
    :meth:`init_cache`. Keys are kept as they are before rotation and turned by their age at each
    step, so numbers stay small in a stream without end.

    :param d_model: width of input and output
    :param n_heads: number of heads, a divisor of d_model
    :param key: random key
    :param causal: attend to the past only
    :param window: number of samples attended to, or None for all; needs ``causal``
    :param positions: None for none, ``'rotary'`` for those of
        :func:`seqmem_ros.nn.positions.rotate`
    :param bias: add biases b_q, b_k, b_v, b_o, as PyTorch does
    :param initializer: name or function, for the matrices
    :raises ValueError: if d_model is not divisible by n_heads, or an option makes no sense
    """

    def __init__(
        self,
        d_model: int,
        n_heads: int,
        key: jax.Array,
        causal: bool = False,
        window: int | None = None,
        positions: str | None = None,
        *,
        bias: bool = False,
        initializer: str | Initializer = 'xavier_normal',
    ):
        _check_options(d_model, n_heads, causal, window, positions)
        self.n_in = d_model
        self.n_heads = n_heads
        self.causal = causal
        self.window = window
        self.positions = positions
        for name, matrix_key in zip('qkvo', jax.random.split(key, 4)):
            matrix = get_initializer(initializer)(matrix_key, (d_model, d_model))
            setattr(self, f'W_{name}', Param(matrix))
        for name in 'qkvo':
            setattr(self, f'b_{name}', Param(jnp.zeros(d_model)) if bias else None)

    def forward(
        self,
        seq: jax.Array,
        rng_key: jax.Array | None = None,
        mask: jax.Array | None = None,
    ) -> jax.Array:
        """
        Attend within a whole sequence.

        :param seq: shape (T, d_model) or (batch, T, d_model)
        :param rng_key: not used
        :param mask: True = may attend, broadcast against (T, T) or (batch, T, T), beside what
            ``causal`` and ``window`` forbid; None forbids nothing more
        :returns: the same shape as ``seq``
        :raises ValueError: if the width is not d_model
        """
        seq = check_input(seq, self.n_in, self, 'sequence')
        if self.window is not None and mask is None:
            return self._forward_in_blocks(seq)
        index = jnp.arange(seq.shape[-2])
        allowed = self._allowed(index[:, None] - index[None, :])
        if mask is not None:
            allowed = mask if allowed is None else allowed & mask
        q, k, v = self._project(seq)
        return self._attend(q, k, v, allowed, index, index)

    def forward_padded(
        self, seq: jax.Array, lengths: jax.Array, rng_key: jax.Array | None = None
    ) -> jax.Array:
        if self.causal:
            return super().forward_padded(seq, lengths, rng_key)
        seq, valid = zero_padding(seq, lengths)
        return zero_padding(self.forward(seq, mask=valid[..., None, :]), lengths)[0]

    def why_not_streaming(self) -> str | None:
        if self.causal:
            return None
        return 'its attention is not causal, every output needs the samples after it'

    def init_cache(
        self, window: int | None = None, batch: int | None = None
    ) -> GrowingCache | WindowCache:
        """
        Make the empty memory.

        :param window: number of samples to keep, in arrays of fixed size: compiled once, for
            streams without end. None gives arrays that grow by a row a step (up to the layer's
            own window where it has one) and compile anew with each size
        :param batch: number of independent streams that begin together, None for a single one
        :returns: :class:`WindowCache`, or for None the pair of keys and values, each of shape
            (0, d_model) or (batch, 0, d_model)
        :raises ValueError: if the attention is not causal, or the window below 1
        """
        self.require_streaming()
        return empty_cache(self.n_in, window, batch, self.dtype)

    def init_state(
        self, batch: int | None = None, n_in: int | None = None
    ) -> GrowingCache | WindowCache:
        """
        Make the empty memory: of fixed size where the layer has a window, else growing.

        :param batch: number of independent streams that begin together, None for a single one
        :param n_in: not used
        :returns: see :meth:`init_cache`
        :raises ValueError: if the attention is not causal
        """
        return self.init_cache(self.window, batch)

    def step(
        self, x: jax.Array, state: GrowingCache | WindowCache
    ) -> tuple[jax.Array, GrowingCache | WindowCache]:
        """
        Attend from one sample to itself and those in the memory.

        :param x: sample, shape (d_model,) or (batch, d_model)
        :param state: from :meth:`init_cache`, :meth:`init_state` or the step before
        :returns: the same shape, and the memory with this sample in it
        :raises ValueError: if the attention is not causal or the width is not d_model
        """
        self.require_streaming()
        x = check_input(x, self.n_in, self, 'sample')
        q, k, v = self._project(x[..., None, :])  # (..., 1, d_model)
        state = remember(state, k, v, self.window)
        ages, filled = ages_of(state)
        mask = (self._allowed(ages) & filled)[None, :]
        y = self._attend(q, state[0], state[1], mask, jnp.zeros(1, jnp.int32), -ages)
        return y[..., 0, :], state

    def _allowed(self, ages: jax.Array) -> jax.Array | None:
        if not self.causal:
            return None
        allowed = ages >= 0
        return allowed if self.window is None else allowed & (ages < self.window)

    def _project(self, x: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
        matrices = [self.W_q.value, self.W_k.value, self.W_v.value]
        y = x @ jnp.concatenate(matrices).T
        if self.b_q is not None:
            y = y + jnp.concatenate([self.b_q.value, self.b_k.value, self.b_v.value])
        return tuple(jnp.split(y, 3, axis=-1))

    def _attend(
        self,
        q: jax.Array,
        k: jax.Array,
        v: jax.Array,
        mask: jax.Array | None,
        q_positions: jax.Array,
        k_positions: jax.Array,
    ) -> jax.Array:
        q, k, v = self._heads(q), self._heads(k), self._heads(v)
        if self.positions == 'rotary':
            q, k = rotate(q, q_positions), rotate(k, k_positions)
        mask = None if mask is None else mask[..., None, :, :]  # the same for all heads
        y = scaled_dot_product_attention(q, k, v, mask)
        y = jnp.swapaxes(y, -2, -3)  # (..., n_heads, T, d_head) -> (..., T, n_heads, d_head)
        y = y.reshape(*y.shape[:-2], self.n_in) @ self.W_o.value.T
        return y if self.b_o is None else y + self.b_o.value

    def _heads(self, x: jax.Array) -> jax.Array:
        d_head = self.n_in // self.n_heads
        x = x.reshape(*x.shape[:-1], self.n_heads, d_head)  # (..., T, n_heads, d_head)
        return jnp.swapaxes(x, -2, -3)  # (..., n_heads, T, d_head)

    def _forward_in_blocks(self, seq: jax.Array) -> jax.Array:
        # Blocks as long as the window: each attends to itself and the one before, which holds all
        # that is in reach. Costs T times W instead of T times T, and positions within a pair of
        # blocks stay small however long the sequence is.
        n_samples = seq.shape[-2]
        width = max(1, min(self.window, n_samples))
        n_blocks = -(-n_samples // width)
        seq = _pad_end(seq, n_blocks * width)
        blocks = seq.reshape(*seq.shape[:-2], n_blocks, width, self.n_in)
        q, k, v = self._project(blocks)
        index = jnp.arange(2 * width)
        allowed = self._allowed(index[width:, None] - index[None, :])
        # (n_blocks, width, 2 * width): there is nothing before the first block.
        exists = (jnp.arange(n_blocks)[:, None] > 0) | (index >= width)
        allowed = allowed & exists[:, None, :]
        y = self._attend(q, _with_previous(k), _with_previous(v), allowed, index[width:], index)
        return y.reshape(*seq.shape[:-1], self.n_in)[..., :n_samples, :]


def _pad_end(seq: jax.Array, n_samples: int) -> jax.Array:
    missing = n_samples - seq.shape[-2]
    return jnp.pad(seq, [(0, 0)] * (seq.ndim - 2) + [(0, missing), (0, 0)])


def _with_previous(blocks: jax.Array) -> jax.Array:
    # (..., n, width, d) -> (..., n, 2 * width, d)
    previous = jnp.concatenate(
        [jnp.zeros_like(blocks[..., :1, :, :]), blocks[..., :-1, :, :]], axis=-3
    )
    return jnp.concatenate([previous, blocks], axis=-2)


def _check_options(
    d_model: int, n_heads: int, causal: bool, window: int | None, positions: str | None
) -> None:
    if n_heads < 1 or d_model % n_heads:
        raise ValueError(f'd_model={d_model} is not divisible by n_heads={n_heads}')
    if window is not None and not causal:
        raise ValueError(f'window={window} needs causal=True')
    if window is not None and window < 1:
        raise ValueError(f'window must be at least 1 sample, got {window}')
    if positions not in (None, 'rotary'):
        raise ValueError(f"unknown positions {positions!r}; choose None or 'rotary'")
    if positions == 'rotary' and d_model // n_heads % 2:
        raise ValueError(
            f'rotary positions turn pairs of features: d_model / n_heads = {d_model // n_heads} '
            'must be even'
        )
