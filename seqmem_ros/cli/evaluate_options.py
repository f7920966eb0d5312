"""The options of ``seqmem evaluate``, and the page that explains them."""

import argparse

from seqmem_ros.cli.stretch_options import add_stretch
from seqmem_ros.core.estimators import FILTERS

DEFAULT_FILTERS = ('difference', 'lowpass', 'savgol', 'kalman')

EPILOG = """\
what it does
  The positions of the recording are degraded as a real encoder and network would (14 bits per
  revolution, 1 % of the messages lost, unless you say otherwise), and every estimator sees the
  same degraded messages, one by one, through the code that runs in the node. The reference is
  a zero-phase derivative of the clean recording, not the recorded velocity, which is often a
  lagging difference itself: the line 'truth check' says what it is in your bag.

what the columns mean
  RMSE         root mean square of estimate - reference, over the joints that move
  lag          delay at which the estimate fits the reference best; positive: late
  RMSE at lag  the error that is left if that delay is allowed for
  99 %         the size that one error in a hundred exceeds
  standstill   RMS of the error where the joint rests
  For labels: which are taken for which, macro-F1 (mean over labels of 2 TP / (2 TP + FP + FN)),
  and how long after a change of the true label the new one is told.

examples
  seqmem evaluate my_bag
  seqmem evaluate my_bag --out report             tables, plots and a page to send: report.html
  seqmem evaluate bags/* --weights a.safetensors b.safetensors --jobs 4 --out report
  seqmem evaluate my_bag --bits 12 --drop 0.05 --per-joint
  seqmem evaluate my_bag --no-degrade --topic /left/joint_states --start 10 --end 60
  seqmem evaluate my_bag --model gru --model attention --filters kalman,line --fast
  seqmem evaluate my_bag --model motion --filters none        labels, against the reference
  seqmem evaluate my_bag --weights contact.safetensors --labels /contact_state
  seqmem evaluate my_bag --write-bag estimates    to open beside my_bag in PlotJuggler, Foxglove
"""


def names_in(text: str) -> tuple[str, ...]:
    """
    Split a list of names.

    :param text: names with commas between
    :returns: the names
    """
    return tuple(name.strip() for name in text.split(',') if name.strip())


def add_options(parser: argparse.ArgumentParser) -> None:
    """
    Add everything that the command takes.

    :param parser: of the command
    """
    parser.add_argument(
        'bag', metavar='BAG', nargs='+', help='folder of a rosbag2, or a bag file; bags come first'
    )
    _add_selection(parser)
    _add_estimators(parser)
    _add_degradation(parser)
    _add_stream(parser)
    _add_outputs(parser)


def _add_selection(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group('which messages')
    group.add_argument('--topic', help='topic of the joint states, if the bag has several')
    group.add_argument(
        '--joints',
        help='joints to use, comma between (all)',
        metavar='NAMES',
        type=names_in,
        default=(),
    )
    add_stretch(group)


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
        action='extend',
        nargs='+',
        metavar='FILE',
        default=[],
        help='weights files, one or several',
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
        default=','.join(DEFAULT_FILTERS),
        help=f'classical filters beside them, out of {", ".join(FILTERS)}, or none '
        '(default: %(default)s)',
    )
    group.add_argument(
        '--reference-window',
        type=float,
        metavar='S',
        help='half-width of the window of the reference in s (default: 0.02, or 3 samples)',
    )
    group.add_argument(
        '--labels',
        metavar='SOURCE',
        help='true labels for label models: a topic of the bag (String, Int32, Bool), or a .csv '
        'file with the columns start,end,label in s (default: the motion of each joint)',
    )
    group.add_argument(
        '--fast',
        action='store_true',
        help='in arrays instead of message by message: several times faster for minutes or hours '
        'of recording, slower for seconds, as programs are compiled first; the same to 1e-5 '
        '(rad/s, probabilities), for the shipped networks with JAX from 0.12 on to the bit',
    )
    group.add_argument(
        '--jobs',
        type=int,
        default=1,
        metavar='N',
        help='bags at once, each in a process of its own; one bag is not divided (1)',
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
    names = {'metavar': 'NAMES', 'type': names_in, 'default': ()}
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
    group.add_argument(
        '--out',
        metavar='DIR',
        help='write metrics.json, metrics.csv, plots/ and report.html, one page with everything',
    )
    group.add_argument(
        '--write-bag',
        metavar='OUT',
        help='write the estimates and the reference as a new bag (MCAP), to open beside the '
        'original; a folder of bags if there are several',
    )
    group.add_argument('--json', metavar='FILE', help='write all numbers as JSON; - for stdout')
    group.add_argument('--plot', metavar='FILE.png', help='draw the joints that move most')
