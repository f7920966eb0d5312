"""``seqmem evaluate``: score a model and the classical filters on a recorded bag."""

import argparse
from collections.abc import Iterable
import json
from pathlib import Path
from typing import Any

from seqmem_ros.core.errors import SeqmemError

FILTERS = ('difference', 'lowpass', 'savgol', 'kalman')

_EPILOG = """\
what it does
  The positions of the recording are degraded as a real encoder and network would (14 bits per
  revolution, 1 % of the messages lost, unless you say otherwise), and every estimator sees the
  same degraded messages, one by one, through the code that runs in the node. The reference is
  a zero-phase derivative of the clean recording, not the recorded velocity, which is often a
  lagging difference itself: the line 'truth check' says what it is in your bag.

examples
  seqmem evaluate my_bag
  seqmem evaluate my_bag --bits 12 --drop 0.05 --per-joint
  seqmem evaluate my_bag --no-degrade --topic /left/joint_states
  seqmem evaluate my_bag --weights mine.safetensors --json scores.json --plot scores.png
  seqmem evaluate my_bag --model gru --model attention --filters kalman
"""


def add_parser(subparsers: Any) -> None:
    """
    Add the subcommand.

    :param subparsers: of the parser of ``seqmem``
    """
    parser = subparsers.add_parser(
        'evaluate',
        help='score models and filters on a recorded bag',
        description='Score a model and the classical filters on the joint states of a bag: '
        'rosbag2 (folder, .mcap, .db3) or ROS 1 (.bag).',
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument('bag', metavar='BAG', help='folder of a rosbag2, or a bag file')
    parser.add_argument('--topic', help='topic of the joint states, if the bag has several')
    _add_estimators(parser)
    _add_degradation(parser)
    _add_stream(parser)
    _add_outputs(parser)
    parser.set_defaults(run=run)


def _add_estimators(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group('what to score')
    group.add_argument(
        '--model',
        action='append',
        metavar='NAME',
        help='a shipped model: gru, lstm, attention, motion (labels), or none; may be given '
        'several times (default: gru, unless --weights is given)',
    )
    group.add_argument(
        '--weights',
        action='append',
        metavar='FILE',
        default=[],
        help='a weights file; may be given several times',
    )
    group.add_argument(
        '--memory',
        choices=('persistent', 'window'),
        default='persistent',
        help='how the models remember (default: %(default)s)',
    )
    group.add_argument(
        '--filters',
        metavar='NAMES',
        default=','.join(FILTERS),
        help='classical filters beside them, or none (default: %(default)s)',
    )
    group.add_argument(
        '--reference-window',
        type=float,
        metavar='S',
        help='half-width of the window of the reference in s (default: 0.02, or 3 samples)',
    )


def _add_degradation(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group('what the estimators see of the recording')
    group.add_argument(
        '--bits', type=int, default=14, help='bits per revolution, 0: as recorded (%(default)s)'
    )
    group.add_argument(
        '--noise',
        type=float,
        default=0.0,
        metavar='RAD',
        help='standard deviation of noise on positions in rad (%(default)s)',
    )
    group.add_argument(
        '--drop',
        type=float,
        default=0.01,
        metavar='SHARE',
        help='share of messages that are lost, 0 to 1 (%(default)s)',
    )
    group.add_argument(
        '--jitter',
        type=float,
        default=0.0,
        metavar='S',
        help='standard deviation of noise on stamps in s (%(default)s)',
    )
    group.add_argument('--seed', type=int, default=0, help='of the random numbers (%(default)s)')
    group.add_argument(
        '--no-degrade', action='store_true', help='as recorded; the five options above are off'
    )


def _add_stream(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group('rules of the stream, as the parameters of the node')
    names = {'metavar': 'NAMES', 'type': _names, 'default': ()}
    group.add_argument('--joints', help='joints to use, comma between (all)', **names)
    group.add_argument('--continuous-joints', help='joints that wrap (none)', **names)
    group.add_argument(
        '--assume-joint-order', help='names for messages without (refuse them)', **names
    )
    group.add_argument(
        '--max-gap',
        type=float,
        default=0.25,
        metavar='S',
        help='a longer gap in s restarts the memory (%(default)s)',
    )
    group.add_argument(
        '--zero-stamp',
        choices=('reject', 'receive_time'),
        default='reject',
        help='what to do with messages without a stamp (%(default)s)',
    )


def _add_outputs(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group('output')
    group.add_argument('--per-joint', action='store_true', help='add a table of joints')
    group.add_argument('--json', metavar='FILE', help='write all numbers as JSON; - for stdout')
    group.add_argument('--plot', metavar='FILE.png', help='draw the joints that move most')


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(',') if name.strip())


def run(args: argparse.Namespace) -> int:
    """
    Evaluate, print the report, write what was asked for.

    :param args: parsed arguments
    :returns: exit code 0
    :raises SeqmemError: if something that was given is wrong
    """
    from seqmem_ros.core.options import StreamOptions
    from seqmem_ros.offline.degrade import AS_RECORDED
    from seqmem_ros.offline.degrade import Degradation
    from seqmem_ros.offline.evaluate import evaluate_bag
    from seqmem_ros.offline.tables import report

    _check_outputs(args)
    degradation = Degradation(args.bits, args.noise, args.drop, args.jitter, args.seed)
    options = StreamOptions(
        joints=args.joints,
        max_gap_s=args.max_gap,
        zero_stamp=args.zero_stamp,
        assume_joint_order=args.assume_joint_order,
        continuous_joints=args.continuous_joints,
    )
    result = evaluate_bag(
        args.bag,
        load_estimators(args.model, args.weights, args.filters, args.memory),
        AS_RECORDED if args.no_degrade else degradation,
        options,
        args.topic,
        args.reference_window,
        _progress,
    )
    if args.json == '-':
        print(json.dumps(result.to_json(), indent=2))
    else:
        print(report(result, args.per_joint))
    if args.json and args.json != '-':
        Path(args.json).write_text(json.dumps(result.to_json(), indent=2) + '\n')
    if args.plot:
        from seqmem_ros.offline.plots import plot_result

        plot_result(result, args.plot)
    return 0


def load_estimators(
    models: list[str] | None, weights: list[str], filters: str, memory: str
) -> dict[str, Any]:
    """
    Load everything that is to be scored.

    :param models: names of shipped models; None: ``gru``, or none beside ``weights``
    :param weights: paths of weights files
    :param filters: names with commas between, or ``none``
    :param memory: of the models
    :returns: estimators by a name of their own, filters first
    :raises SeqmemError: if a name is unknown, a file cannot be used, or nothing is left
    """
    from seqmem_ros.core.estimators import load_estimator

    estimators: dict[str, Any] = {}
    for name in () if filters == 'none' else _names(filters):
        if name not in FILTERS:
            raise SeqmemError(
                f"--filters: expected names out of {', '.join(FILTERS)}, or none, got '{name}'"
            )
        estimators[name] = load_estimator(name)
    if models is None:
        models = [] if weights else ['gru']
    for name in models:
        if name != 'none':
            estimators[name] = load_estimator(name, memory=memory)
    for path in weights:
        estimator = load_estimator('auto', path, memory)
        taken = Path(path).stem in estimators
        estimators[str(path) if taken else Path(path).stem] = estimator
    if not estimators:
        raise SeqmemError('nothing to score: expected a --model, --weights or --filters')
    return estimators


def _check_outputs(args: argparse.Namespace) -> None:
    """Find out before the work, not after it, that its result cannot be written."""
    for option, path in (('--json', args.json), ('--plot', args.plot)):
        if path and path != '-' and not Path(path).absolute().parent.is_dir():
            raise SeqmemError(f'{option}: no such folder: {Path(path).absolute().parent}')
    suffixes = ('.png', '.pdf', '.svg')
    if args.plot and Path(args.plot).suffix.lower() not in suffixes:
        raise SeqmemError(f'--plot: expected {", ".join(suffixes)}, got {args.plot!r}')


def _progress(messages: Iterable, total: int) -> Iterable:
    """Show a bar where somebody watches and has waited for two seconds."""
    from tqdm import tqdm

    return tqdm(messages, total=total, unit=' messages', delay=2.0, leave=False, disable=None)
