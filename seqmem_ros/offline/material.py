"""A bag as something to learn from: read, judged, with what the velocity or the label shall be."""

from collections.abc import Callable
from dataclasses import dataclass
from dataclasses import replace
from pathlib import Path

import numpy as np

from seqmem_ros.core.errors import SeqmemError
from seqmem_ros.core.joints import NANOSECONDS_PER_SECOND
from seqmem_ros.core.motion import motion_labels
from seqmem_ros.core.options import StreamOptions
from seqmem_ros.offline.bags import read_joint_blocks
from seqmem_ros.offline.bags import Selection
from seqmem_ros.offline.degrade import Degradation
from seqmem_ros.offline.degrade import Degrader
from seqmem_ros.offline.joint_layout import JointBlock
from seqmem_ros.offline.label_sources import LabelTrack
from seqmem_ros.offline.label_sources import NO_LABEL
from seqmem_ros.offline.recording import Recording
from seqmem_ros.offline.recording import RecordingBuilder
from seqmem_ros.offline.reference import make_reference
from seqmem_ros.offline.reference import Reference
from seqmem_ros.offline.truth import check_truth
from seqmem_ros.offline.truth import TruthCheck

# A joint that stays within this range over the whole recording does not move.
MOVES_RAD = 0.01


@dataclass(frozen=True, eq=False)
class Material:
    """
    One recording of T messages of J joints.

    :ivar path: of the bag
    :ivar blocks: its messages as recorded
    :ivar recording: the same as arrays
    :ivar reference: zero-phase velocity
    :ivar truth: what the recorded velocity of each joint is
    :ivar moving: joints that move, bool, shape (J,)
    :ivar options: rules by which messages are taken
    """

    path: Path
    blocks: tuple[JointBlock, ...]
    recording: Recording
    reference: Reference
    truth: dict[str, TruthCheck]
    moving: np.ndarray
    options: StreamOptions

    def degraded(self, degradation: Degradation) -> tuple[np.ndarray, Recording]:
        """
        See the recording through a worse encoder and network.

        :param degradation: how much worse
        :returns: indices of the messages that are not lost, and those, degraded, with the same
            joints
        """
        degrader = Degrader(degradation)
        builder = RecordingBuilder(replace(self.options, joints=self.recording.names))
        rows, begin = [np.empty(0, np.int64)], 0
        for block in self.blocks:
            kept, worse = degrader.block(block)
            rows.append(begin + kept)
            begin += len(block)
            if len(kept):
                builder.add_block(worse)
        return np.concatenate(rows), _in_order(builder.build(), self.recording.names, self.options)

    def motion(self) -> np.ndarray:
        """
        Label the reference of each joint with its state of motion.

        :returns: indices into :data:`seqmem_ros.core.motion.LABELS`, -1 where there is no
            reference, shape (T, J)
        """
        velocity = self.reference.velocity
        return np.where(np.isfinite(velocity), motion_labels(velocity), NO_LABEL)

    def labels(self, track: LabelTrack | None, names: tuple[str, ...]) -> np.ndarray:
        """
        Label the messages.

        :param track: labels of the whole arm; None for the motion of each joint
        :param names: labels to count
        :returns: indices into ``names``, -1 for none, shape (T, J)
        :raises SeqmemError: if the labels and the recording do not meet
        """
        if track is None:
            return self.motion()
        found = track.indices(self.recording, names)
        if not (found >= 0).any():
            raise SeqmemError(f'{self.path}: the labels cover none of it: {_spans(self, track)}')
        return np.repeat(found[:, None], len(self.recording.names), axis=1)


def read_material(
    path: str | Path,
    options: StreamOptions,
    topic: str | None = None,
    warn: Callable[[str], None] | None = None,
) -> Material:
    """
    Read a bag and judge it.

    :param path: folder of a rosbag2, or a bag file
    :param options: uses ``joints``, ``continuous_joints``, ``assume_joint_order``,
        ``zero_stamp`` and ``max_gap_s``
    :param topic: of the joint states; None: the only one
    :param warn: called with each warning; None logs it
    :returns: the recording and what is known of it
    :raises SeqmemError: if there is nothing in it to learn from
    """
    blocks = tuple(read_joint_blocks(path, Selection(topic), warn))
    builder = RecordingBuilder(options)
    for block in blocks:
        builder.add_block(block)
    recording = builder.build()
    missing = [name for name in options.joints if name not in recording.names]
    if missing or not recording.names:
        known = _in_order(_all(blocks, options), None, options).names
        raise SeqmemError(
            f'{path}: expected the joints {", ".join(missing) or "of an arm"}, found '
            f'{", ".join(known) or "no positions"}'
        )
    if options.zero_stamp == 'reject' and (recording.stamp_ns == 0).all():
        raise SeqmemError(
            f'{path}: no message has a stamp: take the time of recording with --zero-stamp '
            'receive_time'
        )
    recording = _in_order(recording, options.joints or None, options)
    reference = make_reference(recording.time_ns, recording.position, options.max_gap_s)
    moving = _moving(recording.position)
    truth = check_truth(recording, reference.velocity, moving, options.max_gap_s)
    return Material(Path(path), blocks, recording, reference, truth, moving, options)


def _all(blocks: tuple[JointBlock, ...], options: StreamOptions) -> Recording:
    builder = RecordingBuilder(replace(options, joints=()))
    for block in blocks:
        builder.add_block(block)
    return builder.build()


def _in_order(
    recording: Recording, names: tuple[str, ...] | None, options: StreamOptions
) -> Recording:
    """Put joints into the order of ``names``, and undo the jumps of those that wrap."""
    names = names or recording.names
    arrays = {}
    for field in ('position', 'velocity', 'effort'):
        values = getattr(recording, field)
        table = np.full((len(values), len(names)), np.nan, values.dtype)
        for column, name in enumerate(names):
            if name in recording.names and values.shape[1]:
                table[:, column] = values[:, recording.names.index(name)]
        arrays[field] = table
    for column, name in enumerate(names):
        if name in options.continuous_joints:
            known = np.isfinite(arrays['position'][:, column])
            arrays['position'][known, column] = np.unwrap(arrays['position'][known, column])
    return replace(recording, names=names, **arrays)


def _moving(position: np.ndarray) -> np.ndarray:
    finite = np.isfinite(position)
    highest = np.where(finite, position, -np.inf).max(axis=0, initial=-np.inf)
    lowest = np.where(finite, position, np.inf).min(axis=0, initial=np.inf)
    return highest - lowest > MOVES_RAD


def _spans(material: Material, track: LabelTrack) -> str:
    recording = material.recording
    time_ns = recording.record_ns if track.clock == 'record' else recording.time_ns
    origin_ns = time_ns.min() if track.clock == 'start' else 0
    if not track.intervals:
        return 'there are none'
    of_bag, of_labels = (
        f'{(first - origin_ns) / NANOSECONDS_PER_SECOND:.3f} to '
        f'{(last - origin_ns) / NANOSECONDS_PER_SECOND:.3f} s'
        for first, last in (
            (time_ns.min(), time_ns.max()),
            (track.intervals[0].start + origin_ns, track.intervals[-1].end + origin_ns),
        )
    )
    return f'it lasts from {of_bag}, they from {of_labels}'
