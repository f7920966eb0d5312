"""
Read damaged recordings from front to back, without the index that they have lost.

A recorder that was killed or a copy that stopped leaves a file whose index, written last, is
missing. The records before it are whole. Each ``scan_*`` generator yields their messages in
file order and, at its end, calls ``note`` with one sentence if something is lost. Only the
standard library and the two decompressors are used, no ROS and no rosbags.
"""

import bz2
from collections.abc import Callable
from collections.abc import Generator
from collections.abc import Iterator
from contextlib import closing
from contextlib import suppress
from io import BytesIO
from pathlib import Path
import sqlite3
import struct
import sys
from typing import BinaryIO
from typing import NamedTuple
from urllib.parse import quote
import zlib

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

from lz4.frame import LZ4FrameDecompressor

MCAP_MAGIC = b'\x89MCAP0\r\n'
BAG1_MAGIC = b'#ROSBAG V2.0\n'
SQLITE_MAGIC = b'SQLite format 3\x00'
ZSTD_MAGIC = b'\x28\xb5\x2f\xfd'


class RawMessage(NamedTuple):
    """
    One recorded message, not decoded.

    :ivar record_ns: time at which the recorder got it, in ns
    :ivar encoding: ``'cdr'`` or ``'ros1'``
    """

    topic: str
    message_type: str
    record_ns: int
    data: bytes
    encoding: str


Note = Callable[[str], None]
_Records = Generator[RawMessage, None, str]

_DECOMPRESSORS: dict[str, Callable[[], object]] = {
    'zstd': zstd.ZstdDecompressor,
    'lz4': LZ4FrameDecompressor,
    'bz2': bz2.BZ2Decompressor,
}


def _decompress(compression: str, data: bytes) -> bytes:
    """Get what can be had of compressed data that may be cut off."""
    if compression in ('', 'none'):
        return data
    try:
        return _DECOMPRESSORS[compression]().decompress(data)
    except (KeyError, EOFError, OSError, RuntimeError, ValueError, zstd.ZstdError):
        return b''


class _Source:
    """A binary stream that knows its length and never reads past it."""

    def __init__(self, stream: BinaryIO) -> None:
        self.stream = stream
        self.size = stream.seek(0, 2)
        stream.seek(0)

    @property
    def left(self) -> int:
        return self.size - self.stream.tell()

    def read(self, size: int) -> bytes:
        return self.stream.read(min(size, self.left))

    def skip(self, size: int) -> None:
        self.stream.seek(min(size, self.left), 1)

    def unpack(self, layout: str) -> tuple:
        data = self.read(struct.calcsize(layout))
        if len(data) < struct.calcsize(layout):
            raise EOFError
        return struct.unpack(layout, data)

    def text(self) -> str:
        return self.read(self.unpack('<I')[0]).decode()


def _broken(source: _Source, at: int, missing: int) -> str:
    """Say where reading ended: in a record that is too short, or that makes no sense."""
    if missing > 0:
        return f'it ends in the middle of a record, which lacks {missing} bytes'
    return f'it cannot be read on from byte {at} of {source.size}'


def scan_mcap(path: Path, note: Note) -> Iterator[RawMessage]:
    """
    Scan an MCAP file, record by record.

    Layout of records: MCAP specification 1.0, sections "Records", "Chunk", "Message"
    (https://mcap.dev/spec).

    :param path: the file
    :param note: called at the end if something is lost
    :returns: iterator of messages
    """
    with path.open('rb') as file:
        source = _Source(file)
        source.skip(len(MCAP_MAGIC))
        loss = yield from _scan_mcap_records(source, {}, {})
    if loss:
        note(loss)


def _scan_mcap_records(source: _Source, schemas: dict, channels: dict) -> _Records:
    """Yield the messages of a file or of a chunk."""
    damaged = 0
    footer_seen = False
    at = source.stream.tell()
    while source.left and not footer_seen:
        at = source.stream.tell()
        missing = 0
        try:
            op, size = source.unpack('<BQ')
            missing = size - source.left
            whole = missing <= 0
            record = _Source(BytesIO(source.read(size))) if op in (3, 4, 5, 6) else None
            if record is None:
                source.skip(size)
            elif op == 3:
                schema_id, name = *record.unpack('<H'), record.text()
                schemas[schema_id] = name
            elif op == 4:
                channel_id, schema_id = record.unpack('<HH')
                topic, encoding = record.text(), record.text()
                channels[channel_id] = (topic, schemas.get(schema_id, ''), encoding)
            elif op == 5 and whole:
                channel_id, _, log_ns, _ = record.unpack('<HIQQ')
                if channel_id in channels:
                    topic, message_type, encoding = channels[channel_id]
                    message_type = _ros2_type(message_type)
                    data = record.read(record.left)
                    yield RawMessage(topic, message_type, log_ns, data, encoding)
            elif op == 6:
                content = _mcap_chunk(record, whole)
                if content is None:
                    damaged += 1
                else:
                    inner = _Source(BytesIO(content))
                    yield from _scan_mcap_records(inner, schemas, channels)
        except (EOFError, UnicodeDecodeError):
            whole = False
        if not whole:
            return _broken(source, at, missing)
        footer_seen = op == 2
    if damaged:
        return f'{damaged} of its chunks are damaged and were skipped'
    return '' if footer_seen else 'its recorder did not close it'


def _mcap_chunk(record: _Source, whole: bool) -> bytes | None:
    """Return what a chunk holds, or None if its checksum says that it is damaged."""
    _, _, size, crc = record.unpack('<QQQI')
    compression = record.text()
    record.skip(8)
    content = _decompress(compression, record.read(record.left))
    intact = len(content) == size and (not crc or zlib.crc32(content) == crc)
    return content if intact or not whole else None


def _ros2_type(name: str) -> str:
    """Turn ``package/Type`` into ``package/msg/Type``."""
    package, _, rest = name.partition('/')
    return name if '/' in rest or not rest else f'{package}/msg/{rest}'


def scan_bag1(path: Path, note: Note) -> Iterator[RawMessage]:
    """
    Scan a ROS 1 bag, chunk by chunk.

    Layout of records: "Bags/Format/2.0" (https://wiki.ros.org/Bags/Format/2.0).

    :param path: the file
    :param note: called at the end if something is lost
    :returns: iterator of messages
    """
    with path.open('rb') as file:
        source = _Source(file)
        source.skip(len(BAG1_MAGIC))
        note((yield from _scan_bag1_records(source, {})))


def _scan_bag1_records(source: _Source, connections: dict) -> _Records:
    """Yield the messages of a file or of a chunk."""
    while source.left:
        at = source.stream.tell()
        missing = 0
        try:
            fields = _bag1_fields(source.read(source.unpack('<I')[0]))
            (size,) = source.unpack('<I')
            missing = size - source.left
            whole = missing <= 0
            op = fields['op'][0]
            data = source.read(size)
            if op == 7 and whole:
                connection = fields | _bag1_fields(data)
                key = int.from_bytes(fields['conn'], 'little')
                message_type = _ros2_type(connection['type'].decode())
                connections[key] = (fields['topic'].decode(), message_type)
            elif op == 2 and whole:
                key = int.from_bytes(fields['conn'], 'little')
                sec, nanosec = struct.unpack('<II', fields['time'])
                if key in connections:
                    record_ns = sec * 1_000_000_000 + nanosec
                    yield RawMessage(*connections[key], record_ns, data, 'ros1')
            elif op == 5:
                content = _decompress(fields['compression'].decode(), data)
                yield from _scan_bag1_records(_Source(BytesIO(content)), connections)
        except (EOFError, KeyError, IndexError, UnicodeDecodeError, struct.error):
            whole = False
        if not whole:
            return _broken(source, at, missing)
    return 'its index is missing or damaged'


def _bag1_fields(data: bytes) -> dict[str, bytes]:
    """Split a record header into its ``name=value`` fields."""
    source = _Source(BytesIO(data))
    fields = {}
    while source.left:
        name, _, value = source.read(source.unpack('<I')[0]).partition(b'=')
        fields[name.decode()] = value
    return fields


def scan_sqlite3(path: Path, note: Note) -> Iterator[RawMessage]:
    """
    Scan an SQLite database of rosbag2 in the order in which it was written.

    :param path: the file
    :param note: called at the end if something is lost
    :returns: iterator of messages
    """
    # A recorder that was killed leaves its last messages in the write-ahead log, which
    # SQLite only looks at when it may not take the file as immutable.
    immutable = '' if has_write_ahead_log(path) else '&immutable=1'
    uri = f'file:{quote(str(path.absolute()))}?mode=ro{immutable}'
    with closing(sqlite3.connect(uri, uri=True)) as database:
        try:
            # Without this, SQLite refuses a file that is shorter than its header says.
            database.execute('PRAGMA writable_schema = ON')
            topics = _sqlite_topics(database)
            rows = database.execute('SELECT topic_id, timestamp, data FROM messages')
            for topic_id, record_ns, data in rows:
                if topic_id in topics:
                    yield RawMessage(*topics[topic_id], record_ns, data, 'cdr')
        except sqlite3.Error as error:
            note(_sqlite_loss(path, error))


def _sqlite_topics(database: sqlite3.Connection) -> dict[int, tuple[str, str]]:
    """Read the names and types that can be read."""
    topics = {}
    with suppress(sqlite3.DatabaseError):
        for topic_id, name, message_type in database.execute('SELECT id, name, type FROM topics'):
            topics[topic_id] = (name, message_type)
    return topics


def has_write_ahead_log(path: Path) -> bool:
    """
    Say whether an SQLite file has messages beside it that were never merged into it.

    :param path: the database file
    :returns: True if ``<path>-wal`` holds anything
    """
    log = path.with_name(path.name + '-wal')
    return log.exists() and log.stat().st_size > 0


def _sqlite_loss(path: Path, error: sqlite3.Error) -> str:
    """Compare the file with the size in its header (SQLite file format, section 1.3)."""
    with path.open('rb') as file:
        header = file.read(100)
        size = file.seek(0, 2)
    if len(header) < 100:
        return f'it holds only {size} bytes'
    page_size = int.from_bytes(header[16:18], 'big')
    expected = (65536 if page_size == 1 else page_size) * int.from_bytes(header[28:32], 'big')
    if size < expected:
        return f'it holds {size} of {expected} bytes ({100 * size / expected:.0f} %)'
    return f'SQLite stopped with "{error}"'
