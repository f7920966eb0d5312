"""Play recorded samples to whoever listens, as real messages and at their own pace."""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import MutableSequence
from collections.abc import Sequence
from contextlib import contextmanager
from dataclasses import dataclass
import math
import time

import numpy as np
import rclpy
from rclpy.context import Context
from rclpy.exceptions import InvalidTopicNameException
from rclpy.node import Node
from rclpy.qos import QoSHistoryPolicy
from rclpy.qos import QoSProfile
from rclpy.qos import QoSReliabilityPolicy
from rclpy.signals import SignalHandlerOptions
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import JointState

from seqmem_ros.core.errors import SeqmemError
from seqmem_ros.core.joints import JointSample
from seqmem_ros.core.joints import NANOSECONDS_PER_SECOND
from seqmem_ros.ros.messages import message_from_sample
from seqmem_ros.ros.messages import time_from_ns

# When a sample is due in ns, the sample, and its frame.
TimedSample = tuple[int, JointSample, str]

QUEUE_DEPTH = 1000
POLL_S = 0.01
# A sleep ends some 0.1 ms late; what is left is waited for awake.
AWAKE_S = 0.0003


@dataclass(frozen=True, eq=False)
class PlayReport:
    """
    How well playing went.

    :param sent: number of messages
    :param duration_s: time from the first message to the last in s, pauses included
    :param late_s: by how much each message missed its time, s, shape (sent,)
    """

    sent: int
    duration_s: float
    late_s: np.ndarray

    @classmethod
    def of(cls, late_s: Sequence[float], duration_s: float) -> 'PlayReport':
        """
        Sum up.

        :param late_s: by how much each message missed its time, s
        :param duration_s: from the first message to the last, s
        :returns: the report
        """
        return cls(len(late_s), duration_s, np.array(late_s))

    @property
    def latest_s(self) -> float:
        """By how much the latest message missed its time, s."""
        return float(self.late_s.max(initial=0.0))

    @property
    def timing(self) -> str:
        """The pace in words."""
        if not self.sent:
            return 'nothing sent'
        half, most = (1000 * np.percentile(self.late_s, share) for share in (50, 99.9))
        within = 100 * np.mean(self.late_s < 1e-3)
        return (
            f'behind their time: half of the messages {half:.2f} ms, 99.9 % up to {most:.2f} ms, '
            f'the latest {1000 * self.latest_s:.2f} ms; {within:.2f} % within 1 ms'
        )


class Pace:
    """
    When messages are due; can be paused.

    :param rate: factor on their own pace; ``math.inf``: without any wait
    :param idle: waits for at most as many s as it is given
    :raises SeqmemError: if the rate is not positive
    :ivar idle: may be replaced
    """

    def __init__(self, rate: float = 1.0, idle: Callable[[float], None] = time.sleep) -> None:
        if not rate > 0:
            raise SeqmemError(f'rate: expected a number above 0, got {rate}')
        self._rate = rate
        self.idle = idle
        self._first_ns: int | None = None
        self._start_s = 0.0
        self._paused_s: float | None = None

    @property
    def paused(self) -> bool:
        """Whether it is paused."""
        return self._paused_s is not None

    @property
    def now_ns(self) -> int:
        """Time of the recording that is now, in ns; 0 before the first message."""
        if self._first_ns is None or not math.isfinite(self._rate):
            return self._first_ns or 0
        now_s = time.monotonic() if self._paused_s is None else self._paused_s
        elapsed_s = max(0.0, now_s - self._start_s) * self._rate
        return self._first_ns + round(elapsed_s * NANOSECONDS_PER_SECOND)

    def restart(self) -> None:
        """Take the next message as the first."""
        self._first_ns = None

    def toggle(self) -> None:
        """Pause, or go on."""
        if self._paused_s is None:
            self._paused_s = time.monotonic()
        else:
            self._start_s += time.monotonic() - self._paused_s
            self._paused_s = None

    def wait_for(self, at_ns: int) -> float:
        """
        Wait until a message is due.

        :param at_ns: its time in the recording in ns
        :returns: by how much it is late now in s
        """
        if self._first_ns is None:
            self._first_ns, self._start_s = at_ns, time.monotonic()
        while True:
            while self.paused:
                self.idle(POLL_S)
            due_s = self._start_s
            if math.isfinite(self._rate):
                due_s += (at_ns - self._first_ns) / NANOSECONDS_PER_SECOND / self._rate
            left_s = due_s - time.monotonic()
            if left_s <= 0:
                return -left_s
            if left_s > AWAKE_S:
                self.idle(left_s - AWAKE_S)


class Player:
    """
    Publishes samples as JointState messages.

    :param node: node to publish from
    :param topic: topic
    :param reliable: whether to publish reliably or, as many drivers do, with best effort
    :raises SeqmemError: if the topic cannot have this name
    """

    def __init__(self, node: Node, topic: str = 'joint_states', reliable: bool = True) -> None:
        reliability = (
            QoSReliabilityPolicy.RELIABLE if reliable else QoSReliabilityPolicy.BEST_EFFORT
        )
        qos = QoSProfile(
            history=QoSHistoryPolicy.KEEP_LAST, depth=QUEUE_DEPTH, reliability=reliability
        )
        try:
            self._publisher = node.create_publisher(JointState, topic, qos)
        except InvalidTopicNameException as error:
            raise SeqmemError(f"topic: '{topic}' is no name of a topic: {error}") from None

    @property
    def topic(self) -> str:
        """Full name of the topic."""
        return self._publisher.topic_name

    @property
    def n_listeners(self) -> int:
        """Subscriptions that are known of."""
        return self._publisher.get_subscription_count()

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
        while not self.n_listeners:
            if time.monotonic() > deadline_s:
                raise SeqmemError(
                    f'expected a subscriber of {self.topic} within '
                    f'{timeout_s:g} s, got none: is the node running and active?'
                )
            idle(POLL_S)

    def play(
        self,
        samples: Iterable[TimedSample],
        rate: float = 1.0,
        idle: Callable[[float], None] = time.sleep,
        on_progress: Callable[[int], object] | None = None,
        pace: Pace | None = None,
        lateness_s: MutableSequence[float] | None = None,
    ) -> PlayReport:
        """
        Send samples, each when it is due.

        :param samples: pairs of time and sample with its frame, in the order to send
        :param rate: factor on their own pace; ``math.inf``: without any wait
        :param idle: waits for at most as many s as it is given
        :param on_progress: called with 1 after each message, such as the ``update`` of tqdm
        :param pace: instead of ``rate`` and ``idle``, to pause from outside
        :param lateness_s: gets by how much each message is late in s, for who is interrupted
        :returns: what was sent, and how well in time
        :raises SeqmemError: if the rate is not positive
        """
        pace = pace or Pace(rate, idle)
        start_s = time.monotonic()
        late_s = [] if lateness_s is None else lateness_s
        first = len(late_s)
        for at_ns, sample, frame_id in samples:
            message = message_from_sample(sample, frame_id)
            late_s.append(pace.wait_for(at_ns))
            self._publisher.publish(message)
            if on_progress is not None:
                on_progress(1)
        late = np.array(late_s[first:])
        return PlayReport(len(late), time.monotonic() - start_s, late)


@contextmanager
def playing_node() -> Iterator[Node]:
    """
    Make a node to play from, which leaves Ctrl-C to Python.

    :returns: context of the node
    """
    context = Context()
    rclpy.init(args=[], context=context, signal_handler_options=SignalHandlerOptions.NO)
    node = rclpy.create_node('seqmem_play', context=context, use_global_arguments=False)
    try:
        yield node
    finally:
        node.destroy_node()
        rclpy.try_shutdown(context=context)


class ClockPublisher:
    """
    Publishes the time of the recording for nodes with ``use_sim_time``.

    :param node: node to publish from
    :param pace: says what time it is
    :param rate_hz: so often
    :raises SeqmemError: if the rate is not positive
    """

    def __init__(self, node: Node, pace: Pace, rate_hz: float) -> None:
        if not 0 < rate_hz < math.inf:
            raise SeqmemError(f'clock: expected a rate above 0 in Hz, got {rate_hz}')
        self._pace = pace
        self._period_s = 1.0 / rate_hz
        self._next_s = time.monotonic()
        qos = QoSProfile(
            history=QoSHistoryPolicy.KEEP_LAST,
            depth=1,
            reliability=QoSReliabilityPolicy.BEST_EFFORT,
        )
        self._publisher = node.create_publisher(Clock, '/clock', qos)

    def tick(self) -> float:
        """
        Publish if it is time to.

        :returns: time until the next tick in s
        """
        now_s = time.monotonic()
        if now_s >= self._next_s and self._pace.now_ns:
            self._publisher.publish(Clock(clock=time_from_ns(self._pace.now_ns)))
            self._next_s = max(self._next_s + self._period_s, now_s)
        return max(0.0, self._next_s - time.monotonic())
