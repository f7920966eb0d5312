"""The real node as a process of its own, which never outlives its owner."""

from collections.abc import Mapping
import json
import os
from pathlib import Path
import signal
import subprocess
import sys
import tempfile
from threading import Thread
from typing import Any

import seqmem_ros
from seqmem_ros.core.errors import SeqmemError

# A node at work on a busy machine needs a second; one that hangs is to be ended at last.
STOP_TIMEOUT_S = 15.0


class NodeProcess:
    """
    The node as a process of its own; leaving the ``with`` block ends it in any case.

    It ends, too, when the process that started it is gone, however that came about.

    :param parameters: value of each parameter by name
    :param namespace: namespace of the node
    :param domain_id: ROS domain; None: that of this process
    :param remappings: new name of each name
    """

    def __init__(
        self,
        parameters: Mapping[str, Any] | None = None,
        namespace: str = '',
        domain_id: int | None = None,
        remappings: Mapping[str, str] | None = None,
    ) -> None:
        # A file, since a pipe that nobody reads would stop the node once it is full.
        self._output = tempfile.TemporaryFile(prefix='seqmem_node_')
        self.process = subprocess.Popen(
            [
                sys.executable,
                '-m',
                __name__,
                *ros_arguments(parameters or {}, namespace, remappings or {}),
            ],
            env=os.environ
            | environment_on_this_machine(domain_id)
            | {'PYTHONPATH': _python_path()},
            stdin=subprocess.PIPE,
            stdout=self._output,
            stderr=subprocess.STDOUT,
        )

    def __enter__(self) -> 'NodeProcess':
        return self

    def __exit__(self, *exception: object) -> None:
        self.stop()
        self.process.stdin.close()
        self._output.close()

    def output(self) -> str:
        """
        Read what the node has printed so far.

        :returns: standard output and standard error together
        """
        # At a place of its own, since the node writes where this file descriptor stands.
        file = self._output.fileno()
        return os.pread(file, os.fstat(file).st_size, 0).decode(errors='replace')

    def check_alive(self) -> None:
        """
        Make sure that the node still runs.

        :raises SeqmemError: if it ended, with what it printed last
        """
        code = self.process.poll()
        if code is not None:
            lines = self.output().strip().splitlines() or ['nothing']
            raise SeqmemError(
                f'expected the node to run, got exit code {code}; it printed: {lines[-1]}'
            )

    def stop(self, number: int = signal.SIGINT, timeout_s: float = STOP_TIMEOUT_S) -> int:
        """
        Ask the node to stop, and end it if it does not.

        :param number: signal to ask with
        :param timeout_s: time that it has in s
        :returns: its exit code
        """
        try:
            if self.process.poll() is None:
                self.process.send_signal(number)
            return self.process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return self.process.wait()
        finally:
            if self.process.poll() is None:
                self.process.kill()
                self.process.wait()


def ros_arguments(
    parameters: Mapping[str, Any], namespace: str, remappings: Mapping[str, str]
) -> list[str]:
    """
    Write the command line of a ROS node.

    :param parameters: value of each parameter by name
    :param namespace: namespace, empty for none
    :param remappings: new name of each name
    :returns: the arguments
    """
    arguments = ['--ros-args']
    if namespace:
        arguments += ['-r', f'__ns:={namespace}']
    for old, new in remappings.items():
        arguments += ['-r', f'{old}:={new}']
    for name, value in parameters.items():
        # rcl reads the value as YAML, of which JSON is a part that leaves no doubt on types.
        arguments += ['-p', f'{name}:={json.dumps(value)}']
    return arguments


def environment_on_this_machine(domain_id: int | None = None) -> dict[str, str]:
    """
    Say which environment keeps a ROS process from being heard on other machines.

    :param domain_id: ROS domain; None: that of the environment
    :returns: the variables to set
    """
    variables = {'ROS_AUTOMATIC_DISCOVERY_RANGE': 'LOCALHOST'}
    if os.environ.get('ROS_DISTRO') == 'humble':
        # Humble knows only this one; later releases warn when it is set.
        variables['ROS_LOCALHOST_ONLY'] = '1'
    if domain_id is not None:
        variables['ROS_DOMAIN_ID'] = str(domain_id)
    return variables


def _python_path() -> str:
    """Let the child find this very package, wherever it was started from."""
    paths = [str(Path(seqmem_ros.__file__).parents[1]), os.environ.get('PYTHONPATH', '')]
    return os.pathsep.join(filter(None, paths))


def _run_owned() -> int:
    """Run the node until it is told to stop, or until its owner is gone."""
    from seqmem_ros.ros.node import main

    Thread(target=_stop_at_end_of_input, daemon=True).start()
    return main()


def _stop_at_end_of_input() -> None:
    # Nobody writes to this pipe: it ends when the last process that could has ended.
    while os.read(sys.stdin.fileno(), 1):
        pass
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == '__main__':
    sys.exit(_run_owned())
