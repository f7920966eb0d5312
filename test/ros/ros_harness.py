"""What the process-level tests share: a ROS domain of their own, and waits that end."""

from collections.abc import Callable
from contextlib import ExitStack
import fcntl
from pathlib import Path
import tempfile
import time
from typing import Any

from lifecycle_msgs.srv import GetState
import numpy as np
import rclpy
from rclpy.context import Context
from rclpy.executors import SingleThreadedExecutor
from sensor_msgs.msg import JointState

from seqmem_ros.core.joints import JointSample
from seqmem_ros.ros.live import wait_until_active
from seqmem_ros.ros.player import Player
from seqmem_ros.ros.process import NodeProcess

# Every wait ends as soon as what it waits for is there; this only bounds it on a busy machine.
TIMEOUT_S = 60.0
START_NS = 1_700_000_000_123_456_789
PERIOD_NS = 10_000_000
NAMES = ('shoulder', 'elbow', 'wrist')
# By default the node keeps 50 messages each way, half a second of these tests; on a busy machine
# it, or the test, may get no time for longer than that.
LOSSLESS = {
    'qos_overrides./joint_states.subscription.reliability': 'reliable',
    'qos_overrides./joint_states.subscription.depth': 1000,
    'qos_overrides./seqmem/joint_states.publisher.depth': 1000,
}


class Domain:
    """A ROS domain that no other test on this machine uses, held by a lock on a file."""

    def __init__(self) -> None:
        for number in range(1, 100):
            path = Path(tempfile.gettempdir()) / f'seqmem_test_domain_{number}.lock'
            try:
                self._file = path.open('a')
            except OSError:
                # Of another user, who holds it or has left it behind.
                continue
            try:
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                self._file.close()
                continue
            self.number = number
            return
        raise RuntimeError('expected a free ROS domain from 1 to 99, all are in use')

    def release(self) -> None:
        self._file.close()


class Harness:
    """A node of the test beside the process under test, in a context of its own."""

    def __init__(self, domain_id: int) -> None:
        self.domain_id = domain_id
        self.context = Context()
        rclpy.init(args=[], context=self.context, domain_id=domain_id)
        self.node = rclpy.create_node('tester', context=self.context, use_global_arguments=False)
        self.executor = SingleThreadedExecutor(context=self.context)
        self.executor.add_node(self.node)
        self.processes = ExitStack()

    def close(self) -> None:
        self.processes.close()
        self.executor.shutdown()
        self.node.destroy_node()
        rclpy.try_shutdown(context=self.context)

    def start(
        self, parameters: dict, *, active: bool = True, qos: dict = LOSSLESS, **kw
    ) -> NodeProcess:
        process = self.processes.enter_context(
            NodeProcess(qos | parameters, domain_id=self.domain_id, **kw)
        )
        if active:
            name = kw.get('namespace', '') + '/seqmem'
            wait_until_active(process, self.node, self.executor, name)
        return process

    def collect(
        self, topic: str = '/seqmem/joint_states', message_type: Any = JointState, qos: Any = 1000
    ) -> list:
        messages: list = []
        self.node.create_subscription(message_type, topic, messages.append, qos)
        return messages

    def player(
        self, topic: str = 'joint_states', reliable: bool = True, nodes: tuple = ('/seqmem',)
    ) -> Player:
        player = Player(self.node, topic, reliable)
        player.wait_for_subscriber(TIMEOUT_S, idle=self.spin)
        for name in nodes:
            # A best-effort subscription drops what comes before it knows the publisher. A call
            # over a client made later is answered only after that.
            self.call(GetState, f'{name}/get_state')
        return player

    def play(self, player: Player, samples: list[JointSample], rate: float = 1.0) -> None:
        timed = [(START_NS + k * PERIOD_NS, sample, 'base') for k, sample in enumerate(samples)]
        player.play(timed, rate, idle=self.spin)

    def spin(self, duration_s: float) -> None:
        self.executor.spin_once(timeout_sec=duration_s)

    def spin_until(self, done: Callable[[], bool], timeout_s: float = TIMEOUT_S) -> bool:
        """Return whether it was done in time, so that a test can say what it missed."""
        deadline_s = time.monotonic() + timeout_s
        while not done() and time.monotonic() < deadline_s:
            self.executor.spin_once(timeout_sec=0.05)
        return bool(done())

    def call(self, service_type: Any, name: str, **fields: Any) -> Any:
        client = self.node.create_client(service_type, name)
        try:
            assert self.spin_until(client.service_is_ready), f'no service {name}'
            future = client.call_async(service_type.Request(**fields))
            assert self.spin_until(future.done), f'no answer from {name}'
            return future.result()
        finally:
            self.node.destroy_client(client)


def arm_samples(n: int, names: tuple[str, ...] = NAMES, start: int = 0) -> list[JointSample]:
    """Move each joint on a sine of its own, at 100 Hz."""
    samples = []
    for k in range(start, start + n):
        phase = 0.02 * k * np.arange(1, len(names) + 1)
        samples.append(JointSample(START_NS + k * PERIOD_NS, names, np.sin(phase)))
    return samples


def stamps_ns(messages: list) -> list[int]:
    return [m.header.stamp.sec * 1_000_000_000 + m.header.stamp.nanosec for m in messages]
