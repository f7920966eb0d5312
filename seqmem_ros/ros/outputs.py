"""The topics that estimates go to, one class for each task."""

from typing import Any

from rclpy.lifecycle import LifecycleNode
from rclpy.qos import QoSHistoryPolicy
from rclpy.qos import QoSProfile
from rclpy.qos import QoSReliabilityPolicy
from rclpy.qos_overriding_options import QoSOverridingOptions
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray
from std_msgs.msg import String

from seqmem_ros.core.errors import SeqmemError
from seqmem_ros.core.estimate import Estimate
from seqmem_ros.core.estimator import Estimator
from seqmem_ros.ros import messages
from seqmem_ros.ros.inputs import INPUT_TOPIC
from seqmem_ros.ros.inputs import QUEUE_DEPTH
from seqmem_ros.ros.joint_writer import JointWriter
from seqmem_ros.ros.messages import Head


def output_qos() -> QoSProfile:
    """
    Say how estimates are published.

    :returns: reliable, so that reliable and best-effort subscribers hear it, 50 messages kept
    """
    return QoSProfile(
        history=QoSHistoryPolicy.KEEP_LAST,
        depth=QUEUE_DEPTH,
        reliability=QoSReliabilityPolicy.RELIABLE,
    )


class VelocityOutput:
    """
    Publishes velocities as ``~/joint_states``.

    :param node: node to publish from
    :raises SeqmemError: if remapping made this the topic that the node reads
    """

    def __init__(self, node: LifecycleNode) -> None:
        self._node = node
        self._publisher = _publisher(node, JointState, '~/joint_states')
        self._writer = JointWriter()

    def publish(self, head: Head, estimate: Estimate) -> None:
        """
        Publish one estimate.

        :param head: header of the input
        :param estimate: the estimate
        """
        self._publisher.publish(self._writer.write(messages.head_for(head, estimate), estimate))

    def destroy(self) -> None:
        """Take the topic back."""
        self._node.destroy_lifecycle_publisher(self._publisher)


class LabelOutput:
    """
    Publishes labels as ``~/label``, ``~/label_scores`` and, if possible, ``~/classification``.

    :param node: node to publish from
    :param estimator: says which labels there are
    :raises SeqmemError: if remapping made one of these the topic that the node reads
    """

    def __init__(self, node: LifecycleNode, estimator: Estimator) -> None:
        self._node = node
        self._labels = estimator.labels
        self._per_joint = estimator.per_joint
        self._label = _publisher(node, String, '~/label')
        self._scores = _publisher(node, Float64MultiArray, '~/label_scores')
        self._classification = None
        if messages.Classification is not None:
            self._classification = _publisher(node, messages.Classification, '~/classification')

    def publish(self, head: Head, estimate: Estimate) -> None:
        """
        Publish one estimate.

        :param head: header of the input
        :param estimate: the estimate
        """
        per_joint = self._per_joint
        self._label.publish(messages.label_text(estimate, per_joint))
        self._scores.publish(messages.label_scores(estimate, self._labels, per_joint))
        if self._classification is not None:
            head = messages.head_for(head, estimate)
            self._classification.publish(
                messages.label_classification(head, estimate, self._labels, per_joint)
            )

    def destroy(self) -> None:
        """Take the topics back."""
        for publisher in (self._label, self._scores, self._classification):
            if publisher is not None:
                self._node.destroy_lifecycle_publisher(publisher)


def make_output(node: LifecycleNode, estimator: Estimator) -> VelocityOutput | LabelOutput:
    """
    Make the topics for what an estimator estimates.

    :param node: node to publish from
    :param estimator: the estimator
    :returns: an object with ``publish`` and ``destroy``
    :raises SeqmemError: if remapping made an output the topic that the node reads
    """
    return VelocityOutput(node) if estimator.task == 'velocity' else LabelOutput(node, estimator)


def _publisher(node: LifecycleNode, message_type: Any, topic: str) -> Any:
    resolved = node.resolve_topic_name(topic)
    if resolved == node.resolve_topic_name(INPUT_TOPIC):
        raise SeqmemError(
            f'expected different topics to read and to write, got {resolved} for both: remap '
            f'{INPUT_TOPIC} or {topic} to another name'
        )
    return node.create_lifecycle_publisher(
        message_type,
        topic,
        output_qos(),
        qos_overriding_options=QoSOverridingOptions.with_default_policies(),
    )
