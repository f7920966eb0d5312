"""A sliding-mode differentiator."""

from typing import Any

import numpy as np

from seqmem_ros.core.filters.filter import Filter
from seqmem_ros.core.filters.filter import kept
from seqmem_ros.core.filters.filter import newest_difference
from seqmem_ros.core.filters.filter import positive
from seqmem_ros.core.window import JointWindows

# Levant's choice; it converges for any signal whose second derivative stays below L.
LAMBDA_0 = 1.1
LAMBDA_1 = 1.5


class SuperTwisting(Filter):
    r"""
    Levant's robust exact differentiator of first order, stepped by the implicit Euler method.

    .. math::

        \dot z_0 = -1.5 \sqrt{L} |z_0 - p|^{1/2} \mathrm{sgn}(z_0 - p) + z_1, \quad
        \dot z_1 = -1.1 L \, \mathrm{sgn}(z_0 - p), \quad v = z_1

    Levant, *Automatica* 34(3), 1998, Section 3, and *Int. J. Control* 76(9-10), 2003. With the
    measured step T and :math:`b = z_0 + T z_1 - p_t`, the error that remains is zero where
    :math:`|b| \le 1.1 L T^2`, and then :math:`z_1 \leftarrow z_1 - b/T`; else it has the sign of b
    and its root y solves

    .. math:: y^2 + 1.5 \sqrt{L} T y - (|b| - 1.1 L T^2) = 0, \quad
       z_1 \leftarrow z_1 - 1.1 L T \, \mathrm{sgn}(b)

    Unlike the explicit step it does not chatter where nothing is to be corrected (Brogliato,
    Polyakov and Efimov, *IEEE Trans. Automatic Control* 65(8), 2020, on the super-twisting
    algorithm), and it holds for any T.

    :param max_acceleration: L in rad/s^2
    :raises ValueError: if it is not above 0
    """

    name = 'super_twisting'

    def __init__(self, max_acceleration: float = 31.6) -> None:
        self.max_acceleration = positive('max_acceleration', max_acceleration, 'rad/s^2')

    def init_state(self, capacity: int) -> dict[str, np.ndarray]:
        """Make an empty memory; see :class:`~seqmem_ros.core.estimator.Estimator`."""
        return {'error': np.zeros(capacity), 'velocity': np.zeros(capacity)}

    def step(self, windows: JointWindows, advance: np.ndarray, state: Any) -> tuple:
        """Take one new sample; see :class:`~seqmem_ros.core.estimator.Estimator`."""
        step_s = windows.elapsed_s()[:, 0]
        # z_0 is kept as its error, so that it serves at any distance from zero.
        started = windows.count > 2
        velocity = np.where(started, state['velocity'], newest_difference(windows))
        error = np.where(started, state['error'], 0.0)
        moved = np.where(started, windows.differences()[:, 0], step_s * velocity)
        predicted = error + step_s * velocity - moved
        slide = LAMBDA_0 * self.max_acceleration * step_s
        excess = np.maximum(np.abs(predicted) - slide * step_s, 0.0)
        half = LAMBDA_1 * np.sqrt(self.max_acceleration) * step_s / 2
        # The positive root, without the difference of two near numbers.
        root = excess / np.maximum(half + np.sqrt(half**2 + excess), 1e-300)
        error = np.sign(predicted) * root**2
        correction = np.clip(predicted / np.maximum(step_s, 1e-9), -slide, slide)
        velocity = velocity - correction
        return velocity, kept(advance, {'error': error, 'velocity': velocity}, state)
