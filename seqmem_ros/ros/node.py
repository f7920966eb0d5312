"""
The process of the node: ``ros2 run seqmem_ros seqmem_node``.

Exit code 0 after SIGINT, SIGTERM or shutdown, 1 with one line if the node cannot start, 2 for
arguments that it does not know. Everything that may be missing is imported inside
:func:`main`, so that its absence is one line, too.
"""

import argparse
from collections.abc import Sequence
import gc
import os
import re
import signal
import sys
from typing import Any

from seqmem_ros.core.errors import SeqmemError
from seqmem_ros.ros.dependencies import is_dependency
from seqmem_ros.ros.dependencies import missing_dependency
from seqmem_ros.ros.program_cache import keep_programs

SIGNALS = (signal.SIGINT, signal.SIGTERM)
# A network of this size is done before a second thread has woken up. NPROC is what XLA sizes
# its thread pools by.
THREAD_LIMITS = {'NPROC': '1', 'OPENBLAS_NUM_THREADS': '1', 'OMP_NUM_THREADS': '1'}


def main(args: Sequence[str] | None = None) -> int:
    """
    Run the node until it is told to stop.

    :param args: command line; None: that of the process
    :returns: exit code
    """
    arguments = list(sys.argv if args is None else args)
    told = _note_signals()
    for name, value in THREAD_LIMITS.items():
        os.environ.setdefault(name, value)
    keep_programs(os.environ)
    # While everything is loaded, there is nothing for the collector of garbage to find, and it
    # looks at all of it again and again.
    gc.disable()
    try:
        return _run(arguments, told)
    except Exception as error:
        # Told to stop in the middle of it, nothing works any more and nothing is wrong.
        if told:
            return 0
        if isinstance(error, SeqmemError):
            return _complain(error)
        if is_dependency(error):
            return _complain(missing_dependency(error, sys.executable))
        raise
    finally:
        gc.enable()
        # The interpreter gives its handlers back before it ends; the next signal of an
        # impatient launcher would then be the exit code.
        for number in SIGNALS:
            signal.signal(number, signal.SIG_IGN)


def _run(arguments: list[str], told: list[int]) -> int:
    import rclpy
    from rclpy.exceptions import ParameterException
    from rclpy.utilities import remove_ros_args

    from seqmem_ros.ros.lifecycle import SeqmemNode
    from seqmem_ros.ros.log_callers import know_callers

    if told:
        return 0
    know_callers()
    try:
        _refuse_other_arguments(remove_ros_args(arguments)[1:])
        rclpy.init(args=arguments)
        node = SeqmemNode()
    except (RuntimeError, ParameterException) as error:
        # What rcl refuses comes as these, with the places in its sources.
        reason = re.sub(r', at \S+:\d+', '', str(error))
        raise SeqmemError(f'expected valid ROS arguments, got: {reason}') from error
    else:
        return _start_and_spin(node, told)
    finally:
        rclpy.try_shutdown()


def _start_and_spin(node: Any, told: list[int]) -> int:
    import rclpy
    from rclpy.executors import ExternalShutdownException

    from seqmem_ros.ros.executor import MessageFirstExecutor

    executor = MessageFirstExecutor()
    try:
        # A signal before rclpy listened has not ended the context.
        if node.autostart and not told and not node.start():
            return 0 if told else 1
        gc.enable()
        executor.add_node(node)
        while rclpy.ok() and not told:
            executor.spin_once()
    except ExternalShutdownException:
        pass
    finally:
        executor.shutdown()
        node.destroy_node()
    return 0


def _refuse_other_arguments(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(
        prog='seqmem_node',
        description='Estimate joint velocities, or labels, from joint_states. Everything is '
        'set by ROS parameters, as in --ros-args -p model:=lstm.',
    )
    parser.parse_args(arguments)


def _complain(sentence: object) -> int:
    print('seqmem: ' + ' '.join(str(sentence).split()), file=sys.stderr)
    return 1


def _note_signals() -> list[int]:
    """Collect signals: an interrupt in the midst of an import can crash what is imported."""
    told: list[int] = []
    for number in SIGNALS:
        signal.signal(number, lambda number, frame: told.append(number))
    return told


if __name__ == '__main__':
    sys.exit(main())
