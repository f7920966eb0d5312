"""
What reading damaged recordings from front to back needs, whatever their format.

A recorder that was killed or a copy that stopped leaves a file whose index, written last, is
missing. The records before it are whole. Each ``scan_*`` generator of ``salvage_mcap``,
``salvage_bag1`` and ``salvage_sqlite3`` yields their messages in file order and, at its end,
calls ``note`` with one sentence if something is lost. Only the standard library, NumPy and the
two decompressors are used, no ROS and no rosbags.
"""

import bz2
from collections.abc import Callable
from collections.abc import Generator
import struct
import sys
from typing import BinaryIO
from typing import NamedTuple

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

from lz4.frame import LZ4FrameDecompressor
import numpy as np

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


class RawRows(NamedTuple):
    """
    Messages of one topic and of one size that follow each other, not decoded.

    :ivar record_ns: times at which the recorder got them, in ns, int64, shape (n,)
    :ivar rows: their bytes, uint8, shape (n, size)
    :ivar encoding: ``'cdr'`` or ``'ros1'``
    """

    record_ns: np.ndarray
    rows: np.ndarray
    encoding: str


Note = Callable[[str], None]
Records = Generator[RawMessage, None, str]

_DECOMPRESSORS: dict[str, Callable[[], object]] = {
    'zstd': zstd.ZstdDecompressor,
    'lz4': LZ4FrameDecompressor,
    'bz2': bz2.BZ2Decompressor,
}


def decompress(compression: str, data: bytes) -> bytes:
    """
    Get what can be had of compressed data that may be cut off.

    :param compression: ``zstd``, ``lz4``, ``bz2``, ``none`` or empty
    :param data: compressed
    :returns: decompressed as far as it goes, empty if it does not at all
    """
    if compression in ('', 'none'):
        return data
    try:
        return _DECOMPRESSORS[compression]().decompress(data)
    except (KeyError, EOFError, OSError, RuntimeError, ValueError, zstd.ZstdError):
        return b''


class Source:
    """
    A binary stream that knows its length and never reads past it.

    :param stream: seekable
    """

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


def broken(source: Source, at: int, missing: int) -> str:
    """
    Say where reading ended: in a record that is too short, or that makes no sense.

    :param source: what was read
    :param at: position of the record
    :param missing: bytes that it lacks, not above 0 if none
    :returns: the sentence
    """
    if missing > 0:
        return f'it ends in the middle of a record, which lacks {missing} bytes'
    return f'it cannot be read on from byte {at} of {source.size}'


def ros2_type(name: str) -> str:
    """
    Turn ``package/Type`` into ``package/msg/Type``.

    :param name: type of a message, old or new
    :returns: the new form
    """
    package, _, rest = name.partition('/')
    return name if '/' in rest or not rest else f'{package}/msg/{rest}'
