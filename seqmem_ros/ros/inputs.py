"""The topic that is read: how it is subscribed to, and which publishers it cannot hear."""

from collections.abc import Callable
from typing import Any

from rclpy.lifecycle import LifecycleNode
from rclpy.qos import QoSHistoryPolicy
from rclpy.qos import QoSPolicyKind
from rclpy.qos import QoSProfile
from rclpy.qos import QoSReliabilityPolicy
from rclpy.qos_overriding_options import QoSOverridingOptions
from rclpy.subscription import Subscription
from sensor_msgs.msg import JointState

try:
    from rclpy.event_handler import SubscriptionEventCallbacks
except ImportError:
    # Where Humble has it.
    from rclpy.qos_event import SubscriptionEventCallbacks

INPUT_TOPIC = 'joint_states'
QUEUE_DEPTH = 50
# What rmw gives where the middleware does not count.
NO_NUMBER = 2**64 - 1


def input_qos() -> QoSProfile:
    """
    Say how joint states are subscribed to.

    Best effort hears reliable and best-effort publishers, and is what REP-2003 asks of those
    who consume sensor data.

    :returns: best effort, the last 50 messages
    """
    return QoSProfile(
        history=QoSHistoryPolicy.KEEP_LAST,
        depth=QUEUE_DEPTH,
        reliability=QoSReliabilityPolicy.BEST_EFFORT,
    )


def subscribe(
    node: LifecycleNode,
    on_message: Callable[..., None],
    on_unheard: Callable[[str, int], None],
) -> Subscription:
    """
    Subscribe to joint states.

    :param node: node to subscribe from
    :param on_message: called with each message, serialised
    :param on_unheard: called with one sentence and the number of publishers so far, when there
        is a publisher whose QoS does not fit
    :returns: the subscription
    """
    topic = node.resolve_topic_name(INPUT_TOPIC)

    def on_incompatible_qos(event: Any) -> None:
        policy = QoSPolicyKind(event.last_policy_kind).name.lower()
        sentence = (
            f'a publisher on {topic} cannot be heard: its QoS policy {policy} does not offer what '
            f'this node asks for; set qos_overrides.{topic}.subscription.{policy} to what it '
            'offers (ros2 topic info -v)'
        )
        on_unheard(sentence, event.total_count)

    return node.create_subscription(
        JointState,
        INPUT_TOPIC,
        on_message,
        input_qos(),
        raw=True,
        event_callbacks=SubscriptionEventCallbacks(incompatible_qos=on_incompatible_qos),
        qos_overriding_options=QoSOverridingOptions.with_default_policies(),
    )


def message_number(info: dict[str, Any]) -> int | None:
    """
    Read how many messages a publisher had sent with this one.

    :param info: what came with the message
    :returns: its number, None where the middleware does not tell
    """
    number = info.get('publication_sequence_number')
    return None if number == NO_NUMBER else number
