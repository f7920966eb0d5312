"""
Bag files that were compressed as a whole, which rosbag2 does with ``compression_mode: file``.

Readers need to seek, so such a file is unpacked to a temporary one, which goes when nobody
needs it any more.
"""

from collections.abc import Iterator
from pathlib import Path
import shutil
import tempfile
from typing import BinaryIO
import weakref

from seqmem_ros.offline.salvage import BAG1_MAGIC
from seqmem_ros.offline.salvage import MCAP_MAGIC
from seqmem_ros.offline.salvage import SQLITE_MAGIC
from seqmem_ros.offline.salvage import zstd
from seqmem_ros.offline.salvage import ZSTD_MAGIC

PACKED_SUFFIX = '.zstd'
_PIECE = 1 << 20
# Readers choose by the suffix, whatever the compressed file was called.
_SUFFIXES = {MCAP_MAGIC: '.mcap', SQLITE_MAGIC: '.db3', BAG1_MAGIC: '.bag'}


class Unpacked:
    """
    The content of a compressed file, on the disk for as long as this object is alive.

    :param path: a file that begins with :data:`ZSTD_MAGIC`
    :ivar path: the unpacked file
    :ivar loss: what could not be unpacked, in words; empty if all could be
    """

    def __init__(self, path: Path) -> None:
        folder = Path(tempfile.mkdtemp(prefix='seqmem_'))
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        plain = folder / 'bag'
        with path.open('rb') as packed, plain.open('wb') as file:
            self.loss = _unpack(packed, file)
        with plain.open('rb') as file:
            head = file.read(16)
        suffix = next((s for magic, s in _SUFFIXES.items() if head.startswith(magic)), '')
        self.path = plain.rename(plain.with_suffix(suffix))


def is_packed(head: bytes) -> bool:
    """
    Recognise a compressed file.

    :param head: its first bytes
    :returns: whether they are those of Zstandard
    """
    return head.startswith(ZSTD_MAGIC)


def _unpack(packed: BinaryIO, file: BinaryIO) -> str:
    """Write what can be decompressed, in pieces; return what is wrong with the rest."""
    decompressor = zstd.ZstdDecompressor()
    try:
        for piece in _pieces(packed):
            while piece:
                if decompressor.eof:
                    decompressor = zstd.ZstdDecompressor()
                file.write(decompressor.decompress(piece))
                piece = decompressor.unused_data if decompressor.eof else b''
    except (zstd.ZstdError, EOFError) as error:
        return f'its compressed content is damaged ({error})'
    return '' if decompressor.eof else 'its compressed content ends too early'


def _pieces(file: BinaryIO) -> Iterator[bytes]:
    while piece := file.read(_PIECE):
        yield piece
