"""The bar: a constant-acceleration Kalman filter with measured time steps."""

from typing import Any

import numpy as np

from seqmem_ros.core.filters.filter import Filter
from seqmem_ros.core.filters.filter import kept
from seqmem_ros.core.filters.filter import positive
from seqmem_ros.core.window import JointWindows


class Kalman(Filter):
    r"""
    A Kalman filter on position, velocity and acceleration driven by white jerk.

    .. math::

        x_{t|t-1} = F x_{t-1}, \quad P_{t|t-1} = F P F^T + Q, \quad
        K = P_{t|t-1} H^T / (H P_{t|t-1} H^T + r^2)

    with the measured time step in F and in the exact discretised
    :math:`Q = q \int_0^T F(s) e_3 e_3^T F(s)^T ds` (Bar-Shalom, Li and Kirubarajan,
    *Estimation with Applications to Tracking and Navigation*, 2001, Section 6.2.3, the
    continuous Wiener-process acceleration model).

    :param jerk_density: q, rad^2/s^5
    :param noise_rad: standard deviation r of a measured position, rad
    :raises ValueError: if one of them is not above 0
    """

    name = 'kalman'

    def __init__(self, jerk_density: float = 10.0, noise_rad: float = 1e-4) -> None:
        self.jerk_density = positive('jerk_density', jerk_density, 'rad^2/s^5')
        self.noise_rad = positive('noise_rad', noise_rad, 'rad')

    def init_state(self, capacity: int) -> dict[str, np.ndarray]:
        """Make an empty memory; see :class:`~seqmem_ros.core.estimator.Estimator`."""
        return {'mean': np.zeros((capacity, 3)), 'covariance': np.zeros((capacity, 6))}

    def step(self, windows: JointWindows, advance: np.ndarray, state: Any) -> tuple:
        """Take one new sample; see :class:`~seqmem_ros.core.estimator.Estimator`."""
        first = windows.count == 1
        position = windows.position[:, -1]
        new = kalman_step(
            (state['mean'].T, state['covariance'].T),
            windows.elapsed_s()[:, 0],
            position,
            self.jerk_density,
            self.noise_rad,
        )
        start = kalman_start(position, self.noise_rad)
        mean, covariance = (np.where(first, s, n).T for s, n in zip(start, new))
        return mean[:, 1], kept(advance, {'mean': mean, 'covariance': covariance}, state)


def kalman_start(position: np.ndarray, noise_rad: float) -> tuple[np.ndarray, np.ndarray]:
    """
    Begin where velocity and acceleration are unknown and the position is measured.

    :param position: rad, shape (R,)
    :param noise_rad: standard deviation of a measured position, rad
    :returns: mean of position, velocity and acceleration, shape (3, R), and the upper triangle
        of their covariance row by row, shape (6, R)
    """
    zero = np.zeros_like(position)
    variances = (noise_rad**2, 0.0, 0.0, 10.0**2, 0.0, 100.0**2)
    return np.stack([position, zero, zero]), np.stack([zero + value for value in variances])


def kalman_step(
    state: tuple[np.ndarray, np.ndarray],
    step_s: np.ndarray,
    position: np.ndarray,
    jerk_density: float | np.ndarray,
    noise_rad: float,
) -> tuple[np.ndarray, np.ndarray]:
    """
    Predict and correct by one measured position; the equations are those of :class:`Kalman`.

    Written out by entries: for matrices of three a batched product costs more than its sums.

    :param state: mean and covariance, see :func:`kalman_start`
    :param step_s: time since the last sample in s, broadcasts to shape (R,)
    :param position: rad, broadcasts to shape (R,)
    :param jerk_density: q in rad^2/s^5, one for all rows or shape (R,)
    :param noise_rad: r in rad
    :returns: the new mean and covariance
    """
    (p, v, a), (pp, pv, pa, vv, va, aa) = state
    t, half = step_s, step_s**2 / 2
    p, v = p + t * v + half * a, v + t * a
    pp = pp + 2 * t * pv + 2 * half * pa + t**2 * vv + 2 * t * half * va + half**2 * aa
    pv = pv + t * vv + half * va + t * (pa + t * va + half * aa)
    pa = pa + t * va + half * aa
    vv = vv + 2 * t * va + t**2 * aa
    va = va + t * aa
    q = jerk_density
    pp, pv, pa = pp + q * t**5 / 20, pv + q * t**4 / 8, pa + q * t**3 / 6
    vv, va, aa = vv + q * t**3 / 3, va + q * t**2 / 2, aa + q * t
    innovation, total = position - p, pp + noise_rad**2
    k_p, k_v, k_a = pp / total, pv / total, pa / total
    keep = noise_rad**2 / total  # 1 - k_p without the difference of two near numbers
    mean = np.stack([p + k_p * innovation, v + k_v * innovation, a + k_a * innovation])
    covariance = np.stack(
        [keep * pp, keep * pv, keep * pa, vv - k_v * pv, va - k_v * pa, aa - k_a * pa]
    )
    return mean, covariance
