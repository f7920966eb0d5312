"""Run the real node as its own process, play samples to it, and collect what it says."""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
import os
import time
from typing import Any

from lifecycle_msgs.srv import GetState
import rclpy
from rclpy.context import Context
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.qos import QoSProfile
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray

from seqmem_ros.core.errors import SeqmemError
from seqmem_ros.ros.player import Player
from seqmem_ros.ros.player import PlayReport
from seqmem_ros.ros.player import TimedSample
from seqmem_ros.ros.process import environment_on_this_machine
from seqmem_ros.ros.process import NodeProcess

QUEUE_DEPTH = 1000
START_TIMEOUT_S = 60.0
# Long after the last message has crossed a loopback, short for a person who waits.
QUIET_S = 1.0
VELOCITY_TOPICS = {'joint_states': JointState}
LABEL_TOPICS = {'label_scores': Float64MultiArray}


@dataclass(frozen=True)
class LiveRun:
    """
    What came out of the node.

    :param messages: messages of each topic in the order of their arrival
    :param report: how well the input was played
    :param exit_code: of the node, 0 if it stopped as asked
    """

    messages: dict[str, list]
    report: PlayReport
    exit_code: int


def run_live(
    samples: Iterable[TimedSample],
    parameters: Mapping[str, Any] | None = None,
    *,
    topics: Mapping[str, Any] = VELOCITY_TOPICS,
    rate: float = 1.0,
    domain_id: int | None = None,
    on_progress: Callable[[int], object] | None = None,
) -> LiveRun:
    """
    Start the node, play samples to it, stop it, and return what it published.

    It runs in a namespace of its own on this machine alone, so that no robot hears it, and
    with reliable transport, so that nothing is lost between the processes.

    :param samples: time, sample and frame of each message
    :param parameters: parameters of the node
    :param topics: type of each private topic of the node to collect, by name without ``~/``
    :param rate: factor on the pace of the samples
    :param domain_id: ROS domain; None: that of the environment
    :param on_progress: called with 1 after each message, such as the ``update`` of tqdm
    :returns: the messages, how the playing went, and how the node ended
    :raises SeqmemError: if the node cannot start, ends early, or does not listen in time
    """
    namespace = f'/seqmem_live_{os.getpid()}'
    lossless = {
        f'qos_overrides.{namespace}/joint_states.subscription.{policy}': value
        for policy, value in (('reliability', 'reliable'), ('depth', QUEUE_DEPTH))
    }
    with _node_on_this_machine(namespace, domain_id) as (node, executor):
        messages: dict[str, list] = {topic: [] for topic in topics}
        for topic, message_type in topics.items():
            node.create_subscription(
                message_type,
                f'{namespace}/seqmem/{topic}',
                messages[topic].append,
                QoSProfile(depth=QUEUE_DEPTH),
            )
        player = Player(node)
        idle = partial(_spin_for, executor)
        with NodeProcess({**lossless, **(parameters or {})}, namespace, domain_id) as process:
            name = f'{namespace}/seqmem'
            wait_until_active(process, node, executor, name)
            player.wait_for_subscriber(idle=idle)
            report = player.play(samples, rate, idle, on_progress)
            # Silence alone does not say that a node which is short of time is done: it is only
            # heard out once it has answered.
            wait_until_active(process, node, executor, name)
            while not _is_quiet(executor, messages):
                wait_until_active(process, node, executor, name)
            exit_code = process.stop()
    return LiveRun(messages, report, exit_code)


def wait_until_active(
    process: NodeProcess,
    node: Node,
    executor: SingleThreadedExecutor,
    name: str,
    timeout_s: float = START_TIMEOUT_S,
) -> None:
    """
    Wait until the node of a process is active and knows the subscribers of this one.

    Its answer can only arrive once it has seen the subscription to the answer, which this
    process announced after those that were made before: nothing it publishes from then on
    is lost for want of discovery.

    :param process: the process
    :param node: node to ask from
    :param executor: executor of that node
    :param name: full name of the node to ask
    :param timeout_s: longest time to wait in s
    :raises SeqmemError: if the process ends, or is not active in time
    """
    client = node.create_client(GetState, f'{name}/get_state')
    deadline_s = time.monotonic() + timeout_s
    try:
        while _state_of(client, executor) != 'active':
            process.check_alive()
            if time.monotonic() > deadline_s:
                raise SeqmemError(f'expected {name} to be active within {timeout_s:g} s')
    finally:
        node.destroy_client(client)


def _state_of(client: Any, executor: SingleThreadedExecutor) -> str:
    if not client.service_is_ready():
        _spin_for(executor, 0.05)
        return 'unknown'
    future = client.call_async(GetState.Request())
    executor.spin_until_future_complete(future, timeout_sec=1.0)
    if not future.done():
        client.remove_pending_request(future)
        return 'unknown'
    state = future.result().current_state.label
    if state != 'active':
        _spin_for(executor, 0.05)
    return state


def _is_quiet(executor: SingleThreadedExecutor, messages: dict[str, list]) -> bool:
    """Listen for a while, and say whether nothing came."""
    count = sum(map(len, messages.values()))
    _spin_for(executor, QUIET_S)
    return sum(map(len, messages.values())) == count


def _spin_for(executor: SingleThreadedExecutor, duration_s: float) -> None:
    deadline_s = time.monotonic() + duration_s
    while (left_s := deadline_s - time.monotonic()) > 0:
        executor.spin_once(timeout_sec=left_s)


@contextmanager
def _node_on_this_machine(
    namespace: str, domain_id: int | None
) -> Iterator[tuple[Node, SingleThreadedExecutor]]:
    context = Context()
    with _variables(environment_on_this_machine(domain_id)):
        rclpy.init(args=[], context=context, domain_id=domain_id)
    node = rclpy.create_node(
        'seqmem_player', namespace=namespace, context=context, use_global_arguments=False
    )
    executor = SingleThreadedExecutor(context=context)
    executor.add_node(node)
    try:
        yield node, executor
    finally:
        executor.shutdown()
        node.destroy_node()
        rclpy.try_shutdown(context=context)


@contextmanager
def _variables(values: Mapping[str, str]) -> Iterator[None]:
    """Set variables of the environment for as long as rcl reads them."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
