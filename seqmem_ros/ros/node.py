"""
The process of the node: ``ros2 run seqmem_ros seqmem_node``.

Exit code 0 after SIGINT, SIGTERM or shutdown, 1 with one line if the node cannot start, 2 for
arguments that it does not know. Everything that may be missing is imported inside
:func:`main`, so that its absence is one line, too.
"""

import argparse
from collections.abc import Sequence
import os
import re
import signal
import sys
from typing import Any

from seqmem_ros.core.errors import SeqmemError
from seqmem_ros.ros.dependencies import is_dependency
from seqmem_ros.ros.dependencies import missing_dependency

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
    _interrupt_on_first_signal()
    for name, value in THREAD_LIMITS.items():
        os.environ.setdefault(name, value)
    try:
        return _run(arguments)
    except KeyboardInterrupt:
        return 0
    except ImportError as error:
        if not is_dependency(error):
            raise
        return _complain(missing_dependency(error, sys.executable))


def _run(arguments: list[str]) -> int:
    import rclpy
    from rclpy.exceptions import ParameterException
    from rclpy.utilities import remove_ros_args

    from seqmem_ros.ros.lifecycle import SeqmemNode

    try:
        _refuse_other_arguments(remove_ros_args(arguments)[1:])
        rclpy.init(args=arguments)
        node = SeqmemNode()
    except SeqmemError as error:
        return _complain(error)
    except (RuntimeError, ParameterException) as error:
        # What rcl refuses comes as these, with the places in its sources.
        reason = re.sub(r', at \S+:\d+', '', str(error))
        return _complain(f'expected valid ROS arguments, got: {reason}')
    else:
        return _start_and_spin(node)
    finally:
        rclpy.try_shutdown()


def _start_and_spin(node: Any) -> int:
    import rclpy
    from rclpy.executors import ExternalShutdownException
    from rclpy.executors import SingleThreadedExecutor

    try:
        if node.autostart and not node.start():
            return 1
        executor = SingleThreadedExecutor()
        executor.add_node(node)
        while rclpy.ok():
            executor.spin_once()
    except ExternalShutdownException:
        pass
    finally:
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


def _interrupt_on_first_signal() -> None:
    """Let the first SIGINT or SIGTERM interrupt, and no later one disturb the way out."""
    told = False

    def interrupt(number: int, frame: Any) -> None:
        nonlocal told
        if not told:
            told = True
            raise KeyboardInterrupt

    signal.signal(signal.SIGINT, interrupt)
    signal.signal(signal.SIGTERM, interrupt)


if __name__ == '__main__':
    sys.exit(main())
