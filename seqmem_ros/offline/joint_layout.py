"""
Many serialised joint states at once: consecutive messages mostly differ in numbers alone.

A message is laid out as the first of its run; those whose other bytes are the same are read as
rows of one array.
"""

from collections.abc import Iterator
from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import replace

import numpy as np

from seqmem_ros.core.joint_layout import fixed_parts
from seqmem_ros.core.joint_layout import Layout
from seqmem_ros.core.joints import FIELDS
from seqmem_ros.core.joints import JointSample
from seqmem_ros.core.joints import NANOSECONDS_PER_SECOND

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

    def samples(self) -> Iterator[JointSample]:
        """
        Take all messages out.

        :returns: one after the other
        """
        fields = (getattr(self, field) for field in FIELDS)
        for stamp_ns, *values in zip(self.stamp_ns.tolist(), *fields):
            yield JointSample(stamp_ns, self.names, *values)


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
    for start, stop in fixed_parts(layout):
        different = (rows[:count, start:stop] != rows[0, start:stop]).any(axis=1)
        if different.any():
            count = int(np.argmax(different))
    return count


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
