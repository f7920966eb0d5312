"""What happens on each message: read, push into the stream, publish, take note."""

from collections.abc import Callable
import time
from typing import Any

from rclpy.lifecycle import LifecycleNode
from rclpy.subscription import Subscription

from seqmem_ros.core.estimate import Estimate
from seqmem_ros.core.stream import Stream
from seqmem_ros.ros.inputs import message_number
from seqmem_ros.ros.joint_reader import JointReader
from seqmem_ros.ros.joint_reader import MalformedMessage
from seqmem_ros.ros.messages import Head
from seqmem_ros.ros.outputs import LabelOutput
from seqmem_ros.ros.outputs import VelocityOutput
from seqmem_ros.ros.reporter import Reporter

NO_CLOCK = (
    'expected a time on /clock, got none yet: with use_sim_time, messages wait for the first one'
)


class Pipeline:
    """
    The way of one message after the other through the node.

    :param node: the node, for its clock and its log
    :param stream: where samples go
    :param output: where estimates go
    :param reporter: who is told about all of it
    :ivar publish_every_n: how many estimates there are for one that is published
    """

    def __init__(
        self,
        node: LifecycleNode,
        stream: Stream,
        output: VelocityOutput | LabelOutput,
        reporter: Reporter,
    ) -> None:
        self.publish_every_n = 1
        self._node = node
        self._stream = stream
        self._output = output
        self._reporter = reporter
        self._reader = JointReader()
        self._compile_count = stream.compile_count
        self.begin()

    def begin(self) -> None:
        """Start anew, when the node becomes active."""
        self._starts = self._turn = 0

    @property
    def callback(self) -> Callable[..., None]:
        """What the subscription is to call with each serialised message."""
        # rclpy of Humble cannot tell when the middleware received a message.
        tells_receipt = hasattr(Subscription, 'CallbackType')
        return self._on_message_with_info if tells_receipt else self._on_message

    def _on_message_with_info(self, data: bytes, info: dict[str, Any]) -> None:
        self._take(data, message_number(info), info['received_timestamp'])

    def _on_message(self, data: bytes) -> None:
        self._take(data, None, time.time_ns())

    def _take(self, data: bytes, number: int | None, received_ns: int) -> None:
        stream, reporter = self._stream, self._reporter
        started_ns = time.perf_counter_ns()
        # The clock of the node, which runs with a simulation, tells late from started over.
        now_ns = self._now_ns()
        estimate = None
        try:
            sample, head = self._reader.read(data)
        except MalformedMessage as error:
            stream.refuse('drop_malformed', str(error))
        else:
            if reporter.watches:
                reporter.note_message(sample.names, number)
            if now_ns:
                estimate = stream.push(sample, now_ns)
            else:
                stream.refuse('drop_no_clock', NO_CLOCK)
        step_ns = time.perf_counter_ns() - started_ns
        if estimate is not None:
            self._publish(head, estimate)
            latency_ns = time.time_ns() - received_ns
            reporter.note_times(latency_ns, step_ns, now_ns - estimate.stamp_ns)
        reporter.note_events(stream)
        if stream.compile_count != self._compile_count:
            self._tell_of_compilation(step_ns)

    def _now_ns(self) -> int:
        clock = self._node.get_clock()
        # Without a simulation it is that of the system, and rclpy's way to it is a long one.
        return clock.now().nanoseconds if clock.ros_time_is_active else time.time_ns()

    def _publish(self, head: Head, estimate: Estimate) -> None:
        if self._starts != self._stream.starts:
            self._starts, self._turn = self._stream.starts, 0
        due = self._turn % self.publish_every_n == 0
        self._turn += 1
        if due:
            self._output.publish(head, estimate)
        self._stream.counts['published' if due else 'thinned'] += 1

    def _tell_of_compilation(self, step_ns: int) -> None:
        self._compile_count = self._stream.compile_count
        self._node.get_logger().info(
            f'compiled again in {step_ns / 1e9:.1f} s for more joints than before; with all '
            'names in the parameter joints, this is done while configuring'
        )
