"""ROS 1 bags without their index."""

from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
import struct

from seqmem_ros.offline.salvage import BAG1_MAGIC
from seqmem_ros.offline.salvage import broken
from seqmem_ros.offline.salvage import decompress
from seqmem_ros.offline.salvage import Note
from seqmem_ros.offline.salvage import RawMessage
from seqmem_ros.offline.salvage import Records
from seqmem_ros.offline.salvage import ros2_type
from seqmem_ros.offline.salvage import Source


def scan_bag1(path: Path, note: Note) -> Iterator[RawMessage]:
    """
    Scan a ROS 1 bag, chunk by chunk.

    Layout of records: "Bags/Format/2.0" (https://wiki.ros.org/Bags/Format/2.0).

    :param path: the file
    :param note: called at the end if something is lost
    :returns: iterator of messages
    """
    with path.open('rb') as file:
        source = Source(file)
        source.skip(len(BAG1_MAGIC))
        note((yield from _scan_bag1_records(source, {})))


def _scan_bag1_records(source: Source, connections: dict) -> Records:
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
                message_type = ros2_type(connection['type'].decode())
                connections[key] = (fields['topic'].decode(), message_type)
            elif op == 2 and whole:
                key = int.from_bytes(fields['conn'], 'little')
                sec, nanosec = struct.unpack('<II', fields['time'])
                if key in connections:
                    record_ns = sec * 1_000_000_000 + nanosec
                    yield RawMessage(*connections[key], record_ns, data, 'ros1')
            elif op == 5:
                content = decompress(fields['compression'].decode(), data)
                yield from _scan_bag1_records(Source(BytesIO(content)), connections)
        except (EOFError, KeyError, IndexError, UnicodeDecodeError, struct.error):
            whole = False
        if not whole:
            return broken(source, at, missing)
    return 'its index is missing or damaged'


def _bag1_fields(data: bytes) -> dict[str, bytes]:
    """Split a record header into its ``name=value`` fields."""
    source = Source(BytesIO(data))
    fields = {}
    while source.left:
        name, _, value = source.read(source.unpack('<I')[0]).partition(b'=')
        fields[name.decode()] = value
    return fields
