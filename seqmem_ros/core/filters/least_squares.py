"""Polynomials through the window."""

from typing import Any

import numpy as np

from seqmem_ros.core.filters.filter import Filter
from seqmem_ros.core.window import JointWindows

# Windows that are not full hold their first sample several times: no cubic is unique there. In
# units of the window squared; a full window's smallest eigenvalue is about 1e-4.
_RIDGE = 1e-13


class LeastSquares(Filter):
    r"""
    The slope, at the newest sample, of the polynomial that fits the window best.

    With measured times :math:`\tau_k = -T_k`, k from 0 to 4,

    .. math:: \min_{c_0 \dots c_d} \sum_k \Big(p_{t-k} - \sum_j c_j \tau_k^j\Big)^2,
       \qquad v_t = c_1

    Over five even samples the noise gain is 0.316, 1.115 and 2.526 over T for a line, a
    parabola and a cubic; the line lags by 2 T. Fitted at the measured times, so that jitter and
    losses do no harm (Brown, Schneider and Mulligan, *IEEE Trans. Industrial Electronics*
    39(1), 1992, compares these with Taylor expansions and differences).
    """

    degree = 0

    def step(self, windows: JointWindows, advance: np.ndarray, state: Any) -> tuple:
        """Take one new sample; see :class:`~seqmem_ros.core.estimator.Estimator`."""
        elapsed_s = windows.elapsed_s()
        longest_s = np.maximum(elapsed_s[:, -1], 1e-9)
        # Times in units of the window keep the normal equations well conditioned.
        tau = -elapsed_s / longest_s[:, None]
        tau = np.concatenate([np.zeros((len(tau), 1)), tau], axis=1)  # (R, window)
        drop = -windows.differences()
        basis = tau[:, :, None] ** np.arange(self.degree + 1)  # (R, window, degree + 1)
        gram = basis.transpose(0, 2, 1) @ basis + _RIDGE * np.eye(self.degree + 1)
        # The newest position is the origin, so it adds nothing to the right-hand side.
        right = basis[:, 1:].transpose(0, 2, 1) @ drop[:, :, None]
        return np.linalg.solve(gram, right)[:, 1, 0] / longest_s, state


class Line(LeastSquares):
    """The best line through the window; see :class:`LeastSquares`."""

    name = 'line'
    degree = 1


class Quadratic(LeastSquares):
    """The best parabola through the window; see :class:`LeastSquares`."""

    name = 'quadratic'
    degree = 2


class Cubic(LeastSquares):
    """The best cubic through the window; see :class:`LeastSquares`."""

    name = 'cubic'
    degree = 3
