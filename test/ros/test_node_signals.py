"""The node stops at once when it is told to, in silence and with exit code 0."""

import os
from pathlib import Path
from resource import getrusage
from resource import RUSAGE_CHILDREN
import signal
import time

import pytest

pytest.importorskip('rclpy', reason='rclpy is not installed')

from ros_harness import arm_samples
from ros_harness import TIMEOUT_S

from seqmem_ros.ros.process import NodeProcess

SIGNALS = [signal.SIGINT, signal.SIGTERM]


def cpu_s(pid):
    """Return the processor time of a running process in s."""
    # The name of the program, in parentheses, may hold spaces.
    fields = Path(f'/proc/{pid}/stat').read_text().rpartition(')')[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf('SC_CLK_TCK')


@pytest.mark.parametrize('number', SIGNALS)
@pytest.mark.skipif(not Path('/proc').is_dir(), reason='needs /proc to see its processor time')
def test_while_messages_are_coming_in(harness, number):
    received = harness.collect()
    process = harness.start({'model': 'difference'})
    player = harness.player()
    harness.play(player, arm_samples(20))
    assert harness.spin_until(lambda: len(received) == 16)
    harness.play(player, arm_samples(200, start=20), rate=float('inf'))
    already_s = cpu_s(process.process.pid)
    before = getrusage(RUSAGE_CHILDREN)
    assert process.stop(number, TIMEOUT_S) == 0
    after = getrusage(RUSAGE_CHILDREN)
    whole_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    # Its own work, whatever else the machine does meanwhile.
    assert whole_s - already_s < 1.0
    assert 'Traceback' not in process.output()
    assert 'rror' not in process.output()


@pytest.mark.parametrize('number', SIGNALS)
@pytest.mark.skipif(not Path('/proc').is_dir(), reason='needs /proc to see how far it has come')
@pytest.mark.parametrize('loaded', ['_rclpy_pybind11', 'librmw_fastrtps', '/jaxlib/'])
def test_while_it_is_still_starting(ros_domain, number, loaded):
    with NodeProcess({'model': 'gru'}, domain_id=ros_domain) as process:
        maps = Path(f'/proc/{process.process.pid}/maps')
        deadline_s = time.monotonic() + TIMEOUT_S
        while loaded not in maps.read_text() and time.monotonic() < deadline_s:
            process.check_alive()
            time.sleep(0.001)
        assert process.stop(number, TIMEOUT_S) == 0
        assert 'Traceback' not in process.output()


@pytest.mark.parametrize('number', SIGNALS)
def test_again_and_again_to_the_very_end(harness, number):
    process = harness.start({'model': 'difference'})
    deadline_s = time.monotonic() + TIMEOUT_S
    # What a terminal, a launcher and someone impatient do, up to the end of the interpreter.
    while process.process.poll() is None and time.monotonic() < deadline_s:
        process.process.send_signal(number)
        time.sleep(0.001)
    assert process.process.poll() == 0
    assert 'Traceback' not in process.output()
