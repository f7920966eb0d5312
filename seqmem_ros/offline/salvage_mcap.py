"""MCAP files without their index."""

from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
import zlib

from seqmem_ros.offline.salvage import broken
from seqmem_ros.offline.salvage import decompress
from seqmem_ros.offline.salvage import MCAP_MAGIC
from seqmem_ros.offline.salvage import Note
from seqmem_ros.offline.salvage import RawMessage
from seqmem_ros.offline.salvage import Records
from seqmem_ros.offline.salvage import ros2_type
from seqmem_ros.offline.salvage import Source


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
        source = Source(file)
        source.skip(len(MCAP_MAGIC))
        loss = yield from _scan_mcap_records(source, {}, {})
    if loss:
        note(loss)


def _scan_mcap_records(source: Source, schemas: dict, channels: dict) -> Records:
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
            record = Source(BytesIO(source.read(size))) if op in (3, 4, 5, 6) else None
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
                    message_type = ros2_type(message_type)
                    data = record.read(record.left)
                    yield RawMessage(topic, message_type, log_ns, data, encoding)
            elif op == 6:
                content = _mcap_chunk(record, whole)
                if content is None:
                    damaged += 1
                else:
                    inner = Source(BytesIO(content))
                    yield from _scan_mcap_records(inner, schemas, channels)
        except (EOFError, UnicodeDecodeError):
            whole = False
        if not whole:
            return broken(source, at, missing)
        footer_seen = op == 2
    if damaged:
        return f'{damaged} of its chunks are damaged and were skipped'
    return '' if footer_seen else 'its recorder did not close it'


def _mcap_chunk(record: Source, whole: bool) -> bytes | None:
    """Return what a chunk holds, or None if its checksum says that it is damaged."""
    _, _, size, crc = record.unpack('<QQQI')
    compression = record.text()
    record.skip(8)
    content = decompress(compression, record.read(record.left))
    intact = len(content) == size and (not crc or zlib.crc32(content) == crc)
    return content if intact or not whole else None
