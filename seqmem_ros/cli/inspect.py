"""``seqmem inspect``: what a model is, and how long it remembers."""

import argparse
import json
import math
from pathlib import Path
from typing import Any

from seqmem_ros.cli.outputs import check_files
from seqmem_ros.cli.outputs import check_picture
from seqmem_ros.core.errors import SeqmemError

DEFAULT_RATE_HZ = 100.0

_EPILOG = """\
what it shows
  card         task, network, readout, joints, labels, rates, training, scores, digest
  parameters   counted by formula, and as they are in the file
  modes        eigenvalues of the linearised cell. A mode of size r keeps r^n after n samples;
               1/e is left after its horizon, -1 / ln r. A complex pair also turns, once a period.
               Spectral radius below 1: the past fades in the end. Largest singular value below
               1: it fades in every step
  parts        each part of the state as a filter h' = a h + b x: pole a, horizon, DC gain
               b / (1 - a), beside the classical filters at the same rate
  influence    how much of the state k samples ago is left in the last one: 1 keeps all
  gradient     how strongly a loss on the last outputs pulls at the state k samples ago
  attention    which samples are attended to, averaged over the heads
  training     bytes of activations that backpropagation needs: 4 B min(T, K) sum of v H,
               v = 1 (RNN), 5 (GRU), 7 (LSTM)
  The last five but one are taken along a sequence: of --bag, or else simulated. The network gets
  there exactly what it gets in the node.

examples
  seqmem inspect gru
  seqmem inspect attention --plot attention.png
  seqmem inspect mine.safetensors --bag my_bag --joint elbow --samples 500
  seqmem inspect lstm --rate 500 --at 200 --json -
  seqmem inspect gru --batch 64 --length 2000 --hidden 128 --truncate 100
"""


def add_parser(subparsers: Any) -> None:
    """
    Add the subcommand.

    :param subparsers: of the parser of ``seqmem``
    """
    parser = subparsers.add_parser(
        'inspect',
        help='show what a model is and how long it remembers',
        description='Show the card of a model and every view on its memory.',
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        'model',
        metavar='MODEL',
        help='a shipped model (gru, lstm, attention, motion) or a weights file',
    )
    _add_sequence(parser)
    _add_views(parser)
    _add_outputs(parser)
    parser.set_defaults(run=run)


def _add_sequence(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group('the sequence along which the memory is looked at')
    group.add_argument('--bag', metavar='BAG', help='take it from a bag (simulate moves)')
    group.add_argument('--topic', help='topic of the joint states, if the bag has several')
    group.add_argument(
        '--joint', metavar='NAME', help='joint of the bag (the one that moves most)'
    )
    group.add_argument(
        '--start', type=float, metavar='S', help='where in the bag, in s (where it moves most)'
    )
    group.add_argument(
        '--samples', type=int, default=256, metavar='N', help='its length (%(default)s)'
    )
    group.add_argument(
        '--rate',
        type=float,
        metavar='HZ',
        help=f'of the simulation, in Hz ({DEFAULT_RATE_HZ:g}); a bag has its own',
    )
    group.add_argument('--seed', type=int, default=0, help='of the simulation (%(default)s)')


def _add_views(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group('the views')
    group.add_argument(
        '--at',
        type=int,
        metavar='N',
        help='linearise at this sample (at rest under the mean input)',
    )
    group.add_argument(
        '--last',
        type=int,
        default=1,
        metavar='N',
        help='the loss of the gradient sees the last N outputs (%(default)s)',
    )
    group.add_argument(
        '--batch', type=int, default=32, metavar='B', help='sequences in a batch (%(default)s)'
    )
    group.add_argument(
        '--length', type=int, default=512, metavar='T', help='samples in each (%(default)s)'
    )
    group.add_argument('--hidden', type=int, metavar='H', help="width of the layers (the model's)")
    group.add_argument(
        '--truncate',
        type=int,
        metavar='K',
        help='backpropagation is cut every K samples (never)',
    )


def _add_outputs(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group('output')
    group.add_argument('--plot', metavar='FILE.png', help='draw the views')
    group.add_argument('--json', metavar='FILE', help='write all numbers as JSON; - for stdout')


def run(args: argparse.Namespace) -> int:
    """
    Look at a model, print what there is to see, write what was asked for.

    :param args: parsed arguments
    :returns: exit code 0
    :raises SeqmemError: if something that was given is wrong
    """
    from seqmem_ros.core.memory_report import report_memory
    from seqmem_ros.core.memory_training import TrainingSizes
    from seqmem_ros.core.weights import file_digest
    from seqmem_ros.core.weights import load_model
    from seqmem_ros.offline.inspect_card import card
    from seqmem_ros.offline.inspect_tables import memory_text

    _check(args)
    sizes = TrainingSizes(args.batch, args.length, args.hidden, args.truncate)
    path = weights_path(args.model)
    model = load_model(path)
    digest = file_digest(path)
    sequence = _sequence(args, model.spec)
    report = report_memory(model, sequence.raw, sequence.rate_hz, args.at, args.last, sizes)
    if args.json != '-':
        print(card(model, str(path), digest))
        print('\n' + memory_text(report, sequence.source))
    if args.json:
        _write_json(args.json, model, path, digest, sequence.source, report)
    if args.plot:
        from seqmem_ros.offline.inspect_plots import plot_memory

        plot_memory(report, sequence, f'{args.model}, {sequence.source}', args.plot)
    return 0


def weights_path(model: str) -> Path:
    """
    Find the file of a model.

    :param model: name of a shipped model, or a path
    :returns: path of a file that is there
    :raises SeqmemError: if there is none
    """
    from seqmem_ros.core.estimators import SHIPPED

    path = SHIPPED.get(model, Path(model))
    if not path.is_file():
        missing = f'its file {path} is not there' if model in SHIPPED else f"got '{model}'"
        raise SeqmemError(f'model: expected {", ".join(SHIPPED)}, or a weights file, {missing}')
    return path


def _check(args: argparse.Namespace) -> None:
    """Find out before the work what cannot be."""
    if args.bag is None:
        for option in ('topic', 'joint', 'start'):
            if getattr(args, option) is not None:
                raise SeqmemError(f'--{option}: expected a --bag beside it, got none')
    elif args.rate is not None:
        raise SeqmemError('--rate: expected none beside --bag, which has its own')
    for option in ('batch', 'length', 'hidden', 'truncate'):
        value = getattr(args, option)
        if value is not None and value < 1:
            raise SeqmemError(f'--{option}: expected at least 1, got {value}')
    if args.seed < 0:
        raise SeqmemError(f'--seed: expected at least 0, got {args.seed}')
    if args.start is not None and not math.isfinite(args.start):
        raise SeqmemError(f'--start: expected a number of seconds, got {args.start}')
    check_picture('--plot', args.plot)
    check_files({'--json': args.json, '--plot': args.plot}, (args.model, args.bag))


def _sequence(args: argparse.Namespace, spec: Any) -> Any:
    from seqmem_ros.offline.inspect_sequence import bag_sequence
    from seqmem_ros.offline.inspect_sequence import simulated_sequence

    if args.bag is None:
        rate_hz = DEFAULT_RATE_HZ if args.rate is None else args.rate
        return simulated_sequence(spec, args.samples, rate_hz, args.seed)
    return bag_sequence(spec, args.bag, args.topic, args.joint, args.samples, args.start)


def _write_json(
    target: str, model: Any, path: Path, digest: str, sequence: str, report: Any
) -> None:
    from dataclasses import asdict

    from seqmem_ros.core.memory_json import report_json

    content = {
        'model': model.kind,
        'source': str(path),
        'digest': digest,
        'spec': asdict(model.spec),
        'sequence': sequence,
        **report_json(report),
    }
    text = json.dumps(content, indent=2, allow_nan=False)
    if target == '-':
        print(text)
    else:
        Path(target).write_text(text + '\n')
