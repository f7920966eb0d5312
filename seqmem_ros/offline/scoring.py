"""Outputs against what is true: errors of velocities, agreement of labels."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from seqmem_ros.core.motion import LABELS
from seqmem_ros.core.motion import motion_labels
from seqmem_ros.offline.label_sources import LabelTrack
from seqmem_ros.offline.labels import label_delays
from seqmem_ros.offline.labels import LabelScore
from seqmem_ros.offline.labels import score_labels
from seqmem_ros.offline.metrics import lag_curve
from seqmem_ros.offline.metrics import NO_CURVE
from seqmem_ros.offline.metrics import Score
from seqmem_ros.offline.metrics import score
from seqmem_ros.offline.metrics import standstill
from seqmem_ros.offline.pooled import pool
from seqmem_ros.offline.reference import unbroken_runs
from seqmem_ros.offline.result import EstimatorResult
from seqmem_ros.offline.result import Result
from seqmem_ros.offline.shifted import shifted_errors


def compared_samples(
    reference: np.ndarray, estimators: Mapping[str, EstimatorResult]
) -> np.ndarray:
    """
    Find the values that all estimators of velocity have; without one, those that all label.

    :param reference: rad/s, shape (T, J), NaN where unknown
    :param estimators: by name
    :returns: bool, shape (T, J)
    """
    compared = np.isfinite(reference)
    velocities = [each for each in estimators.values() if each.task == 'velocity']
    for each in velocities or estimators.values():
        values = each.outputs
        compared = compared & (np.isfinite(values) if values.ndim == 2 else _labelled(values))
    return compared


def scored(result: Result, truth: LabelTrack | None) -> dict[str, EstimatorResult]:
    """
    Score every estimator.

    :param result: with outputs, not scored
    :param truth: labels of the recording; None: those of motion, where they fit
    :returns: the estimators with their scores
    """
    return {
        name: _score_velocity(result, each)
        if each.task == 'velocity'
        else _score_label(result, each, truth)
        for name, each in result.estimators.items()
    }


def _labelled(scores: np.ndarray) -> np.ndarray:
    return np.isfinite(scores).all(axis=2)


def _score_velocity(result: Result, each: EstimatorResult) -> EstimatorResult:
    names = result.recording.names
    counts = result.scored_joints
    # All errors together, for the percentile; else joint by joint, to fill less memory.
    errors = np.empty(int(result.compared[:, counts].sum()), dtype=np.float32)
    joints, per_joint, filled = [], {}, 0
    for index, name in enumerate(names):
        joint = _JointErrors(result, each.outputs, index)
        joints.append(joint)
        per_joint[name] = joint.score()
        if counts[index]:
            of_joint = joint.errors()
            errors[filled : filled + len(of_joint)] = of_joint
            filled += len(of_joint)
    chosen = [joint for joint, scored in zip(joints, counts) if scored]
    curve = sum((joint.curve for joint in chosen[1:]), chosen[0].curve)
    lag_s = curve.best_lag_s()
    nothing = np.empty(0)
    late = [score(joint.late_errors(lag_s), nothing, lag_s, nothing) for joint in chosen]
    at_rest = pool(list(per_joint.values()))
    total = replace(
        score(errors, nothing, lag_s, nothing),
        rmse_at_lag=pool(late).rmse,
        standstill_rms=at_rest.standstill_rms,
        rest_samples=at_rest.rest_samples,
    )
    return replace(each, total=total, per_joint=per_joint, curve=curve)


class _JointErrors:
    """How far an estimate is from the reference of one joint, where it is to be compared."""

    def __init__(self, result: Result, outputs: np.ndarray, joint: int) -> None:
        self._result, self._outputs, self._joint = result, outputs, joint
        self._time_ns = result.recording.time_ns
        # Noise around zero has no lag.
        self.curve = NO_CURVE
        if result.moving[joint]:
            self.curve = lag_curve(self._time_ns, *self._series(), result.options.max_gap_s)

    def score(self) -> Score:
        lag_s = self.curve.best_lag_s()
        rest_errors = self.errors(standstill(self._time_ns, self._series()[0]))
        return score(self.errors(), rest_errors, lag_s, self.late_errors(lag_s))

    def errors(self, among: np.ndarray | bool = True) -> np.ndarray:
        reference, estimate = self._series()
        known = np.isfinite(estimate) & among
        return estimate[known] - reference[known]

    def _series(self) -> tuple[np.ndarray, np.ndarray]:
        result, joint = self._result, self._joint
        estimate = np.where(result.compared[:, joint], self._outputs[:, joint], np.nan)
        return result.reference.velocity[:, joint], estimate.astype(np.float32, copy=False)

    def late_errors(self, lag_s: float) -> np.ndarray:
        if not np.isfinite(lag_s):
            return np.empty(0, dtype=np.float32)
        max_gap_s = self._result.options.max_gap_s
        errors = shifted_errors(self._time_ns, *self._series(), np.array([lag_s]), max_gap_s)[0]
        return errors.astype(np.float32)


def _score_label(
    result: Result, each: EstimatorResult, truth: LabelTrack | None
) -> EstimatorResult:
    names = result.recording.names
    per_joint = each.outputs.shape[1] == len(names) and not each.whole_arm
    if truth is not None:
        expected = truth.indices(result.recording, tuple(each.labels))[:, None]
        expected = np.repeat(expected, each.outputs.shape[1], axis=1)
        if not (expected >= 0).any():
            theirs = ', '.join(truth.names[:8])
            return replace(each, note=f'none of its labels is among the true ones: {theirs}')
    elif tuple(each.labels) != LABELS:
        return replace(each, note='its labels are not those of motion: name the true ones')
    elif not per_joint:
        return replace(each, note='it labels the whole arm: name the true labels')
    else:
        velocity = result.reference.velocity
        expected = np.where(np.isfinite(velocity), motion_labels(velocity), -1)
    known = (expected >= 0) & _labelled(each.outputs)
    predicted = np.where(known, np.nan_to_num(each.outputs).argmax(axis=2), -1)
    columns = names if per_joint else ('whole arm',)
    scores = {
        name: _labels_of_column(result, each, expected[:, column], predicted[:, column])
        for column, name in enumerate(columns)
    }
    total = score_labels(expected[known], predicted[known], len(each.labels))
    total = replace(
        total,
        delays_s=np.concatenate([one.delays_s for one in scores.values()]),
        missed=sum(one.missed for one in scores.values()),
    )
    return replace(each, total=total, per_joint=scores, expected=expected)


def _labels_of_column(
    result: Result, each: EstimatorResult, expected: np.ndarray, predicted: np.ndarray
) -> LabelScore:
    rows = np.flatnonzero((expected >= 0) & (predicted >= 0))
    agreement = score_labels(expected[rows], predicted[rows], len(each.labels))
    time_ns = result.recording.time_ns
    delays_s, missed = [], 0
    for run in unbroken_runs(time_ns[rows], result.options.max_gap_s):
        run = rows[run]
        found, not_told = label_delays(time_ns[run], expected[run], predicted[run])
        delays_s.append(found)
        missed += not_told
    return replace(agreement, delays_s=np.concatenate([np.empty(0), *delays_s]), missed=missed)
