"""
One message of joint states, as plain arrays.

``sample_from_message`` only reads attributes, so it serves messages of rclpy (live) and of
rosbags (recorded) alike: both ways into the package meet here.
"""

from collections.abc import Sequence
from typing import Any
from typing import NamedTuple

import numpy as np

NANOSECONDS_PER_SECOND = 1_000_000_000
# What a message may say of each joint.
FIELDS = ('position', 'velocity', 'effort')


_ABSENT = np.empty(0)


class JointSample(NamedTuple):
    """
    What one ``sensor_msgs/JointState`` says; an empty array means that the field is absent.

    The three fields have the length of ``names`` or are empty (JointState.msg); whether they
    do is checked by :class:`~seqmem_ros.core.stream.Stream`, which counts what it refuses.

    :param stamp_ns: time of the measurement from the message's header, in ns
    :param names: names of the joints, in the order of the message
    :param position: rad or m, shape (J,), float64
    :param velocity: rad/s or m/s, shape (J,), float64
    :param effort: N m or N, shape (J,), float64
    """

    stamp_ns: int
    names: tuple[str, ...]
    position: np.ndarray = _ABSENT
    velocity: np.ndarray = _ABSENT
    effort: np.ndarray = _ABSENT


def sample_from_message(message: Any) -> JointSample:
    """
    Read a JointState message of rclpy or of rosbags.

    :param message: an object with ``header.stamp``, ``name``, ``position``, ``velocity`` and
        ``effort``
    :returns: the same content; the arrays are copies
    """
    return JointSample(
        stamp_ns=stamp_to_ns(message.header.stamp),
        names=tuple(message.name),
        position=_vector(message.position),
        velocity=_vector(message.velocity),
        effort=_vector(message.effort),
    )


def stamp_to_ns(stamp: Any) -> int:
    """
    Turn a ``builtin_interfaces/Time`` into nanoseconds.

    :param stamp: an object with ``sec`` and ``nanosec``
    :returns: time in ns
    """
    return int(stamp.sec) * NANOSECONDS_PER_SECOND + int(stamp.nanosec)


def _vector(values: Sequence[float]) -> np.ndarray:
    return np.array(values, dtype=np.float64)
