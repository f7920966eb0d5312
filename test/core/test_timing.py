"""Which samples are new, which are late, and when time itself starts again."""

import numpy as np
import pytest

from seqmem_ros.core.dropped import Dropped
from seqmem_ros.core.options import StreamOptions
from seqmem_ros.core.timing import TimeRules
from seqmem_ros.core.timing import TimeStartedAgain

S = 1_000_000_000
MS = 1_000_000


class Clocked:
    """Rules with the last stamps of some joints, as a stream keeps them."""

    def __init__(self, n_joints=2, last_ns=None, **options):
        self.rules = TimeRules(StreamOptions(**options), n_joints)
        self.last_ns = np.zeros(n_joints, dtype=np.int64)
        self.seen = np.zeros(n_joints, dtype=bool)
        if last_ns is not None:
            self.last_ns[:], self.seen[:] = last_ns, True

    def push(self, stamp_ns, receive_ns=None, rows=None, finite=True):
        """Admit a message; returns newer and gap, or the name of what was raised."""
        rows = np.arange(len(self.last_ns)) if rows is None else np.array(rows)
        try:
            newer, gap, again = self.rules.admit(
                stamp_ns, receive_ns, rows, self.last_ns[rows], self.seen[rows]
            )
        except Dropped as drop:
            return drop.key, str(drop)
        except TimeStartedAgain as again:
            return 'again', str(again)
        if again is not None:
            return 'again', again.tolist()
        taken = rows[newer & finite]
        self.last_ns[taken], self.seen[taken] = stamp_ns, True
        return newer.tolist(), gap.tolist()


def test_new_joints_and_newer_stamps_advance():
    time = Clocked()
    assert time.push(50 * S) == ([True, True], [False, False])
    assert time.push(50 * S + 1) == ([True, True], [False, False])


def test_a_gap_is_longer_than_its_limit_joint_by_joint():
    time = Clocked(max_gap_s=0.25)
    time.push(50 * S)
    time.push(50 * S + 10 * MS, rows=[1])
    assert time.push(50 * S + 260 * MS) == ([True, True], [True, False])
    assert time.push(50 * S + 510 * MS) == ([True, True], [False, False])
    assert time.push(50 * S + 760 * MS + 1) == ([True, True], [True, True])


def test_the_same_stamp_comes_a_second_time():
    time = Clocked(last_ns=50 * S)
    assert time.push(50 * S, 70 * S) == (
        'drop_duplicate_stamp', f'stamp {50 * S} ns came a second time',
    )  # fmt: skip


def test_a_straggler_is_late():
    time = Clocked(last_ns=50 * S)
    for i in range(20):
        assert time.push(50 * S - 5 * MS - i, 70 * S + i) == (
            'drop_late', 'late by 0.005000 s against the last stamp',
        )  # fmt: skip


def test_lateness_is_measured_against_the_newest_joint_of_the_message():
    time = Clocked(last_ns=[50 * S, 50 * S + 20 * MS])
    assert time.push(50 * S - 10 * MS, 70 * S)[1] == 'late by 0.030000 s against the last stamp'


@pytest.mark.parametrize('back_s', [0.2, 3.0, 1e6])
def test_a_clock_that_goes_back_with_the_stamps_starts_again(back_s):
    time = Clocked(last_ns=round((2e6 + 50) * S))
    time.push(round((2e6 + 50.01) * S), 70 * S)
    stamp_ns = round((2e6 + 50.01 - back_s) * S)
    assert time.push(stamp_ns, 60 * S) == ('again', f'stamps went back by {back_s:.3f} s')


def test_without_a_clock_stamps_alone_decide():
    time = Clocked(last_ns=50 * S)
    assert time.push(49 * S)[0] == 'again'
    assert Clocked(last_ns=50 * S).push(50 * S - 99 * MS)[0] == 'drop_late'


def test_within_the_tolerance_a_clock_that_goes_back_makes_messages_late_only():
    time = Clocked(last_ns=50 * S, clock_jump_tolerance_s=1.0)
    time.push(50 * S + 1, 70 * S)
    assert time.push(49 * S + 1, 60 * S)[0] == 'drop_late'
    assert time.push(49 * S, 50 * S)[0] == 'again'


def test_late_messages_in_a_row_are_believed_after_so_many():
    time = Clocked(last_ns=50 * S, max_rejected=3)
    out = [time.push(10 * S + i * MS, 70 * S + i * MS)[0] for i in range(4)]
    assert out == ['drop_late'] * 3 + ['again']


def test_late_messages_out_of_order_are_no_source_that_started_over():
    time = Clocked(last_ns=50 * S, max_rejected=3)
    stamps = [10, 9, 8, 7, 6, 5, 4, 4, 4, 4, 4]
    out = [time.push(stamp * S, 70 * S + i)[0] for i, stamp in enumerate(stamps)]
    assert out == ['drop_late'] * len(stamps)


def test_stragglers_between_messages_in_time_stay_late():
    time = Clocked(last_ns=50 * S, max_rejected=3)
    for i in range(20):
        assert time.push(50 * S + (i + 1) * MS, 70 * S + i * MS)[0] == [True, True]
        assert time.push(40 * S + i * MS, 70 * S + i * MS)[0] == 'drop_late'


@pytest.mark.parametrize('receive', ['clock goes on', 'clock goes back', 'no clock'])
@pytest.mark.parametrize('case', ['never finite', 'new joint', 'restarted joint'])
def test_a_joint_without_a_last_stamp_hides_no_loop(case, receive):
    """Joints that the memory does not know are no reason to go on with those that it knows."""
    time = Clocked(3, max_rejected=3)
    finite = np.array([True, True, case != 'never finite'])
    rows = [0, 1] if case == 'new joint' else [0, 1, 2]
    for i in range(20):
        time.push((50 + i) * S, (70 + i) * S, rows, finite[: len(rows)])
    if case == 'restarted joint':
        time.seen[2] = False
    clock_s = {'clock goes on': 90, 'clock goes back': 1, 'no clock': None}[receive]
    for i in range(6):
        receive_ns = None if clock_s is None else (clock_s + i) * S
        outcome = time.push((3 + i) * S, receive_ns, [0, 1, 2], finite)
        if outcome[0] == 'again':
            break
    assert outcome[0] == 'again'
    # Where the clock tells, the first message is enough.
    assert i == (3 if receive == 'clock goes on' else 0)


@pytest.mark.parametrize('offset_ms', [0, -1, 3])
def test_two_publishers_that_start_over_are_believed(offset_ms):
    """An arm and a hand with stamps of the same instants, replayed by one looping player."""
    time = Clocked(2, max_rejected=3)

    def play(start_ns, receive_ns, n):
        outcomes = []
        for i in range(n):
            t = i * 10 * MS
            outcomes.append(time.push(start_ns + t, receive_ns + t, [0])[0])
            hand_ns = start_ns + t + offset_ms * MS
            outcomes.append(time.push(hand_ns, receive_ns + t, [1])[0])
        return outcomes

    play(50 * S, 70 * S, 5)
    assert 'again' in play(50 * S - 5 * S, 80 * S, 8)


def test_a_publisher_in_time_does_not_hide_another_that_started_over():
    time = Clocked(2, last_ns=50 * S, max_rejected=3)
    outcomes = []
    for i in range(6):
        time.push(50 * S + (i + 1) * MS, 70 * S + i * MS, [0])
        outcomes.append(time.push(20 * S + i * MS, 70 * S + i * MS, [1])[0])
    assert outcomes[:4] == ['drop_late'] * 3 + ['again']


def test_a_joint_that_two_publishers_share_does_not_start_again():
    """The second publisher is always behind on the shared joint, and goes on with its own."""
    time = Clocked(3, clock_jump_tolerance_s=0.1, max_rejected=3)
    for i in range(1, 30):
        t = 50 * S + 10 * MS * i
        assert time.push(t, 70 * S + i, [0, 1])[0] == [True, True]
        behind = time.push(t - 300 * MS, 70 * S + i, [1, 2])
        assert behind == ([False, True], [False, False])


def test_growth_keeps_what_is_known():
    time = Clocked(2, last_ns=50 * S, max_rejected=3)
    for i in range(3):
        assert time.push(10 * S + i, 70 * S)[0] == 'drop_late'
    time.rules.resize(8)
    time.last_ns, time.seen = np.pad(time.last_ns, (0, 6)), np.pad(time.seen, (0, 6))
    assert time.push(10 * S + 9, 70 * S, [0, 7])[0] == 'again'


@pytest.mark.parametrize('name', ['max_gap_s', 'clock_jump_tolerance_s'])
def test_a_duration_for_ever_is_possible(name):
    time = Clocked(last_ns=-(2**31) * S, **{name: 1e300})
    assert time.push(2**31 * S) == ([True, True], [name != 'max_gap_s'] * 2)
    assert time.push(-(2**31) * S)[0] == ('drop_late' if name != 'max_gap_s' else 'again')
