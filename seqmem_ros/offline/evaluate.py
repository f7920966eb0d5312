"""
Score estimators on a recording, through the very stream that the node uses.

All estimators see the same degraded samples in one pass, and are compared where all of them
have an estimate.
"""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Mapping
from dataclasses import replace
import logging
from pathlib import Path

import numpy as np

from seqmem_ros.core.errors import SeqmemError
from seqmem_ros.core.estimate import Estimate
from seqmem_ros.core.estimator import Estimator
from seqmem_ros.core.motion import LABELS
from seqmem_ros.core.motion import motion_labels
from seqmem_ros.core.options import StreamOptions
from seqmem_ros.core.stream import Stream
from seqmem_ros.offline.bags import JointMessage
from seqmem_ros.offline.bags import list_topics
from seqmem_ros.offline.bags import read_joint_messages
from seqmem_ros.offline.degrade import Degradation
from seqmem_ros.offline.degrade import Degrader
from seqmem_ros.offline.health import check_health
from seqmem_ros.offline.labels import score_labels
from seqmem_ros.offline.metrics import lag_curve
from seqmem_ros.offline.metrics import NO_CURVE
from seqmem_ros.offline.metrics import score
from seqmem_ros.offline.metrics import shifted_errors
from seqmem_ros.offline.metrics import standstill
from seqmem_ros.offline.recording import JointTable
from seqmem_ros.offline.recording import Recording
from seqmem_ros.offline.recording import RecordingBuilder
from seqmem_ros.offline.reference import make_reference
from seqmem_ros.offline.result import EstimatorResult
from seqmem_ros.offline.result import Result
from seqmem_ros.offline.topics import choose_topic
from seqmem_ros.offline.truth import check_truth

# A joint that stays within this range over the whole recording does not move.
MOVES_RAD = 0.01
WHOLE_ARM = ('whole arm',)

Progress = Callable[[Iterable[JointMessage], int], Iterable[JointMessage]]


def evaluate_bag(
    path: str | Path,
    estimators: Mapping[str, Estimator],
    degradation: Degradation | None = None,
    options: StreamOptions | None = None,
    topic: str | None = None,
    half_width_s: float | None = None,
    progress: Progress | None = None,
) -> Result:
    """
    Run estimators over a recording and score them against its zero-phase reference.

    :param path: a bag, see :func:`seqmem_ros.offline.bags.read_joint_messages`
    :param estimators: by the names that the result shall use
    :param degradation: what the estimators see of the recording; None: the default one
    :param options: of every stream
    :param topic: of the joint states; None: the only one
    :param half_width_s: of the reference's window, see
        :func:`seqmem_ros.offline.reference.make_reference`
    :param progress: wraps the iterable of messages, of which it is told the number
    :returns: scores, series and findings
    :raises SeqmemError: if the bag cannot be read, or no sample can be compared
    """
    options = options or StreamOptions()
    degradation = degradation or Degradation()
    warnings: list[str] = []
    topics = list_topics(path)
    name = choose_topic(topics, topic, Path(path))
    messages = read_joint_messages(path, name, warnings.append)
    wrapped = progress(messages, topics[name].count) if progress else messages
    pass_ = _Pass(estimators, degradation, options)
    for message in wrapped:
        pass_.take(message)
    for warning in warnings:
        logging.getLogger(__name__).warning(warning)
    recording = _unwrapped(pass_.builder.build(), options)
    if not any(stream.counts['estimated'] for stream in pass_.streams.values()):
        raise SeqmemError(f'{path}: no message gave an estimate: {_stream_reports(pass_.streams)}')
    reference = make_reference(
        recording.time_ns, recording.position, options.max_gap_s, half_width_s
    )
    moving = _moving(recording.position)
    outputs = pass_.outputs(recording.names)
    compared = _compared(reference.velocity, outputs, estimators)
    result = Result(
        bag=str(path),
        topic=name,
        frame_id=pass_.frame_id,
        recording=recording,
        reference=reference,
        degradation=degradation,
        options=options,
        health=check_health(recording, options.max_gap_s),
        truth=check_truth(recording, reference.velocity, moving, options.max_gap_s),
        moving=moving,
        compared=compared,
        estimators=pass_.unscored(outputs),
        warnings=tuple(warnings),
    )
    if not compared.any():
        raise SeqmemError(f'{path}: {_nothing_to_compare(result, pass_.streams)}')
    return replace(result, estimators=_scored(result))


class _Pass:
    """One reading of a bag: the clean recording, and all streams on degraded samples."""

    def __init__(
        self,
        estimators: Mapping[str, Estimator],
        degradation: Degradation,
        options: StreamOptions,
    ) -> None:
        self.builder = RecordingBuilder(options)
        self.frame_id = ''
        self.streams = {name: Stream(each, options) for name, each in estimators.items()}
        self._degrader = Degrader(degradation)
        self._tables = {name: JointTable() for name in estimators}
        self._rows = 0

    def take(self, message: JointMessage) -> None:
        """Show one message to everybody."""
        self.builder.add(message.record_ns, message.sample)
        self.frame_id = self.frame_id or message.frame_id
        worse = self._degrader(message.sample)
        if worse is not None:
            for name, stream in self.streams.items():
                estimate = stream.push(worse, message.record_ns)
                if estimate is not None:
                    self._tables[name].put(self._rows, *_row(estimate))
        self._rows += 1

    def outputs(self, names: tuple[str, ...]) -> dict[str, np.ndarray]:
        """Lay out what each estimator said, shape (T, J) or (T, J or 1, L)."""
        return {
            name: table.array(self._rows, WHOLE_ARM if WHOLE_ARM[0] in table.names else names)
            for name, table in self._tables.items()
        }

    def unscored(self, outputs: Mapping[str, np.ndarray]) -> dict[str, EstimatorResult]:
        """Put outputs beside what made them."""
        return {
            name: EstimatorResult(
                task=stream.estimator.task,
                labels=stream.estimator.labels,
                source=stream.estimator.source,
                digest=stream.estimator.digest,
                outputs=outputs[name],
                counts=dict(stream.counts),
            )
            for name, stream in self.streams.items()
        }


def _row(estimate: Estimate) -> tuple[tuple[str, ...], np.ndarray]:
    if estimate.velocity is not None:
        return estimate.names, estimate.velocity
    whole = len(estimate.scores) == 1 and len(estimate.names) != 1
    return WHOLE_ARM if whole else estimate.names, estimate.scores


def _unwrapped(recording: Recording, options: StreamOptions) -> Recording:
    """Undo the jumps of joints that wrap; a derivative knows no turns."""
    position = recording.position.copy()
    for joint, name in enumerate(recording.names):
        if name in options.continuous_joints:
            known = np.isfinite(position[:, joint])
            position[known, joint] = np.unwrap(position[known, joint])
    return replace(recording, position=position)


def _moving(position: np.ndarray) -> np.ndarray:
    finite = np.isfinite(position)
    highest = np.where(finite, position, -np.inf).max(axis=0, initial=-np.inf)
    lowest = np.where(finite, position, np.inf).min(axis=0, initial=np.inf)
    return highest - lowest > MOVES_RAD


def _compared(
    reference: np.ndarray, outputs: Mapping[str, np.ndarray], estimators: Mapping[str, Estimator]
) -> np.ndarray:
    compared = np.isfinite(reference)
    velocities = [name for name, each in estimators.items() if each.task == 'velocity']
    for name in velocities or outputs:
        values = outputs[name]
        compared = compared & (np.isfinite(values) if values.ndim == 2 else _labelled(values))
    return compared


def _labelled(scores: np.ndarray) -> np.ndarray:
    return np.isfinite(scores).all(axis=2)


def _nothing_to_compare(result: Result, streams: Mapping[str, Stream]) -> str:
    if not np.isfinite(result.reference.velocity).any():
        return (
            'no reference can be made: expected unbroken stretches of at least '
            f'{2 * result.reference.half_width_s:.3g} s, got {result.health}'
        )
    return f'no sample has an estimate of every estimator: {_stream_reports(streams)}'


def _stream_reports(streams: Mapping[str, Stream]) -> str:
    """Say what became of the messages, once for all streams that agree."""
    by_text: dict[str, list[str]] = {}
    for name, stream in streams.items():
        counts = ', '.join(f'{key} {count}' for key, count in stream.counts.items() if count)
        event = f' ({stream.last_event})' if stream.last_event else ''
        by_text.setdefault(counts + event, []).append(name)
    return '; '.join(f'{", ".join(names)}: {text}' for text, names in by_text.items())


def _scored(result: Result) -> dict[str, EstimatorResult]:
    return {
        name: _score_velocity(result, each)
        if each.task == 'velocity'
        else _score_label(result, each)
        for name, each in result.estimators.items()
    }


def _score_velocity(result: Result, each: EstimatorResult) -> EstimatorResult:
    names = result.recording.names
    joints = [_JointErrors(result, each.outputs, joint) for joint in range(len(names))]
    per_joint = {
        name: score(joint.errors, joint.rest_errors, joint.lag_s, joint.late_errors(joint.lag_s))
        for name, joint in zip(names, joints)
    }
    chosen = [joint for joint, counts in zip(joints, result.scored_joints) if counts]
    lag_s = sum((joint.curve for joint in chosen[1:]), chosen[0].curve).best_lag_s()
    total = score(
        np.concatenate([joint.errors for joint in chosen]),
        np.concatenate([joint.rest_errors for joint in joints]),
        lag_s,
        np.concatenate([joint.late_errors(lag_s) for joint in chosen]),
    )
    return replace(each, total=total, per_joint=per_joint)


class _JointErrors:
    """How far an estimate is from the reference of one joint, where it is to be compared."""

    def __init__(self, result: Result, outputs: np.ndarray, joint: int) -> None:
        time_ns, reference = result.recording.time_ns, result.reference.velocity[:, joint]
        estimate = np.where(result.compared[:, joint], outputs[:, joint], np.nan)
        self._series = (time_ns, reference, estimate)
        self._max_gap_s = result.options.max_gap_s
        known = np.isfinite(estimate)
        self.errors = (estimate - reference)[known]
        self.rest_errors = (estimate - reference)[known & standstill(time_ns, reference)]
        # Noise around zero has no lag.
        moving = result.moving[joint]
        self.curve = lag_curve(*self._series, self._max_gap_s) if moving else NO_CURVE
        self.lag_s = self.curve.best_lag_s()

    def late_errors(self, lag_s: float) -> np.ndarray:
        if not np.isfinite(lag_s):
            return np.empty(0)
        return shifted_errors(*self._series, np.array([lag_s]), self._max_gap_s)[0]


def _score_label(result: Result, each: EstimatorResult) -> EstimatorResult:
    if tuple(each.labels) != LABELS:
        return replace(each, note='its labels are not those of motion: there is no reference')
    if each.outputs.shape[1] != len(result.recording.names):
        return replace(each, note='it labels the whole arm: there is no reference')
    names = result.recording.names
    velocity = result.reference.velocity
    expected = np.where(np.isfinite(velocity), motion_labels(velocity), -1)
    known = (expected >= 0) & _labelled(each.outputs)
    predicted = np.nan_to_num(each.outputs).argmax(axis=2)
    n_labels = len(each.labels)
    per_joint = {
        name: score_labels(expected[rows, joint], predicted[rows, joint], n_labels)
        for joint, (name, rows) in enumerate(zip(names, known.T))
    }
    total = score_labels(expected[known], predicted[known], n_labels)
    return replace(each, total=total, per_joint=per_joint, expected=expected)
