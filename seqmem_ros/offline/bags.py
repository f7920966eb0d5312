"""
Joint states out of recordings, whatever their kind.

Every kind of bag ends as the same messages: rosbag2 with sqlite3 or MCAP storage, a folder or
a single file, and ROS 1 bags. Definitions inside a bag are not needed, as
``sensor_msgs/JointState`` has been the same in all distributions of ROS 1 and 2; this also
reads bags that call its header ``roslib/Header``.
"""

from collections.abc import Iterable
from collections.abc import Iterator
from dataclasses import dataclass
from dataclasses import replace
from itertools import chain
import logging
from pathlib import Path
from typing import NamedTuple

import numpy as np

from seqmem_ros.core.errors import SeqmemError
from seqmem_ros.core.joints import JointSample
from seqmem_ros.core.joints import NANOSECONDS_PER_SECOND
from seqmem_ros.offline.bag_writer import write_joint_bag
from seqmem_ros.offline.joint_decoder import Decoder
from seqmem_ros.offline.joint_layout import JointBlock
from seqmem_ros.offline.salvage import RawMessage
from seqmem_ros.offline.salvage import RawRows
from seqmem_ros.offline.stamp_order import by_stamp
from seqmem_ros.offline.storage import no_warning
from seqmem_ros.offline.storage import open_bag
from seqmem_ros.offline.storage import Storage
from seqmem_ros.offline.storage import Warn
from seqmem_ros.offline.topics import choose_topic
from seqmem_ros.offline.topics import merge_topics
from seqmem_ros.offline.topics import Topic

__all__ = [
    'JointMessage',
    'Selection',
    'list_topics',
    'read_joint_blocks',
    'read_joint_messages',
    'read_joint_samples',
    'write_joint_bag',
]

ORDERS = ('record', 'header')


class JointMessage(NamedTuple):
    """
    One recorded JointState with what a sample does not keep.

    :ivar record_ns: time at which the recorder got it, in ns; not the stamp
    :ivar frame_id: from the header, needed to publish the message again as it was
    """

    record_ns: int
    sample: JointSample
    frame_id: str


@dataclass(frozen=True)
class Selection:
    """
    Which messages of a bag to read, and in which order.

    :param topic: its name; None takes the only one of type ``sensor_msgs/JointState``
    :param start_s: skip what was recorded before, in s after the first joint state
    :param end_s: skip what was recorded from then on, in s after the first joint state
    :param order: ``'record'``: as recorded; ``'header'``: by their stamps, for which they wait in
        a temporary file until all have been read
    :raises SeqmemError: if a value is out of its range
    """

    topic: str | None = None
    start_s: float = 0.0
    end_s: float = float('inf')
    order: str = 'record'

    def with_topic(self, topic: str | None) -> 'Selection':
        """
        Choose another topic.

        :param topic: its name, or None
        :returns: the same stretch and order
        """
        return replace(self, topic=topic)

    def __post_init__(self) -> None:
        if not 0.0 <= self.start_s < self.end_s:
            raise SeqmemError(
                f'start and end: expected 0 <= start < end, got {self.start_s:g} and '
                f'{self.end_s:g} s'
            )
        if self.order not in ORDERS:
            raise SeqmemError(f"order: expected one of {', '.join(ORDERS)}, got '{self.order}'")


def list_topics(path: str | Path) -> dict[str, Topic]:
    """
    List what a bag holds.

    :param path: folder of a rosbag2, or an ``.mcap``, ``.db3`` or ``.bag`` file
    :returns: topics by name
    :raises SeqmemError: if nothing of it can be read
    """
    return merge_topics(storage.topics for storage in open_bag(Path(path), no_warning))


def read_joint_samples(
    path: str | Path, topic: str | None = None
) -> Iterator[tuple[int, JointSample]]:
    """
    Read the joint states of a bag; see :func:`read_joint_blocks`.

    :param path: folder of a rosbag2, or an ``.mcap``, ``.db3`` or ``.bag`` file
    :param topic: its name; None takes the only one of type ``sensor_msgs/JointState``
    :returns: record time in ns, and sample
    :raises SeqmemError: as :func:`read_joint_blocks`
    """
    return ((message.record_ns, message.sample) for message in read_joint_messages(path, topic))


def read_joint_messages(
    path: str | Path,
    topic: str | None = None,
    warn: Warn | None = None,
    selection: Selection | None = None,
) -> Iterator[JointMessage]:
    """
    Read the joint states of a bag, one by one; see :func:`read_joint_blocks`.

    :param path: folder of a rosbag2, or an ``.mcap``, ``.db3`` or ``.bag`` file
    :param topic: its name; None takes the only one of type ``sensor_msgs/JointState``
    :param warn: called with each warning; None logs it
    :param selection: what else to choose; its topic is not used
    :returns: iterator of messages
    :raises SeqmemError: as :func:`read_joint_blocks`
    """
    blocks = read_joint_blocks(path, (selection or Selection()).with_topic(topic), warn)
    return (
        JointMessage(int(block.record_ns[row]), block.sample(row), block.frame_id)
        for block in blocks
        for row in range(len(block))
    )


def read_joint_blocks(
    path: str | Path, selection: Selection | None = None, warn: Warn | None = None
) -> Iterator[JointBlock]:
    """
    Read the joint states of a bag in the order of their record times, lazily.

    A damaged bag is read as far as it goes, in the order in which it was written, and one
    warning says how much is lost.

    :param path: folder of a rosbag2, or an ``.mcap``, ``.db3`` or ``.bag`` file
    :param selection: topic, stretch and order; None: all of the only topic, as recorded
    :param warn: called with each warning; None logs it
    :returns: iterator of blocks; memory stays bounded by the bag's largest chunk and a few
        thousand messages, and in the order of stamps 24 bytes a message
    :raises SeqmemError: if the bag or the topic cannot be read, before the first message
    """
    warn = warn or logging.getLogger(__name__).warning
    selection = selection or Selection()
    path = Path(path)
    storages = open_bag(path, warn)
    topics = merge_topics(storage.topics for storage in storages)
    name = choose_topic(topics, selection.topic, path)
    blocks = _blocks(path, storages, name, selection, warn)
    if selection.order == 'header':
        blocks = by_stamp(blocks)
    return chain([next(blocks)], blocks)


def _blocks(
    path: Path, storages: list[Storage], topic: str, selection: Selection, warn: Warn
) -> Iterator[JointBlock]:
    """Yield at least one message or raise; warnings follow the last message."""
    total = 0
    losses = []
    clock = _Clock(selection)
    for storage in (storage for storage in storages if topic in storage.topics):
        count = 0
        notes: list[str] = []
        decoder = Decoder()
        for block in decoder.blocks(clock.within(storage.messages(topic, notes.append))):
            count += len(block)
            yield block
        total += count
        if decoder.undecoded:
            notes.append(f'{decoder.undecoded} of its joint states are damaged')
        if notes:
            losses.append((storage.path, '; '.join(notes), count))
    if not total and clock.skipped:
        end = 'on' if selection.end_s == float('inf') else f'to {selection.end_s:g} s'
        raise SeqmemError(
            f'{path}: no joint state from {selection.start_s:g} s {end}: the recording lasts '
            f'{clock.longest_s:.3g} s'
        )
    if not total:
        reasons = '; '.join(loss for _, loss, _ in losses)
        raise SeqmemError(f'{path}: no joint state in it can be read: {reasons}')
    for file, loss, count in losses:
        warn(f'{file}: {loss}; {count} messages of {topic} were read')


class _Clock:
    """Lets messages through that were recorded within the selection."""

    def __init__(self, selection: Selection) -> None:
        self._selection = selection
        self._first_ns: int | None = None
        self.skipped = 0
        self.longest_s = 0.0

    def within(self, raws: Iterable[RawMessage | RawRows]) -> Iterable[RawMessage | RawRows]:
        if self._selection.start_s == 0.0 and self._selection.end_s == float('inf'):
            return raws
        return self._chosen(raws)

    def _chosen(self, raws: Iterable[RawMessage | RawRows]) -> Iterator[RawMessage | RawRows]:
        for raw in raws:
            admitted = self._admits(np.atleast_1d(raw.record_ns))
            if isinstance(raw, RawRows):
                raw = RawRows(raw.record_ns[admitted], raw.rows[admitted], raw.encoding)
            if admitted.any():
                yield raw

    def _admits(self, record_ns: np.ndarray) -> np.ndarray:
        if self._first_ns is None:
            self._first_ns = int(record_ns[0])
        time_s = (record_ns - self._first_ns) / NANOSECONDS_PER_SECOND
        self.longest_s = max(self.longest_s, float(time_s.max()))
        good = (self._selection.start_s <= time_s) & (time_s < self._selection.end_s)
        self.skipped += int(np.sum(~good))
        return good
