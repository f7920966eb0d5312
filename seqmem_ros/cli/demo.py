"""``seqmem demo``: a recording of a real arm, the real node, and what comes out."""

import argparse
from pathlib import Path
from typing import Any

from seqmem_ros.cli.outputs import made_folder
from seqmem_ros.core.errors import SeqmemError

SHIPPED_BAG = Path(__file__).parents[1] / 'data' / 'kr300_a'
FILTERS = ('difference', 'lowpass', 'kalman')

_EPILOG = """\
what happens
  1. The shipped recording (a KUKA KR300, 6 joints, 250 Hz, 10 s) is degraded as a 14-bit
     encoder and a network that loses messages would do it.
  2. The node runs as its own process; the messages are played to it over DDS, on this machine
     alone, at the pace at which they were recorded.
  3. Its estimates are compared, message by message, with what the offline evaluation computes
     from the same messages, and scored beside the classical filters.

examples
  seqmem demo
  seqmem demo --model lstm --out /tmp/demo
  seqmem demo --bag my_bag --rate 2
"""


def add_parser(subparsers: Any) -> None:
    """
    Add the subcommand.

    :param subparsers: of the parser of ``seqmem``
    """
    parser = subparsers.add_parser(
        'demo',
        help='play a recording of a real arm to the node and score it',
        description='Play a recording to the real node over DDS, and show what it estimates.',
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        '--model',
        default='gru',
        choices=('gru', 'lstm', 'attention'),
        help='which shipped model the node runs (%(default)s)',
    )
    parser.add_argument('--bag', default=SHIPPED_BAG, help='recording to play (the shipped one)')
    parser.add_argument('--topic', help='topic of the joint states, if the bag has several')
    parser.add_argument('--bits', type=int, default=14, help='of the encoder (%(default)s)')
    parser.add_argument('--seed', type=int, default=0, help='of the lost messages (%(default)s)')
    parser.add_argument('--rate', type=float, default=1.0, help='pace, 2 is twice (%(default)s)')
    parser.add_argument(
        '--out', default='demo_output', metavar='DIR', help='where the picture goes (%(default)s)'
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """
    Play, collect, compare, score.

    :param args: parsed arguments
    :returns: exit code, 1 if live and offline differ
    :raises SeqmemError: if the bag cannot be used or the node does not start
    """
    # First, so that a missing ROS is said before anything else happens.
    from seqmem_ros.cli.live import progress
    from seqmem_ros.cli.live import said_live
    from seqmem_ros.cli.live import timed_samples
    from seqmem_ros.core.estimators import load_estimator
    from seqmem_ros.offline.bags import Selection
    from seqmem_ros.offline.degrade import Degradation
    from seqmem_ros.offline.evaluate import evaluate_bag
    from seqmem_ros.offline.evaluate import Setting
    from seqmem_ros.offline.live_check import compare
    from seqmem_ros.offline.live_check import said_offline
    from seqmem_ros.offline.plots import plot_result
    from seqmem_ros.offline.tables import report
    from seqmem_ros.ros.live import run_live

    if not 0 < args.rate < float('inf'):
        raise SeqmemError(f'--rate: expected a number above 0, got {args.rate}')
    out = made_folder('--out', args.out)
    degradation = Degradation(bits=args.bits, seed=args.seed)
    samples = timed_samples(args.bag, args.topic, degradation)
    duration_s = (samples[-1][0] - samples[0][0]) / 1e9 / args.rate
    print(f'1. Recording: {args.bag}, {len(samples)} messages, as seen through {degradation}')
    print(f'2. Playing it to the node ({args.model}) over DDS, {duration_s:.0f} s:', flush=True)
    with progress(len(samples)) as bar:
        live = run_live(samples, {'model': args.model}, rate=args.rate, on_progress=bar.update)
    messages = live.messages['joint_states']
    print(f'   sent {live.report.sent}, estimates received {len(messages)}, {live.report.timing}')
    print('3. Scoring the same messages offline:\n', flush=True)
    names = (*FILTERS, args.model)
    setting = Setting(degradation, selection=Selection(args.topic))
    result = evaluate_bag(args.bag, {name: load_estimator(name) for name in names}, setting)
    print(report(result))
    picture = out / f'demo_{args.model}.png'
    plot_result(result, picture)
    offline = said_offline(samples, load_estimator(args.model))
    agreement = compare(said_live(live.messages), offline)
    print(f'\nlive against offline: {agreement}')
    print(f'\npicture      {picture}')
    return 0 if agreement.identical else 1
