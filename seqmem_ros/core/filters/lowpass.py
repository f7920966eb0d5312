"""The filter that most drivers have."""

from typing import Any

import numpy as np

from seqmem_ros.core.filters.filter import Filter
from seqmem_ros.core.filters.filter import kept
from seqmem_ros.core.filters.filter import newest_difference
from seqmem_ros.core.filters.filter import positive
from seqmem_ros.core.window import JointWindows


class LowPass(Filter):
    r"""
    A first-order low-pass of the backward difference, exact for uneven sampling.

    .. math:: v_t = v_{t-1} + (1 - e^{-2 \pi f_c T_1}) (d_1 / T_1 - v_{t-1})

    The discrete form of an RC filter under a held input (Oppenheim and Schafer,
    *Discrete-Time Signal Processing*, impulse invariance); at an even rate, exponential
    smoothing.

    :param cutoff_hz: corner frequency :math:`f_c`
    :raises ValueError: if it is not above 0
    """

    name = 'lowpass'

    def __init__(self, cutoff_hz: float = 12.5) -> None:
        self.cutoff_hz = positive('cutoff_hz', cutoff_hz, 'Hz')

    def init_state(self, capacity: int) -> dict[str, np.ndarray]:
        """Make an empty memory; see :class:`~seqmem_ros.core.estimator.Estimator`."""
        return {'velocity': np.zeros(capacity)}

    def step(self, windows: JointWindows, advance: np.ndarray, state: Any) -> tuple:
        """Take one new sample; see :class:`~seqmem_ros.core.estimator.Estimator`."""
        new = newest_difference(windows)
        gain = -np.expm1(-2 * np.pi * self.cutoff_hz * windows.elapsed_s()[:, 0])
        # The second sample gives the first difference: there is nothing before it to keep.
        started = windows.count > 2
        velocity = np.where(started, state['velocity'], new)
        velocity = velocity + gain * (new - velocity)
        return velocity, kept(advance, {'velocity': velocity}, state)
