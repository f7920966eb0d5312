"""
How long a cell remembers, seen as a linear filter.

Near an operating point every cell is ``s' = A s + B x``. Its eigenvalues are the poles of that
filter: a pole of size a keeps ``a^n`` of what it held after n samples.
"""

from __future__ import annotations

import math
from typing import Any
from typing import NamedTuple

import jax
from jax.flatten_util import ravel_pytree
import numpy as np

from seqmem_ros.nn import Module


class OnePole(NamedTuple):
    """
    The filter ``h' = a h + b x``.

    :param pole: a
    :param horizon_samples: samples until 1/e is left, ``-1 / ln |a|``; infinite where
        ``|a| >= 1``
    :param dc_gain: output for a constant input of 1, ``b / (1 - a)``; infinite where there is no
        end to its growth
    """

    pole: float
    horizon_samples: float
    dc_gain: float


class Mode(NamedTuple):
    """
    One eigenvalue of a linearised cell.

    :param value: the eigenvalue
    :param radius: its size, dimensionless
    :param horizon_samples: samples until 1/e is left
    :param period_samples: samples of one turn, ``2 pi / |angle|``; infinite where it is real and
        positive
    """

    value: complex
    radius: float
    horizon_samples: float
    period_samples: float


class LinearMemory(NamedTuple):
    """
    What the matrix of a linearised cell says about its memory.

    :param modes: eigenvalues, the longest memory first
    :param spectral_radius: largest size of an eigenvalue: below 1 the past fades in the end
    :param largest_singular_value: largest growth in one step: below 1 it fades in every step
    """

    modes: list[Mode]
    spectral_radius: float
    largest_singular_value: float


def horizon_samples(radius: float) -> float:
    """
    Tell after how many samples 1/e of a mode is left.

    ``-1 / ln r``, from ``r^n = 1/e``. Oppenheim and Schafer, *Discrete-time signal processing*
    (3rd ed., 2010), section 3.1, Example 3.1 for the sequence ``a^n u[n]``.

    :param radius: r, size of the pole, at least 0
    :returns: in samples; infinite from r = 1 on, 0 for r = 0
    """
    if radius >= 1:
        return math.inf
    return -1 / math.log(radius) if radius > 0 else 0.0


def one_pole(pole: float, input_gain: float = 1.0) -> OnePole:
    """
    Describe the filter ``h' = a h + b x``.

    :param pole: a
    :param input_gain: b
    :returns: pole, horizon and DC gain
    """
    dc_gain = input_gain / (1 - pole) if abs(pole) < 1 else math.copysign(math.inf, input_gain)
    return OnePole(float(pole), horizon_samples(abs(pole)), float(dc_gain))


def linear_memory(A: np.ndarray) -> LinearMemory:
    """
    Find the modes of ``s' = A s``.

    :param A: matrix of one step, shape (n, n)
    :returns: modes, spectral radius, largest singular value
    """
    A = np.asarray(A, np.float64)
    values = np.linalg.eigvals(A)
    modes = [_mode(complex(value)) for value in values[np.argsort(-np.abs(values), kind='stable')]]
    return LinearMemory(modes, modes[0].radius, float(np.linalg.norm(A, 2)))


def linearise(layer: Module, x: np.ndarray, state: Any) -> tuple[np.ndarray, np.ndarray]:
    """
    Differentiate one step: ``s' = A (s - s_0) + B (x - x_0) + ...``.

    The state is one vector here, the LSTM's y before its c.

    :param layer: RNN, GRU or LSTM
    :param x: x_0, shape (n_in,)
    :param state: s_0, from ``init_state`` or a step
    :returns: A, shape (S, S), and B, shape (S, n_in); S is H, for the LSTM 2 H
    """
    flat, unflatten = ravel_pytree(state)

    def advance(flat: jax.Array, x: jax.Array) -> jax.Array:
        return ravel_pytree(layer.step(x, unflatten(flat))[1])[0]

    A, B = jax.jacfwd(advance, argnums=(0, 1))(flat, jax.numpy.asarray(x, flat.dtype))
    return np.asarray(A, np.float64), np.asarray(B, np.float64)


def settled_state(layer: Module, x: np.ndarray, n_samples: int = 1000) -> Any:
    """
    Let a cell come to rest under a constant input, as a place to linearise it at.

    :param layer: RNN, GRU or LSTM
    :param x: input, shape (n_in,)
    :param n_samples: how long to wait
    :returns: the state then
    """
    x = jax.numpy.asarray(x)
    return jax.lax.fori_loop(
        0, n_samples, lambda _, state: layer.step(x, state)[1], layer.init_state()
    )


def unit_poles(A: np.ndarray, B: np.ndarray) -> list[OnePole]:
    """
    See each unit as a one-pole filter of its own, the other units held still.

    ``a = A_ii``; b is the unit's row of B, taken with the input that drives it most.

    :param A: shape (S, S)
    :param B: shape (S, n_in)
    :returns: one filter for each unit
    """
    strongest = [row[np.argmax(np.abs(row))] for row in np.asarray(B)]
    return [one_pole(a, b) for a, b in zip(np.diag(A), strongest)]


def _mode(value: complex) -> Mode:
    angle_rad = abs(np.angle(value))
    period = 2 * math.pi / angle_rad if angle_rad > 0 else math.inf
    return Mode(value, abs(value), horizon_samples(abs(value)), float(period))
