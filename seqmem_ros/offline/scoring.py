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
from seqmem_ros.offline.metrics import score
from seqmem_ros.offline.metrics import shifted_errors
from seqmem_ros.offline.metrics import standstill
from seqmem_ros.offline.pooled import pool
from seqmem_ros.offline.reference import unbroken_runs
from seqmem_ros.offline.result import EstimatorResult
from seqmem_ros.offline.result import Result


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
    time_ns = result.recording.time_ns
    joints = [_JointErrors(result, time_ns, each.outputs, n) for n in range(len(names))]
    per_joint = {
        name: score(joint.errors, joint.rest_errors, joint.lag_s, joint.late_errors(joint.lag_s))
        for name, joint in zip(names, joints)
    }
    chosen = [joint for joint, counts in zip(joints, result.scored_joints) if counts]
    curve = sum((joint.curve for joint in chosen[1:]), chosen[0].curve)
    lag_s = curve.best_lag_s()
    rest_errors = np.concatenate([joint.rest_errors for joint in joints])
    total = score(
        np.concatenate([joint.errors for joint in chosen]), rest_errors, lag_s, np.empty(0)
    )
    # Joint by joint: all at once they would fill as much memory as the recording.
    late = [score(joint.late_errors(lag_s), np.empty(0), lag_s, np.empty(0)) for joint in chosen]
    total = replace(total, rmse_at_lag=pool(late).rmse)
    return replace(each, total=total, per_joint=per_joint, curve=curve)


class _JointErrors:
    """How far an estimate is from the reference of one joint, where it is to be compared."""

    def __init__(
        self, result: Result, time_ns: np.ndarray, outputs: np.ndarray, joint: int
    ) -> None:
        self._result, self._time_ns, self._outputs = result, time_ns, outputs
        self._joint = joint
        reference, estimate = self._series()
        known = np.isfinite(estimate)
        self.errors = (estimate - reference)[known]
        self.rest_errors = (estimate - reference)[known & standstill(time_ns, reference)]
        # Noise around zero has no lag.
        max_gap_s = result.options.max_gap_s
        moving = result.moving[joint]
        self.curve = lag_curve(time_ns, reference, estimate, max_gap_s) if moving else NO_CURVE
        self.lag_s = self.curve.best_lag_s()

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
