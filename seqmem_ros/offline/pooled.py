"""Scores of several recordings as one."""

from collections.abc import Mapping
from collections.abc import Sequence

import numpy as np

from seqmem_ros.offline.labels import LabelScore
from seqmem_ros.offline.metrics import Score
from seqmem_ros.offline.result import EstimatorResult


def totals_by_name(
    scores: Sequence[Mapping[str, EstimatorResult]],
) -> dict[str, list[Score | LabelScore]]:
    """
    Collect what can be put together.

    :param scores: estimators by name, of each recording
    :returns: the totals that are not empty, by name of the estimator
    """
    totals: dict[str, list[Score | LabelScore]] = {}
    for estimators in scores:
        for name, each in estimators.items():
            if each.total is not None and each.total.samples:
                totals.setdefault(name, []).append(each.total)
    return totals


def pool(totals: Sequence[Score]) -> Score:
    """
    Put totals together.

    :param totals: of one estimator on several recordings, at least one
    :returns: RMSE over all values, mean lag, largest 99th percentile
    """
    samples = np.array([one.samples for one in totals])
    rest = np.array([one.rest_samples for one in totals])

    def rms(values: list[float], weights: np.ndarray) -> float:
        known = np.isfinite(values) & (weights > 0)
        if not known.any():
            return float('nan')
        squares = np.square(values)[known]
        return float(np.sqrt(np.average(squares, weights=weights[known])))

    lags_s = np.array([one.lag_s for one in totals])
    known = np.isfinite(lags_s)
    return Score(
        samples=int(samples.sum()),
        rmse=rms([one.rmse for one in totals], samples),
        lag_s=float(np.average(lags_s[known], weights=samples[known]))
        if known.any()
        else float('nan'),
        rmse_at_lag=rms([one.rmse_at_lag for one in totals], samples),
        p99=max(one.p99 for one in totals),
        standstill_rms=rms([one.standstill_rms for one in totals], rest),
        rest_samples=int(rest.sum()),
    )
