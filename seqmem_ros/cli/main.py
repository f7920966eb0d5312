"""
The command ``seqmem``: one subcommand a file, errors in one line.

Exit codes: 0 done; 1 something in what the user gave; 2 wrong usage; 130 interrupted; 143
terminated.
"""

import argparse
from collections.abc import Sequence
import errno
from importlib import import_module
import logging
import os
import signal
import sys

import seqmem_ros
from seqmem_ros.cli.stops import stops_told
from seqmem_ros.core.errors import SeqmemError

# Modules of this package, each with add_parser(subparsers) and run(args) -> int. They must be
# quick to import: what is heavy is imported in run().
COMMANDS = ('convert', 'demo', 'evaluate', 'inspect', 'play', 'record-check', 'train')

# Optional packages, and the extra of this one that brings each.
_EXTRAS = {
    'rosbags': 'offline',
    'lz4': 'offline',
    'backports': 'offline',
    'matplotlib': 'offline',
    'tqdm': 'offline',
    'scipy': 'offline',
    'optax': 'train',
    'h5py': 'convert',
}

_STOPS = {signal.SIGINT: ('interrupted', 130), signal.SIGTERM: ('terminated', 143)}
# A write that finds no room does not say in which file.
_FULL = (errno.ENOSPC, errno.EDQUOT)
_BROKEN_PIPE = 141


def main(argv: Sequence[str] | None = None) -> int:
    """
    Run the command line.

    :param argv: arguments without the program's name; None: those of the process
    :returns: exit code
    """
    try:
        args = make_parser().parse_args(argv)
    except SystemExit as usage:
        return int(usage.code or 0)
    logger = logging.getLogger('seqmem_ros')
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter('seqmem: warning: %(message)s'))
    logger.addHandler(handler)
    with stops_told() as told:
        try:
            code = args.run(args)
            sys.stdout.flush()
            return code
        except BaseException as error:
            return _ended(error, told)
        finally:
            logger.removeHandler(handler)


def _ended(error: BaseException, told: list[int]) -> int:
    """Say in one line why a command has ended; what is a fault of its own is raised again."""
    if told or isinstance(error, KeyboardInterrupt):
        # What a signal raises may come out of NumPy as another error.
        word, code = _STOPS[told[0] if told else signal.SIGINT]
        print(f'seqmem: {word}', file=sys.stderr)
        return code
    if isinstance(error, SeqmemError):
        return _fail(str(error))
    if isinstance(error, ModuleNotFoundError):
        return _fail(_missing(error))
    if isinstance(error, BrokenPipeError):
        # The reader has gone; flushing at exit must not complain either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _BROKEN_PIPE
    if isinstance(error, OSError) and error.filename is not None:
        return _fail(
            f'expected a file that can be read or written, got {error.filename}: {error.strerror}'
        )
    if isinstance(error, OSError) and error.errno in _FULL:
        return _fail(
            f'expected room to write a file, got: {error.strerror}; what is written is cut off'
        )
    raise error


def make_parser() -> argparse.ArgumentParser:
    """
    Build the parser of all subcommands.

    :returns: a parser that puts the chosen command's ``run`` into its result
    """
    parser = argparse.ArgumentParser(
        prog='seqmem',
        description='Sequence models with memory for the joint states of a robot arm.',
        epilog="'seqmem COMMAND --help' explains a command, with examples.",
    )
    parser.add_argument('--version', action='version', version=f'seqmem {seqmem_ros.__version__}')
    subparsers = parser.add_subparsers(title='commands', metavar='COMMAND', required=True)
    for name in COMMANDS:
        import_module(f'seqmem_ros.cli.{name.replace("-", "_")}').add_parser(subparsers)
    return parser


def _fail(message: str) -> int:
    print(f'seqmem: error: {" ".join(message.split())}', file=sys.stderr)
    return 1


def _missing(error: ModuleNotFoundError) -> str:
    package = (error.name or '').partition('.')[0]
    if package in _EXTRAS:
        return f"the package {package} is missing: pip install 'seqmem_ros[{_EXTRAS[package]}]'"
    if package == 'rclpy' or package.endswith('_msgs'):
        return (
            f'the package {package} is missing for {sys.executable}: source a ROS 2 installation '
            "first, or, without one, pip install 'seqmem_ros[ros]'"
        )
    raise error


if __name__ == '__main__':
    sys.exit(main())
