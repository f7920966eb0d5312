"""``seqmem record-check``: the node on a bag against the offline result, message by message."""

import argparse
from typing import Any

from seqmem_ros.core.errors import SeqmemError

_EPILOG = """\
what happens
  The real node runs as its own process; the messages of the bag are played to it over DDS, on
  this machine alone. What it publishes is compared with what the offline code computes from
  the same messages. They are the same to the bit; if not, the largest difference is printed and
  the exit code is 1.

examples
  seqmem record-check my_bag
  seqmem record-check my_bag --model motion
  seqmem record-check my_bag --weights mine.safetensors --rate 0.5
"""


def add_parser(subparsers: Any) -> None:
    """
    Add the subcommand.

    :param subparsers: of the parser of ``seqmem``
    """
    parser = subparsers.add_parser(
        'record-check',
        help='compare the node with the offline result on a bag',
        description='Play a bag to the real node, and compare what it publishes with the offline '
        'result, message by message.',
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument('bag', metavar='BAG', help='folder of a rosbag2, or a bag file')
    parser.add_argument('--topic', help='topic of the joint states, if the bag has several')
    parser.add_argument(
        '--model', default='auto', help='as the parameter of the node (gru, or what --weights is)'
    )
    parser.add_argument('--weights', default='', metavar='FILE', help='a weights file')
    parser.add_argument(
        '--memory', choices=('persistent', 'window'), default='persistent', help='(%(default)s)'
    )
    parser.add_argument(
        '--rate',
        type=float,
        default=1.0,
        help='pace, 2 is twice; lower it where messages are lost (%(default)s)',
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """
    Play, collect, compare.

    :param args: parsed arguments
    :returns: exit code, 1 if live and offline differ
    :raises SeqmemError: if the bag or the weights cannot be used, or the node does not start
    """
    # All of them first, so that a missing ROS is said before anything else happens.
    from seqmem_ros.cli.live import progress
    from seqmem_ros.cli.live import said_live
    from seqmem_ros.cli.live import timed_samples
    from seqmem_ros.core.estimators import load_estimator
    from seqmem_ros.offline.degrade import AS_RECORDED
    from seqmem_ros.offline.live_check import compare
    from seqmem_ros.offline.live_check import said_offline
    from seqmem_ros.ros.live import LABEL_TOPICS
    from seqmem_ros.ros.live import run_live
    from seqmem_ros.ros.live import VELOCITY_TOPICS

    estimator = load_estimator(args.model, args.weights, args.memory)
    samples = timed_samples(args.bag, args.topic, AS_RECORDED)
    offline = said_offline(samples, estimator)
    if not offline:
        raise SeqmemError(f'{args.bag}: no message gives an estimate: `seqmem evaluate` says why')
    velocity = estimator.task == 'velocity'
    parameters = {'model': args.model, 'weights': args.weights, 'memory': args.memory}
    print(f'playing {len(samples)} messages to the node ({estimator.name})', flush=True)
    with progress(len(samples)) as bar:
        live = run_live(
            samples,
            parameters,
            topics=VELOCITY_TOPICS if velocity else LABEL_TOPICS,
            rate=args.rate,
            on_progress=bar.update,
        )
    agreement = compare(said_live(live.messages), offline, 'rad/s' if velocity else '')
    print(f'sent {live.report.sent}, {live.report.timing}')
    print(f'live against offline: {agreement}')
    return 0 if agreement.identical else 1
