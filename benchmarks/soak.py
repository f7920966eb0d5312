"""
Messages without end at full speed through the real node, to see what is lost and what grows.

One message in fifty is spoilt, so that the rules work, too. After a warm-up the resident memory
of the node is compared with that at the end; every message that was sent has to be counted once.

    python benchmarks/soak.py --messages 200000
"""

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
import os
from pathlib import Path
import sys
import time

from diagnostic_msgs.msg import DiagnosticArray
import numpy as np
import rclpy
from rclpy.context import Context
from rclpy.executors import SingleThreadedExecutor
from sensor_msgs.msg import JointState

from seqmem_ros.core.joints import JointSample
from seqmem_ros.ros.live import wait_until_active
from seqmem_ros.ros.messages import message_from_sample
from seqmem_ros.ros.process import environment_on_this_machine
from seqmem_ros.ros.process import NodeProcess

NAMES = tuple(f'joint_{k}' for k in range(1, 8))
START_NS, PERIOD_NS = 10**18, 1_000_000
WARM_UP = 20_000
# As many as may be on their way: more than the node's queue would be lost.
MOST_AHEAD = 500
QUEUE = {
    'qos_overrides./joint_states.subscription.reliability': 'reliable',
    'qos_overrides./joint_states.subscription.depth': 2 * MOST_AHEAD,
    'qos_overrides./seqmem/joint_states.publisher.depth': 2 * MOST_AHEAD,
    'diagnostics_rate_hz': 10.0,
}
# Growth of resident memory that is none: pages that the allocator touches for the first time.
ALLOWED_GROWTH_BYTES = 2_000_000


@dataclass(frozen=True)
class Soak:
    """
    What a soak has shown.

    :param sent: messages sent
    :param counts: counters of the node at the end
    :param published: estimates that arrived here
    :param growth_bytes: of the node's resident memory, from the end of the warm-up on
    :param duration_s: of all
    """

    sent: int
    counts: dict[str, int]
    published: int
    growth_bytes: int
    duration_s: float

    @property
    def unaccounted(self) -> int:
        """Messages that are neither published nor counted under a reason."""
        reasons = ('published', 'thinned', 'filling', 'merging', 'dropped')
        return self.sent - sum(self.counts[reason] for reason in reasons)


def soak(n_messages: int, model: str, domain_id: int, warm_up: int = WARM_UP) -> Soak:
    """
    Send messages to a node in a process of its own, as fast as it takes them.

    :param n_messages: number of messages, those of the warm-up included
    :param model: model of the node
    :param domain_id: a ROS domain that nobody else uses
    :param warm_up: messages before the memory is looked at
    :returns: what has been seen
    """
    os.environ.update(environment_on_this_machine(domain_id))
    context = Context()
    rclpy.init(args=[], context=context, domain_id=domain_id)
    node = rclpy.create_node('soak', context=context, use_global_arguments=False)
    executor = SingleThreadedExecutor(context=context)
    executor.add_node(node)
    seen = {'published': 0, 'counts': {}}

    def on_estimate(message: JointState) -> None:
        seen['published'] += 1

    def on_diagnostics(array: DiagnosticArray) -> None:
        pairs = {pair.key: pair.value for pair in array.status[0].values}
        seen['counts'] = {key: int(value) for key, value in pairs.items() if value.isdigit()}

    node.create_subscription(JointState, '/seqmem/joint_states', on_estimate, 2 * MOST_AHEAD)
    node.create_subscription(DiagnosticArray, '/diagnostics', on_diagnostics, 10)
    publisher = node.create_publisher(JointState, 'joint_states', 2 * MOST_AHEAD)
    started_s, resident_bytes, sent = time.monotonic(), 0, 0
    try:
        with NodeProcess(QUEUE | {'model': model}, domain_id=domain_id) as process:
            wait_until_active(process, node, executor, '/seqmem')
            for sample in samples(n_messages):
                publisher.publish(message_from_sample(sample))
                sent += 1
                while sent - _received(seen, sent) > MOST_AHEAD:
                    executor.spin_once(timeout_sec=0.05)
                    process.check_alive()
                executor.spin_once(timeout_sec=0)
                if sent == warm_up:
                    _settle(executor, seen, sent)
                    resident_bytes = _resident_bytes(process.process.pid)
            _settle(executor, seen, sent)
            growth_bytes = _resident_bytes(process.process.pid) - resident_bytes
    finally:
        executor.shutdown()
        node.destroy_node()
        rclpy.try_shutdown(context=context)
    duration_s = time.monotonic() - started_s
    return Soak(sent, dict(seen['counts']), seen['published'], growth_bytes, duration_s)


def samples(n: int) -> Iterator[JointSample]:
    """
    Move an arm, and spoil one message in fifty, each time in another way.

    :param n: number of samples
    :returns: the samples
    """
    rng = np.random.default_rng(0)
    joints = np.arange(1, 8)
    for k in range(n):
        position = np.sin(1e-3 * k * joints)
        stamp_ns, names = START_NS + k * PERIOD_NS, NAMES
        how = k // 50 % 6 if k % 50 == 49 else -1
        if how == 0:
            position[rng.integers(7)] = np.nan
        elif how == 1:
            position[:] = np.inf
        elif how == 2:
            stamp_ns -= PERIOD_NS
        elif how == 3:
            stamp_ns -= 50 * PERIOD_NS
        elif how == 4:
            position = position[:5]
        elif how == 5:
            names = NAMES[::-1]
        yield JointSample(stamp_ns, names, position)


def _received(seen: dict, sent: int) -> int:
    # Those that lead to no estimate are known from the diagnostics only, a little later.
    return max(seen['published'], seen['counts'].get('received', 0)) if sent else 0


def _settle(executor: SingleThreadedExecutor, seen: dict, sent: int) -> None:
    """Wait until the node has told of every message, or for a minute."""
    deadline_s = time.monotonic() + 60
    while time.monotonic() < deadline_s:
        counts = seen['counts']
        if counts.get('received') == sent and counts['published'] == seen['published']:
            return
        executor.spin_once(timeout_sec=0.1)


def _resident_bytes(pid: int) -> int:
    pages = int(Path(f'/proc/{pid}/statm').read_text().split()[1])
    return pages * os.sysconf('SC_PAGE_SIZE')


def main() -> int:
    """
    Soak, and say what was seen.

    :returns: exit code, 1 if a message is unaccounted for or the memory grew
    """
    parser = argparse.ArgumentParser(description=__doc__.split('\n\n')[0].strip())
    parser.add_argument('--messages', type=int, default=200_000)
    parser.add_argument('--model', default='gru')
    parser.add_argument('--domain', type=int, default=99, help='ROS domain (default 99)')
    args = parser.parse_args()
    result = soak(args.messages, args.model, args.domain, min(WARM_UP, args.messages // 2))
    told = {key: n for key, n in sorted(result.counts.items()) if n}
    print(f'sent {result.sent} in {result.duration_s:.0f} s, estimates {result.published}')
    print(', '.join(f'{key} {n}' for key, n in told.items()))
    print(f'unaccounted for: {result.unaccounted}')
    print(f'growth after the warm-up: {result.growth_bytes / 1e6:.2f} MB')
    good = result.unaccounted == 0 and result.published == result.counts['published']
    return 0 if good and result.growth_bytes <= ALLOWED_GROWTH_BYTES else 1


if __name__ == '__main__':
    sys.exit(main())
