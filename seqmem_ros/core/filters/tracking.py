"""The observer inside encoder interfaces."""

from typing import Any

import numpy as np

from seqmem_ros.core.filters.filter import Filter
from seqmem_ros.core.filters.filter import kept
from seqmem_ros.core.filters.filter import newest_difference
from seqmem_ros.core.filters.filter import positive
from seqmem_ros.core.window import JointWindows


class Tracking(Filter):
    r"""
    A tracking observer, or phase-locked loop: position and velocity, corrected by the error.

    .. math:: \dot{\hat p} = v + 2 \zeta \omega (p - \hat p), \quad
       \dot v = \omega^2 (p - \hat p)

    (Lorenz and Van Patten, *IEEE Trans. Industry Applications* 27(4), 1991, without the torque
    feedforward). Its poles :math:`s_{1,2}` are kept exactly over a measured step T, whatever it
    is, by the gains

    .. math:: r = p_t - (\hat p + v T), \quad \hat p \leftarrow p_t - z_1 z_2 r, \quad
       v \leftarrow v + (1 - z_1)(1 - z_2) r / T, \quad z_i = e^{s_i T}

    which for :math:`\zeta = 1` are those of the fading-memory filter of order one (Zarchan and
    Musoff, *Fundamentals of Kalman Filtering*, 3rd ed. 2009, Table 3.3).

    :param bandwidth_hz: :math:`\omega / 2 \pi`
    :param damping: :math:`\zeta`, above 0 to 1
    :raises ValueError: if a setting is out of its range
    """

    name = 'tracking'

    def __init__(self, bandwidth_hz: float = 12.6, damping: float = 0.4) -> None:
        if not 0 < damping <= 1:
            raise ValueError(f'damping: expected a number above 0 and up to 1, got {damping}')
        self.bandwidth_hz = positive('bandwidth_hz', bandwidth_hz, 'Hz')
        self.damping = damping

    def init_state(self, capacity: int) -> dict[str, np.ndarray]:
        """Make an empty memory; see :class:`~seqmem_ros.core.estimator.Estimator`."""
        return {'error': np.zeros(capacity), 'velocity': np.zeros(capacity)}

    def step(self, windows: JointWindows, advance: np.ndarray, state: Any) -> tuple:
        """Take one new sample; see :class:`~seqmem_ros.core.estimator.Estimator`."""
        step_s = windows.elapsed_s()[:, 0]
        turn = 2 * np.pi * self.bandwidth_hz * step_s
        product = np.exp(-2 * self.damping * turn)
        total = 2 * np.sqrt(product) * np.cos(turn * np.sqrt(1 - self.damping**2))
        # The position is kept as its error, so that it serves at any distance from zero.
        started = windows.count > 2
        velocity = np.where(started, state['velocity'], newest_difference(windows))
        error = np.where(started, state['error'], 0.0)
        moved = np.where(started, windows.differences()[:, 0], step_s * velocity)
        innovation = moved - error - step_s * velocity
        velocity = velocity + (1 + product - total) * innovation / np.maximum(step_s, 1e-9)
        new = {'error': -product * innovation, 'velocity': velocity}
        return velocity, kept(advance, new, state)
