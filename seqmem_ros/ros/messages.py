"""
Between the plain forms of :mod:`seqmem_ros.core` and ROS messages.

How labels are written: ``~/label`` is one String, ``shoulder: moving, elbow: still``, or the
bare label where a model says one thing about the whole arm; ``unknown`` stands for a label below
the minimum score. ``~/label_scores`` and ``~/classification`` hold every probability as the model
gave it. ``~/label_scores`` is a
Float64MultiArray of probabilities, row-major: ``layout.dim[0]`` is labelled
``joint=shoulder,elbow`` (or ``arm``) and ``layout.dim[1]`` is labelled ``label=still,moving``.
"""

from array import array
from typing import Any
from typing import NamedTuple

from builtin_interfaces.msg import Time
import numpy as np
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray
from std_msgs.msg import Header
from std_msgs.msg import MultiArrayDimension
from std_msgs.msg import MultiArrayLayout
from std_msgs.msg import String

from seqmem_ros.core.estimate import Estimate
from seqmem_ros.core.joints import JointSample
from seqmem_ros.core.joints import NANOSECONDS_PER_SECOND

try:
    from vision_msgs.msg import Classification
    from vision_msgs.msg import ObjectHypothesis
except ImportError:
    # Not part of a ROS base installation; labels are published without it as well.
    Classification = None


def time_from_ns(stamp_ns: int) -> Time:
    """
    Turn nanoseconds into a time stamp.

    :param stamp_ns: time in ns
    :returns: the same time
    """
    sec, nanosec = divmod(stamp_ns, NANOSECONDS_PER_SECOND)
    return Time(sec=sec, nanosec=nanosec)


def message_from_sample(sample: JointSample, frame_id: str = '') -> JointState:
    """
    Write a sample as the message that it was read from.

    :param sample: the sample
    :param frame_id: frame for the header
    :returns: the message
    """
    return JointState(
        header=Header(stamp=time_from_ns(sample.stamp_ns), frame_id=frame_id),
        name=list(sample.names),
        position=_doubles(sample.position),
        velocity=_doubles(sample.velocity),
        effort=_doubles(sample.effort),
    )


class Head(NamedTuple):
    """
    The header of a message.

    :ivar sec: of the stamp, s
    :ivar nanosec: of the stamp, ns; as it came, also if it is a second or more
    :ivar frame_id: name of the frame
    """

    sec: int
    nanosec: int
    frame_id: str


def head_of(header: Header) -> Head:
    """
    Read a header.

    :param header: the header
    :returns: the same content
    """
    return Head(header.stamp.sec, header.stamp.nanosec, header.frame_id)


def head_for(head: Head, estimate: Estimate) -> Head:
    """
    Say which header an estimate gets: that of its input, bit for bit.

    :param head: header of the input
    :param estimate: the estimate
    :returns: the same object; a new one only if the input had no stamp and got one on receipt,
        or if the newest part of a merged vector came in another message
    """
    if head.sec * NANOSECONDS_PER_SECOND + head.nanosec == estimate.stamp_ns:
        return head
    return Head(*divmod(estimate.stamp_ns, NANOSECONDS_PER_SECOND), head.frame_id)


def joint_state(head: Head, estimate: Estimate) -> JointState:
    """
    Write positions and velocities.

    :param head: header of the output
    :param estimate: positions and velocities of the joints
    :returns: the message
    """
    return JointState(
        header=_header(head),
        name=list(estimate.names),
        position=_doubles(estimate.position),
        velocity=_doubles(estimate.velocity),
    )


def label_text(estimate: Estimate, per_joint: bool) -> String:
    """
    Write labels as text.

    :param estimate: labels, one for each joint or one for the whole arm
    :param per_joint: whether there is a label for each joint
    :returns: ``joint: label`` pairs, or the bare label
    """
    pairs = zip(_prefixes(estimate, per_joint), estimate.labels)
    return String(data=', '.join(prefix + label for prefix, label in pairs))


def label_scores(
    estimate: Estimate, labels: tuple[str, ...], per_joint: bool
) -> Float64MultiArray:
    """
    Write the probability of each label.

    :param estimate: scores, shape (J, L) or (1, L)
    :param labels: names of the L labels
    :param per_joint: whether there is a row for each joint
    :returns: the array, with the names of its rows and columns in its layout
    """
    n_rows, n_labels = estimate.scores.shape
    rows = 'joint=' + ','.join(estimate.names) if per_joint else 'arm'
    dimensions = [
        MultiArrayDimension(label=rows, size=n_rows, stride=n_rows * n_labels),
        MultiArrayDimension(label='label=' + ','.join(labels), size=n_labels, stride=n_labels),
    ]
    return Float64MultiArray(
        layout=MultiArrayLayout(dim=dimensions), data=_doubles(estimate.scores)
    )


def label_classification(
    head: Head, estimate: Estimate, labels: tuple[str, ...], per_joint: bool
) -> Any:
    """
    Write all labels with their probabilities, stamped, where vision_msgs is installed.

    :param head: header of the output
    :param estimate: scores, shape (J, L) or (1, L)
    :param labels: names of the L labels
    :param per_joint: whether there is a row for each joint
    :returns: a Classification; ``class_id`` is ``joint: label`` or the bare label
    """
    results = [
        ObjectHypothesis(class_id=prefix + label, score=float(score))
        for prefix, scores in zip(_prefixes(estimate, per_joint), estimate.scores)
        for label, score in zip(labels, scores)
    ]
    return Classification(header=_header(head), results=results)


def _header(head: Head) -> Header:
    return Header(stamp=Time(sec=head.sec, nanosec=head.nanosec), frame_id=head.frame_id)


def _prefixes(estimate: Estimate, per_joint: bool) -> list[str]:
    return [f'{name}: ' for name in estimate.names] if per_joint else ['']


def _doubles(values: np.ndarray) -> array:
    # The one type that every rclpy takes without a look at each element.
    return array('d', np.ascontiguousarray(values, dtype=np.float64).tobytes())
