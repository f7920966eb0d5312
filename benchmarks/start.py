"""
From the start of a process to its first estimate: ``python benchmarks/start.py``.

The peer only imports rclpy and jax and compiles a trivial function. The node is measured twice,
with jax's cache of compiled programs off and on (second start).
"""

import argparse
from collections.abc import Sequence
import os
from pathlib import Path
import subprocess
import sys
import tempfile
import threading
import time

from measure import write_result
from node import _spin
from node import Player
from node import START_TIMEOUT_S
from node_peers import own_domain
from node_peers import resident_mib
import numpy as np
import rclpy

from seqmem_ros.ros.executor import MessageFirstExecutor

FOLDER = Path(__file__).resolve().parent
PEER = [sys.executable, str(FOLDER / 'node_peers.py'), 'import_only', '--stay']


def main(argv: Sequence[str] | None = None) -> dict:
    """
    Run the benchmark; measures the resident memory of the same processes as well.

    :param argv: arguments without the program's name; None: those of the process
    :returns: what was measured
    """
    parser = argparse.ArgumentParser(description='Time the start of the node.')
    parser.add_argument('--rounds', type=int, default=5, help='rounds (5)')
    parser.add_argument('--quick', action='store_true', help='one round, for a try')
    parser.add_argument('--out', type=Path, help='folder for the result as JSON')
    args = parser.parse_args(argv)
    rows = run(1 if args.quick else args.rounds)
    medians = {name: np.median([row[name] for row in rows], axis=0) for name in rows[0]}
    peer_mib = medians['import only'][1]
    result = {
        name: {
            'start_s': round(float(start_s), 2),
            'start_ratio': round(
                float(np.median([row[name][0] / row['import only'][0] for row in rows])), 3
            ),
            'resident_mib': round(float(mib), 1),
            'resident_ratio': round(float(mib / peer_mib), 3),
        }
        for name, (start_s, mib) in medians.items()
    }
    for name, row in result.items():
        print(f'{name:<18}{row}', flush=True)
    if args.out:
        write_result(args.out, 'start', {'processes': result, 'rounds': len(rows)})
    return result


def run(n_rounds: int) -> list[dict[str, tuple[float, float]]]:
    """
    Start all processes in turns.

    :param n_rounds: number of rounds
    :returns: for each round, s and MiB by name
    """
    os.environ.update(own_domain())
    rclpy.init(args=[])
    node = rclpy.create_node('benchmark_start')
    name = f'bench_start_{os.getpid()}'
    player = Player(node, name)
    executor = MessageFirstExecutor()
    executor.add_node(node)
    threading.Thread(target=_spin, args=(executor,), daemon=True).start()
    rows = []
    with tempfile.TemporaryDirectory() as cache:
        off = {'JAX_ENABLE_COMPILATION_CACHE': 'false'}
        on = {
            'JAX_COMPILATION_CACHE_DIR': cache,
            'JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS': '0',
            'JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES': '-1',
        }
        _ours(player, name, on)
        for _ in range(n_rounds):
            rows.append(
                {
                    'import only': _peer(),
                    'node, no cache': _ours(player, name, off),
                    'node, cache': _ours(player, name, on),
                }
            )
    rclpy.try_shutdown()
    return rows


def _peer() -> tuple[float, float]:
    start_ns = time.time_ns()
    with subprocess.Popen(
        PEER, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        said = process.stdout.readline().split()
        mib = resident_mib(process.pid)
        process.stdin.close()
    return (int(said[1]) - start_ns) / 1e9, mib


def _ours(player: Player, name: str, environment: dict[str, str]) -> tuple[float, float]:
    arguments = ['-m', 'seqmem_ros.ros.node', '--ros-args', '-r', f'__ns:=/{name}']
    start_s = time.monotonic()
    with subprocess.Popen(
        [sys.executable, *arguments], env=os.environ | environment, stderr=subprocess.DEVNULL
    ) as process:
        try:
            while not player.has_answer():
                if time.monotonic() - start_s > START_TIMEOUT_S:
                    raise SystemExit('start: expected an estimate, got none')
                player.play(7, 200, 0.02, quiet_s=0.0)
            took_s = time.monotonic() - start_s
            player.play(7, 200, 0.5)
            mib = resident_mib(process.pid)
        finally:
            process.terminate()
            process.wait(15)
    player.forget()
    return took_s, mib


if __name__ == '__main__':
    main()
