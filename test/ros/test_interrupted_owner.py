"""Whoever starts the node from another program may be stopped: no node is left behind."""

import os
from pathlib import Path
import signal
import subprocess
import sys
import time

import pytest

pytest.importorskip('rclpy', reason='rclpy is not installed')

from ros_harness import TIMEOUT_S

SCRIPT = """
import sys

from ros_harness import arm_samples

from seqmem_ros.ros.live import run_live

samples = [(sample.stamp_ns, sample, '') for sample in arm_samples(6000)]
try:
    run_live(samples, {'model': 'savgol'}, on_progress=lambda _: print('playing', flush=True))
except KeyboardInterrupt:
    sys.exit(130)
"""


def wait_for(done):
    deadline_s = time.monotonic() + TIMEOUT_S
    while not done() and time.monotonic() < deadline_s:
        time.sleep(0.01)
    return done()


def is_running(pid):
    try:
        fields = Path(f'/proc/{pid}/stat').read_text()
    except OSError:
        return False
    # One that has ended but that nobody has waited for is listed, too.
    return fields.rpartition(')')[2].split()[0] not in 'ZX'


@pytest.mark.skipif(not Path('/proc').is_dir(), reason='needs /proc to find the node')
@pytest.mark.parametrize(
    'number, whole_group, exit_code',
    [
        # What Ctrl-C in a terminal does, and kill(1) with each signal.
        (signal.SIGINT, True, 130),
        (signal.SIGINT, False, 130),
        (signal.SIGTERM, False, -signal.SIGTERM),
        (signal.SIGKILL, False, -signal.SIGKILL),
    ],
)
def test_the_node_ends_with_its_owner(ros_domain, number, whole_group, exit_code):
    repository = Path(__file__).parents[2]
    search = [str(repository), str(Path(__file__).parent), os.environ.get('PYTHONPATH', '')]
    with subprocess.Popen(
        [sys.executable, '-c', SCRIPT],
        env=os.environ | {'PYTHONPATH': os.pathsep.join(search)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as owner:
        try:
            assert owner.stdout.readline() == 'playing\n', owner.stderr.read()
            (node,) = Path(f'/proc/{owner.pid}/task/{owner.pid}/children').read_text().split()
            assert is_running(node)
            (os.killpg if whole_group else os.kill)(owner.pid, number)
            _, errors = owner.communicate(timeout=TIMEOUT_S)
            assert errors == ''
            assert owner.returncode == exit_code
            assert wait_for(lambda: not is_running(node))
        finally:
            if wait_for(lambda: owner.poll() is not None) is False:
                owner.kill()
