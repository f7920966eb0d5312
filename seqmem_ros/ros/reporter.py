"""What the node tells while it runs: /diagnostics, and log lines about what is unusual."""

from collections.abc import Callable

from diagnostic_msgs.msg import DiagnosticArray
from diagnostic_msgs.msg import DiagnosticStatus
from rclpy.clock import Clock
from rclpy.clock import ClockType
from rclpy.lifecycle import LifecycleNode

from seqmem_ros.core.stream import Stream
from seqmem_ros.ros.diagnostics import Monitor
from seqmem_ros.ros.diagnostics import status
from seqmem_ros.ros.event_log import EventLog
from seqmem_ros.ros.inputs import INPUT_TOPIC
from seqmem_ros.ros.publishers import PublisherWatch

# Stage of the node, why it failed (empty: it did not), and its stream while it has one.
Condition = tuple[str, str, Stream | None]


class Reporter:
    """
    Watches one node and tells what it sees, at the rate of its diagnostics.

    :param node: the node
    :param rate_hz: how often to report
    :param condition: tells the present condition of the node
    :ivar watches: whether :meth:`note_message` is to be called: where there is more than one
        publisher, since it costs time
    """

    def __init__(
        self, node: LifecycleNode, rate_hz: float, condition: Callable[[], Condition]
    ) -> None:
        self.watches = False
        self._node = node
        self._condition = condition
        self._events = EventLog(node.get_logger().warning)
        self._n_seen_events = 0
        self._shared_joints: list[str] = []
        self._n_unheard = 0
        self._monitor = Monitor()
        self._watch = PublisherWatch()
        self._publisher = node.create_publisher(DiagnosticArray, '/diagnostics', 10)
        # Steady: a simulation that stands still must not silence the diagnostics.
        steady = Clock(clock_type=ClockType.STEADY_TIME)
        node.create_timer(1.0 / rate_hz, self._report, clock=steady)

    def begin(self, stream: Stream) -> None:
        """
        Start anew, when the node becomes active.

        :param stream: its stream, whose counters up to now are not to be told as new
        """
        self._events.begin(stream.counts)
        self._n_seen_events = stream.n_events
        self._monitor = Monitor(stream.counts)
        self._watch = PublisherWatch()
        self._n_unheard = 0

    def note_message(self, names: tuple[str, ...], number: int | None) -> None:
        """
        Take note of who sends which joints.

        :param names: joints of a message
        :param number: its number, as its publisher counts; None if unknown
        """
        self._watch.note(names, number)

    def note_times(self, latency_ns: int, step_ns: int, age_ns: int) -> None:
        """
        Take note of how long a message took; see :meth:`Monitor.note`.

        :param latency_ns: from receipt to publication
        :param step_ns: of that in the stream
        :param age_ns: from its stamp to its turn
        """
        self._monitor.note(latency_ns, step_ns, age_ns)

    def note_events(self, stream: Stream) -> None:
        """
        Log what the stream has refused or restarted since the last call.

        :param stream: the stream
        """
        if stream.n_events != self._n_seen_events:
            self._n_seen_events = stream.n_events
            self._events.update(stream.counts, stream.events)

    def note_unheard(self, sentence: str, n_publishers: int) -> None:
        """
        Log a publisher whose QoS does not fit.

        :param sentence: which, why, and what to do
        :param n_publishers: how many there have been
        """
        self._n_unheard = n_publishers
        self._node.get_logger().warning(sentence)

    def _report(self) -> None:
        stage, failure, stream = self._condition()
        self._look_for_shared_joints(stage == 'active')
        if not self._node.get_parameter('publish_diagnostics').value:
            return
        level, message = DiagnosticStatus.OK, f'not active ({stage})'
        values: dict[str, str] = {}
        if failure:
            level, message = DiagnosticStatus.ERROR, failure
        elif stage == 'active':
            level, message, values = self._monitor.report(
                stream.counts, self._shared_joints, self._n_unheard
            )
        name = self._node.get_fully_qualified_name()
        facts = self._facts(stream) | values
        array = DiagnosticArray(status=[status(name, level, message, facts)])
        array.header.stamp = self._node.get_clock().now().to_msg()
        self._publisher.publish(array)

    def _look_for_shared_joints(self, is_active: bool) -> None:
        shared = self._watch.shared_joints() if self.watches else []
        topic = self._node.resolve_topic_name(INPUT_TOPIC)
        self.watches = is_active and self._node.count_publishers(topic) > 1
        if shared and shared != self._shared_joints:
            self._node.get_logger().warning(
                f'several publishers on {topic} send the same joints: {", ".join(shared)}; the '
                'first value of each stamp is taken; stop one, or remap it to another topic'
            )
        self._shared_joints = shared

    def _facts(self, stream: Stream | None) -> dict[str, str]:
        topic = self._node.resolve_topic_name(INPUT_TOPIC)
        facts = {'input': topic, 'publishers': str(self._node.count_publishers(topic))}
        if stream is None:
            return facts
        estimator = stream.estimator
        return facts | {
            'estimator': estimator.name,
            'task': estimator.task,
            'weights': str(estimator.source),
            'digest': estimator.digest or 'none',
            'compile_count': str(stream.compile_count),
        }
