"""``seqmem train``: velocity or label models, from simulation, from bags, or from both."""

import argparse
from contextlib import contextmanager
import json
from pathlib import Path
import platform
from typing import Any

from seqmem_ros.cli.outputs import check_files
from seqmem_ros.cli.outputs import check_picture
from seqmem_ros.core.errors import SeqmemError

MODELS = ('gru', 'lstm', 'rnn', 'attention', 'transformer')
DEFAULT_STEPS = 1500

_EPILOG = """\
what it does
  Reads the bags, says what their recorded velocity really is, holds the last fifth of each out,
  learns from the rest through an encoder and a network made worse (14 bits, 1 % lost), and scores
  on what was held out, beside the classical filters, through the code that runs in the node.
  Everything is in the one weights file that it writes. Interrupted (Ctrl-C), it keeps what it has
  in FILE.checkpoint, and the same command with --resume goes on as if nothing had happened.

velocity
  seqmem train my_bag --start-from gru --out mine.safetensors        from the shipped weights
  seqmem train my_bag --simulate 2000 --out mine.safetensors         simulate first, then the bag
  seqmem train --simulate 4000 --out mine.safetensors                simulation alone
  seqmem train a_bag b_bag c_bag --split recording --out mine.safetensors

labels
  seqmem train my_bag --task label --labels /mode --out mode.safetensors      a topic of the bag
  seqmem train my_bag --task label --labels labels.csv --out mode.safetensors start,end,label in s
  seqmem train my_bag --task label --shared --out motion.safetensors   motion of each joint
  seqmem train --windows windows.npz --model attention --attention-window 28 --out w.safetensors

then
  seqmem evaluate other_bag --weights mine.safetensors
  ros2 launch seqmem_ros seqmem.launch.py weights:=$PWD/mine.safetensors
"""


def add_parser(subparsers: Any) -> None:
    """
    Add the subcommand.

    :param subparsers: of the parser of ``seqmem``
    """
    parser = subparsers.add_parser(
        'train',
        help='train a model on bags, on simulation, or on both',
        description='Train a velocity or label model and write it as one weights file.',
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument('bags', metavar='BAG', nargs='*', help='folder of a rosbag2, or a file')
    parser.add_argument(
        '--out', metavar='FILE', required=True, help='weights file to write (.safetensors)'
    )
    _add_model(parser)
    _add_data(parser)
    _add_stream(parser)
    _add_learning(parser)
    group = parser.add_argument_group('output')
    group.add_argument('--json', metavar='FILE', help='write history and scores; - for stdout')
    group.add_argument('--plot', metavar='FILE.png', help='draw the learning curve')
    group.add_argument('--resume', action='store_true', help='go on from FILE.checkpoint')
    parser.set_defaults(run=run)


def _add_model(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group('the model')
    group.add_argument(
        '--task', choices=('velocity', 'label'), help='(velocity; label with --windows)'
    )
    group.add_argument('--model', choices=MODELS, help='(gru)')
    group.add_argument('--hidden', type=int, metavar='N', help='width of the layers (32)')
    group.add_argument('--layers', type=int, metavar='N', help='layers or blocks (1)')
    group.add_argument(
        '--attention-window',
        type=int,
        metavar='N',
        help='samples that attention and transformer look at (5; with --windows their length)',
    )
    group.add_argument(
        '--start-from',
        metavar='WEIGHTS',
        help='go on from a weights file or a shipped model (gru, lstm, attention, motion); it '
        'says task, model and sizes',
    )
    which = group.add_mutually_exclusive_group()
    which.add_argument(
        '--shared',
        dest='together',
        action='store_false',
        default=None,
        help='one network for any joint, of any number (velocity: this is the default)',
    )
    which.add_argument(
        '--joints-together',
        dest='together',
        action='store_true',
        help='one network that reads all joints by name (labels: this is the default)',
    )
    group.add_argument(
        '--features',
        metavar='NAMES',
        type=_names,
        help='what a network over all joints reads, comma between: position, velocity, effort, '
        'difference, lag_velocity, step_s (lag_velocity; labels: position,lag_velocity)',
    )


def _add_data(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group('the data')
    group.add_argument(
        '--simulate', type=int, default=0, metavar='STEPS', help='learn so long from simulation'
    )
    group.add_argument('--topic', help='topic of the joint states, if a bag has several')
    group.add_argument(
        '--labels',
        action='append',
        metavar='SOURCE',
        help='a topic of the bag (std_msgs String, Int32, Bool), or a CSV file with the columns '
        'start,end,label; one CSV for each bag, in their order (motion: stationary, '
        'forward, backward)',
    )
    group.add_argument(
        '--windows', metavar='FILE.npz', help='instead of bags: arrays X (N, T, n) and y (N,)'
    )
    group.add_argument(
        '--rate', type=float, default=100.0, metavar='HZ', help='of --windows (%(default)s)'
    )
    group.add_argument(
        '--target',
        choices=('reference', 'recorded'),
        default='reference',
        help='velocity to learn: the zero-phase reference, or what was recorded, which is often '
        'a lagging difference (%(default)s)',
    )
    group.add_argument(
        '--split',
        choices=('block', 'recording'),
        default='block',
        help='hold out the last part of each recording, or the last recordings (%(default)s)',
    )
    group.add_argument(
        '--hold-out', type=float, default=0.2, metavar='SHARE', help='(%(default)s)'
    )
    group.add_argument(
        '--bits', type=int, default=14, help='bits per revolution, 0: as recorded (%(default)s)'
    )
    group.add_argument('--noise', type=float, default=0.0, metavar='RAD', help='(%(default)s)')
    group.add_argument(
        '--drop', type=float, default=0.01, metavar='SHARE', help='messages lost (%(default)s)'
    )
    group.add_argument(
        '--no-degrade', action='store_true', help='as recorded; the three options above are off'
    )


def _add_stream(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group('rules of the stream, as the parameters of the node')
    names = {'metavar': 'NAMES', 'type': _names, 'default': ()}
    group.add_argument('--joints', help='joints to use, comma between (all)', **names)
    group.add_argument('--continuous-joints', help='joints that wrap (none)', **names)
    group.add_argument(
        '--max-gap', type=float, default=0.25, metavar='S', help='longest gap (%(default)s)'
    )
    group.add_argument(
        '--zero-stamp',
        choices=('reject', 'receive_time'),
        default='reject',
        help='what to do with messages without a stamp (%(default)s)',
    )


def _add_learning(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group('learning')
    group.add_argument(
        '--steps', type=int, default=DEFAULT_STEPS, metavar='N', help='on the data (%(default)s)'
    )
    group.add_argument('--batch', type=int, metavar='N', help='sequences in a step (16)')
    group.add_argument(
        '--chunk',
        type=int,
        default=128,
        metavar='N',
        help='samples in a step; memory is carried on to the next (%(default)s)',
    )
    group.add_argument(
        '--learning-rate',
        type=float,
        metavar='X',
        help='highest (0.003; 0.0003 with --start-from)',
    )
    group.add_argument('--seed', type=int, default=0, help='says all that is random (%(default)s)')


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(',') if name.strip())


def run(args: argparse.Namespace) -> int:
    """
    Train, print what was found, write what was asked for.

    :param args: parsed arguments
    :returns: exit code 0
    :raises SeqmemError: if something that was given is wrong
    """
    from seqmem_ros.offline.train_arguments import Job
    from seqmem_ros.offline.train_job import run_job

    _check(args)
    quiet = args.json == '-'
    say = (lambda text: None) if quiet else (lambda text: print(text, flush=True))
    values = {name: value for name, value in vars(args).items() if name in Job.fields()}
    try:
        result = run_job(Job(**values), _bar, say)
    except SeqmemError:
        # A checkpoint of other options, or weights that diverged, are nothing to go on from.
        raise
    except BaseException:
        if Path(f'{args.out}.checkpoint').is_file() or _simulated(args).is_file():
            say(f'what was learned is in {args.out}.checkpoint: give --resume to go on')
        raise
    content = {**result.to_json(), 'python': platform.python_version()}
    if quiet:
        print(json.dumps(content, indent=2))
    elif args.json:
        Path(args.json).write_text(json.dumps(content, indent=2) + '\n')
    if args.plot:
        from seqmem_ros.offline.learning_curve import plot_history

        plot_history(result.history, result.model.spec.task, result.title, args.plot)
    return 0


def _simulated(args: argparse.Namespace) -> Path:
    return Path(f'{args.out}.simulated.checkpoint')


def _check(args: argparse.Namespace) -> None:
    """Find out before the work what cannot be."""
    if not (args.bags or args.windows or args.simulate):
        raise SeqmemError('nothing to train on: expected bags, --windows or --simulate STEPS')
    if args.windows and args.bags:
        raise SeqmemError('--windows: expected no bags beside it')
    if Path(args.out).suffix != '.safetensors':
        raise SeqmemError(f'--out: expected a .safetensors file, got {args.out}')
    check_picture('--plot', args.plot)
    check_files(
        {'--out': args.out, '--json': args.json, '--plot': args.plot},
        (*args.bags, *(args.labels or ()), args.windows),
    )


@contextmanager
def _bar(n_steps: int, what: str) -> Any:
    """Show loss and time left where somebody watches."""
    from tqdm import tqdm

    mean = None
    with tqdm(total=n_steps, desc=what, unit=' steps', mininterval=0.5, disable=None) as bar:

        def progress(step: int, loss: float) -> None:
            nonlocal mean
            mean = loss if mean is None else mean + (loss - mean) / 50
            bar.set_postfix(loss=f'{mean:.3f}', refresh=False)
            bar.update(step - bar.n)

        yield progress
