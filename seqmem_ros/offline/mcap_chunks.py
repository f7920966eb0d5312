"""
MCAP files by their index, all messages of a chunk at once.

Where the messages of a topic have one channel and follow each other in time, as recorders
write them, the index of a chunk says where each stands, and those of one size are the rows of an
array. Other files are left to rosbags, which goes through them one message at a time.
"""

from collections.abc import Iterator
from collections.abc import Sequence
from io import BytesIO
from itertools import chain
from pathlib import Path
import struct
from typing import NamedTuple
import zlib

import numpy as np

from seqmem_ros.offline.salvage import decompress
from seqmem_ros.offline.salvage import MCAP_MAGIC
from seqmem_ros.offline.salvage import RawRows
from seqmem_ros.offline.salvage import Source

_FOOTER_BYTES = 37
_CHANNEL, _MESSAGE, _CHUNK, _MESSAGE_INDEX, _CHUNK_INDEX = 4, 5, 6, 7, 8
# Of a message record: opcode and length, channel, sequence, two times.
_PREFIX_BYTES = 9
_HEAD_BYTES = _PREFIX_BYTES + 2 + 4 + 8 + 8


class _Chunk(NamedTuple):
    """Where a chunk is, and the index of the messages that are wanted in it."""

    at: int
    index_at: int


def read_by_chunks(paths: Sequence[Path], topic: str) -> Iterator[RawRows] | None:
    """
    Read files one after the other.

    :param paths: MCAP files
    :param topic: name of the topic
    :returns: its messages, as rosbags would give them; None if that is left to rosbags. Reading
        may raise any exception where a file is damaged
    """
    try:
        files = [McapChunks(path, topic) for path in paths]
    except Exception:
        # Whatever is wrong with the index, rosbags says it.
        return None
    if not all(file.in_order for file in files):
        return None
    return chain.from_iterable(file.rows() for file in files)


class McapChunks:
    """
    The messages of one topic in one file.

    :param path: an MCAP file
    :param topic: its name
    :ivar in_order: whether :meth:`rows` gives what rosbags would, in the same order
    :raises Exception: of any kind, if the file is damaged
    """

    def __init__(self, path: Path, topic: str) -> None:
        self._path = path
        with path.open('rb') as file:
            source = Source(file)
            channels, chunks = _summary(source, topic)
            # A chunk without any index may hold messages, too.
            indexed = bool(chunks) and all(index_at for _, index_at in chunks)
            self.in_order = indexed and len(channels) <= 1
            self._chunks: list[_Chunk] = []
            if self.in_order and channels:
                (self._channel,) = channels
                self._look_for_messages(source, chunks)

    def rows(self) -> Iterator[RawRows]:
        """
        Read.

        :returns: messages of one size that follow each other
        :raises Exception: of any kind, where the file is damaged
        """
        with self._path.open('rb') as file:
            source = Source(file)
            for chunk in self._chunks:
                times, offsets = self._index(source, chunk.index_at)
                content = _content(source, chunk.at)
                yield from self._of_chunk(times, offsets, content)

    def _look_for_messages(self, source: Source, chunks: list[tuple[int, dict[int, int]]]) -> None:
        last_ns = -1
        for at, index_at in chunks:
            if self._channel not in index_at:
                continue
            times, _ = self._index(source, index_at[self._channel])
            if not len(times):
                continue
            if times[0] < last_ns or (times[1:] < times[:-1]).any():
                self.in_order = False
                return
            last_ns = times[-1]
            self._chunks.append(_Chunk(at, index_at[self._channel]))

    def _index(self, source: Source, at: int) -> tuple[np.ndarray, np.ndarray]:
        """Read record times in ns and offsets into the content, in the order of both."""
        source.stream.seek(at)
        opcode, _, channel, size = source.unpack('<BQHI')
        if opcode != _MESSAGE_INDEX or channel != self._channel:
            raise ValueError('its index does not lead to the index of a chunk')
        pairs = np.frombuffer(source.read(size), '<i8').reshape(-1, 2)
        if (pairs[1:, 1] < pairs[:-1, 1]).any():
            pairs = pairs[np.argsort(pairs[:, 0], kind='stable')]
        return pairs[:, 0], pairs[:, 1]

    def _of_chunk(
        self, times: np.ndarray, offsets: np.ndarray, content: np.ndarray
    ) -> Iterator[RawRows]:
        heads = content[offsets[:, None] + np.arange(_PREFIX_BYTES + 2)]
        sizes = heads[:, 1:_PREFIX_BYTES].copy().view('<i8')[:, 0]
        channels = heads[:, _PREFIX_BYTES:].copy().view('<u2')[:, 0]
        ends = offsets + _PREFIX_BYTES + sizes
        if (heads[:, 0] != _MESSAGE).any() or (channels != self._channel).any():
            raise ValueError('its index does not lead to messages')
        if (sizes < _HEAD_BYTES - _PREFIX_BYTES).any() or (ends > len(content)).any():
            raise ValueError('a message reaches beyond its chunk')
        for run in np.split(np.arange(len(sizes)), np.flatnonzero(np.diff(sizes)) + 1):
            yield RawRows(times[run], _cut_out(content, offsets[run], int(sizes[run[0]])), 'cdr')


def _cut_out(content: np.ndarray, offsets: np.ndarray, size: int) -> np.ndarray:
    """Take out messages of one size, uint8, shape (n, size of the data)."""
    stride = size + _PREFIX_BYTES
    if len(offsets) == 1 or (np.diff(offsets) == stride).all():
        records = content[offsets[0] : offsets[0] + len(offsets) * stride]
        return records.reshape(len(offsets), stride)[:, _HEAD_BYTES:]
    return content[offsets[:, None] + np.arange(_HEAD_BYTES, stride)]


def _summary(source: Source, topic: str) -> tuple[set[int], list[tuple[int, dict[int, int]]]]:
    """
    Read what follows the messages (MCAP specification 1.0, "Summary Section").

    :returns: channels of the topic, and of each chunk its place and those of its indexes
    """
    source.stream.seek(-_FOOTER_BYTES, 2)
    footer_at = source.stream.tell()
    footer = source.read(_FOOTER_BYTES)
    (start,) = struct.unpack_from('<Q', footer, _PREFIX_BYTES)
    if footer[-len(MCAP_MAGIC) :] != MCAP_MAGIC or not start:
        return set(), []
    source.stream.seek(start)
    channels: set[int] = set()
    chunks = []
    while source.stream.tell() < footer_at:
        opcode, size = source.unpack('<BQ')
        record = Source(BytesIO(source.read(size)))
        if opcode == _CHANNEL:
            channel, _ = record.unpack('<HH')
            if record.text() == topic:
                channels.add(channel)
        elif opcode == _CHUNK_INDEX:
            first_ns, _, at, _ = record.unpack('<QQQQ')
            (n_bytes,) = record.unpack('<I')
            chunks.append((first_ns, at, dict(struct.iter_unpack('<HQ', record.read(n_bytes)))))
    chunks.sort(key=lambda chunk: chunk[0])
    return channels, [(at, index_at) for _, at, index_at in chunks]


def _content(source: Source, at: int) -> np.ndarray:
    """Read and decompress a chunk."""
    source.stream.seek(at)
    opcode, _, _, _, size, crc = source.unpack('<BQQQQI')
    compression = source.text()
    (packed_size,) = source.unpack('<Q')
    content = decompress(compression, source.read(packed_size))
    if opcode != _CHUNK or len(content) != size or (crc and zlib.crc32(content) != crc):
        raise ValueError('one of its chunks is damaged')
    return np.frombuffer(content, np.uint8)
