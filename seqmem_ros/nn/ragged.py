"""
Sequences of unequal length as one padded batch.

Every result equals that of running each sequence alone: what stands in the padding reaches no
output, no gradient and no final state, even NaN.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp

from seqmem_ros.nn.module import Module
from seqmem_ros.nn.padding import zero_padding
from seqmem_ros.nn.recurrent_layer import RecurrentLayer


def pad_sequences(sequences: Sequence[jax.Array]) -> tuple[jax.Array, jax.Array]:
    """
    Put sequences of unequal length into one array, zeros at their ends.

    :param sequences: each (T_i, n), with T_i at least 1
    :returns: the batch (len(sequences), max T_i, n), in the order given, and the lengths
    :raises ValueError: if there are none, one is empty, or their widths differ
    """
    arrays = [jnp.asarray(seq) for seq in sequences]
    shapes = [array.shape for array in arrays]
    if not arrays or any(len(s) != 2 or s[0] == 0 or s[1] != shapes[0][1] for s in shapes):
        raise ValueError(
            f'expected sequences (T_i, n) of one width n and at least one sample, got {shapes}'
        )
    longest = max(shape[0] for shape in shapes)
    padded = [jnp.pad(array, ((0, longest - len(array)), (0, 0))) for array in arrays]
    return jnp.stack(padded), jnp.array([shape[0] for shape in shapes])


def unpad(padded: jax.Array, lengths: jax.Array) -> list[jax.Array]:
    """
    Cut the padding off, the inverse of :func:`pad_sequences`.

    :param padded: shape (batch, T, n)
    :param lengths: samples that count, shape (batch,); concrete, not inside of jit
    :returns: sequences (lengths[i], n) in the order of the batch
    """
    return [seq[: int(length)] for seq, length in zip(padded, lengths)]


def forward_padded(
    layer: Module, padded: jax.Array, lengths: jax.Array, rng_key: jax.Array | None = None
) -> jax.Array:
    """
    Run a layer or network over a padded batch.

    ``y[i, :lengths[i]] = layer.forward(padded[i, :lengths[i]])``.

    :param layer: any module of this package
    :param padded: shape (batch, T, n_in)
    :param lengths: samples that count, shape (batch,), each 1 to T
    :param rng_key: random key of the dropout; None for no dropout
    :returns: shape (batch, T, n_out), zero in the padding; (batch, n_out) from layers that give
        one vector for a sequence
    :raises ValueError: if shapes do not fit, or, outside of jit, a length is out of range
    """
    _check_lengths(padded, lengths)
    return layer.forward_padded(padded, lengths, rng_key)


def unroll_padded(
    layer: RecurrentLayer, padded: jax.Array, lengths: jax.Array, state: Any = None
) -> tuple[jax.Array, Any]:
    """
    Run a recurrent layer over a padded batch and keep the state after each one's last sample.

    :param layer: RNN, GRU or LSTM
    :param padded: shape (batch, T, n_in)
    :param lengths: samples that count, shape (batch,), each 1 to T
    :param state: to begin with, None for zero
    :returns: outputs (batch, T, n_hidden), zero in the padding, and the state, to go on from
    :raises ValueError: if shapes do not fit, or, outside of jit, a length is out of range
    """
    _check_lengths(padded, lengths)
    padded, _ = zero_padding(padded, lengths)
    outputs, state = layer.unroll(padded, state, jnp.asarray(lengths))
    return zero_padding(outputs, lengths)[0], state


def forward_sequences(
    layer: Module, sequences: Sequence[jax.Array], rng_key: jax.Array | None = None
) -> list[jax.Array]:
    """
    Run a layer or network over sequences of unequal length, all at once.

    :param layer: any module of this package
    :param sequences: each (T_i, n_in)
    :param rng_key: random key of the dropout; None for no dropout
    :returns: the outputs in the order given, each (T_i, n_out), or (n_out,) from layers that give
        one vector for a sequence
    :raises ValueError: as :func:`pad_sequences`
    """
    padded, lengths = pad_sequences(sequences)
    outputs = layer.forward_padded(padded, lengths, rng_key)
    return list(outputs) if layer.collapses_time else unpad(outputs, lengths)


def _check_lengths(padded: jax.Array, lengths: jax.Array) -> None:
    shape, lengths = jnp.shape(padded), jnp.asarray(lengths)
    if len(shape) != 3 or lengths.shape != shape[:1]:
        raise ValueError(
            f'expected a padded batch (batch, T, n) and lengths (batch,), got {shape} and '
            f'{lengths.shape}'
        )
    # Inside of jit the lengths are not known yet.
    if not isinstance(lengths, jax.core.Tracer):
        low, high = int(lengths.min()), int(lengths.max())
        if low < 1 or high > shape[1]:
            raise ValueError(f'lengths must be 1 to {shape[1]}, got {low} to {high}')
