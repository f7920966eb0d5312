"""The memory of the classical filters, to hold that of a network against."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from seqmem_ros.core.filters import Kalman
from seqmem_ros.core.filters import LowPass
from seqmem_ros.core.filters import SavitzkyGolay
from seqmem_ros.core.joints import NANOSECONDS_PER_SECOND
from seqmem_ros.core.memory_linear import linear_memory
from seqmem_ros.core.memory_linear import LinearMemory
from seqmem_ros.core.memory_linear import one_pole
from seqmem_ros.core.memory_linear import OnePole
from seqmem_ros.core.window import JointWindows

# The default filter remembers some twenty samples at 1000 Hz; its gain settles as fast.
_SETTLING_SAMPLES = 1000


class FilterMemory(NamedTuple):
    """
    What a classical filter keeps at one rate.

    :param name: of the filter
    :param reach_samples: samples that can count in an estimate; infinite for a recursive filter
    :param one_pole: from the difference to the estimate; None where that is not one pole
    :param modes: of its state; None for a filter without one
    """

    name: str
    reach_samples: float
    one_pole: OnePole | None = None
    modes: LinearMemory | None = None


def filter_memories(rate_hz: float) -> list[FilterMemory]:
    """
    Describe the filters with their default settings.

    :param rate_hz: of the samples
    :returns: difference, lowpass, savgol, kalman
    """
    modes = linear_memory(kalman_matrix(Kalman(), rate_hz))
    return [
        FilterMemory('difference', 2, one_pole(0.0)),
        FilterMemory('lowpass', math.inf, low_pass_pole(LowPass().cutoff_hz, rate_hz)),
        FilterMemory('savgol', SavitzkyGolay().samples),
        FilterMemory('kalman', math.inf, modes=modes),
    ]


def low_pass_pole(cutoff_hz: float, rate_hz: float) -> OnePole:
    """
    Describe a first-order low-pass at one rate.

    ``v_t = a v_(t-1) + (1 - a) d_t, a = exp(-2 pi f_c / f_s)``, as in
    :class:`~seqmem_ros.core.filters.LowPass`.

    :param cutoff_hz: f_c
    :param rate_hz: f_s
    :returns: pole, horizon and DC gain
    """
    pole = math.exp(-2 * math.pi * cutoff_hz / rate_hz)
    return one_pole(pole, 1 - pole)


def kalman_matrix(kalman: Kalman, rate_hz: float) -> np.ndarray:
    """
    Find what one step of a settled Kalman filter does to its mean: ``x' = A x + K p``.

    ``A = (I - K H) F`` with the gain K of the steady state, from the equations of
    :class:`~seqmem_ros.core.filters.Kalman`: ``x' = F x + K (p - H F x)``.

    :param kalman: the filter
    :param rate_hz: of the samples
    :returns: A, shape (3, 3); its eigenvalues have no unit
    """
    # The filter is linear: its step takes the unit vectors to the columns of A. The covariance
    # goes its way whatever is measured, so it is taken after a joint has stood still at zero.
    rows, advance = np.arange(3), np.ones(3, bool)
    windows = JointWindows(3)
    state = kalman.init_state(3)
    for index in range(_SETTLING_SAMPLES):
        windows.push(rows, round(index * NANOSECONDS_PER_SECOND / rate_hz), np.zeros(3))
        if index == _SETTLING_SAMPLES - 1:
            state = {**state, 'mean': np.eye(3)}
        _, state = kalman.step(windows, advance, state)
    return state['mean'].T
