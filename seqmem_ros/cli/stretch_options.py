"""Which stretch of a bag, and in which order: options of every command that goes through one."""

import argparse
import math
from typing import Any

ORDERS = ('record', 'header')


def add_stretch(parser: Any) -> None:
    """
    Add ``--start``, ``--end`` and ``--order``.

    :param parser: of the command, or a group of its options
    """
    parser.add_argument(
        '--start', type=float, default=0.0, metavar='S', help='skip the first S seconds (0)'
    )
    parser.add_argument(
        '--end',
        type=float,
        default=math.inf,
        metavar='S',
        help='stop S seconds after the first joint state (at the end)',
    )
    parser.add_argument(
        '--order',
        choices=ORDERS,
        default='record',
        help='go by the time of recording, as a node would have heard the messages, or by their '
        'stamps (%(default)s)',
    )


def selection_from(args: argparse.Namespace) -> Any:
    """
    Say which messages were asked for.

    :param args: parsed, with ``--topic`` beside the options of this file
    :returns: the selection, see :class:`seqmem_ros.offline.bags.Selection`
    :raises SeqmemError: if they contradict each other
    """
    from seqmem_ros.offline.bags import Selection

    return Selection(args.topic, args.start, args.end, args.order)
