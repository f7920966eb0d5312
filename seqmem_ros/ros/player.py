"""Play recorded samples to whoever listens, as real messages and at their own pace."""

from collections.abc import Callable
from collections.abc import Iterable
from dataclasses import dataclass
import math
import time

from rclpy.node import Node
from rclpy.qos import QoSHistoryPolicy
from rclpy.qos import QoSProfile
from rclpy.qos import QoSReliabilityPolicy
from sensor_msgs.msg import JointState

from seqmem_ros.core.errors import SeqmemError
from seqmem_ros.core.joints import JointSample
from seqmem_ros.core.joints import NANOSECONDS_PER_SECOND
from seqmem_ros.ros.messages import message_from_sample

# When a sample is due in ns, the sample, and its frame.
TimedSample = tuple[int, JointSample, str]

QUEUE_DEPTH = 1000
POLL_S = 0.01


@dataclass(frozen=True)
class PlayReport:
    """
    How well playing went.

    :param sent: number of messages
    :param duration_s: time from the first message to the last in s
    :param latest_s: by how much the latest message missed its time in s
    """

    sent: int
    duration_s: float
    latest_s: float


class Player:
    """
    Publishes samples as JointState messages.

    :param node: node to publish from
    :param topic: topic
    :param reliable: whether to publish reliably or, as many drivers do, with best effort
    """

    def __init__(self, node: Node, topic: str = 'joint_states', reliable: bool = True) -> None:
        reliability = (
            QoSReliabilityPolicy.RELIABLE if reliable else QoSReliabilityPolicy.BEST_EFFORT
        )
        qos = QoSProfile(
            history=QoSHistoryPolicy.KEEP_LAST, depth=QUEUE_DEPTH, reliability=reliability
        )
        self._publisher = node.create_publisher(JointState, topic, qos)

    def wait_for_subscriber(
        self, timeout_s: float = 10.0, idle: Callable[[float], None] = time.sleep
    ) -> None:
        """
        Wait until somebody listens; what is sent before that is lost.

        :param timeout_s: longest time to wait in s
        :param idle: waits for at most as many s as it is given
        :raises SeqmemError: if nobody listens in time
        """
        deadline_s = time.monotonic() + timeout_s
        while not self._publisher.get_subscription_count():
            if time.monotonic() > deadline_s:
                raise SeqmemError(
                    f'expected a subscriber of {self._publisher.topic_name} within '
                    f'{timeout_s:g} s, got none: is the node running and active?'
                )
            idle(POLL_S)

    def play(
        self,
        samples: Iterable[TimedSample],
        rate: float = 1.0,
        idle: Callable[[float], None] = time.sleep,
        on_progress: Callable[[int], object] | None = None,
    ) -> PlayReport:
        """
        Send samples, each when it is due.

        :param samples: pairs of time and sample with its frame, in the order to send
        :param rate: factor on their own pace; ``math.inf``: without any wait
        :param idle: waits for at most as many s as it is given
        :param on_progress: called with 1 after each message, such as the ``update`` of tqdm
        :returns: what was sent, and how well in time
        :raises SeqmemError: if the rate is not positive
        """
        if not rate > 0:
            raise SeqmemError(f'rate: expected a number above 0, got {rate}')
        start_s = time.monotonic()
        first_ns: int | None = None
        sent, latest_s, due_s = 0, 0.0, start_s
        for at_ns, sample, frame_id in samples:
            first_ns = at_ns if first_ns is None else first_ns
            message = message_from_sample(sample, frame_id)
            due_s = start_s
            if math.isfinite(rate):
                due_s += (at_ns - first_ns) / NANOSECONDS_PER_SECOND / rate
            _wait_until(due_s, idle)
            latest_s = max(latest_s, time.monotonic() - due_s)
            self._publisher.publish(message)
            sent += 1
            if on_progress is not None:
                on_progress(1)
        return PlayReport(sent, time.monotonic() - start_s, latest_s)


def _wait_until(due_s: float, idle: Callable[[float], None]) -> None:
    while (left_s := due_s - time.monotonic()) > 0:
        idle(left_s)
