"""
Joint states read from the bytes that the middleware hands over.

rclpy makes an object of every name and number. Here, a message whose other bytes are those of an
earlier one costs a comparison and a copy of its numbers; the first of its kind is laid out by
:mod:`seqmem_ros.core.joint_layout`, and one that cannot be laid out goes through rclpy.
"""

import struct
from typing import NamedTuple

import numpy as np
from rclpy.serialization import deserialize_message
from sensor_msgs.msg import JointState

from seqmem_ros.core.joint_layout import find_layout
from seqmem_ros.core.joint_layout import fixed_bytes
from seqmem_ros.core.joint_layout import Layout
from seqmem_ros.core.joints import JointSample
from seqmem_ros.core.joints import NANOSECONDS_PER_SECOND
from seqmem_ros.core.joints import sample_from_message
from seqmem_ros.ros.messages import Head
from seqmem_ros.ros.messages import head_of

# Kinds of messages that are remembered: more than there are publishers on one topic.
MOST_KINDS = 64
STAMP = struct.Struct('<iI')
_ABSENT = np.empty(0)
_DOUBLE = np.dtype('<f8')


class MalformedMessage(ValueError):
    """Bytes that are no JointState."""


class Received(NamedTuple):
    """One message: its sample, and of its header what the sample does not say."""

    sample: JointSample
    head: Head


class _Kind:
    """What all messages with the same names, frame and lengths have in common."""

    def __init__(self, data: bytes, layout: Layout, names: tuple[str, ...]) -> None:
        # As one number each, since no other comparison of Python leaves out some of the bytes.
        mask = np.where(fixed_bytes(layout), 255, 0).astype(np.uint8).tobytes()
        self.mask = int.from_bytes(mask, 'little')
        self.fixed = int.from_bytes(data, 'little') & self.mask
        self._stamp_at = layout.stamp_at
        self._names = names
        self._frame_id = layout.frame_id
        self._fields = layout.fields

    def read(self, data: bytes) -> Received:
        sec, nanosec = STAMP.unpack_from(data, self._stamp_at)
        # Copies, since numbers in a message lie where no processor likes to read them.
        values = [
            np.ndarray(size, _DOUBLE, data, at).copy() if size else _ABSENT
            for at, size in self._fields
        ]
        sample = JointSample(sec * NANOSECONDS_PER_SECOND + nanosec, self._names, *values)
        return Received(sample, Head(sec, nanosec, self._frame_id))


class JointReader:
    """Reads one message after the other, remembering kinds of messages."""

    def __init__(self) -> None:
        self._forget()

    def read(self, data: bytes) -> Received:
        """
        Read a serialised message.

        :param data: the message with its CDR header
        :returns: what it says; samples with equal names have the same tuple of names
        :raises MalformedMessage: if it is none
        """
        number = int.from_bytes(data, 'little')
        for kind in self._kinds.get(len(data), ()):
            if number & kind.mask == kind.fixed:
                return kind.read(data)
        layout = find_layout(data, 'cdr', longest_padding=len(data))
        return _read_through_rclpy(data) if layout is None else self._enter(data, layout)

    def _enter(self, data: bytes, layout: Layout) -> Received:
        if self._n_kinds >= MOST_KINDS:
            self._forget()
        self._n_kinds += 1
        kind = _Kind(data, layout, self._names.setdefault(layout.names, layout.names))
        self._kinds.setdefault(len(data), []).append(kind)
        return kind.read(data)

    def _forget(self) -> None:
        self._kinds: dict[int, list[_Kind]] = {}
        self._names: dict[tuple[str, ...], tuple[str, ...]] = {}
        self._n_kinds = 0


def _read_through_rclpy(data: bytes) -> Received:
    try:
        message = deserialize_message(data, JointState)
    except Exception as error:
        # rclpy has a type of its own for this in some releases, which is not public.
        raise MalformedMessage(
            f'expected a serialised sensor_msgs/JointState, got {len(data)} bytes that are none'
        ) from error
    return Received(sample_from_message(message), head_of(message.header))
