"""
Score estimators on a recording, through the very stream that the node uses.

All estimators see the same degraded samples in one pass, and are compared where all of them
have an estimate.
"""

from collections.abc import Iterator
from collections.abc import Mapping
from dataclasses import dataclass
from dataclasses import field
from dataclasses import replace
import logging
from pathlib import Path

import numpy as np

from seqmem_ros.core.errors import SeqmemError
from seqmem_ros.core.estimator import Estimator
from seqmem_ros.core.options import StreamOptions
from seqmem_ros.core.spec import WINDOW
from seqmem_ros.offline.bags import list_topics
from seqmem_ros.offline.bags import read_joint_blocks
from seqmem_ros.offline.bags import Selection
from seqmem_ros.offline.degrade import Degradation
from seqmem_ros.offline.degrade import Degrader
from seqmem_ros.offline.health import check_health
from seqmem_ros.offline.joint_layout import JointBlock
from seqmem_ros.offline.label_sources import read_label_track
from seqmem_ros.offline.recording import Recording
from seqmem_ros.offline.recording import RecordingBuilder
from seqmem_ros.offline.reference import make_reference
from seqmem_ros.offline.reference import median_period_s
from seqmem_ros.offline.reference import SMALLEST_SIDE
from seqmem_ros.offline.replay import ExactReplay
from seqmem_ros.offline.replay import OnProgress
from seqmem_ros.offline.replay import WHOLE_ARM
from seqmem_ros.offline.result import EstimatorResult
from seqmem_ros.offline.result import Result
from seqmem_ros.offline.scoring import compared_samples
from seqmem_ros.offline.scoring import scored
from seqmem_ros.offline.topics import choose_topic
from seqmem_ros.offline.truth import check_truth

# A joint that stays within this range over the whole recording does not move.
MOVES_RAD = 0.01


@dataclass(frozen=True)
class Setting:
    """
    How to evaluate; the defaults are those of the command.

    :param degradation: what the estimators see of the recording
    :param options: of every stream
    :param selection: which messages, in which order
    :param half_width_s: of the reference's window, see
        :func:`seqmem_ros.offline.reference.make_reference`
    :param labels: where the true labels are, see
        :func:`seqmem_ros.offline.label_sources.read_label_track`; None: those of motion
    :param fast: in arrays instead of sample by sample; outputs agree to 1e-5
    """

    degradation: Degradation = field(default_factory=Degradation)
    options: StreamOptions = field(default_factory=StreamOptions)
    selection: Selection = field(default_factory=Selection)
    half_width_s: float | None = None
    labels: str | None = None
    fast: bool = False


def evaluate_bag(
    path: str | Path,
    estimators: Mapping[str, Estimator],
    setting: Setting | None = None,
    on_progress: OnProgress | None = None,
) -> Result:
    """
    Run estimators over a recording and score them against its zero-phase reference.

    :param path: a bag, see :func:`seqmem_ros.offline.bags.read_joint_blocks`
    :param estimators: by the names that the result shall use
    :param setting: how; None: the default
    :param on_progress: told of so many messages that are done, out of :func:`count_messages`
    :returns: scores, series and findings
    :raises SeqmemError: if the bag cannot be read, or no sample can be compared
    """
    setting = setting or Setting()
    options = setting.options
    warnings: list[str] = []
    name = choose_topic(list_topics(path), setting.selection.topic, Path(path))
    # Before the work, not after it.
    truth = None if setting.labels is None else read_label_track(setting.labels, path)
    blocks = read_joint_blocks(path, setting.selection.with_topic(name), warnings.append)
    builder = RecordingBuilder(options, ('position', 'velocity'), setting.selection.order)
    replay = _new_replay(estimators, setting)
    frame_id = _play(blocks, builder, Degrader(setting.degradation), replay, on_progress)
    for warning in warnings:
        logging.getLogger(__name__).warning(warning)
    recording = _unwrapped(builder.build(), options)
    if not any(counts['estimated'] for counts in replay.counts.values()):
        raise SeqmemError(
            f'{path}: no message gave an estimate; the first comes with sample {WINDOW} of a '
            f'joint: {_stream_reports(replay)}'
        )
    reference = make_reference(
        recording.time_ns, recording.position, options.max_gap_s, setting.half_width_s
    )
    moving = _moving(recording.position)
    outputs = _outputs(replay, estimators, recording)
    result = Result(
        bag=str(path),
        topic=name,
        frame_id=frame_id,
        recording=recording,
        reference=reference,
        degradation=setting.degradation,
        options=options,
        health=check_health(recording, options.max_gap_s),
        truth=check_truth(recording, reference.velocity, moving, options.max_gap_s),
        moving=moving,
        compared=compared_samples(reference.velocity, outputs),
        estimators=outputs,
        warnings=tuple(warnings),
    )
    if not result.compared.any():
        raise SeqmemError(f'{path}: {_nothing_to_compare(result, replay)}')
    return replace(result, estimators=scored(result, truth))


def count_messages(path: str | Path, selection: Selection | None = None) -> int:
    """
    Say how many messages an evaluation will read, at most.

    :param path: a bag
    :param selection: its topic
    :returns: number of messages of the topic
    :raises SeqmemError: if the bag or the topic cannot be read
    """
    topics = list_topics(path)
    wanted = selection.topic if selection else None
    return topics[choose_topic(topics, wanted, Path(path))].count


def _new_replay(estimators: Mapping[str, Estimator], setting: Setting) -> ExactReplay:
    if not setting.fast:
        return ExactReplay(estimators, setting.options)
    # It needs jax, which filters alone do not.
    from seqmem_ros.offline.fast_replay import FastReplay

    return FastReplay(estimators, setting.options)


def _play(
    blocks: Iterator[JointBlock],
    builder: RecordingBuilder,
    degrader: Degrader,
    replay: ExactReplay,
    on_progress: OnProgress | None,
) -> str:
    """Show all messages to everybody; return the frame of the first that has one."""
    frame_id = ''
    for block in blocks:
        frame_id = frame_id or block.frame_id
        first = builder.n_rows
        builder.add_block(block)
        kept, worse = degrader.block(block)
        replay.push(first + kept, worse, on_progress or (lambda count: None))
        if on_progress:
            on_progress(len(block) - len(kept))
    replay.finish()
    return frame_id


def _outputs(
    replay: ExactReplay, estimators: Mapping[str, Estimator], recording: Recording
) -> dict[str, EstimatorResult]:
    """Put what each estimator said beside what it is."""
    return {
        name: EstimatorResult(
            task=each.task,
            labels=each.labels,
            source=each.source,
            digest=each.digest,
            whole_arm=not each.per_joint,
            outputs=replay.tables[name].array(
                len(recording.stamp_ns), recording.names if each.per_joint else WHOLE_ARM
            ),
            counts=dict(replay.counts[name]),
        )
        for name, each in estimators.items()
    }


def _unwrapped(recording: Recording, options: StreamOptions) -> Recording:
    """Undo the jumps of joints that wrap; a derivative knows no turns."""
    position = recording.position
    for joint, name in enumerate(recording.names):
        if name in options.continuous_joints:
            known = np.isfinite(position[:, joint])
            position[known, joint] = np.unwrap(position[known, joint])
    return recording


def _moving(position: np.ndarray) -> np.ndarray:
    moving = np.zeros(position.shape[1], dtype=bool)
    for joint in range(position.shape[1]):
        known = position[np.isfinite(position[:, joint]), joint]
        moving[joint] = len(known) > 0 and np.ptp(known) > MOVES_RAD
    return moving


def _nothing_to_compare(result: Result, replay: ExactReplay) -> str:
    if not np.isfinite(result.reference.velocity).any():
        half_width_s = result.reference.half_width_s
        needed_s = SMALLEST_SIDE * median_period_s(result.recording.time_ns)
        if half_width_s < needed_s:
            return (
                f'no reference can be made: expected a reference window of at least {needed_s:.3g}'
                f' s, {SMALLEST_SIDE} samples to each side, got {half_width_s:.3g} s'
            )
        return (
            'no reference can be made: expected unbroken stretches of at least '
            f'{2 * half_width_s:.3g} s, got {result.health}'
        )
    return f'no sample has an estimate of every estimator: {_stream_reports(replay)}'


def _stream_reports(replay: ExactReplay) -> str:
    """Say what became of the messages, once for all streams that agree."""
    by_text: dict[str, list[str]] = {}
    for name, counts in replay.counts.items():
        text = ', '.join(f'{key} {count}' for key, count in counts.items() if count)
        text = text or 'no message came'
        event = f' ({replay.events[name]})' if replay.events[name] else ''
        by_text.setdefault(text + event, []).append(name)
    return '; '.join(f'{", ".join(names)}: {text}' for text, names in by_text.items())
