"""
Messages in the order of their stamps, however large the recording is.

What is to be sorted is not known before its end, so messages wait in a temporary file, beyond 64
MB on the disk. In memory there are two numbers a message, where it is and when it was
measured, and one more while they are sorted.
"""

from array import array
from collections.abc import Iterable
from collections.abc import Iterator
from functools import lru_cache
import tempfile
from typing import NamedTuple

import numpy as np

from seqmem_ros.core.joints import FIELDS
from seqmem_ros.offline.joint_layout import JointBlock

_IN_MEMORY_BYTES = 64_000_000
# Blocks that are taken turns with, as where publishers interleave, are not read again and again.
_BLOCKS_AT_HAND = 16


def by_stamp(blocks: Iterable[JointBlock]) -> Iterator[JointBlock]:
    """
    Sort messages by stamp, those without one by record time; ties stay as recorded.

    :param blocks: as recorded
    :returns: the same messages, blocks of those that follow each other
    """
    with _Shelf() as shelf:
        times: list[np.ndarray] = []
        for block in blocks:
            shelf.put(block)
            times.append(np.where(block.stamp_ns == 0, block.record_ns, block.stamp_ns))
        if not times:
            return
        order = np.argsort(np.concatenate(times), kind='stable')
        times.clear()
        first = np.concatenate([[0], np.cumsum(shelf.sizes)])
        owner = np.searchsorted(first, order, side='right') - 1
        cuts = np.flatnonzero(np.diff(owner)) + 1
        for begin, end in zip([0, *cuts], [*cuts, len(order)]):
            number = int(owner[begin])
            yield shelf.get(number).rows(order[begin:end] - first[number])


class _Layout(NamedTuple):
    """What the messages of a block have in common."""

    names: tuple[str, ...]
    frame_id: str
    widths: tuple[int, ...]


class _Shelf:
    """
    Blocks in a temporary file.

    :ivar sizes: number of messages in each
    """

    def __init__(self) -> None:
        self._file = tempfile.SpooledTemporaryFile(_IN_MEMORY_BYTES, prefix='seqmem_')
        self._layouts: dict[_Layout, int] = {}
        self._layout_of = array('q')
        self._begins = array('q')
        self.sizes = array('q')
        self.get = lru_cache(_BLOCKS_AT_HAND)(self._read)

    def __enter__(self) -> '_Shelf':
        return self

    def __exit__(self, *error: object) -> None:
        self._file.close()

    def put(self, block: JointBlock) -> None:
        """Append a block."""
        values = [getattr(block, field) for field in FIELDS]
        layout = _Layout(block.names, block.frame_id, tuple(each.shape[1] for each in values))
        self._layout_of.append(self._layouts.setdefault(layout, len(self._layouts)))
        self._begins.append(self._file.tell())
        self.sizes.append(len(block))
        for array_ in (block.record_ns, block.stamp_ns, *values):
            self._file.write(np.ascontiguousarray(array_).tobytes())

    def _read(self, number: int) -> JointBlock:
        size = self.sizes[number]
        names, frame_id, widths = list(self._layouts)[self._layout_of[number]]
        self._file.seek(self._begins[number])
        times = (self._numbers(np.int64, size) for _ in range(2))
        values = (self._numbers(np.float64, size * width).reshape(size, width) for width in widths)
        return JointBlock(*times, names, frame_id, *values)

    def _numbers(self, dtype: type, count: int) -> np.ndarray:
        return np.frombuffer(self._file.read(8 * count), dtype)
