"""Where in the sequence a sample stands: added sinusoids and rotary positions."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from seqmem_ros.nn.input_check import check_input
from seqmem_ros.nn.module import Module


def _angles(positions: jax.Array, width: int) -> jax.Array:
    # Both papers use the same frequencies: 10000^(-2i/width), i = 0 .. ceil(width/2) - 1.
    frequencies = 10000.0 ** (-jnp.arange(0, width, 2) / width)
    return jnp.asarray(positions)[..., None] * frequencies


def sinusoids(positions: jax.Array, d_model: int) -> jax.Array:
    """
    Encode positions as sines and cosines of falling frequency.

    ``P[pos, 2i] = sin(pos / 10000^(2i/d)), P[pos, 2i+1] = cos(pos / 10000^(2i/d))``. Vaswani et
    al., *Attention is all you need*, NeurIPS 2017 (arXiv:1706.03762), section 3.5.

    :param positions: counted in samples from 0, any shape (...)
    :param d_model: width d; an odd one ends with a sine
    :returns: shape (..., d_model), dimensionless
    """
    angles = _angles(positions, d_model)
    pairs = jnp.stack([jnp.sin(angles), jnp.cos(angles)], axis=-1)  # (..., ceil(d/2), 2)
    return pairs.reshape(*angles.shape[:-1], 2 * angles.shape[-1])[..., :d_model]


def rotate(x: jax.Array, positions: jax.Array) -> jax.Array:
    """
    Turn each pair of features by an angle proportional to the position.

    ``(x_2i, x_2i+1) -> R(m t_i) (x_2i, x_2i+1), t_i = 10000^(-2i/d)``, R(a) the rotation by a. The
    product of a query turned by m and a key turned by n depends on m - n alone, so that only the
    age of a sample counts, not when the stream began. Su et al., *RoFormer: enhanced transformer
    with rotary position embedding*, arXiv:2104.09864, Eqs. 15 and 34 (neighbouring features make
    a pair; some libraries pair feature i with i + d/2).

    :param x: queries or keys, shape (..., T, d), d even
    :param positions: m, counted in samples, may be negative, shape (T,)
    :returns: shape (..., T, d)
    """
    angles = _angles(positions, x.shape[-1])  # (T, d/2)
    cos, sin = jnp.cos(angles).astype(x.dtype), jnp.sin(angles).astype(x.dtype)
    first, second = x[..., 0::2], x[..., 1::2]
    turned = jnp.stack([first * cos - second * sin, first * sin + second * cos], axis=-1)
    return turned.reshape(x.shape)  # (..., T, d/2, 2) -> (..., T, d)


class AddPositions(Module):
    """
    Add the sinusoidal encoding of its position to each sample: ``y_t = x_t + P[t]``.

    P as in :func:`sinusoids`. Vaswani et al., *Attention is all you need*, NeurIPS 2017
    (arXiv:1706.03762), section 3.5. In a stream the state counts the samples; from ``max_len``
    on, every sample counts as the last position, since a compiled step cannot raise. Streams
    without end are better served by rotary positions, which know ages only.

    :param max_len: longest sequence, in samples
    :param d_model: width of the samples
    """

    def __init__(self, max_len: int, d_model: int):
        self.max_len = max_len
        self.n_in = d_model

    def forward(self, seq: jax.Array, rng_key: jax.Array | None = None) -> jax.Array:
        """
        Add positions 0 to T - 1.

        :param seq: shape (T, d_model) or (batch, T, d_model)
        :param rng_key: not used
        :returns: the same shape
        :raises ValueError: if the width is not d_model or T is above max_len
        """
        seq = check_input(seq, self.n_in, self, 'sequence')
        n_samples = seq.shape[-2]
        if n_samples > self.max_len:
            raise ValueError(
                f'sequence of {n_samples} samples is longer than max_len={self.max_len}; '
                'cut it, or build the network with a larger max_len'
            )
        return self._add(seq, jnp.arange(n_samples))

    def init_state(self, batch: int | None = None, n_in: int | None = None) -> jax.Array:
        """
        Begin to count.

        :param batch: not used: all streams of a batch begin together
        :param n_in: not used
        :returns: number of samples so far, an integer
        """
        return jnp.zeros((), jnp.int32)

    def step(self, x: jax.Array, state: jax.Array) -> tuple[jax.Array, jax.Array]:
        """
        Add the position of the current sample.

        :param x: sample, shape (d_model,) or (batch, d_model)
        :param state: number of samples so far
        :returns: the same shape, and the new number
        :raises ValueError: if the width is not d_model
        """
        x = check_input(x, self.n_in, self, 'sample')
        return self._add(x, state), jnp.minimum(state + 1, self.max_len - 1)

    def _add(self, x: jax.Array, positions: jax.Array) -> jax.Array:
        return x + sinusoids(positions, self.n_in).astype(jnp.result_type(x, float))
