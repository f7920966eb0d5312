"""A low-pass that opens up when the joint is fast."""

from typing import Any

import numpy as np

from seqmem_ros.core.filters.filter import Filter
from seqmem_ros.core.filters.filter import kept
from seqmem_ros.core.filters.filter import newest_difference
from seqmem_ros.core.filters.filter import positive
from seqmem_ros.core.window import JointWindows


class OneEuro(Filter):
    r"""
    The backward difference d behind a low-pass whose corner rises with the speed.

    .. math::

        \hat s_t &= \hat s_{t-1} + \alpha(f_s) (d_t - \hat s_{t-1}), \quad
        f_t = f_{min} + \beta |\hat s_t| \\
        v_t &= v_{t-1} + \alpha(f_t) (d_t - v_{t-1}), \quad
        \alpha(f) = 1 / (1 + 1 / (2 \pi f T_1))

    Casiez, Roussel and Vogel, *1 Euro Filter*, CHI 2012, pp. 2527-2530. There the position goes
    through the second low-pass; here its difference does, with the same corner: a difference of
    the filtered position would jump whenever the corner moves.

    :param min_cutoff_hz: corner at rest :math:`f_{min}`
    :param beta: rise of the corner with speed, in 1/rad
    :param speed_cutoff_hz: corner :math:`f_s` of the low-pass that the speed is taken from
    :raises ValueError: if a corner is not above 0 or beta is below 0
    """

    name = 'one_euro'

    def __init__(
        self, min_cutoff_hz: float = 8.0, beta: float = 20.0, speed_cutoff_hz: float = 2.0
    ) -> None:
        if not 0 <= beta < float('inf'):
            raise ValueError(f'beta: expected a number from 0 up, got {beta}')
        self.min_cutoff_hz = positive('min_cutoff_hz', min_cutoff_hz, 'Hz')
        self.beta = beta
        self.speed_cutoff_hz = positive('speed_cutoff_hz', speed_cutoff_hz, 'Hz')

    def init_state(self, capacity: int) -> dict[str, np.ndarray]:
        """Make an empty memory; see :class:`~seqmem_ros.core.estimator.Estimator`."""
        return {'speed': np.zeros(capacity), 'velocity': np.zeros(capacity)}

    def step(self, windows: JointWindows, advance: np.ndarray, state: Any) -> tuple:
        """Take one new sample; see :class:`~seqmem_ros.core.estimator.Estimator`."""
        new = newest_difference(windows)
        step_s = windows.elapsed_s()[:, 0]
        # The second sample gives the first difference: there is nothing before it to keep.
        started = windows.count > 2
        speed, velocity = (np.where(started, state[n], new) for n in ('speed', 'velocity'))
        speed = speed + _alpha(self.speed_cutoff_hz, step_s) * (new - speed)
        cutoff_hz = self.min_cutoff_hz + self.beta * np.abs(speed)
        velocity = velocity + _alpha(cutoff_hz, step_s) * (new - velocity)
        return velocity, kept(advance, {'speed': speed, 'velocity': velocity}, state)


def _alpha(cutoff_hz: float | np.ndarray, step_s: np.ndarray) -> np.ndarray:
    turns = 2 * np.pi * cutoff_hz * step_s
    return turns / (1 + turns)
