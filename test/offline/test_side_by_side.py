"""Tasks in processes side by side."""

import os
from pathlib import Path
import signal
import subprocess
import sys
import time

import pytest

from seqmem_ros.core.errors import SeqmemError
from seqmem_ros.offline.side_by_side import side_by_side

DEADLINE_S = 60.0


def cores_once_both_are_there(task):
    """Say which cores this process may use, as soon as the other one has begun."""
    mine, other = (Path(name) for name in task)
    mine.touch()
    end_s = time.monotonic() + DEADLINE_S
    while not other.exists():
        assert time.monotonic() < end_s, 'the other process has not begun'
        time.sleep(0.01)
    return os.sched_getaffinity(0)


def root_of(number):
    """Fail in a way that is told, or in one that is a fault, or not at all."""
    if number < 0:
        raise SeqmemError(f'expected 0 or more, got {number}')
    return [0, 1, 4].index(number)


@pytest.mark.skipif(not hasattr(os, 'sched_setaffinity'), reason='this system pins no process')
@pytest.mark.parametrize('a_core_each', [True, False])
def test_processes_run_side_by_side_and_keep_to_a_core_where_asked(tmp_path, a_core_each):
    files = str(tmp_path / 'one'), str(tmp_path / 'two')
    tasks = [files, files[::-1]]
    done = dict(side_by_side(cores_once_both_are_there, tasks, 2, a_core_each=a_core_each))
    allowed = os.sched_getaffinity(0)
    assert list(done) == tasks
    if not a_core_each:
        assert list(done.values()) == [allowed] * 2
        return
    one, two = done.values()
    assert len(one) == len(two) == 1
    assert len(one | two) == min(2, len(allowed))
    assert one | two <= allowed


def test_outcomes_and_errors_come_in_the_order_of_the_tasks():
    told = []
    done = list(side_by_side(root_of, [4, -2, 0, 1], 2, told.append))
    assert [task for task, _ in done] == [4, -2, 0, 1]
    assert [outcome for _, outcome in done if isinstance(outcome, int)] == [2, 0, 1]
    assert str(done[1][1]) == 'expected 0 or more, got -2'
    assert told == [1, 1, 1, 1]


def test_a_fault_is_raised():
    with pytest.raises(ValueError, match='5 is not in list'):
        list(side_by_side(root_of, [0, 5], 2))


def end_now(_):
    """End as a process does that the system kills."""
    os.kill(os.getpid(), signal.SIGKILL)


def test_a_process_that_is_killed_is_told():
    said = 'a process was ended from outside before it was done, as for lack of memory: try fewer'
    outcomes = [outcome for _, outcome in side_by_side(end_now, [1, 2], 2)]
    assert all(isinstance(outcome, SeqmemError) for outcome in outcomes)
    assert all(said in str(outcome) for outcome in outcomes)


def held_back(_):
    """Say what this process does not hear."""
    return signal.pthread_sigmask(signal.SIG_BLOCK, ())


def test_processes_are_deaf_to_interrupts_and_hear_that_they_shall_end():
    assert list(side_by_side(held_back, [1, 2], 2)) == [(1, {signal.SIGINT}), (2, {signal.SIGINT})]


def wait_for_ever(file):
    """Say who this is, and stay."""
    Path(file).write_text(str(os.getpid()))
    while True:
        time.sleep(0.1)


def is_there(pid):
    """Tell whether a process runs; one that has ended may still have a parent to hear of it."""
    try:
        return Path(f'/proc/{pid}/stat').read_text().rpartition(')')[2].split()[0] != 'Z'
    except OSError:
        return False


@pytest.mark.skipif(not Path('/proc/self/stat').exists(), reason='this system has no /proc')
@pytest.mark.parametrize('number', [signal.SIGKILL, signal.SIGTERM])
def test_processes_end_with_whoever_started_them(tmp_path, number):
    files = [tmp_path / 'one', tmp_path / 'two']
    code = (
        f'import sys; sys.path.insert(0, {str(Path(__file__).parent)!r})\n'
        'from seqmem_ros.offline.side_by_side import side_by_side\n'
        'from test_side_by_side import wait_for_ever\n'
        f'list(side_by_side(wait_for_ever, {[str(file) for file in files]}, 2))\n'
    )
    owner = subprocess.Popen([sys.executable, '-c', code])
    try:
        pids = [int(text_of(file)) for file in files]
        assert all(is_there(pid) for pid in pids)
        owner.send_signal(number)
        owner.wait(DEADLINE_S)
        end_s = time.monotonic() + DEADLINE_S
        while any(is_there(pid) for pid in pids):
            assert time.monotonic() < end_s, 'a process has outlived its owner'
            time.sleep(0.01)
    finally:
        owner.kill()
        owner.wait()


def text_of(file):
    """Wait until somebody has written."""
    end_s = time.monotonic() + DEADLINE_S
    while not (file.exists() and file.read_text()):
        assert time.monotonic() < end_s, 'the process has not begun'
        time.sleep(0.01)
    return file.read_text()
