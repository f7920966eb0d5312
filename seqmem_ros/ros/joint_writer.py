"""
Estimates written as the bytes that the middleware sends.

rclpy serialises one message of each kind; in all that follow with the same names and the same
frame, only stamp, positions and velocities are overwritten.
"""

import numpy as np
from rclpy.serialization import serialize_message
from sensor_msgs.msg import JointState

from seqmem_ros.core.estimate import Estimate
from seqmem_ros.core.joint_layout import find_layout
from seqmem_ros.core.joint_layout import fixed_bytes
from seqmem_ros.core.joint_layout import Layout
from seqmem_ros.ros.joint_reader import MOST_KINDS
from seqmem_ros.ros.joint_reader import STAMP
from seqmem_ros.ros.messages import Head
from seqmem_ros.ros.messages import joint_state


class _Template:
    """A message whose stamp and numbers are to be overwritten."""

    def __init__(self, data: bytes, layout: Layout) -> None:
        # rclpy leaves in the padding what was in its memory, and that would be sent.
        fixed = np.where(fixed_bytes(layout), np.frombuffer(data, np.uint8), 0)
        self._data = bytearray(fixed.astype(np.uint8)[: layout.end].tobytes())
        self._stamp_at = layout.stamp_at
        self._position, self._velocity = (
            slice(at, at + 8 * size) for at, size in layout.fields[:2]
        )

    def filled(self, head: Head, estimate: Estimate) -> bytes:
        data = self._data
        STAMP.pack_into(data, self._stamp_at, head.sec, head.nanosec)
        data[self._position] = _bytes(estimate.position)
        data[self._velocity] = _bytes(estimate.velocity)
        return bytes(data)


class JointWriter:
    """Writes one message after the other, remembering kinds of messages."""

    def __init__(self) -> None:
        self._templates: dict[tuple, _Template | None] = {}

    def write(self, head: Head, estimate: Estimate) -> bytes | JointState:
        """
        Write positions and velocities.

        :param head: header of the message
        :param estimate: positions and velocities of the joints
        :returns: what a publisher takes: the serialised message, or, where it has no layout that
            is known here, the message
        """
        key = (head.frame_id, estimate.names)
        try:
            template = self._templates[key]
        except KeyError:
            template = self._enter(key, joint_state(head, estimate))
        if template is None:
            return joint_state(head, estimate)
        return template.filled(head, estimate)

    def _enter(self, key: tuple, message: JointState) -> _Template | None:
        if len(self._templates) >= MOST_KINDS:
            self._templates.clear()
        data = serialize_message(message)
        layout = find_layout(data, 'cdr', longest_padding=len(data))
        # What cannot be laid out: texts with a zero in them, which no two readers read alike.
        template = None if layout is None else _Template(data, layout)
        self._templates[key] = template
        return template


def _bytes(values: np.ndarray) -> bytes:
    return np.asarray(values, dtype=np.float64).tobytes()
