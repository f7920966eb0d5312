"""
Many samples at once: ``python benchmarks/offline.py``.

The shipped velocity GRU on recordings, by the fast path of ``seqmem evaluate --fast`` and by the
stream, against PyTorch's ``nn.GRU`` of the same size over the whole sequence, and against a
Python loop of its steps. PyTorch gets the features for nothing and has no filter to steer.
"""

import argparse
from collections.abc import Callable
from collections.abc import Sequence
import os
from pathlib import Path
import time

from measure import ONE_THREAD
from measure import write_result

os.environ.update(ONE_THREAD | {'JAX_PLATFORMS': 'cpu'})

import jax
import numpy as np
import torch

from seqmem_ros.core.dispatch import compute_in_caller
from seqmem_ros.core.estimators import load_estimator
from seqmem_ros.core.joints import JointSample
from seqmem_ros.core.model import build_network
from seqmem_ros.core.model import SequenceModel
from seqmem_ros.core.network_estimator import NetworkEstimator
from seqmem_ros.core.observer import N_FEATURES
from seqmem_ros.core.observer import N_STEERING
from seqmem_ros.core.spec import ModelSpec
from seqmem_ros.core.stream import Stream
from seqmem_ros.offline.fast_steps import Steps
from seqmem_ros.offline.network_scan import NetworkScan

WHOLE = 2**15
SHORT = 4096
LAGS = 5
LENGTHS = (10_000, 100_000, 1_000_000, 10_000_000)
# Steps for each number of joints, so that all fit into memory.
JOINTS = {1: WHOLE, 10: WHOLE, 100: 4 * SHORT, 1000: SHORT}
HIDDEN = (16, 32, 64, 128)
# Gives the seconds that it took.
Run = Callable[[], float]


def main(argv: Sequence[str] | None = None) -> dict:
    """
    Run the benchmark.

    :param argv: arguments without the program's name; None: those of the process
    :returns: what was measured
    """
    parser = argparse.ArgumentParser(description='Time whole recordings.')
    parser.add_argument('--rounds', type=int, default=5, help='rounds (5)')
    parser.add_argument('--longest', type=int, default=LENGTHS[-1], help='samples (10^7)')
    parser.add_argument('--quick', action='store_true', help='one short case, for a try')
    parser.add_argument('--out', type=Path, help='folder for the result as JSON')
    args = parser.parse_args(argv)
    compute_in_caller()
    torch.set_num_threads(1)
    estimator = load_estimator('gru', None, 'persistent')
    if args.quick:
        return {'peers': against_peers(estimator, 1, 1, SHORT, 100)}
    result = {
        'peers': {f'{n} joints': against_peers(estimator, n, args.rounds) for n in (1, 7)},
        'length': by_length(estimator, [n for n in LENGTHS if n <= args.longest], args.rounds),
        'joints': {n: fast_us(estimator, n, steps) for n, steps in JOINTS.items()},
        'hidden': {n: fast_us(of_size(n), 1, WHOLE) for n in HIDDEN},
    }
    for name, table in result.items():
        print(name, table, flush=True)
    if args.out:
        write_result(args.out, 'offline', {**result, 'rounds': args.rounds})
    return result


def steps_of(n_steps: int, n_joints: int, start: int = 0) -> Steps:
    """
    Make steps of a joint that moves, as the fast path gets them from a recording at 100 Hz.

    :param n_steps: number of samples
    :param n_joints: number of joints
    :param start: index of the first sample
    :returns: the steps
    """
    index = start + np.arange(n_steps)
    before = np.maximum(index[:, None] + np.arange(1 - LAGS, 1), 0)
    phase = 0.02 * before[:, None, :] + np.arange(n_joints)[:, None]
    position = np.round(np.sin(phase) * 1000) / 1000
    stamp_ns = np.broadcast_to(10**18 + 10**7 * before[:, None, :], position.shape)
    count = np.broadcast_to(index[:, None] + 1, (n_steps, n_joints))
    every = np.ones((n_steps, n_joints), dtype=bool)
    return Steps(index, {'stamp_ns': stamp_ns, 'position': position}, count, every, every)


def against_peers(
    estimator: NetworkEstimator,
    n_joints: int,
    n_rounds: int,
    n_fast: int = WHOLE,
    n_slow: int = 2000,
) -> dict:
    """
    Time a sample of a joint, all in turns.

    :param estimator: the shipped GRU
    :param n_joints: number of joints
    :param n_rounds: number of rounds
    :param n_fast: samples of the fast path
    :param n_slow: samples of the others
    :returns: us for a sample of one joint, and ratios of PyTorch's to it, by name
    """
    n_hidden = estimator.model.spec.network['n_hidden']
    runs = {
        'fast': (_fast(estimator, n_joints, n_fast), n_fast),
        'exact': (_exact(estimator, n_joints, n_slow), n_slow),
        'torch nn.GRU': (_torch_whole(n_hidden, n_joints, n_slow), n_slow),
        'torch loop': (_torch_loop(n_hidden, n_joints, n_slow), n_slow),
    }
    for run, _ in runs.values():
        run()
    rows = []
    for _ in range(n_rounds):
        rows.append([run() * 1e6 / n / n_joints for run, n in runs.values()])
    table = np.array(rows)
    result = {name: round(float(value), 3) for name, value in zip(runs, np.median(table, axis=0))}
    result['nn.GRU / fast'] = round(float(np.median(table[:, 2] / table[:, 0])), 2)
    result['loop / fast'] = round(float(np.median(table[:, 3] / table[:, 0])), 2)
    result['fast samples a second'] = round(1e6 / result['fast'])
    result['exact samples a second'] = round(1e6 / result['exact'])
    return result


def by_length(estimator: NetworkEstimator, lengths: Sequence[int], n_rounds: int) -> dict:
    """
    Time recordings of one joint by their length; the longest fewer times.

    :param estimator: the shipped GRU
    :param lengths: numbers of samples
    :param n_rounds: rounds, at most
    :returns: us a sample by length
    """
    result = {}
    for length in lengths:
        run = _fast(estimator, 1, length)
        if length < 10**6:
            run()
        n_times = max(1, min(n_rounds, 10**7 // length))
        took = [run() * 1e6 / length for _ in range(n_times)]
        result[length] = round(float(np.median(took)), 3)
    return result


def fast_us(estimator: NetworkEstimator, n_joints: int, n_steps: int, n_times: int = 3) -> float:
    """
    Time the fast path.

    :param estimator: any with a persistent memory
    :param n_joints: number of joints
    :param n_steps: number of samples
    :param n_times: how often, the median counts
    :returns: us for a sample of one joint
    """
    run = _fast(estimator, n_joints, n_steps)
    run()
    took = float(np.median([run() for _ in range(n_times)]))
    return round(took * 1e6 / n_steps / n_joints, 3)


def of_size(n_hidden: int) -> NetworkEstimator:
    """
    Make an estimator like the shipped one, of another size.

    :param n_hidden: width of its memory
    :returns: the estimator, with random weights
    """
    network = {'builder': 'recurrent_net', 'n_in': N_FEATURES, 'n_hidden': n_hidden}
    network |= {'n_out': N_STEERING, 'cell': 'gru'}
    spec = ModelSpec('velocity', network)
    return NetworkEstimator(SequenceModel(spec, build_network(network, jax.random.key(0))))


def _fast(estimator: NetworkEstimator, n_joints: int, n_steps: int) -> Run:
    # What it remembers of the round before ends with the first step, which is a start.
    scan = NetworkScan(estimator)

    def run() -> float:
        took_s = 0.0
        for start in range(0, n_steps, WHOLE):
            # A recording has its samples; what is made of them is measured.
            steps = steps_of(min(WHOLE, n_steps - start), n_joints, start)
            took_s += _seconds(lambda steps=steps: np.asarray(scan.run(scan.inputs(steps))))
        return took_s

    return run


def _exact(estimator: NetworkEstimator, n_joints: int, n_steps: int) -> Run:
    names = tuple(f'joint_{index}' for index in range(n_joints))
    empty = np.empty(0)
    position = steps_of(n_steps, n_joints).windows['position'][..., -1]
    samples = [
        JointSample(10**18 + 10**7 * index, names, row, empty, empty)
        for index, row in enumerate(position)
    ]

    def push_all() -> None:
        stream = Stream(estimator)
        for sample in samples:
            stream.push(sample)

    return lambda: _seconds(push_all)


def _torch_whole(n_hidden: int, n_joints: int, n_steps: int) -> Run:
    cell, out = torch.nn.GRU(N_FEATURES, n_hidden), torch.nn.Linear(n_hidden, N_STEERING)
    seq = torch.zeros(n_steps, n_joints, N_FEATURES)

    @torch.inference_mode()
    def whole() -> None:
        out(cell(seq)[0])

    return lambda: _seconds(whole)


def _torch_loop(n_hidden: int, n_joints: int, n_steps: int) -> Run:
    cell, out = torch.nn.GRUCell(N_FEATURES, n_hidden), torch.nn.Linear(n_hidden, N_STEERING)
    seq = torch.zeros(n_steps, n_joints, N_FEATURES)

    @torch.inference_mode()
    def loop() -> None:
        h = torch.zeros(n_joints, n_hidden)
        for x in seq:
            h = cell(x, h)
            out(h)

    return lambda: _seconds(loop)


def _seconds(do: Callable[[], object]) -> float:
    start = time.perf_counter()
    do()
    return time.perf_counter() - start


if __name__ == '__main__':
    main()
