"""
Joint states out of recordings, and into them: the one file that imports rosbags.

Every kind of bag ends as the same messages: rosbag2 with sqlite3 or MCAP storage, a folder or
a single file, and ROS 1 bags. Definitions inside a bag are not needed, as
``sensor_msgs/JointState`` has been the same in all distributions of ROS 1 and 2; this also
reads bags that call its header ``roslib/Header``.
"""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from functools import cache
from functools import partial
from itertools import chain
import logging
from pathlib import Path
import re
from typing import Any
from typing import NamedTuple

import numpy as np
from rosbags import rosbag1
from rosbags import rosbag2
from rosbags.typesys import get_typestore
from rosbags.typesys import Stores

from seqmem_ros.core.errors import SeqmemError
from seqmem_ros.core.joints import JointSample
from seqmem_ros.core.joints import NANOSECONDS_PER_SECOND
from seqmem_ros.core.joints import sample_from_message
from seqmem_ros.offline import salvage
from seqmem_ros.offline.salvage import RawMessage
from seqmem_ros.offline.topics import choose_topic
from seqmem_ros.offline.topics import JOINT_STATE
from seqmem_ros.offline.topics import merge_topics
from seqmem_ros.offline.topics import Topic

STORAGES = ('mcap', 'sqlite3')

Warn = Callable[[str], None]
Messages = Callable[[str, Warn], Iterator[RawMessage]]

_SCANS = {
    salvage.MCAP_MAGIC: salvage.scan_mcap,
    salvage.BAG1_MAGIC: salvage.scan_bag1,
    salvage.SQLITE_MAGIC: salvage.scan_sqlite3,
}
_STORAGE_SUFFIXES = ('.mcap', '.db3')


class JointMessage(NamedTuple):
    """
    One recorded JointState with what a sample does not keep.

    :ivar record_ns: time at which the recorder got it, in ns; not the stamp
    :ivar frame_id: from the header, needed to publish the message again as it was
    """

    record_ns: int
    sample: JointSample
    frame_id: str


class _Storage(NamedTuple):
    """One file or folder that can be read: ``messages(topic, note)`` notes what is lost."""

    path: Path
    topics: dict[str, Topic]
    indexed: bool
    messages: Messages


def list_topics(path: str | Path) -> dict[str, Topic]:
    """
    List what a bag holds.

    :param path: folder of a rosbag2, or an ``.mcap``, ``.db3`` or ``.bag`` file
    :returns: topics by name
    :raises SeqmemError: if nothing of it can be read
    """
    return merge_topics(storage.topics for storage in _open(Path(path), _ignore))


def read_joint_samples(
    path: str | Path, topic: str | None = None
) -> Iterator[tuple[int, JointSample]]:
    """
    Read the joint states of a bag; see :func:`read_joint_messages`.

    :param path: folder of a rosbag2, or an ``.mcap``, ``.db3`` or ``.bag`` file
    :param topic: its name; None takes the only one of type ``sensor_msgs/JointState``
    :returns: record time in ns, and sample
    :raises SeqmemError: as :func:`read_joint_messages`
    """
    return ((message.record_ns, message.sample) for message in read_joint_messages(path, topic))


def read_joint_messages(
    path: str | Path, topic: str | None = None, warn: Warn | None = None
) -> Iterator[JointMessage]:
    """
    Read the joint states of a bag in the order of their record times, lazily.

    A damaged bag is read as far as it goes, in the order in which it was written, and one
    warning says how much is lost.

    :param path: folder of a rosbag2, or an ``.mcap``, ``.db3`` or ``.bag`` file
    :param topic: its name; None takes the only one of type ``sensor_msgs/JointState``
    :param warn: called with each warning; None logs it
    :returns: iterator of messages; memory stays bounded by the bag's largest chunk
    :raises SeqmemError: if the bag or the topic cannot be read, before the first message
    """
    warn = warn or logging.getLogger(__name__).warning
    path = Path(path)
    storages = _open(path, warn)
    name = choose_topic(merge_topics(storage.topics for storage in storages), topic, path)
    messages = _joint_messages(path, storages, name, warn)
    return chain([next(messages)], messages)


def write_joint_bag(
    path: str | Path,
    topic: str,
    samples: Iterable[tuple[int, JointSample]],
    frame_id: str = '',
    storage: str = 'mcap',
    compressed: bool = False,
) -> int:
    """
    Write joint states as a rosbag2, as ``ros2 bag record`` would.

    :param path: folder to make; it must not exist
    :param topic: name of the topic
    :param samples: record time in ns, and sample
    :param frame_id: for every header
    :param storage: ``'mcap'`` or ``'sqlite3'``
    :param compressed: compress the chunks of an MCAP file with Zstandard
    :returns: number of messages written
    :raises SeqmemError: if the folder exists, or the storage is unknown
    """
    if storage not in STORAGES:
        raise SeqmemError(f'storage: expected one of {", ".join(STORAGES)}, got {storage!r}')
    if Path(path).exists():
        raise SeqmemError(f'{path} exists already: give a new name or remove it first')
    store = _ros2_store()
    # Version 8 of the metadata is the newest whose QoS profiles are a string, which the
    # rosbag2 of Humble and Iron expect.
    writer = rosbag2.Writer(
        Path(path), version=8, storage_plugin=rosbag2.StoragePlugin[storage.upper()]
    )
    if compressed:
        writer.set_compression(rosbag2.CompressionMode.STORAGE, rosbag2.CompressionFormat.ZSTD)
    count = 0
    with writer:
        connection = writer.add_connection(topic, JOINT_STATE, typestore=store)
        for record_ns, sample in samples:
            message = _message_from_sample(sample, frame_id)
            writer.write(connection, int(record_ns), store.serialize_cdr(message, JOINT_STATE))
            count += 1
    return count


def _ignore(warning: str) -> None:
    """Take a warning that another reading of the same bag will give."""


def _joint_messages(
    path: Path, storages: list[_Storage], topic: str, warn: Warn
) -> Iterator[JointMessage]:
    """Yield at least one message or raise; warnings follow the last message."""
    total = 0
    losses = []
    for storage in (storage for storage in storages if topic in storage.topics):
        count = undecoded = 0
        notes: list[str] = []
        for raw in storage.messages(topic, notes.append):
            try:
                message = _decode(raw)
            except Exception:
                # Whatever breaks in the decoder, the bytes of this one message are damaged.
                undecoded += 1
                continue
            count += 1
            yield message
        total += count
        if undecoded:
            notes.append(f'{undecoded} of its joint states are damaged')
        if notes:
            losses.append((storage.path, '; '.join(notes), count))
    if not total:
        reasons = '; '.join(loss for _, loss, _ in losses)
        raise SeqmemError(f'{path}: no joint state in it can be read: {reasons}')
    for file, loss, count in losses:
        warn(f'{file}: {loss}; {count} messages of {topic} were read')


def _open(path: Path, warn: Warn) -> list[_Storage]:
    """Open a bag: one storage, or several where a folder has to be read file by file."""
    if not path.exists():
        raise SeqmemError(f'{path}: no such file or folder')
    if path.name == 'metadata.yaml':
        path = path.parent
    if not path.is_dir():
        return [_open_file(path)]
    if (path / 'metadata.yaml').exists() and not _logs_beside(path):
        try:
            return [_open_indexed(path, rosbag2.Reader, partial(_messages_of_files, path))]
        except Exception as error:
            # Metadata that do not fit their files come in many forms; the files decide.
            storages = _open_files(path, warn)
            if all(storage.indexed for storage in storages):
                warn(f'{path}: metadata.yaml is of no use ({_one_line(error)}): files are read')
            return storages
    return _open_files(path, warn)


def _open_files(path: Path, warn: Warn) -> list[_Storage]:
    """Open what lies in a folder, without its metadata."""
    files = sorted(_storage_files(path), key=_natural_key)
    if not files:
        raise SeqmemError(
            f'{path}: expected the folder of a rosbag2 with an .mcap or .db3 file in it, found '
            f'{", ".join(sorted(entry.name for entry in path.iterdir())[:8]) or "nothing"}'
        )
    storages, errors = [], []
    for file in files:
        try:
            storages.append(_open_file(file))
        except SeqmemError as error:
            errors.append(error)
    if not storages:
        raise errors[0]
    for error in errors:
        warn(f'{error}; skipped')
    return storages


def _messages_of_files(path: Path, topic: str, note: Warn) -> Iterator[RawMessage]:
    for storage in _open_files(path, note):
        if topic in storage.topics:
            yield from storage.messages(topic, note)


def _storage_files(folder: Path) -> list[Path]:
    return [entry for entry in folder.iterdir() if entry.suffix in _STORAGE_SUFFIXES]


def _logs_beside(folder: Path) -> bool:
    return any(salvage.has_write_ahead_log(file) for file in _storage_files(folder))


def _natural_key(path: Path) -> list:
    """Sort ``bag_10`` after ``bag_9``."""
    return [int(part) if part.isdigit() else part for part in re.split(r'(\d+)', path.name)]


def _open_file(path: Path) -> _Storage:
    try:
        with path.open('rb') as file:
            head = file.read(16)
    except PermissionError:
        raise SeqmemError(f'{path}: no permission to read it') from None
    scan = next((scan for magic, scan in _SCANS.items() if head.startswith(magic)), None)
    if scan is None:
        raise SeqmemError(
            f'{path}: expected a bag (.mcap, .db3, .bag), '
            + ('but it is empty' if not head else f'but it begins with {head[:8]!r}')
        )
    reader = rosbag1.Reader if scan is salvage.scan_bag1 else rosbag2.Reader
    try:
        if scan is salvage.scan_sqlite3 and salvage.has_write_ahead_log(path):
            return _open_scanned(path, scan)
        return _open_indexed(path, reader, partial(_scanned_messages, path, scan))
    except Exception as error:
        # A damaged file can break a parser anywhere, so no list of errors would be complete.
        storage = _open_scanned(path, scan)
        if not storage.topics:
            raise SeqmemError(f'{path}: nothing in it can be read: {_one_line(error)}') from error
        return storage


def _open_indexed(path: Path, reader: Any, fallback: Messages) -> _Storage:
    with reader(path) as bag:
        topics = {
            name: Topic(info.msgtype or 'several types', info.msgcount)
            for name, info in bag.topics.items()
        }
    return _Storage(path, topics, True, partial(_indexed_messages, path, reader, fallback))


def _indexed_messages(
    path: Path, reader: Any, fallback: Messages, topic: str, note: Warn
) -> Iterator[RawMessage]:
    """Yield messages by the index; if it leads nowhere, go on without it."""
    encoding = 'ros1' if reader is rosbag1.Reader else 'cdr'
    last_ns = -1
    try:
        with reader(path) as bag:
            connections = [x for x in bag.connections if x.topic == topic]
            for connection, record_ns, data in bag.messages(connections):
                last_ns = record_ns
                yield RawMessage(topic, connection.msgtype, record_ns, bytes(data), encoding)
        return
    except Exception as error:
        # As in _open_file: a damaged file can break a parser anywhere.
        note(_one_line(error))
    for raw in fallback(topic, note):
        if raw.record_ns > last_ns:
            yield raw


def _open_scanned(path: Path, scan: Any) -> _Storage:
    topics: dict[str, Topic] = {}
    for raw in scan(path, _ignore):
        known = topics.get(raw.topic, Topic(raw.message_type, 0))
        topics[raw.topic] = Topic(raw.message_type, known.count + 1)
    return _Storage(path, topics, False, partial(_scanned_messages, path, scan))


def _scanned_messages(path: Path, scan: Any, topic: str, note: Warn) -> Iterator[RawMessage]:
    return (raw for raw in scan(path, note) if raw.topic == topic)


def _one_line(error: Exception) -> str:
    return ' '.join(str(error).split()).rstrip('.') or type(error).__name__


@cache
def _ros1_store() -> Any:
    return get_typestore(Stores.ROS1_NOETIC)


@cache
def _ros2_store() -> Any:
    return get_typestore(Stores.LATEST)


def _decode(raw: RawMessage) -> JointMessage:
    if raw.encoding == 'ros1':
        message = _ros1_store().deserialize_ros1(raw.data, JOINT_STATE)
    else:
        data = raw.data
        # Messages compressed one by one, without the metadata that would say so.
        if data[:4] == salvage.ZSTD_MAGIC:
            data = salvage.zstd.decompress(data)
        message = _ros2_store().deserialize_cdr(data, JOINT_STATE)
    return JointMessage(raw.record_ns, sample_from_message(message), message.header.frame_id)


def _message_from_sample(sample: JointSample, frame_id: str) -> Any:
    types = _ros2_store().types
    sec, nanosec = divmod(int(sample.stamp_ns), NANOSECONDS_PER_SECOND)
    header = types['std_msgs/msg/Header'](
        types['builtin_interfaces/msg/Time'](sec, nanosec), frame_id
    )
    return types[JOINT_STATE](
        header,
        list(sample.names),
        np.asarray(sample.position, dtype=np.float64),
        np.asarray(sample.velocity, dtype=np.float64),
        np.asarray(sample.effort, dtype=np.float64),
    )
