"""
Settings of the classical filters: the ones that do best over a whole set of recordings.

A filter that is tuned once is what a person deploys; the Kalman filter tuned on each recording
with hindsight, the oracle, is what no person can deploy, and a bar to be measured against.
"""

from collections.abc import Callable
from collections.abc import Sequence

import numpy as np

from seqmem_ros.core.estimator import Estimator
from seqmem_ros.core.filters import Kalman
from seqmem_ros.core.filters import LowPass
from seqmem_ros.core.filters import SavitzkyGolay
from seqmem_ros.offline.sequences import kalman_together
from seqmem_ros.offline.sequences import rows_of
from seqmem_ros.offline.sequences import run_together
from seqmem_ros.offline.simulate import Recording

# Only the ratio of jerk_density to noise_rad^2 matters once the filter runs.
KALMAN_NOISE_RAD = 1e-4

GRIDS: dict[str, tuple[Callable[[float], Estimator], tuple[float, ...]]] = {
    'lowpass': (LowPass, tuple(np.geomspace(0.25, 250, 31))),
    'savgol': (lambda degree: SavitzkyGolay(int(degree)), (1.0, 2.0, 3.0)),
    'kalman': (
        lambda jerk_density: Kalman(jerk_density, KALMAN_NOISE_RAD),
        tuple(10.0 ** np.arange(-7, 9.5, 0.5)),
    ),
}
# Estimates before a window is full are not published, so they do not count.
SKIPPED_SAMPLES = 20
# Errors below this share of one count per sample are taken as equal: the logarithm of the error
# at a joint that stands still would else decide alone.
FLOOR_SHARE = 1e-3


def rmse_of(estimates: np.ndarray, recordings: Sequence[Recording]) -> np.ndarray:
    """
    Score estimates against the exact velocity.

    :param estimates: rad/s, shape (B, T), T samples of the longest recording
    :param recordings: B recordings
    :returns: root mean squared error of each recording in rad/s, shape (B,)
    """
    data = rows_of(recordings)
    squares = np.where(data.known, (estimates - data.velocity) ** 2, 0.0)[:, SKIPPED_SAMPLES:]
    return np.sqrt(squares.sum(axis=1) / data.known[:, SKIPPED_SAMPLES:].sum(axis=1))


def geometric_mean_rmse(rmse: np.ndarray, recordings: Sequence[Recording]) -> float:
    """
    Average over recordings so that a fast and a slow one count the same.

    :param rmse: rad/s, shape (B,)
    :param recordings: B recordings
    :returns: geometric mean in rad/s, errors floored at ``FLOOR_SHARE`` of a count per sample
    """
    count_rad_s = np.array([r.encoder.count_rad * r.encoder.rate_hz for r in recordings])
    return float(np.exp(np.mean(np.log(np.maximum(rmse, FLOOR_SHARE * count_rad_s)))))


def sweep(name: str, recordings: Sequence[Recording]) -> tuple[np.ndarray, np.ndarray]:
    """
    Try every setting of a filter on every recording.

    :param name: out of :data:`GRIDS`
    :param recordings: B recordings
    :returns: settings, shape (S,), and errors in rad/s, shape (S, B)
    """
    make, settings = GRIDS[name]
    if name == 'kalman':
        return np.array(settings), _kalman_errors(np.array(settings), recordings)
    errors = [rmse_of(run_together(make(s), recordings), recordings) for s in settings]
    return np.array(settings), np.stack(errors)


def _kalman_errors(densities: np.ndarray, recordings: Sequence[Recording]) -> np.ndarray:
    """Run all settings side by side: the finest grid belongs to the slowest filter."""
    data = rows_of(recordings)
    squares = np.zeros((len(densities), len(recordings)))
    estimates = kalman_together(recordings, densities[:, None], KALMAN_NOISE_RAD)
    for index, estimate in enumerate(estimates):
        if index >= SKIPPED_SAMPLES:
            squares += (estimate - data.velocity[:, index]) ** 2 * data.known[:, index]
    return np.sqrt(squares / data.known[:, SKIPPED_SAMPLES:].sum(axis=1))


def tuned_once(name: str, recordings: Sequence[Recording]) -> tuple[float, float]:
    """
    Find the setting that does best over all recordings.

    :param name: out of :data:`GRIDS`
    :param recordings: B recordings
    :returns: the setting, and its geometric mean error in rad/s
    """
    settings, errors = sweep(name, recordings)
    scores = [geometric_mean_rmse(row, recordings) for row in errors]
    best = int(np.argmin(scores))
    return float(settings[best]), scores[best]
