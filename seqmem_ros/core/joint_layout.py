"""
Where in a serialised ``sensor_msgs/JointState`` what stands.

Layouts: the Common Data Representation of OMG DDSI-RTPS, little-endian, with alignment counted
from the end of its 4-byte header (CORBA 3.3 part 2, Section 9.3), and the packed little-endian
form of ROS 1 (wiki.ros.org/msg, "Serialization"). Messages of one publisher mostly differ in
stamp and numbers alone, so one layout serves many of them: see :func:`fixed_parts`.
"""

import struct
from typing import NamedTuple

import numpy as np

from seqmem_ros.core.joints import FIELDS

_CDR_LITTLE_ENDIAN = b'\x00\x01'
# Some writers pad a message to a multiple of four bytes.
LONGEST_PADDING = 3


class Layout(NamedTuple):
    """
    Where in a message of ``size`` bytes what stands.

    :ivar size: bytes of the message
    :ivar end: where its content ends; what follows is padding
    :ivar encoding: ``'cdr'`` or ``'ros1'``
    :ivar stamp_at: offset of the stamp, seconds and nanoseconds of 4 bytes each
    :ivar names: of the joints
    :ivar frame_id: frame of the header
    :ivar fields: offset and length of ``FIELDS``
    :ivar texts: offset and end of all that says the rest: lengths and texts
    """

    size: int
    end: int
    encoding: str
    stamp_at: int
    names: tuple[str, ...]
    frame_id: str
    fields: tuple[tuple[int, int], ...]
    texts: tuple[tuple[int, int], ...]


class _Cursor:
    """Reads one message from front to back."""

    def __init__(self, data: bytes, encoding: str) -> None:
        self.data = data
        self.is_cdr = encoding == 'cdr'
        self.at = 4 if self.is_cdr else 0
        self.texts: list[tuple[int, int]] = []

    def align(self, size: int) -> None:
        if self.is_cdr:
            self.at += -(self.at - 4) % size

    def count(self) -> int:
        self.align(4)
        (value,) = struct.unpack_from('<I', self.data, self.at)
        self.texts.append((self.at, self.at + 4))
        self.at += 4
        return value

    def text(self) -> str:
        size = self.count()
        if size > len(self.data) - self.at:
            raise ValueError('a text reaches beyond the message')
        text = self.data[self.at : self.at + size]
        self.texts.append((self.at, self.at + size))
        self.at += size
        if self.is_cdr and text:
            # Readers do not agree on what a text is whose one zero is not at its end.
            if text.find(b'\0') != size - 1:
                raise ValueError('a text does not end with its first zero')
            text = text[:-1]
        return text.decode()

    def doubles(self) -> tuple[int, int]:
        size = self.count()
        if size:
            self.align(8)
        at = self.at
        self.at += 8 * size
        return at, size


def find_layout(
    data: bytes, encoding: str, longest_padding: int = LONGEST_PADDING
) -> Layout | None:
    """
    Lay out a serialised message.

    :param data: the message
    :param encoding: ``'cdr'`` or ``'ros1'``
    :param longest_padding: how many bytes may follow its content
    :returns: the layout; None if it is damaged, or not what this module reads
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
        names = tuple([cursor.text() for _ in range(n_names)])
        fields = tuple([cursor.doubles() for _ in FIELDS])
    except (struct.error, ValueError):
        return None
    if not 0 <= len(data) - cursor.at <= longest_padding:
        return None
    texts = tuple(cursor.texts)
    return Layout(len(data), cursor.at, encoding, stamp_at, names, frame_id, fields, texts)


def fixed_parts(layout: Layout) -> tuple[tuple[int, int], ...]:
    """
    Tell which bytes all messages of one layout have in common.

    Stamp and numbers differ; padding may hold whatever was in the writer's memory.

    :param layout: the layout
    :returns: offset and end of each stretch of them
    """
    encapsulation = ((0, len(_CDR_LITTLE_ENDIAN)),) if layout.encoding == 'cdr' else ()
    return encapsulation + layout.texts


def fixed_bytes(layout: Layout) -> np.ndarray:
    """
    Tell the same as :func:`fixed_parts`, byte by byte.

    :param layout: the layout
    :returns: bool, shape (size,)
    """
    fixed = np.zeros(layout.size, dtype=bool)
    for start, stop in fixed_parts(layout):
        fixed[start:stop] = True
    return fixed
