"""Signals that ask to stop, while processes start."""

from multiprocessing import active_children
from pathlib import Path
import signal
import time

import pytest

from seqmem_ros.offline.bags import Selection
from seqmem_ros.offline.held_stops import stops_held
from seqmem_ros.offline.read_ahead import reading_ahead

BAG = Path(__file__).parents[2] / 'seqmem_ros' / 'data' / 'kr300_a'
DEADLINE_S = 60.0


class Told(Exception):
    """What a signal becomes here."""


@pytest.fixture(params=[signal.SIGINT, signal.SIGTERM])
def number(request):
    def tell(number, frame):
        raise Told(number)

    before = signal.signal(request.param, tell)
    yield request.param
    signal.signal(request.param, before)


def test_a_stop_that_comes_meanwhile_is_told_afterwards(number):
    done = []
    with pytest.raises(Told) as told:
        with stops_held():
            signal.raise_signal(number)
            done.append('what was begun')
        done.append('nothing behind it')
    assert told.value.args == (number,) and done == ['what was begun']
    # Afterwards they come as before.
    with pytest.raises(Told):
        signal.raise_signal(number)


def test_what_was_held_before_stays_held(number):
    signal.pthread_sigmask(signal.SIG_BLOCK, (number,))
    try:
        with stops_held():
            pass
        signal.raise_signal(number)
        assert signal.sigtimedwait((number,), 0).si_signo == number
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, (number,))


def test_a_stop_that_comes_while_a_reader_starts_ends_the_reader_too(number):
    """Whoever plays a bag has then not read anything of it yet."""
    signal.pthread_sigmask(signal.SIG_BLOCK, (number,))
    signal.raise_signal(number)
    with pytest.raises(Told):
        try:
            with reading_ahead(BAG, Selection(), print):
                signal.pthread_sigmask(signal.SIG_UNBLOCK, (number,))
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, (number,))
    assert active_children() == []


@pytest.mark.skipif(not Path('/proc/self/status').exists(), reason='this system has no /proc')
def test_a_reader_is_deaf_to_interrupts_and_hears_that_it_shall_end():
    with reading_ahead(BAG, Selection(), print):
        (reader,) = active_children()
        end_s = time.monotonic() + DEADLINE_S
        while held_by(reader.pid) != {signal.SIGINT}:
            assert time.monotonic() < end_s, held_by(reader.pid)
            time.sleep(0.01)


def held_by(pid):
    """Read what a process holds back."""
    lines = Path(f'/proc/{pid}/status').read_text().splitlines()
    (mask,) = (int(line.split()[1], 16) for line in lines if line.startswith('SigBlk:'))
    return {number for number in signal.Signals if mask >> number - 1 & 1}
