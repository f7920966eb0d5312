"""
One message through the compiled step, against other libraries: ``python benchmarks/step.py``.

The same network with the same weights, 7 joints as its batch: NumPy in, NumPy out, the memory
kept in between. Ours is the program that :class:`~seqmem_ros.core.stream.Stream` calls, which
also selects features and restarts and rests single joints; the peers do without. All have to
agree to 1e-5 before anything is timed.
"""

import argparse
from collections.abc import Callable
from collections.abc import Sequence
import os
from pathlib import Path

from measure import in_turns
from measure import ONE_THREAD
from measure import peak_bytes
from measure import percentiles_us
from measure import ratio
from measure import write_result

os.environ.update(ONE_THREAD | {'JAX_PLATFORMS': 'cpu'})

import jax
import numpy as np
from step_jax import make_equinox
from step_jax import make_flax
from step_onnx import make_onnx
from step_peers import make_numpy
from step_peers import N_HEADS
from step_peers import weights_of
from step_peers import WINDOW
from step_torch import make_torch
from step_torch import make_torch_script

from seqmem_ros.core.dispatch import compute_in_caller
from seqmem_ros.core.estimators import load_estimator
from seqmem_ros.core.inputs import N_RAW
from seqmem_ros.core.joints import JointSample
from seqmem_ros.core.model import build_network
from seqmem_ros.core.model import SequenceModel
from seqmem_ros.core.network_estimator import NetworkEstimator
from seqmem_ros.core.spec import ModelSpec
from seqmem_ros.core.stream import Stream

N_JOINTS = 7
# What the stream rounds 7 joints up to.
CAPACITY = 8
FEATURES = ('position', 'velocity', 'effort', 'difference', 'step_s')
# Where they stand in the raw inputs.
COLUMNS = [0, 1, 2, 3, 7]
CASES = (('gru', 32), ('gru', 64), ('gru', 128), ('lstm', 32), ('lstm', 64), ('lstm', 128),
         ('attention', 32))  # fmt: skip
PEERS = {
    'onnxruntime': make_onnx,
    'torch eager': make_torch,
    'torch script': make_torch_script,
    'equinox': make_equinox,
    'flax nnx': make_flax,
    'numpy': make_numpy,
}
TOLERANCE = 1e-5
N_STEADY = 10_000
Call = Callable[[], object]


def main(argv: Sequence[str] | None = None) -> dict:
    """
    Run the benchmark.

    :param argv: arguments without the program's name; None: those of the process
    :returns: what was measured
    """
    args = _parser().parse_args(argv)
    compute_in_caller()
    cases = {}
    for cell, n_hidden in CASES[:1] if args.quick else CASES:
        name = f'{cell} {n_hidden}'
        cases[name] = compare(cell, n_hidden, args.rounds, args.calls)
        print(_lines(name, cases[name]), flush=True)
    streams = {}
    for name in ('gru',) if args.quick else ('gru', 'lstm', 'attention'):
        streams[name] = stream_of(name, 300 if args.quick else N_STEADY)
        print(f'shipped {name}: {streams[name]}', flush=True)
    result = {'cases': cases, 'streams': streams, 'rounds': args.rounds, 'calls': args.calls}
    if args.out:
        write_result(args.out, 'step', result)
    return result


def model_of(cell: str, n_hidden: int) -> SequenceModel:
    """
    Make a network shared by all joints, with random weights.

    :param cell: ``gru``, ``lstm`` or ``attention``
    :param n_hidden: width of its memory
    :returns: the model; the GRU in PyTorch's form, the LSTM without peepholes
    """
    n_in = len(FEATURES)
    network = {'builder': 'recurrent_net', 'n_in': n_in, 'n_hidden': n_hidden, 'n_out': 1}
    network |= {'cell': cell, 'reset_after': True} if cell == 'gru' else {'cell': cell}
    if cell == 'lstm':
        network |= {'peepholes': False}
    if cell == 'attention':
        attention = {'type': 'MultiHeadSelfAttention', 'd_model': n_hidden, 'n_heads': N_HEADS}
        layers = (
            {'type': 'Dense', 'n_in': n_in, 'n_out': n_hidden},
            {**attention, 'causal': True, 'window': WINDOW},
            {'type': 'Dense', 'n_in': n_hidden, 'n_out': 1},
        )
        network = {'builder': 'layer_stack', 'n_in': n_in, 'n_out': 1, 'layers': layers}
    spec = ModelSpec('velocity', network, readout='direct', features=FEATURES)
    built = build_network(network, jax.random.key(0))
    rng = np.random.default_rng(0)
    for name, param in built.named_params().items():
        # Other libraries have one bias where PyTorch has two.
        scale = 0.0 if name.endswith('b_U') else 0.1
        noise = scale * rng.standard_normal(param.shape)
        param.value = np.asarray(param.value + noise, dtype=np.float32)
    return SequenceModel(spec, built)


def make_ours(model: SequenceModel) -> Callable[[np.ndarray], np.ndarray]:
    """
    Step as the stream does.

    :param model: from :func:`model_of`
    :returns: function from raw inputs of the capacity, shape (8, N_RAW + 2), to outputs, (7,)
    """
    estimator = NetworkEstimator(model)
    memory = [estimator.init_state(CAPACITY)]

    def step(inputs: np.ndarray) -> np.ndarray:
        outputs, memory[0] = estimator.run(inputs, memory[0])
        return outputs[:N_JOINTS]

    return step


def inputs_of(n_samples: int) -> np.ndarray:
    """
    Draw inputs.

    :param n_samples: number of samples
    :returns: as of :func:`seqmem_ros.core.inputs.step_inputs`, shape (n, 8, N_RAW + 2)
    """
    inputs = np.random.default_rng(1).standard_normal((n_samples, CAPACITY, N_RAW + 2))
    inputs[..., N_RAW] = 1.0
    inputs[..., N_RAW + 1] = (np.arange(n_samples) == 0)[:, None]
    return inputs.astype(np.float32)


def check(model: SequenceModel, cell: str, n_samples: int = 50) -> dict[str, float]:
    """
    Compare all peers with ours over a sequence.

    :param model: from :func:`model_of`
    :param cell: its cell
    :param n_samples: number of samples
    :returns: greatest difference by name
    :raises SystemExit: if one is above the tolerance
    """
    inputs = inputs_of(n_samples)
    ours = make_ours(model)
    expected = np.stack([ours(each) for each in inputs])
    weights, differences = weights_of(model, cell), {}
    for name, make in PEERS.items():
        step = make(cell, weights, N_JOINTS)
        got = np.stack([step(_samples(each)).copy() for each in inputs])
        differences[name] = float(np.abs(got - expected).max())
        if not differences[name] <= TOLERANCE:
            raise SystemExit(
                f'{name}, {cell}: expected outputs within {TOLERANCE}, got {differences[name]:.2g}'
            )
    return differences


def compare(cell: str, n_hidden: int, n_rounds: int, n_calls: int) -> dict:
    """
    Time ours and all peers in turns.

    :param cell: ``gru``, ``lstm`` or ``attention``
    :param n_hidden: width of its memory
    :param n_rounds: number of rounds
    :param n_calls: calls in each round
    :returns: by contestant, percentiles in us, ratio of ours to it and bytes of a call
    """
    model = model_of(cell, n_hidden)
    differences = check(model, cell)
    inputs = inputs_of(2)[1]
    weights, ours = weights_of(model, cell), make_ours(model)
    x = _samples(inputs)
    calls: dict[str, Call] = {'seqmem': lambda: ours(inputs)}
    for name, make in PEERS.items():
        calls[name] = _bound(make(cell, weights, N_JOINTS), x)
    times = in_turns(calls, n_rounds, n_calls)
    return {
        name: {
            **percentiles_us(each),
            'ours_to_it_p50': ratio(times['seqmem'], each),
            'ours_to_it_p99': ratio(times['seqmem'], each, 99.0),
            'peak_bytes': peak_bytes(calls[name]),
            'difference': differences.get(name, 0.0),
        }
        for name, each in times.items()
    }


def stream_of(name: str, n_messages: int, n_resets: int = 10) -> dict:
    """
    Push messages through a shipped model, with resets in between.

    :param name: of the shipped model
    :param n_messages: number of messages
    :param n_resets: number of resets, evenly spread
    :returns: number of compilations and of estimates, and percentiles of ``push`` in us
    """
    stream = Stream(load_estimator(name, None, 'persistent'))
    names = tuple(f'joint_{index}' for index in range(N_JOINTS))
    rng = np.random.default_rng(0)
    positions = np.cumsum(0.001 * rng.standard_normal((n_messages, N_JOINTS)), axis=0)
    samples = [
        JointSample(10**18 + 10**7 * index, names, position, np.empty(0), np.empty(0))
        for index, position in enumerate(positions)
    ]
    left = iter(samples)

    def push() -> None:
        stream.push(next(left))

    stream.warm_up(N_JOINTS)
    parts = []
    for _ in range(n_resets):
        parts.append(in_turns({'push': push}, 1, n_messages // n_resets, warm_up=0)['push'])
        stream.reset()
    return {
        **percentiles_us(np.concatenate(parts)),
        'compilations': stream.compile_count,
        'estimates': stream.counts['estimated'],
    }


def _samples(inputs: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(inputs[:N_JOINTS, COLUMNS])


def _bound(step: Callable, x: np.ndarray) -> Call:
    return lambda: step(x)


def _lines(title: str, case: dict) -> str:
    rows = [f'{title:<16}{"p50 us":>9}{"p99":>9}{"p99.9":>9}{"ours / it":>11}{"bytes":>8}']
    for name, row in case.items():
        rows.append(
            f'  {name:<14}{row["p50"]:>9}{row["p99"]:>9}{row["p99.9"]:>9}'
            f'{row["ours_to_it_p50"]:>11}{row["peak_bytes"]:>8}'
        )
    return '\n'.join(rows)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description='Time one step against other libraries.')
    parser.add_argument('--rounds', type=int, default=7, help='rounds of all contestants (7)')
    parser.add_argument('--calls', type=int, default=2000, help='calls in a round (2000)')
    parser.add_argument('--quick', action='store_true', help='one case, for a try')
    parser.add_argument('--out', type=Path, help='folder for the result as JSON')
    return parser


if __name__ == '__main__':
    main()
