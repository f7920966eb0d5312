"""``seqmem demo``: a recording of a real arm, the real node, and what comes out."""

import argparse
from pathlib import Path
from typing import Any

import numpy as np

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
    from seqmem_ros.core.estimators import load_estimator
    from seqmem_ros.offline.degrade import Degradation
    from seqmem_ros.offline.bags import Selection
    from seqmem_ros.offline.evaluate import evaluate_bag
    from seqmem_ros.offline.evaluate import Setting
    from seqmem_ros.offline.plots import plot_result
    from seqmem_ros.offline.tables import report
    from seqmem_ros.ros.live import run_live

    out = _made(Path(args.out))
    degradation = Degradation(bits=args.bits, seed=args.seed)
    samples = _samples(args.bag, args.topic, degradation)
    duration_s = (samples[-1][0] - samples[0][0]) / 1e9 / args.rate
    print(f'1. Recording: {args.bag}, {len(samples)} messages, as seen through {degradation}')
    print(f'2. Playing it to the node ({args.model}) over DDS, {duration_s:.0f} s:', flush=True)
    with _progress(len(samples)) as bar:
        live = run_live(samples, {'model': args.model}, rate=args.rate, on_progress=bar.update)
    messages = live.messages['joint_states']
    print(
        f'   sent {live.report.sent}, estimates received {len(messages)}, '
        f'latest message {1000 * live.report.latest_s:.1f} ms behind its time'
    )
    print('3. Scoring the same messages offline:\n', flush=True)
    names = (*FILTERS, args.model)
    setting = Setting(degradation, selection=Selection(args.topic))
    result = evaluate_bag(args.bag, {name: load_estimator(name) for name in names}, setting)
    print(report(result))
    picture = out / f'demo_{args.model}.png'
    plot_result(result, picture)
    same = _compare(messages, result, args.model)
    print(f'\npicture      {picture}')
    return 0 if same else 1


def _made(out: Path) -> Path:
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SeqmemError(
            f'--out: expected a folder that can be made, got {out}: {error}'
        ) from None
    return out


def _samples(bag: Any, topic: str | None, degradation: Any) -> list:
    """Degrade the recording to what is played: due time, sample and frame of each message."""
    from seqmem_ros.offline.bags import read_joint_messages
    from seqmem_ros.offline.degrade import Degrader

    degrade = Degrader(degradation)
    seen = ((message, degrade(message.sample)) for message in read_joint_messages(bag, topic))
    return [
        (message.record_ns, worse, message.frame_id)
        for message, worse in seen
        if worse is not None
    ]


def _progress(total: int) -> Any:
    from tqdm import tqdm

    return tqdm(total=total, unit=' messages', bar_format='   {l_bar}{bar:30}{r_bar}')


def _compare(messages: list, result: Any, model: str) -> bool:
    """Say whether the node published what the offline evaluation computed, to the bit."""
    from seqmem_ros.core.joints import stamp_to_ns

    row_of = {int(stamp): row for row, stamp in enumerate(result.recording.stamp_ns)}
    offline = result.estimators[model].outputs
    joint_of = {name: joint for joint, name in enumerate(result.recording.names)}
    largest, live = 0.0, np.full(offline.shape, np.nan)
    for message in messages:
        row = row_of[stamp_to_ns(message.header.stamp)]
        live[row, [joint_of[name] for name in message.name]] = message.velocity
    both = np.isfinite(live) & np.isfinite(offline)
    largest = float(np.abs(live - offline)[both].max(initial=0.0))
    lost = int((np.isfinite(offline) & ~both).any(axis=1).sum())
    more = int((np.isfinite(live) & ~both).any(axis=1).sum())
    same = np.array_equal(live, offline, equal_nan=True)
    verdict = 'identical to the bit' if same else f'largest difference {largest:.3g} rad/s'
    print(
        f'\nlive against offline: {len(messages)} messages, {verdict}, {lost} lost, '
        f'{more} unexpected'
    )
    return same
