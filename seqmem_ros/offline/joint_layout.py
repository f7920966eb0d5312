"""
Many serialised joint states at once: consecutive messages mostly differ in numbers alone.

A message is laid out as the first of its run; those whose other bytes are the same are read as
rows of one array. Layouts: the Common Data Representation of OMG DDSI-RTPS, little-endian, with
alignment counted from the end of its 4-byte header (CORBA 3.3 part 2, Section 9.3), and the
packed little-endian form of ROS 1 (wiki.ros.org/msg, "Serialization").
"""

from collections.abc import Iterator
from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import replace
import struct
from typing import NamedTuple

import numpy as np

from seqmem_ros.core.joints import JointSample
from seqmem_ros.core.joints import NANOSECONDS_PER_SECOND

FIELDS = ('position', 'velocity', 'effort')
_CDR_LITTLE_ENDIAN = b'\x00\x01'
_SHORTEST_RUN = 16


@dataclass(frozen=True, eq=False)
class JointBlock:
    """
    Consecutive messages that name the same joints, have the same frame, and the same fields.

    :ivar record_ns: record times, ns, int64, shape (n,)
    :ivar stamp_ns: stamps, ns, int64, shape (n,)
    :ivar names: of the joints, as in each message
    :ivar frame_id: of each message
    :ivar position: rad or m, shape (n, J); J may be 0, or differ from the number of names
    :ivar velocity: rad/s or m/s, likewise
    :ivar effort: N m or N, likewise
    """

    record_ns: np.ndarray
    stamp_ns: np.ndarray
    names: tuple[str, ...]
    frame_id: str
    position: np.ndarray
    velocity: np.ndarray
    effort: np.ndarray

    def __len__(self) -> int:
        return len(self.record_ns)

    def rows(self, chosen: slice | np.ndarray) -> 'JointBlock':
        """
        Select messages.

        :param chosen: indices, a mask or a slice of the rows
        :returns: those
        """
        arrays = {name: getattr(self, name)[chosen] for name in ('record_ns', 'stamp_ns', *FIELDS)}
        return replace(self, **arrays)

    def sample(self, row: int) -> JointSample:
        """
        Take one message out.

        :param row: its index
        :returns: the message
        """
        values = (getattr(self, field)[row] for field in FIELDS)
        return JointSample(int(self.stamp_ns[row]), self.names, *values)


class Layout(NamedTuple):
    """Where in a message of ``size`` bytes what stands; fields at offset and with length."""

    size: int
    encoding: str
    stamp_at: int
    names: tuple[str, ...]
    frame_id: str
    fields: tuple[tuple[int, int], ...]


class _Cursor:
    """Reads one message from front to back."""

    def __init__(self, data: bytes, encoding: str) -> None:
        self.data = data
        self.is_cdr = encoding == 'cdr'
        self.at = 4 if self.is_cdr else 0

    def align(self, size: int) -> None:
        if self.is_cdr:
            self.at += -(self.at - 4) % size

    def count(self) -> int:
        self.align(4)
        (value,) = struct.unpack_from('<I', self.data, self.at)
        self.at += 4
        return value

    def text(self) -> str:
        size = self.count()
        if size > len(self.data) - self.at:
            raise ValueError('a text reaches beyond the message')
        text = self.data[self.at : self.at + size]
        self.at += size
        return (text[:-1] if self.is_cdr else text).decode()

    def doubles(self) -> tuple[int, int]:
        size = self.count()
        if size:
            self.align(8)
        at = self.at
        self.at += 8 * size
        return at, size


def find_layout(data: bytes, encoding: str) -> Layout | None:
    """
    Lay out a serialised ``sensor_msgs/JointState``.

    :param data: the message
    :param encoding: ``'cdr'`` or ``'ros1'``
    :returns: the layout; None if it is not what this module reads
    """
    if encoding == 'cdr' and data[:2] != _CDR_LITTLE_ENDIAN:
        return None
    cursor = _Cursor(data, encoding)
    try:
        if encoding == 'ros1':
            cursor.at += 4  # the header's sequence number
        stamp_at = cursor.at
        cursor.at += 8
        frame_id = cursor.text()
        n_names = cursor.count()
        if n_names > len(data):
            return None
        names = tuple(cursor.text() for _ in range(n_names))
        fields = tuple(cursor.doubles() for _ in FIELDS)
    except (struct.error, ValueError):
        return None
    # Some writers pad a message to a multiple of four bytes.
    if not 0 <= len(data) - cursor.at < 4:
        return None
    return Layout(len(data), encoding, stamp_at, names, frame_id, fields)


def run_length(datas: Sequence[bytes], layout: Layout, start: int) -> tuple[int, np.ndarray]:
    """
    Find how many messages from one on have the same layout.

    :param datas: messages
    :param layout: of the one at ``start``
    :param start: its index
    :returns: the number n, and their bytes, uint8, shape (n, size)
    """
    longest = _SHORTEST_RUN
    while True:
        stop = start
        while stop < min(start + longest, len(datas)) and len(datas[stop]) == layout.size:
            stop += 1
        rows = np.frombuffer(b''.join(datas[start:stop]), np.uint8).reshape(-1, layout.size)
        count = same_layout(rows, layout)
        if count < len(rows):
            return count, rows[:count]
        if stop < start + longest:
            return len(rows), rows
        # Layouts that take turns would else be joined again and again.
        longest *= 8


def same_layout(rows: np.ndarray, layout: Layout) -> int:
    """
    Find how many messages of one size differ from the first in numbers alone.

    :param rows: their bytes, uint8, shape (n, size)
    :param layout: of the first
    :returns: how many from the first on
    """
    count = len(rows)
    for part in _fixed_parts(layout):
        different = (rows[:count, part] != rows[0, part]).any(axis=1)
        if different.any():
            count = int(np.argmax(different))
    return count


def _fixed_parts(layout: Layout) -> Iterator[slice]:
    """Name the bytes that are no numbers."""
    # In ROS 1, the header's sequence number stands before the stamp.
    begin = 0 if layout.encoding == 'cdr' else layout.stamp_at
    for at, n_bytes in ((layout.stamp_at, 8), *((at, 8 * size) for at, size in layout.fields)):
        if at > begin:
            yield slice(begin, at)
        begin = at + n_bytes
    if begin < layout.size:
        yield slice(begin, layout.size)


def decode_run(rows: np.ndarray, layout: Layout, record_ns: np.ndarray) -> JointBlock:
    """
    Read messages of one layout.

    :param rows: their bytes, uint8, shape (n, size)
    :param layout: of them
    :param record_ns: ns, shape (n,)
    :returns: the messages
    """
    stamps = rows[:, layout.stamp_at : layout.stamp_at + 8].copy()
    # Seconds are unsigned in ROS 1.
    sec_type = '<u4' if layout.encoding == 'ros1' else '<i4'
    sec = stamps[:, :4].copy().view(sec_type)[:, 0].astype(np.int64)
    nanosec = stamps[:, 4:].copy().view('<u4')[:, 0].astype(np.int64)
    values = (
        rows[:, at : at + 8 * size].copy().view('<f8').reshape(len(rows), size)
        if size
        else np.empty((len(rows), 0))
        for at, size in layout.fields
    )
    stamp_ns = sec * NANOSECONDS_PER_SECOND + nanosec
    return JointBlock(record_ns, stamp_ns, layout.names, layout.frame_id, *values)
