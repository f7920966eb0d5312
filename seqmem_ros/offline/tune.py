"""
Settings of the classical filters: the ones that do best over a whole set of recordings.

A filter that is tuned once is what a person deploys; the Kalman filter tuned on each recording
with hindsight, the oracle, is what no person can deploy, and a bar to be measured against.
``python -m seqmem_ros.offline.tune`` prints the settings that are the filters' defaults.
"""

import argparse
from collections.abc import Sequence
import itertools
import sys

import numpy as np

from seqmem_ros.core.estimators import FILTERS
from seqmem_ros.offline.sequences import kalman_together
from seqmem_ros.offline.sequences import rows_of
from seqmem_ros.offline.sequences import run_together
from seqmem_ros.offline.simulate import Recording
from seqmem_ros.offline.simulate import simulate

# Only the ratio of jerk_density to noise_rad^2 matters once the filter runs.
KALMAN_NOISE_RAD = 1e-4

# Values of each setting of each filter; all combinations are tried. Filters that are not here
# have no setting.
GRIDS: dict[str, dict[str, tuple[float, ...]]] = {
    'lowpass': {'cutoff_hz': tuple(np.geomspace(0.25, 250, 31))},
    'savgol': {'degree': (1, 2, 3), 'samples': (5, 7, 9, 11, 15, 21, 31, 45)},
    'kalman': {
        'jerk_density': tuple(10.0 ** np.arange(-7, 9.5, 0.5)),
        'noise_rad': (KALMAN_NOISE_RAD,),
    },
    'one_euro': {
        'min_cutoff_hz': (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0),
        'beta': (0.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0),
        'speed_cutoff_hz': (1.0, 2.0, 5.0, 10.0, 20.0),
    },
    'super_twisting': {'max_acceleration': tuple(10.0 ** np.arange(-2, 3.25, 0.25))},
    'tracking': {
        'bandwidth_hz': tuple(np.geomspace(0.25, 100, 27)),
        'damping': (0.3, 0.4, 0.5, 0.7, 1.0),
    },
}
# Drawn from a seed that neither training, which counts up from 0, nor any score uses.
TRAINING_SEED = 20_261_130
TRAINING_RECORDINGS = 300
TRAINING_SAMPLES = 512
# Estimates before a window is full are not published, so they do not count.
SKIPPED_SAMPLES = 20
# Errors below this share of one count per sample are taken as equal: the logarithm of the error
# at a joint that stands still would else decide alone.
FLOOR_SHARE = 1e-3

Setting = dict[str, float]


def training_set(
    n_recordings: int = TRAINING_RECORDINGS, n_samples: int = TRAINING_SAMPLES
) -> list[Recording]:
    """
    Draw the recordings that the filters are tuned on.

    :param n_recordings: how many
    :param n_samples: length of each
    :returns: simulated recordings of any rate, resolution and motion
    """
    rng = np.random.default_rng(TRAINING_SEED)
    return [simulate(rng, n_samples) for _ in range(n_recordings)]


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


def settings_of(name: str) -> list[Setting]:
    """
    List what is tried.

    :param name: of a filter
    :returns: all combinations of its values in :data:`GRIDS`; one without any if it has none
    """
    grid = GRIDS.get(name, {})
    return [dict(zip(grid, values)) for values in itertools.product(*grid.values())]


def sweep(name: str, recordings: Sequence[Recording]) -> tuple[list[Setting], np.ndarray]:
    """
    Try every setting of a filter on every recording.

    :param name: of the filter
    :param recordings: B recordings
    :returns: S settings, and errors in rad/s, shape (S, B)
    """
    settings = settings_of(name)
    if name == 'kalman':
        return settings, _kalman_errors(recordings)
    errors = [
        rmse_of(run_together(FILTERS[name](**setting), recordings), recordings)
        for setting in settings
    ]
    return settings, np.stack(errors)


def _kalman_errors(recordings: Sequence[Recording]) -> np.ndarray:
    """Run all settings side by side: the largest sweep belongs to the slowest filter."""
    densities = np.array(GRIDS['kalman']['jerk_density'])
    data = rows_of(recordings)
    squares = np.zeros((len(densities), len(recordings)))
    estimates = kalman_together(recordings, densities[:, None], KALMAN_NOISE_RAD)
    for index, estimate in enumerate(estimates):
        if index >= SKIPPED_SAMPLES:
            squares += (estimate - data.velocity[:, index]) ** 2 * data.known[:, index]
    return np.sqrt(squares / data.known[:, SKIPPED_SAMPLES:].sum(axis=1))


def tuned_once(name: str, recordings: Sequence[Recording]) -> tuple[Setting, float]:
    """
    Find the setting that does best over all recordings.

    :param name: of the filter
    :param recordings: B recordings
    :returns: the setting, and its geometric mean error in rad/s
    """
    settings, errors = sweep(name, recordings)
    scores = [geometric_mean_rmse(row, recordings) for row in errors]
    best = int(np.argmin(scores))
    return settings[best], scores[best]


def main(argv: Sequence[str] | None = None) -> int:
    """
    Print the best setting of each filter over the training set.

    :param argv: arguments without the program's name; None: those of the process
    :returns: exit code
    """
    parser = argparse.ArgumentParser(description='Tune the classical filters once.')
    parser.add_argument('filters', nargs='*', default=list(FILTERS), help='names (all)')
    recordings = training_set()
    for name in parser.parse_args(argv).filters:
        setting, score = tuned_once(name, recordings)
        text = ', '.join(f'{key}={value:.4g}' for key, value in setting.items())
        print(f'{name:<16}{score:.5f} rad/s  {text}', flush=True)
    return 0


if __name__ == '__main__':
    sys.exit(main())
