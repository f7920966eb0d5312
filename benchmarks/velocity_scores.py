"""
Scores of velocity estimators on a suite, and the peers that they are measured against.

A number of a cell is the geometric mean over its recordings, so that a fast joint and a slow one
count the same; errors below a thousandth of one count per sample count as that.
"""

from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import field
from pathlib import Path

import numpy as np
from velocity_suite import Cell
from velocity_suite import MAX_GAP_S
from velocity_suite import Suite

from seqmem_ros.core.estimator import Estimator
from seqmem_ros.core.estimators import FILTERS
from seqmem_ros.core.filters import Filter
from seqmem_ros.core.joints import NANOSECONDS_PER_SECOND
from seqmem_ros.core.model import SequenceModel
from seqmem_ros.core.spec import WINDOW
from seqmem_ros.core.weights import load_model
from seqmem_ros.offline.metrics import lag_grid_s
from seqmem_ros.offline.metrics import LagCurve
from seqmem_ros.offline.metrics import standstill
from seqmem_ros.offline.sequences import forward_together
from seqmem_ros.offline.sequences import kalman_together
from seqmem_ros.offline.sequences import rows_of
from seqmem_ros.offline.sequences import run_together
from seqmem_ros.offline.shifted import shifted_errors
from seqmem_ros.offline.simulate import Recording
from seqmem_ros.offline.tune import FLOOR_SHARE
from seqmem_ros.offline.tune import KALMAN_NOISE_RAD
from seqmem_ros.offline.tune import SKIPPED_SAMPLES
from seqmem_ros.offline.tune import sweep

ORACLE = 'oracle'
AFTER_STOP_S = 0.05
# Enough to find a minimum; more would only take longer.
LAG_SAMPLES = 2000
# What is measured of each recording, NaN where there is nothing to say. All are RMS errors in
# rad/s but p99, the 99th percentile of their magnitude; peak, the largest estimate over the
# largest velocity; and the lag.
MEASURES = ('rmse', 'p99', 'standstill', 'after_stop', 'peak', 'lag_s', 'rmse_at_lag')
QUICK = MEASURES[:5]


@dataclass(eq=False)
class Scores:
    """
    Errors of every estimator on every recording.

    :ivar suite: what was played
    :ivar errors: by estimator and by measure out of :data:`MEASURES`, shape (B,)
    """

    suite: Suite
    errors: dict[str, dict[str, np.ndarray]] = field(default_factory=dict)

    @property
    def models(self) -> list[str]:
        """Names of what is neither a filter nor the oracle."""
        return [name for name in self.errors if name not in FILTERS and name != ORACLE]

    @property
    def filters(self) -> list[str]:
        """Names of the filters that were tuned once."""
        return [name for name in self.errors if name in FILTERS]

    def floored(self, name: str, measure: str = 'rmse') -> np.ndarray:
        """
        Give the errors of an estimator as they are averaged.

        :param name: of the estimator
        :param measure: out of :data:`MEASURES`
        :returns: rad/s, shape (B,)
        """
        count_rad_s = [r.encoder.count_rad * r.encoder.rate_hz for r in self.suite.recordings]
        return np.maximum(self.errors[name][measure], FLOOR_SHARE * np.array(count_rad_s))

    def by_cell(self, name: str, measure: str = 'rmse') -> dict[Cell, float]:
        """
        Average the recordings of each cell.

        :param name: of the estimator
        :param measure: out of :data:`MEASURES`
        :returns: over the recordings that have the measure, the median of the lag, the largest
            peak, the geometric mean of all else; NaN without any
        """
        average = {'lag_s': _median, 'peak': np.max}.get(measure, geometric_mean)
        values = self.errors[name][measure]
        if average is geometric_mean:
            values = self.floored(name, measure)
        cells = np.array([str(cell) for cell in self.suite.cells])
        return {
            cell: float(average(values[cells == str(cell)]))
            for cell in dict.fromkeys(self.suite.cells)
        }

    def ratio(self, name: str, peer: str, measure: str = 'rmse') -> dict[Cell, float]:
        """
        Compare two estimators cell by cell.

        :param name: of the one
        :param peer: of the other
        :param measure: out of :data:`MEASURES`
        :returns: error of the one over that of the other
        """
        own, other = self.by_cell(name, measure), self.by_cell(peer, measure)
        return {cell: own[cell] / other[cell] for cell in own}

    def best_filter(self) -> str:
        """Name the filter whose RMSE has the least geometric mean over all cells."""
        means = {f: geometric_mean(self.by_cell(f).values()) for f in self.filters}
        return min(means, key=means.get)


_peers: dict[int, tuple[Suite, Scores]] = {}


def score(
    models: Mapping[str, SequenceModel | Estimator | str | Path],
    suite: Suite,
    measures: Sequence[str] = QUICK,
    cache: Path | None = None,
) -> Scores:
    """
    Score models on a suite, beside every filter tuned once and the oracle.

    From a script that tries a candidate::

        import sys; sys.path.insert(0, 'benchmarks')
        from velocity_report import bars
        from velocity_scores import score
        from velocity_suite import real_suite
        suite = real_suite()
        for candidate in candidates:  # SequenceModel, or the path of a weights file
            print(bars(score({'candidate': candidate}, suite)))

    The peers are scored at the first call for a suite; the later ones take seconds. With a
    ``cache`` they are read from there if they were made on the same recordings by the same
    settings.

    :param models: velocity models by name, as objects, or as paths of weights files
    :param suite: see :mod:`velocity_suite`
    :param measures: out of :data:`MEASURES`; the lag takes the most time
    :param cache: an ``.npz`` file that keeps the peers' estimates
    :returns: errors of the peers and the models
    """
    key = id(suite)
    if key not in _peers or set(measures) - set(_peers[key][1].errors[ORACLE]):
        peers = Scores(suite)
        for name, estimates in _peer_estimates(suite, cache).items():
            peers.errors[name] = _measured(estimates, suite, measures)
        _peers[key] = suite, peers
    scores = Scores(suite, dict(_peers[key][1].errors))
    for name, model in models.items():
        scores.errors[name] = _measured(estimates_of(model, suite), suite, measures)
    return scores


def estimates_of(model: SequenceModel | Estimator | str | Path, suite: Suite) -> np.ndarray:
    """
    Run a model over a suite.

    :param model: a network, the path of one, or any estimator
    :param suite: B recordings, the longest of T samples
    :returns: rad/s, shape (B, T)
    """
    if isinstance(model, (str, Path)):
        model = load_model(Path(model))
    if isinstance(model, SequenceModel):
        return forward_together(model, suite.recordings)
    return run_together(model, suite.recordings)


def oracle_estimates(recordings: Sequence[Recording]) -> np.ndarray:
    """
    Run the Kalman filter with the setting that is best for each recording in hindsight.

    :param recordings: B recordings, the longest of T samples
    :returns: rad/s, shape (B, T)
    """
    settings, errors = sweep('kalman', recordings)
    densities = np.array([setting['jerk_density'] for setting in settings])
    best = densities[errors.argmin(axis=0)]
    return np.stack([*kalman_together(recordings, best, KALMAN_NOISE_RAD)], axis=1)


def _peer_estimates(suite: Suite, cache: Path | None) -> dict[str, np.ndarray]:
    data = rows_of(suite.recordings)
    names = [*FILTERS, ORACLE]
    settings = repr([(name, _settings(make())) for name, make in FILTERS.items()])
    if cache and cache.exists():
        with np.load(cache) as kept:
            same = str(kept['settings']) == settings and np.array_equal(
                kept['position'], data.position
            )
            if same:
                return {name: kept[name] for name in names}
    estimates = {n: run_together(make(), suite.recordings) for n, make in FILTERS.items()}
    estimates[ORACLE] = oracle_estimates(suite.recordings)
    if cache:
        np.savez_compressed(
            cache, settings=np.array(settings), position=data.position, **estimates
        )
    return estimates


def _settings(filter_: Filter) -> dict[str, float]:
    return {name: value for name, value in vars(filter_).items() if not name.startswith('_')}


def _measured(
    estimates: np.ndarray, suite: Suite, measures: Sequence[str]
) -> dict[str, np.ndarray]:
    rows = [
        _measure(estimate[: len(recording.position)], recording, stops_ns, measures)
        for estimate, recording, stops_ns in zip(estimates, suite.recordings, suite.stops_ns)
    ]
    return {name: np.array([row[name] for row in rows]) for name in measures}


def _measure(
    estimate: np.ndarray, recording: Recording, stops_ns: np.ndarray, measures: Sequence[str]
) -> dict[str, float]:
    stamp_ns, truth = recording.stamp_ns, recording.velocity
    counted = np.arange(len(truth)) >= SKIPPED_SAMPLES
    errors = estimate - truth
    after = np.zeros(len(truth), bool)
    for stop_ns in stops_ns:
        since_s = (stamp_ns - stop_ns) / NANOSECONDS_PER_SECOND
        after |= (since_s >= 0) & (since_s < AFTER_STOP_S)
    fastest = max(np.abs(truth).max(), recording.encoder.count_rad * recording.encoder.rate_hz)
    result = {
        'rmse': _rms(errors[counted]),
        'p99': float(np.percentile(np.abs(errors[counted]), 99)),
        'standstill': _rms(errors[counted & standstill(stamp_ns, truth)]),
        'after_stop': _rms(errors[counted & after]),
        # An encoder cannot show less than a count per sample, whatever the joint does.
        'peak': float(np.abs(estimate[WINDOW:]).max() / fastest),
    }
    if 'lag_s' in measures or 'rmse_at_lag' in measures:
        result |= _lag(np.where(counted, estimate, np.nan), recording)
    return result


def _lag(estimate: np.ndarray, recording: Recording) -> dict[str, float]:
    stamp_ns, truth = recording.stamp_ns, recording.velocity
    nothing = {'lag_s': np.nan, 'rmse_at_lag': np.nan}
    # A velocity that hardly changes has no lag.
    if np.ptp(truth) < 1e-3:
        return nothing
    lags_s = lag_grid_s(stamp_ns)
    stride = max(1, len(truth) // LAG_SAMPLES)
    tried = shifted_errors(stamp_ns, truth, estimate, lags_s, MAX_GAP_S, stride)
    lag_s = LagCurve(lags_s, np.sum(tried**2, axis=1), tried.shape[1]).best_lag_s()
    if not np.isfinite(lag_s):
        return nothing
    late = shifted_errors(stamp_ns, truth, estimate, np.array([lag_s]), MAX_GAP_S)[0]
    return {'lag_s': lag_s, 'rmse_at_lag': _rms(late)}


def _rms(values: np.ndarray) -> float:
    return float(np.sqrt(np.mean(values**2))) if len(values) else float('nan')


def _median(values: np.ndarray) -> float:
    finite = values[np.isfinite(values)]
    return float(np.median(finite)) if len(finite) else float('nan')


def geometric_mean(values: Iterable[float]) -> float:
    """
    Average so that large and small numbers count the same.

    :param values: above 0, or NaN
    :returns: the geometric mean of those that are not NaN, NaN without any
    """
    numbers = np.array(list(values))
    finite = numbers[np.isfinite(numbers)]
    return float(np.exp(np.mean(np.log(finite)))) if len(finite) else float('nan')
