"""
The node against a bare pass-through: ``python benchmarks/node.py``.

Both are processes of their own that take JointState and publish JointState; a third one plays to
one of them at a time, in turns, and listens. Figures are of whole processes: the middleware's
threads, the executor, everything.
"""

import argparse
from array import array
from collections.abc import Iterator
from collections.abc import Sequence
from contextlib import contextmanager
from contextlib import ExitStack
import os
from pathlib import Path
import subprocess
import sys
import threading
import time

from measure import write_result
from node_peers import cpu_ns
from node_peers import own_domain
import numpy as np
import rclpy
from rclpy.node import Node
from rclpy.qos import QoSProfile
from sensor_msgs.msg import JointState

from seqmem_ros.ros.executor import MessageFirstExecutor

# Joints, Hz.
CASES = ((7, 100), (7, 500), (7, 1000), (45, 100))
ENDURANCE = (7, 1000, 60.0)
START_TIMEOUT_S = 90.0
# Messages still on their way when the last has been sent.
QUIET_S = 0.5
FOLDER = Path(__file__).resolve().parent
COMMANDS = {
    'seqmem': [sys.executable, '-m', 'seqmem_ros.ros.node'],
    'pass-through': [sys.executable, str(FOLDER / 'node_peers.py'), 'pass_through'],
}


class Player:
    """
    Sends to one process at a time and notes when its answer comes.

    :param node: node to send from
    :param name: namespace of the process
    """

    def __init__(self, node: Node, name: str) -> None:
        qos = QoSProfile(depth=1000)
        self._publisher = node.create_publisher(JointState, f'/{name}/joint_states', qos)
        node.create_subscription(
            JointState, f'/{name}/seqmem/joint_states', self._on_answer, qos
        )  # fmt: skip
        self._received: dict[int, int] = {}
        self._index = 0

    def play(
        self, n_joints: int, rate_hz: float, duration_s: float, quiet_s: float = QUIET_S
    ) -> np.ndarray:
        """
        Send messages in the pace of a robot.

        :param n_joints: number of joints
        :param rate_hz: messages a second
        :param duration_s: for how long
        :param quiet_s: how long to listen after the last
        :returns: round trip of each message in ns, -1 for those without an answer
        """
        message = JointState(name=[f'joint_{index}' for index in range(n_joints)])
        n_messages = round(duration_s * rate_hz)
        sent = np.empty(n_messages, dtype=np.int64)
        first = self._index
        start_ns = time.perf_counter_ns()
        for count in range(n_messages):
            # A stamp that tells its message: the step of a robot in time, the number in it.
            self._index += 1
            second, part = divmod(self._index, 1000)
            message.header.stamp.sec = 1_000_000 + second
            message.header.stamp.nanosec = part * 10**6
            phase = 0.001 * self._index + np.arange(n_joints)
            message.position = array('d', np.sin(phase).tobytes())
            wait_s = (start_ns + count * 1e9 / rate_hz - time.perf_counter_ns()) / 1e9
            if wait_s > 0:
                time.sleep(wait_s)
            sent[count] = time.perf_counter_ns()
            self._publisher.publish(message)
        time.sleep(quiet_s)
        back = [self._received.get(first + 1 + count, -1) for count in range(n_messages)]
        return np.where(np.array(back) < 0, -1, np.array(back) - sent)

    def has_answer(self) -> bool:
        """
        Say whether any answer has come.

        :returns: whether one has
        """
        return bool(self._received)

    def forget(self) -> None:
        """Forget all answers."""
        self._received.clear()

    def wait_for_answers(self, process: subprocess.Popen, n_joints: int) -> None:
        """
        Send until answers come.

        :param process: the process that is to answer
        :param n_joints: number of joints
        :raises SystemExit: if none come
        """
        deadline_s = time.monotonic() + START_TIMEOUT_S
        while not (self.play(n_joints, 100, 0.5)[-5:] > 0).all():
            if process.poll() is not None or time.monotonic() > deadline_s:
                raise SystemExit('node: expected answers, got none')

    def _on_answer(self, message: JointState) -> None:
        stamp = message.header.stamp
        index = (stamp.sec - 1_000_000) * 1000 + stamp.nanosec // 10**6
        self._received[index] = time.perf_counter_ns()


def main(argv: Sequence[str] | None = None) -> dict:
    """
    Run the benchmark.

    :param argv: arguments without the program's name; None: those of the process
    :returns: what was measured
    """
    args = _parser().parse_args(argv)
    cases = ((7, 100),) if args.quick else CASES
    result = {'cases': {}, 'rounds': args.rounds, 'duration_s': args.duration}
    for n_joints in dict.fromkeys(joints for joints, _ in cases):
        with contestants(n_joints) as (players, processes):
            for _, rate_hz in (case for case in cases if case[0] == n_joints):
                name = f'{n_joints} joints, {rate_hz} Hz'
                rounds = [
                    turn(players, processes, n_joints, rate_hz, args.duration)
                    for _ in range(args.rounds)
                ]
                result['cases'][name] = summary(rounds)
                print(name, *_lines(result['cases'][name]), sep='\n  ', flush=True)
            if n_joints == ENDURANCE[0] and not args.quick:
                lost = turn(players, processes, *ENDURANCE)
                result['endurance'] = {
                    name: {'sent': len(trips), 'lost': int((trips < 0).sum())}
                    for name, (trips, _) in lost.items()
                }
                print('60 s at 1000 Hz:', result['endurance'], flush=True)
    if args.out:
        write_result(args.out, 'node', result)
    return result


@contextmanager
def contestants(n_joints: int) -> Iterator[tuple[dict, dict]]:
    """
    Start both processes and wait until they answer.

    :param n_joints: joints that they are going to see
    :returns: players and processes by name
    """
    os.environ.update(own_domain())
    rclpy.init(args=[])
    node = rclpy.create_node('benchmark')
    executor = MessageFirstExecutor()
    spaces = {name: f'bench_{os.getpid()}_{index}' for index, name in enumerate(COMMANDS)}
    players = {name: Player(node, spaces[name]) for name in COMMANDS}
    executor.add_node(node)
    thread = threading.Thread(target=_spin, args=(executor,), daemon=True)
    thread.start()
    with ExitStack() as stack:
        processes = {}
        for name, command in COMMANDS.items():
            arguments = [*command, '--ros-args', '-r', f'__ns:=/{spaces[name]}']
            processes[name] = process = subprocess.Popen(arguments, stderr=subprocess.DEVNULL)
            stack.callback(_stop, process)
        for name, player in players.items():
            player.wait_for_answers(processes[name], n_joints)
        yield players, processes
    rclpy.try_shutdown()
    thread.join(5)


def turn(
    players: dict, processes: dict, n_joints: int, rate_hz: float, duration_s: float
) -> dict[str, tuple]:
    """
    Play to each process once.

    :returns: round trips in ns, and CPU time of the process in ns a message, by name
    """
    found = {}
    for name, player in players.items():
        before = cpu_ns(processes[name].pid)
        trips = player.play(n_joints, rate_hz, duration_s)
        found[name] = trips, (cpu_ns(processes[name].pid) - before) / len(trips)
    return found


def summary(rounds: list[dict[str, tuple]]) -> dict:
    """
    Put rounds together.

    :param rounds: from :func:`turn`
    :returns: medians over the rounds by name, and ratios within rounds
    """
    result: dict = {}
    table: dict[str, list] = {}
    for name in COMMANDS:
        rows = [
            (cpu / 1e3, *np.percentile(trips[trips >= 0], [50, 99]) / 1e3, (trips < 0).sum())
            for trips, cpu in (each[name] for each in rounds)
        ]
        table[name] = rows
        cpu, p50, p99, _ = np.median(rows, axis=0)
        result[name] = {
            'cpu_us': round(float(cpu), 1),
            'p50_us': round(float(p50), 1),
            'p99_us': round(float(p99), 1),
            'lost': int(sum(row[3] for row in rows)),
            'sent': sum(len(each[name][0]) for each in rounds),
        }
    ours, bare = (np.array(table[name]) for name in COMMANDS)
    ratios = np.median(ours[:, :3] / bare[:, :3], axis=0)
    keys = ('cpu_ratio', 'p50_ratio', 'p99_ratio')
    return result | {key: round(float(value), 3) for key, value in zip(keys, ratios)}


def _spin(executor: MessageFirstExecutor) -> None:
    # It ends with the context.
    try:
        while True:
            executor.spin_once()
    except Exception:
        executor.shutdown()


def _stop(process: subprocess.Popen) -> None:
    process.terminate()
    try:
        process.wait(15)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _lines(case: dict) -> list[str]:
    lines = [f'{name:<13}{case[name]}' for name in COMMANDS]
    return [*lines, f'ratios: { ({k: v for k, v in case.items() if k.endswith("ratio")}) }']


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description='Compare the node with a bare pass-through.')
    parser.add_argument('--rounds', type=int, default=5, help='rounds (5)')
    parser.add_argument('--duration', type=float, default=5.0, help='of a turn in s (5)')
    parser.add_argument('--quick', action='store_true', help='one case, for a try')
    parser.add_argument('--out', type=Path, help='folder for the result as JSON')
    return parser


if __name__ == '__main__':
    main()
