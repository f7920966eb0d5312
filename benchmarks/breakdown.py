"""Where the time of one message goes: ``python benchmarks/breakdown.py``."""

import argparse
from array import array
from collections.abc import Callable
from collections.abc import Sequence
import os
from pathlib import Path
import time

from measure import ONE_THREAD
from measure import settle
from measure import write_result

os.environ.update(ONE_THREAD | {'JAX_PLATFORMS': 'cpu'})
os.environ['ROS_AUTOMATIC_DISCOVERY_RANGE'] = 'LOCALHOST'

import numpy as np
import rclpy
from rclpy.qos import QoSProfile
from sensor_msgs.msg import JointState

from seqmem_ros.core.dispatch import compute_in_caller
from seqmem_ros.core.estimators import load_estimator
from seqmem_ros.core.stream import Stream
from seqmem_ros.ros.joint_reader import JointReader
from seqmem_ros.ros.joint_writer import JointWriter
from seqmem_ros.ros.messages import head_for

PARTS = ('take', 'convert', 'push', 'step', 'build', 'publish')
N_JOINTS = 7


def main(argv: Sequence[str] | None = None) -> dict[str, float]:
    """
    Print the parts: ``push`` is the stream's own rules, without the ``step`` that it calls.

    :param argv: arguments without the program's name; None: those of the process
    :returns: median of each part in us
    """
    parser = argparse.ArgumentParser(description='Say where the time of a message goes.')
    parser.add_argument('--messages', type=int, default=2000, help='number of messages (2000)')
    parser.add_argument('--quick', action='store_true', help='50 messages, for a try')
    parser.add_argument('--out', type=Path, help='folder for the result as JSON')
    args = parser.parse_args(argv)
    compute_in_caller()
    parts = measure(50 if args.quick else args.messages)
    total = sum(parts.values())
    for name, value in parts.items():
        print(f'{name:<9}{value:8.1f} us  {100 * value / total:4.0f} %  {"#" * int(value / 5)}')
    print(f'{"sum":<9}{total:8.1f} us')
    if args.out:
        write_result(args.out, 'breakdown', {'parts_us': parts})
    return parts


def measure(n_messages: int) -> dict[str, float]:
    """
    Take messages from the middleware, estimate, and publish, with a watch on every part.

    :param n_messages: number of messages
    :returns: median of each part in us
    """
    rclpy.init(args=[])
    node = rclpy.create_node('breakdown')
    source = node.create_publisher(JointState, 'breakdown_in', QoSProfile(depth=10))
    subscription = node.create_subscription(
        JointState, 'breakdown_in', lambda data: None, QoSProfile(depth=10), raw=True
    )
    output = node.create_publisher(JointState, 'breakdown_out', QoSProfile(depth=50))
    stream = Stream(load_estimator('gru', None, 'persistent'))
    stream.warm_up(N_JOINTS)
    step_ns = _watch(stream.estimator)
    message = JointState(name=[f'joint_{i}' for i in range(N_JOINTS)])
    reader, writer = JointReader(), JointWriter()
    times = np.zeros((n_messages, len(PARTS)))
    settle()
    for index in range(n_messages):
        message.header.stamp.sec, message.header.stamp.nanosec = divmod(
            10**15 + index * 10**7, 10**9
        )
        position = np.sin(0.01 * index + np.arange(N_JOINTS))
        message.position = array('d', position.tobytes())
        source.publish(message)
        marks, taken = _take(subscription)
        sample, head = reader.read(taken)
        marks.append(time.perf_counter_ns())
        estimate = stream.push(sample)
        marks.append(time.perf_counter_ns())
        if estimate is not None:
            answer = writer.write(head_for(head, estimate), estimate)
            marks.append(time.perf_counter_ns())
            output.publish(answer)
            marks.append(time.perf_counter_ns())
            take, convert, push, build, publish = np.diff(marks)
            times[index] = take, convert, push - step_ns[0], step_ns[0], build, publish
    rclpy.try_shutdown()
    rows = times[times[:, 0] > 0]
    return {name: round(float(v) / 1e3, 1) for name, v in zip(PARTS, np.median(rows, axis=0))}


def _watch(estimator: object) -> list[int]:
    """Note how long each step took."""
    found, step = [0], estimator.step

    def timed(*args: object) -> tuple:
        start = time.perf_counter_ns()
        result = step(*args)
        found[0] = time.perf_counter_ns() - start
        return result

    estimator.step = timed
    return found


def _take(subscription: object, timeout_s: float = 5.0) -> tuple[list[int], bytes]:
    deadline = time.monotonic() + timeout_s
    take: Callable = subscription.handle.take_message
    while time.monotonic() < deadline:
        start = time.perf_counter_ns()
        with subscription.handle:
            taken = take(JointState, True)
        if taken is not None:
            return [start, time.perf_counter_ns()], taken[0]
        time.sleep(0.0005)
    raise SystemExit('breakdown: expected a message, got none')


if __name__ == '__main__':
    main()
