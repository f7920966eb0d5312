"""Polynomials through many samples, as if they were evenly spaced."""

from typing import Any

import numpy as np

from seqmem_ros.core.filters.filter import Filter
from seqmem_ros.core.filters.filter import kept
from seqmem_ros.core.joints import NANOSECONDS_PER_SECOND
from seqmem_ros.core.window import JointWindows


class SavitzkyGolay(Filter):
    r"""
    The causal Savitzky-Golay filter: fixed weights on the last N positions.

    .. math:: v_t = \frac{1}{\bar T} \sum_{k=0}^{N-1} w_k p_{t-k}, \qquad
       w = e_1^T (A^T A)^{-1} A^T, \quad A_{kj} = (-k)^j

    with the mean step :math:`\bar T` over these samples: the slope, at the newest sample, of the
    polynomial of degree d that fits them best (Savitzky and Golay, *Analytical Chemistry* 36(8),
    1964, at the end of the window instead of its middle). It takes the samples as evenly spaced;
    :class:`~seqmem_ros.core.filters.least_squares.LeastSquares` does not, over the five of the
    window. Until N samples have come, the weights are those for as many as there are.

    :param degree: of the polynomial, 1 to 3
    :param samples: N, above the degree
    :raises ValueError: if a setting does not fit
    """

    name = 'savgol'

    def __init__(self, degree: int = 1, samples: int = 7) -> None:
        if degree not in (1, 2, 3):
            raise ValueError(f'degree: expected 1, 2 or 3, got {degree}')
        if not samples > degree:
            raise ValueError(f'samples: expected more than the degree {degree}, got {samples}')
        self.degree = degree
        self.samples = samples
        # Row n holds the weights for n samples, (samples + 1, samples).
        self._weights = np.zeros((samples + 1, samples))
        for n in range(2, samples + 1):
            self._weights[n, :n] = end_weights(n, min(degree, n - 1))

    def init_state(self, capacity: int) -> dict[str, np.ndarray]:
        """Make an empty memory; see :class:`~seqmem_ros.core.estimator.Estimator`."""
        return {
            'position': np.zeros((capacity, self.samples)),
            'stamp_ns': np.zeros((capacity, self.samples), np.int64),
        }

    def step(self, windows: JointWindows, advance: np.ndarray, state: Any) -> tuple:
        """Take one new sample; see :class:`~seqmem_ros.core.estimator.Estimator`."""
        newest = {'position': windows.position, 'stamp_ns': windows.stamp_ns}
        n = np.minimum(windows.count, self.samples)
        remembered = np.arange(1, self.samples) < n[:, None]
        new = {}  # newest first
        for name, values in newest.items():
            # What was there before a start may be anything.
            older = np.where(remembered, state[name][:, :-1], values[:, -1:])
            new[name] = np.concatenate([values[:, -1:], older], axis=1)
        oldest_ns = new['stamp_ns'][np.arange(len(n)), np.maximum(n - 1, 0)]
        total_s = (new['stamp_ns'][:, 0] - oldest_ns) / NANOSECONDS_PER_SECOND
        # Weights add up to zero, so the newest position may be the origin.
        slope = np.sum(self._weights[n] * (new['position'] - new['position'][:, :1]), axis=1)
        running = (n > 1) & (total_s > 0)
        mean_step_s = np.where(running, total_s, 1.0) / np.maximum(n - 1, 1)
        return np.where(running, slope / mean_step_s, 0.0), kept(advance, new, state)


def end_weights(samples: int, degree: int) -> np.ndarray:
    """
    Weights of the slope at the newest sample; see :class:`SavitzkyGolay`.

    :param samples: N
    :param degree: d, below N
    :returns: for positions from the newest to the oldest, one step apart, shape (N,)
    """
    # In units of the window: powers of up to a hundred steps would lose digits.
    tau = -np.arange(samples) / (samples - 1)
    return np.linalg.pinv(tau[:, None] ** np.arange(degree + 1))[1] / (samples - 1)
