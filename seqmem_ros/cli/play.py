"""``seqmem play``: the joint states of a bag as real messages."""

import argparse
from array import array
from collections.abc import Iterable
from collections.abc import Iterator
import gc
from itertools import chain
from itertools import takewhile
import logging
import math
import sys
import time
from typing import Any

from seqmem_ros.cli.stretch_options import add_stretch
from seqmem_ros.cli.stretch_options import selection_from
from seqmem_ros.core.errors import SeqmemError

_EPILOG = """\
  Space pauses and goes on, Ctrl-C ends. Messages are sent at the pace of their record times (of
  their stamps with --order header), with the stamps that they have in the bag.

examples
  seqmem play my_bag
  seqmem play my_bag --rate 0.5 --start 10 --loop
  seqmem play my_bag --clock 200                for nodes with use_sim_time
  seqmem play my_bag --to /arm/joint_states --qos best_effort
"""

QOS = ('reliable', 'best_effort')


def add_parser(subparsers: Any) -> None:
    """
    Add the subcommand.

    :param subparsers: of the parser of ``seqmem``
    """
    parser = subparsers.add_parser(
        'play',
        help='publish the joint states of a bag',
        description='Publish the joint states of a bag as real messages; for where ros2 bag play '
        'is not installed, and for bags that it does not read (ROS 1, damaged).',
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument('bag', metavar='BAG', help='folder of a rosbag2, or a bag file')
    parser.add_argument('--topic', help='topic of the joint states, if the bag has several')
    parser.add_argument('--to', metavar='TOPIC', help='publish there (the topic of the bag)')
    parser.add_argument('--rate', type=float, default=1.0, help='pace, 2 is twice (%(default)s)')
    parser.add_argument('--loop', action='store_true', help='again and again')
    add_stretch(parser)
    parser.add_argument(
        '--clock',
        nargs='?',
        type=float,
        const=40.0,
        metavar='HZ',
        help='publish /clock, for use_sim_time (40 times a second)',
    )
    parser.add_argument(
        '--qos', choices=QOS, default='reliable', help='of the publisher (%(default)s)'
    )
    parser.add_argument(
        '--wait',
        type=float,
        default=2.0,
        metavar='S',
        help='wait for a subscriber, at most S seconds (%(default)s)',
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """
    Read, publish, say how well it went.

    :param args: parsed arguments
    :returns: exit code 0
    :raises SeqmemError: if the bag cannot be used
    :raises KeyboardInterrupt: if interrupted, after the report
    """
    # All of them first, so that a missing ROS is said before anything else happens.
    from seqmem_ros.offline.bags import list_topics
    from seqmem_ros.offline.read_ahead import reading_ahead
    from seqmem_ros.offline.topics import choose_topic
    from seqmem_ros.ros.player import Pace
    from seqmem_ros.ros.player import playing_node

    pace = Pace(args.rate)
    selection = selection_from(args)
    topics = list_topics(args.bag)
    topic = choose_topic(topics, args.topic, args.bag)
    whole = args.start == 0.0 and math.isinf(args.end)
    count = topics[topic].count if whole else None
    to = args.to or f'/{topic.lstrip("/")}'
    warn = logging.getLogger(__name__).warning
    with reading_ahead(args.bag, selection.with_topic(topic), warn, args.loop) as blocks:
        # A bag that cannot be read is told before anybody waits for its messages.
        blocks = chain([next(blocks)], blocks)
        with playing_node() as node:
            return _play(args, node, to, blocks, count, pace)


def _play(
    args: argparse.Namespace, node: Any, topic: str, blocks: Iterator, count: int | None, pace: Any
) -> int:
    from seqmem_ros.cli.keyboard import keyboard
    from seqmem_ros.ros.player import ClockPublisher
    from seqmem_ros.ros.player import Player
    from seqmem_ros.ros.player import PlayReport

    player = Player(node, topic, reliable=args.qos == 'reliable')
    clock = None if args.clock is None else ClockPublisher(node, pace, args.clock)
    _find_listener(player, args.wait)
    what = args.bag if count is None else f'{args.bag}: {count} messages'
    print(f'{what} to {player.topic} ({args.qos}), rate {args.rate:g}')
    # Four bytes a message: a loop may go on for days.
    late_s = array('f')
    started_s = time.monotonic()
    # A collection of garbage takes milliseconds.
    gc.collect()
    gc.disable()
    try:
        with keyboard() as keys, _bar(None if args.loop else count) as bar:
            pace.idle = _Idle(pace, keys, clock, bar)
            for samples in _rounds(blocks, args.order, pace):
                player.play(samples, pace=pace, lateness_s=late_s, on_progress=bar.update)
    finally:
        gc.enable()
        report = PlayReport.of(late_s, time.monotonic() - started_s)
        print(f'sent {report.sent} messages in {report.duration_s:.2f} s, {report.timing}')
    return 0


def _find_listener(player: Any, timeout_s: float) -> None:
    try:
        player.wait_for_subscriber(timeout_s)
    except SeqmemError:
        print(f'seqmem: nobody listens to {player.topic} yet', file=sys.stderr)


def _rounds(blocks: Iterator, order: str, pace: Any) -> Iterator:
    """Yield the samples of the bag, once for each time that it comes to its end."""
    for first in blocks:
        pace.restart()
        rest = takewhile(lambda block: block is not None, blocks)
        yield _timed(chain([first], rest), order)


def _timed(blocks: Iterable, order: str) -> Iterator:
    for block in blocks:
        for row in range(len(block)):
            at_ns = int(block.record_ns[row])
            if order == 'header':
                at_ns = int(block.stamp_ns[row]) or at_ns
            yield at_ns, block.sample(row), block.frame_id


class _Idle:
    """Waits, and meanwhile listens to the keyboard and keeps the clock going."""

    def __init__(self, pace: Any, keys: Any, clock: Any, bar: Any) -> None:
        self._pace = pace
        self._keys = keys
        self._clock = clock
        self._bar = bar

    def __call__(self, most_s: float) -> None:
        if self._keys.listens and self._keys.pressed() == ' ':
            self._pace.toggle()
            self._bar.set_postfix_str('paused' if self._pace.paused else '')
        if self._clock is not None:
            most_s = min(most_s, self._clock.tick())
        time.sleep(min(most_s, 0.02))


def _bar(total: int | None) -> Any:
    from tqdm import tqdm

    return tqdm(total=total, unit=' messages', leave=False, disable=None, mininterval=0.5)
