"""
Open what lies on a disk as bags: folders and files, whole and damaged, of every format.

A storage gives the raw messages of a topic. If its index fails, it is read without; what is
lost is noted.
"""

from collections.abc import Callable
from collections.abc import Iterator
from functools import partial
from pathlib import Path
import re
from typing import Any
from typing import NamedTuple

from rosbags import rosbag1
from rosbags import rosbag2
from rosbags.rosbag2.storage_mcap import McapReader

from seqmem_ros.core.errors import SeqmemError
from seqmem_ros.offline import salvage
from seqmem_ros.offline.mcap_chunks import read_by_chunks
from seqmem_ros.offline.salvage import RawMessage
from seqmem_ros.offline.salvage import RawRows
from seqmem_ros.offline.salvage_bag1 import scan_bag1
from seqmem_ros.offline.salvage_mcap import scan_mcap
from seqmem_ros.offline.salvage_sqlite3 import has_write_ahead_log
from seqmem_ros.offline.salvage_sqlite3 import scan_sqlite3
from seqmem_ros.offline.topics import Topic
from seqmem_ros.offline.unpacked import is_packed
from seqmem_ros.offline.unpacked import PACKED_SUFFIX
from seqmem_ros.offline.unpacked import Unpacked

Warn = Callable[[str], None]
Messages = Callable[[str, Warn], Iterator[RawMessage | RawRows]]

_SCANS = {
    salvage.MCAP_MAGIC: scan_mcap,
    salvage.BAG1_MAGIC: scan_bag1,
    salvage.SQLITE_MAGIC: scan_sqlite3,
}
_STORAGE_SUFFIXES = ('.mcap', '.db3')


class Storage(NamedTuple):
    """
    One file or folder that can be read.

    :ivar indexed: whether its index was found and is used
    :ivar messages: ``messages(topic, note)`` yields what there is, and notes what is lost
    """

    path: Path
    topics: dict[str, Topic]
    indexed: bool
    messages: Messages


def one_line(error: Exception) -> str:
    """
    Say an error of a library.

    :param error: the error
    :returns: its message in one line, or its kind
    """
    return ' '.join(str(error).split()).rstrip('.') or type(error).__name__


def no_warning(warning: str) -> None:
    """
    Take a warning that another reading of the same bag will give.

    :param warning: left unsaid
    """


def open_bag(path: Path, warn: Warn) -> list[Storage]:
    """
    Open a bag.

    :param path: folder of a rosbag2, its ``metadata.yaml``, or a bag file
    :param warn: called with what is wrong but can be lived with
    :returns: one storage, or several where a folder has to be read file by file
    :raises SeqmemError: if nothing of it can be read
    """
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
                warn(f'{path}: metadata.yaml is of no use ({one_line(error)}): files are read')
            return storages
    return _open_files(path, warn)


def _open_files(path: Path, warn: Warn) -> list[Storage]:
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
    names = tuple(
        suffix + packed for suffix in _STORAGE_SUFFIXES for packed in ('', PACKED_SUFFIX)
    )
    return [entry for entry in folder.iterdir() if entry.name.endswith(names)]


def _logs_beside(folder: Path) -> bool:
    return any(has_write_ahead_log(file) for file in _storage_files(folder))


def _natural_key(path: Path) -> list:
    """Sort ``bag_10`` after ``bag_9``."""
    return [int(part) if part.isdigit() else part for part in re.split(r'(\d+)', path.name)]


def _open_file(path: Path) -> Storage:
    head = _head(path)
    if not is_packed(head):
        return _open_plain(path, path, head)
    unpacked = Unpacked(path)
    storage = _open_plain(unpacked.path, path, _head(unpacked.path))
    return storage._replace(messages=partial(_unpacked_messages, unpacked, storage.messages))


def _head(path: Path) -> bytes:
    try:
        with path.open('rb') as file:
            return file.read(16)
    except PermissionError:
        raise SeqmemError(f'{path}: no permission to read it') from None


def _open_plain(path: Path, shown: Path, head: bytes) -> Storage:
    """Open a file that is not compressed as a whole, or one that was and is shown as such."""
    scan = next((scan for magic, scan in _SCANS.items() if head.startswith(magic)), None)
    if scan is None:
        raise SeqmemError(
            f'{shown}: expected a bag (.mcap, .db3, .bag), '
            + ('but it is empty' if not head else f'but it begins with {head[:8]!r}')
        )
    reader = rosbag1.Reader if scan is scan_bag1 else rosbag2.Reader
    try:
        if scan is scan_sqlite3 and has_write_ahead_log(path):
            storage = _open_scanned(path, scan)
        else:
            storage = _open_indexed(path, reader, partial(_scanned_messages, path, scan))
            if not storage.topics:
                # An MCAP file need not say in its summary which channels it has.
                storage = _open_scanned(path, scan)
    except Exception as error:
        # A damaged file can break a parser anywhere, so no list of errors would be complete.
        storage = _open_scanned(path, scan)
        if not storage.topics:
            raise SeqmemError(f'{shown}: nothing in it can be read: {one_line(error)}') from error
    return storage._replace(path=shown)


def _unpacked_messages(
    unpacked: Unpacked, messages: Messages, topic: str, note: Warn
) -> Iterator[RawMessage]:
    yield from messages(topic, note)
    if unpacked.loss:
        note(unpacked.loss)


def _open_indexed(path: Path, reader: Any, fallback: Messages) -> Storage:
    with reader(path) as bag:
        topics = {
            name: Topic(info.msgtype or 'several types', info.msgcount)
            for name, info in bag.topics.items()
        }
    return Storage(path, topics, True, partial(_indexed_messages, path, reader, fallback))


def _indexed_messages(
    path: Path, reader: Any, fallback: Messages, topic: str, note: Warn
) -> Iterator[RawMessage | RawRows]:
    """Yield messages by the index; if it leads nowhere, go on without it."""
    encoding = 'ros1' if reader is rosbag1.Reader else 'cdr'
    last_ns = -1
    try:
        with reader(path) as bag:
            files = _mcap_files(bag)
            chunked = read_by_chunks(files, topic) if files else None
            if chunked is not None:
                for rows in chunked:
                    last_ns = int(rows.record_ns[-1])
                    yield rows
            else:
                connections = [x for x in bag.connections if x.topic == topic]
                for connection, last_ns, data in bag.messages(connections):
                    yield RawMessage(topic, connection.msgtype, last_ns, bytes(data), encoding)
            if last_ns >= 0 or not bag.topics[topic].msgcount:
                return
    except Exception as error:  # as in _open_plain
        note(one_line(error))
    for raw in fallback(topic, note):
        if raw.record_ns > last_ns:
            yield raw


def _mcap_files(bag: Any) -> list[Path]:
    """List the files of a bag of which each message is there as it is; none of other bags."""
    storage = getattr(bag, 'storage', None)
    parts = getattr(storage, 'storages', [storage])
    if (
        not all(isinstance(part, McapReader) for part in parts)
        or bag.compression_mode == 'message'
    ):
        return []
    return [part.path for part in parts]


def _open_scanned(path: Path, scan: Any) -> Storage:
    topics: dict[str, Topic] = {}
    for raw in scan(path, no_warning):
        known = topics.get(raw.topic, Topic(raw.message_type, 0))
        topics[raw.topic] = Topic(raw.message_type, known.count + 1)
    return Storage(path, topics, False, partial(_scanned_messages, path, scan))


def _scanned_messages(path: Path, scan: Any, topic: str, note: Warn) -> Iterator[RawMessage]:
    return (raw for raw in scan(path, note) if raw.topic == topic)
