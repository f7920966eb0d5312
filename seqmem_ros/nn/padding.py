"""What it takes to leave the padding of a batch out of account."""

from __future__ import annotations

import jax
import jax.numpy as jnp


def zero_padding(seq: jax.Array, lengths: jax.Array) -> tuple[jax.Array, jax.Array]:
    """
    Replace the padding of sequences by zeros, whatever it holds, NaN included.

    :param seq: shape (..., T, n)
    :param lengths: samples that count, shape (...)
    :returns: the sequences, and where they are not padding, shape (..., T)
    """
    seq = jnp.asarray(seq)
    valid = jnp.arange(seq.shape[-2]) < jnp.asarray(lengths)[..., None]
    return jnp.where(valid[..., None], seq, 0), valid


def reverse_padded(seq: jax.Array, lengths: jax.Array) -> jax.Array:
    """
    Turn sequences around and leave their padding at the end.

    ``y_t = x_(n - 1 - t)`` for t < n, n the length.

    :param seq: shape (..., T, n)
    :param lengths: samples that count, shape (...)
    :returns: the same shape
    """
    n_samples = seq.shape[-2]
    index = (jnp.asarray(lengths)[..., None] - 1 - jnp.arange(n_samples)) % n_samples
    return jnp.take_along_axis(seq, index[..., None], axis=-2)
