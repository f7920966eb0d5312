"""
How fast recordings are read and evaluated, against what rosbags alone takes to iterate them.

    python benchmarks/bags.py --minutes 6       a first look
    python benchmarks/bags.py                   one hour: 1.8 million messages

makes an MCAP bag of seven joints at 500 Hz, and measures in processes of their own, one after the
other: rosbags that iterates and deserialises; ``seqmem evaluate`` with the shipped GRU,
``--fast`` and message by message. What is timed is the whole evaluation, with reference and
scores, but not the start of Python and the import of packages.
"""

import argparse
from collections.abc import Iterator
import json
from pathlib import Path
import resource
import subprocess
import sys
import tempfile
import time

import numpy as np

from seqmem_ros.core.joints import JointSample
from seqmem_ros.offline.bags import write_joint_bag

NAMES = tuple(f'joint_{number}' for number in range(1, 8))
RATE_HZ = 500
START_NS = 1_700_000_000_000_000_000
RECORD_DELAY_NS = 300_000
WAYS = ('rosbags', 'fast', 'exact')


def samples(minutes: float) -> Iterator[tuple[int, JointSample]]:
    """
    Move seven joints between random points, with rests.

    :param minutes: length of the recording
    :returns: record time in ns, and sample with position, velocity and effort
    """
    rng = np.random.default_rng(0)
    period_ns = 1_000_000_000 // RATE_HZ
    at = np.zeros(len(NAMES))
    index = 0
    while index < minutes * 60 * RATE_HZ:
        n_move, n_rest = rng.integers(500, 2000), rng.integers(100, 500)
        distance = rng.uniform(-1.0, 1.0, len(NAMES))
        s = np.arange(1, n_move + 1)[:, None] / n_move
        position = at + distance * s**3 * (10 - 15 * s + 6 * s**2)
        velocity = distance * RATE_HZ / n_move * 30 * s**2 * (1 - s) ** 2
        position = np.concatenate([position, np.repeat(position[-1:], n_rest, axis=0)])
        velocity = np.concatenate([velocity, np.zeros((n_rest, len(NAMES)))])
        at = position[-1]
        for p, v in zip(position, velocity):
            stamp_ns = START_NS + index * period_ns
            yield stamp_ns + RECORD_DELAY_NS, JointSample(stamp_ns, NAMES, p, v, 10.0 * v)
            index += 1
            if index >= minutes * 60 * RATE_HZ:
                return


def run_way(way: str, bag: Path) -> dict[str, float]:
    """
    Read or evaluate a bag in this process.

    :param way: one of ``WAYS``
    :param bag: its path
    :returns: seconds, those of the processor, and peak memory in MB
    """
    measure = with_rosbags if way == 'rosbags' else with_seqmem
    cpu_s = time.process_time()
    seconds = measure(bag, way)
    cpu_s = time.process_time() - cpu_s
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6
    return {'seconds': seconds, 'cpu_s': cpu_s, 'peak_mb': peak_mb}


def with_rosbags(bag: Path, way: str) -> float:
    """
    Iterate and deserialise.

    :param bag: its path
    :param way: not used
    :returns: seconds
    """
    from rosbags.rosbag2 import Reader
    from rosbags.typesys import get_typestore
    from rosbags.typesys import Stores

    store = get_typestore(Stores.LATEST)
    start_s = time.perf_counter()
    with Reader(bag) as reader:
        for connection, _, data in reader.messages():
            store.deserialize_cdr(data, connection.msgtype)
    return time.perf_counter() - start_s


def with_seqmem(bag: Path, way: str) -> float:
    """
    Evaluate with the shipped GRU.

    :param bag: its path
    :param way: ``fast`` or ``exact``
    :returns: seconds
    """
    from seqmem_ros.core.dispatch import compute_in_caller
    from seqmem_ros.core.estimators import load_estimator
    from seqmem_ros.offline import fast_replay  # noqa: F401
    from seqmem_ros.offline.evaluate import evaluate_bag
    from seqmem_ros.offline.evaluate import Setting

    if way == 'exact':
        compute_in_caller()
    estimators = {'gru': load_estimator('gru')}
    start_s = time.perf_counter()
    result = evaluate_bag(bag, estimators, Setting(fast=way == 'fast'))
    seconds = time.perf_counter() - start_s
    print(f'   {result.health}; RMSE {result.estimators["gru"].total.rmse:.5f} rad/s')
    return seconds


def main() -> None:
    """Make the bag, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    parser.add_argument('--minutes', type=float, default=60.0, help='length of the recording')
    parser.add_argument('--ways', default=','.join(WAYS), help='what to measure (%(default)s)')
    parser.add_argument('--bag', type=Path, help='an existing bag, or where to make one')
    parser.add_argument('--way', choices=WAYS, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.way:
        print(json.dumps(run_way(args.way, args.bag)))
        return
    with tempfile.TemporaryDirectory() as folder:
        bag = args.bag or Path(folder) / 'bag'
        if not bag.exists():
            count = write_joint_bag(bag, '/joint_states', samples(args.minutes))
            print(f'{count} messages of {len(NAMES)} joints at {RATE_HZ} Hz written', flush=True)
        times = {}
        for way in args.ways.split(','):
            command = [sys.executable, __file__, '--way', way, '--bag', str(bag)]
            done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
            *said, last = done.stdout.splitlines()
            found = json.loads(last)
            times[way] = found['seconds']
            ratio = (
                f', {times[way] / times["rosbags"]:.2f} x rosbags' if 'rosbags' in times else ''
            )
            print('\n'.join(said) + '\n' * bool(said), end='')
            print(
                f'{way:8} {found["seconds"]:8.1f} s ({found["cpu_s"]:.1f} s of CPU){ratio}, '
                f'peak {found["peak_mb"]:.0f} MB',
                flush=True,
            )


if __name__ == '__main__':
    main()
