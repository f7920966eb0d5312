"""Labels of a recording from where people have them: a topic of the bag, or a CSV of intervals."""

from collections.abc import Iterable
import csv
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
import re
from typing import Any
from typing import NamedTuple

import numpy as np
from rosbags.typesys import get_typestore
from rosbags.typesys import Stores

from seqmem_ros.core.errors import SeqmemError
from seqmem_ros.core.joints import NANOSECONDS_PER_SECOND
from seqmem_ros.offline.bags import list_topics
from seqmem_ros.offline.recording import Recording
from seqmem_ros.offline.salvage import RawMessage
from seqmem_ros.offline.storage import no_warning
from seqmem_ros.offline.storage import open_bag
from seqmem_ros.offline.topics import Topic

LABEL_TYPES = ('std_msgs/msg/String', 'std_msgs/msg/Int32', 'std_msgs/msg/Bool')
HEADER = ['start', 'end', 'label']
# No recording lasts three years, so a larger number of seconds is a stamp.
LEAST_STAMP_S = 1e8
NO_LABEL = -1
WHOLE_NUMBER = re.compile('-?[0-9]{1,18}')


class Interval(NamedTuple):
    """
    A stretch of time with one label; the end does not belong to it.

    :ivar start: in ns
    :ivar end: in ns
    :ivar label: its name
    """

    start: int
    end: int
    label: str


@dataclass(frozen=True)
class LabelTrack:
    """
    What was going on when.

    :param intervals: in the order of their starts, none beginning before the end of the last
    :param clock: what their times are: ``record``: when the recorder got the message, ns;
        ``stamp``: stamps, ns; ``start``: ns since the oldest joint state of the recording
    """

    intervals: tuple[Interval, ...]
    clock: str

    @property
    def names(self) -> tuple[str, ...]:
        """Labels that occur, numbers by size and names by alphabet."""
        return sorted_labels(interval.label for interval in self.intervals)

    def indices(self, recording: Recording, names: tuple[str, ...]) -> np.ndarray:
        """
        Label the messages of a recording.

        :param recording: T messages
        :param names: labels to count
        :returns: index into ``names`` of each message, -1 where there is none, shape (T,)
        """
        if self.clock == 'record':
            time_ns = recording.record_ns
        else:
            time_ns = recording.time_ns
            if self.clock == 'start' and len(time_ns):
                time_ns = time_ns - time_ns.min()
        known = [interval for interval in self.intervals if interval.label in names]
        starts = np.array([interval.start for interval in known], dtype=np.int64)
        ends = np.array([interval.end for interval in known], dtype=np.int64)
        labels = np.array([names.index(interval.label) for interval in known], dtype=np.int64)
        if not len(known):
            return np.full(len(time_ns), NO_LABEL)
        which = np.searchsorted(starts, time_ns, side='right') - 1
        inside = (which >= 0) & (time_ns < ends[np.maximum(which, 0)])
        return np.where(inside, labels[which], NO_LABEL)


def sorted_labels(labels: Iterable[str]) -> tuple[str, ...]:
    """
    Order labels the same way wherever they come from.

    :param labels: in any order, repeated or not
    :returns: each once, whole numbers by size, then names by alphabet
    """
    return tuple(sorted(set(labels), key=_order))


def read_label_track(source: str, bag: str | Path) -> LabelTrack:
    """
    Read labels from what a user names: a CSV file, or else a topic.

    :param source: path of a ``.csv`` file, or name of a topic of the bag
    :param bag: the recording
    :returns: the labels
    :raises SeqmemError: as :func:`read_label_intervals` and :func:`read_label_topic`
    """
    if source.lower().endswith('.csv'):
        return read_label_intervals(source)
    return read_label_topic(bag, source)


def read_label_topic(bag: str | Path, topic: str) -> LabelTrack:
    """
    Read labels that were recorded beside the joint states; each holds until the next one.

    They carry no stamp, so they go by the time of recording. An empty string ends a label
    without beginning another.

    :param bag: folder of a rosbag2, or a bag file
    :param topic: its name; of type ``std_msgs/String``, ``Int32`` or ``Bool``
    :returns: the labels
    :raises SeqmemError: if there is no such topic, or it is of another type
    """
    name, found = _label_topic(list_topics(bag), topic, bag)
    values: list[tuple[int, str]] = []
    for storage in open_bag(Path(bag), no_warning):
        if name in storage.topics:
            for raw in storage.messages(name, no_warning):
                values.append((raw.record_ns, _text(raw, found.message_type)))
    values.sort(key=lambda value: value[0])
    ends = [time_ns for time_ns, _ in values[1:]] + [np.iinfo(np.int64).max]
    intervals = (Interval(start, end, text) for (start, text), end in zip(values, ends) if text)
    return LabelTrack(tuple(i for i in intervals if i.end > i.start), 'record')


def read_label_intervals(path: str | Path) -> LabelTrack:
    """
    Read labels from a CSV file with the columns ``start,end,label``.

    :param path: of the file; times in s since the first joint state, or stamps in s if they are
        beyond 1e8
    :returns: the labels
    :raises SeqmemError: if the file cannot be read, or a line is not what it must be
    """
    path = Path(path)
    try:
        with path.open(newline='', encoding='utf-8-sig') as file:
            rows = [[cell.strip() for cell in row] for row in csv.reader(file)]
    except (OSError, UnicodeError, csv.Error) as error:
        raise SeqmemError(f'{path}: expected a CSV file of labels: {error}') from error
    numbered = [(n, row) for n, row in enumerate(rows, start=1) if any(row)]
    if not numbered or [cell.lower() for cell in numbered[0][1]] != HEADER:
        found = ','.join(numbered[0][1]) if numbered else 'nothing'
        raise SeqmemError(f"{path}: expected the first line 'start,end,label', got '{found}'")
    intervals = sorted(_interval(path, number, row) for number, row in numbered[1:])
    if not intervals:
        raise SeqmemError(f'{path}: expected intervals below its first line, found none')
    for before, after in pairwise(intervals):
        if after.start < before.end:
            raise SeqmemError(
                f"{path}: expected intervals that do not overlap, but '{after.label}' begins at "
                f"{_seconds(after.start)} s, before '{before.label}' ends at "
                f'{_seconds(before.end)} s'
            )
    stamps = intervals[0].start >= LEAST_STAMP_S * NANOSECONDS_PER_SECOND
    return LabelTrack(tuple(intervals), 'stamp' if stamps else 'start')


def _label_topic(topics: dict[str, Topic], wanted: str, bag: str | Path) -> tuple[str, Topic]:
    usable = [name for name, topic in topics.items() if topic.message_type in LABEL_TYPES]
    for name, topic in topics.items():
        if name.lstrip('/') == wanted.lstrip('/'):
            if topic.message_type not in LABEL_TYPES:
                raise SeqmemError(
                    f'{bag}: expected labels of type std_msgs/String, Int32 or Bool on {name}, '
                    f'got {topic.message_type}'
                )
            return name, topic
    raise SeqmemError(
        f"{bag}: no topic '{wanted}' with labels; topics that could be: "
        f'{", ".join(sorted(usable)) or "none"}'
    )


def _text(raw: RawMessage, message_type: str) -> str:
    if raw.encoding == 'ros1':
        message = _typestore(Stores.ROS1_NOETIC).deserialize_ros1(raw.data, message_type)
    else:
        message = _typestore(Stores.LATEST).deserialize_cdr(raw.data, message_type)
    return str(message.data).strip()


@cache
def _typestore(store: Stores) -> Any:
    return get_typestore(store)


def _interval(path: Path, number: int, row: list[str]) -> Interval:
    try:
        start, end, label = row
        start_s, end_s = float(start), float(end)
    except ValueError:
        raise SeqmemError(
            f"{path}, line {number}: expected 'start,end,label' with times in s, got "
            f"'{','.join(row)}'"
        ) from None
    if not 0 <= start_s < end_s < float('inf') or not label:
        raise SeqmemError(
            f"{path}, line {number}: expected 0 <= start < end and a label, got '{','.join(row)}'"
        )
    start_ns, end_ns = (round(value * NANOSECONDS_PER_SECOND) for value in (start_s, end_s))
    return Interval(start_ns, end_ns, label)


def _seconds(time_ns: int) -> str:
    return f'{time_ns / NANOSECONDS_PER_SECOND:g}'


def _order(label: str) -> tuple[int, int, str]:
    return (0, int(label), '') if WHOLE_NUMBER.fullmatch(label) else (1, 0, label)
