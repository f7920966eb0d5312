"""Several publishers on one topic: contradictions, restarts, and names that nobody needs."""

from collections import Counter

import numpy as np
import pytest

from seqmem_ros.core.conflicts import conflicting
from seqmem_ros.core.filters import Difference
from seqmem_ros.core.filters import Kalman
from seqmem_ros.core.joint_map import MOST_JOINTS
from seqmem_ros.core.joints import JointSample
from seqmem_ros.core.network_estimator import NetworkEstimator
from seqmem_ros.core.options import StreamOptions
from seqmem_ros.core.stream import Stream

STEP_S = 0.01


def test_what_contradicts():
    kept = np.array([1.0, 1.0, 0.0, 3.0, 3.0, 1e4])
    came = np.array([1.0 + 1e-7, 1.1, np.nan, 3.0 + 2 * np.pi, 3.0 + 2 * np.pi, 1e4 + 0.005])
    wraps = np.array([False, False, False, True, False, False])
    expected = [False, True, False, False, True, False]
    assert conflicting(kept, came, wraps).tolist() == expected


def test_of_two_values_for_one_stamp_the_first_is_kept_and_the_second_told(make_sample):
    """As from a broadcaster and a joint_state_publisher that sends zeros beside it."""
    alone, both = Stream(Kalman()), Stream(Kalman())
    for i in range(30):
        real = make_sample(STEP_S * i, [0.5 + 0.01 * i, 0.2, 0.0])
        expected = alone.push(real)
        got = both.push(real)
        assert both.push(make_sample(STEP_S * i, [0.0, 0.0, 0.0])) is None
    np.testing.assert_array_equal(got.velocity, expected.velocity)
    assert both.counts['drop_duplicate_stamp'] == 30
    assert both.counts['value_conflict'] == 60
    assert both.last_event == (
        'expected one position for one stamp, got 0.79 and then 0 for shoulder; the first is '
        'kept: do two publishers send the same joints?'
    )


def test_a_copy_of_a_message_is_no_contradiction(make_sample):
    stream = Stream(Difference())
    for i in range(10):
        position = np.array([0.1 * i, 2.0, -3.0])
        stream.push(make_sample(STEP_S * i, position))
        stream.push(make_sample(STEP_S * i, position.astype(np.float32)))
        stream.push(make_sample(STEP_S * i, [np.nan, 2.0, -3.0]))
    assert stream.counts == Counter(received=30, filling=4, estimated=6, drop_duplicate_stamp=20)
    assert 'came a second time' in stream.last_event


def test_a_shared_joint_is_compared_while_the_others_advance(make_sample):
    stream = Stream(Difference(), StreamOptions(continuous_joints=('b',)))
    for i in range(10):
        stream.push(make_sample(STEP_S * i, [0.1, 0.2], ['a', 'b']))
        shared = 0.2 + (2 * np.pi if i < 5 else 0.3)
        got = stream.push(make_sample(STEP_S * i, [shared, 0.5], ['b', 'c']))
        # The first message with a new joint is not compared with what it has not.
    assert got.names == ('c',)
    assert stream.counts['value_conflict'] == 5
    assert stream.counts['drop_duplicate_stamp'] == 0


@pytest.mark.parametrize('name', ['kalman', 'gru'])
def test_a_publisher_that_starts_over_takes_nobody_with_it(name, make_model, make_sample):
    """Its driver was restarted with a clock of its own; the arm goes on as if alone."""
    estimator = Kalman() if name == 'kalman' else NetworkEstimator(make_model(name))
    options = StreamOptions(max_rejected=3)
    stream, arm_alone, hand_alone = (Stream(estimator, options) for _ in range(3))
    for i in range(60):
        clock_ns = round((100 + STEP_S * i) * 1e9)
        arm = make_sample(50 + STEP_S * i, np.sin([0.1 * i, 0.2 * i]), ['a', 'b'])
        hand_s = 50 + STEP_S * i if i < 20 else 3 + STEP_S * i
        hand = make_sample(hand_s, [np.cos(0.1 * i)], ['c'])
        expected = arm_alone.push(arm, clock_ns)
        got = stream.push(arm, clock_ns)
        assert (got is None) == (expected is None)
        if got is not None:
            np.testing.assert_array_equal(got.velocity, expected.velocity)
        got = stream.push(hand, clock_ns)
        if i < 23:
            continue
        # From the fourth on it is believed, and then it is as if it had just begun.
        expected = hand_alone.push(hand, clock_ns)
        assert (got is None) == (expected is None)
        if got is not None:
            np.testing.assert_array_equal(got.velocity, expected.velocity)
    assert stream.counts['drop_late'] == 3
    assert stream.counts['reset_time_backwards'] == 1
    assert stream.last_event == 'stamps went back by 46.960 s: c'


def test_one_message_from_the_end_of_a_loop_after_the_clock_went_back(make_sample):
    """It is in the future of all that follow, which are believed in the end."""
    stream = Stream(Difference())
    out = []
    for i in range(40):
        out.append(stream.push(make_sample(100 + STEP_S * i, [0.1 * i], ['a']), 10**9 * (100 + i)))
    stream.push(make_sample(100.41, [4.1], ['a']), 10**9)
    for i in range(40):
        estimate = stream.push(make_sample(1 + STEP_S * i, [0.2 * i], ['a']), 10**9 * (2 + i))
    assert estimate.velocity[0] == pytest.approx(20.0)
    assert stream.counts['drop_late'] == 5
    assert stream.counts['reset_time_backwards'] == 1


def test_a_clock_that_trembles_restarts_nothing(make_sample):
    """Two clocks a few milliseconds apart, and a receiver that is set back now and then."""
    stream = Stream(Difference())
    rng = np.random.default_rng(2)
    receive_ns = 10**12
    for i in range(500):
        receive_ns += 10**7 - (6 * 10**6 if rng.random() < 0.1 else 0)
        jitter_s = rng.uniform(-0.02, 0.02)
        stream.push(make_sample(STEP_S * i + jitter_s, [0.0], ['a']), receive_ns)
    assert not [key for key in stream.counts if key.startswith('reset_')]
    assert stream.counts['drop_late'] > 50
    assert stream.counts['estimated'] > 200


@pytest.mark.parametrize('age_s', [-3600.0, 86400.0 * 3650])
def test_the_age_of_a_message_is_no_reason_to_refuse_it(age_s, make_sample):
    stream = Stream(Difference())
    for i in range(10):
        sample = make_sample(STEP_S * i, [0.1 * i], ['a'])
        stream.push(sample, sample.stamp_ns + round(age_s * 1e9))
    assert stream.counts == Counter(received=10, filling=4, estimated=6)


REFUSED = {
    'drop_all_rejected': ([np.nan, np.inf], {}),
    'drop_zero_stamp': ([0.0, 0.0], {'stamp_ns': 0}),
}


@pytest.mark.parametrize('key', REFUSED)
def test_names_in_a_message_that_is_not_used_cost_nothing(key, make_model, make_sample):
    position, changed = REFUSED[key]
    estimator = NetworkEstimator(make_model('gru'))
    stream, plain = Stream(estimator), Stream(estimator)
    for i in range(60):
        sample = make_sample(STEP_S * i, [0.1 * i, 0.0, 1.0])
        got, expected = stream.push(sample), plain.push(sample)
        names = (f'made_up_{i}', f'made_up_{i}_too')
        stamp_ns = changed.get('stamp_ns', sample.stamp_ns)
        assert stream.push(JointSample(stamp_ns, names, np.array(position))) is None
    np.testing.assert_array_equal(got.velocity, expected.velocity)
    assert stream.counts[key] == 60
    assert stream.counts['drop_too_many_joints'] == 0
    # Not a program for more rows than the arm has.
    assert estimator.compile_count == 1


def test_a_joint_that_is_refused_at_first_is_as_new_when_it_comes(make_sample):
    stream, fresh = Stream(Kalman()), Stream(Kalman())
    for i in range(30):
        stream.push(make_sample(STEP_S * i, [0.1 * i], ['a']))
        hand = make_sample(STEP_S * i, [np.nan if i < 9 else 0.2 * i], ['b'])
        got = stream.push(hand)
        expected = fresh.push(hand) if i >= 9 else None
        assert (got is None) == (expected is None)
    np.testing.assert_array_equal(got.velocity, expected.velocity)
    assert MOST_JOINTS == 256


def test_what_the_caller_refuses_is_counted_too():
    stream = Stream(Difference())
    stream.refuse('drop_no_clock', 'no time yet')
    assert stream.counts == Counter(received=1, drop_no_clock=1)
    assert stream.last_event == 'no time yet'


def test_limits_change_while_the_memory_stays(make_sample):
    stream, plain = Stream(Kalman()), Stream(Kalman())
    for i in range(40):
        sample = make_sample(STEP_S * i, [0.01 * i * i], ['a'])
        if i == 10:
            stream.change(StreamOptions(max_gap_s=0.005))
        if i == 12:
            # Two samples were gaps; from here on it is as if nothing had been changed.
            stream.change(StreamOptions())
        got, expected = stream.push(sample), plain.push(sample)
    assert stream.counts['reset_gap'] == 2
    assert got.velocity[0] == pytest.approx(expected.velocity[0], rel=0.2)
    stream.change(StreamOptions(max_velocity_rad_s=0.1))
    assert stream.push(make_sample(STEP_S * 40, [16.0], ['a'])) is None
    assert stream.counts['value_jump'] == 1


def test_limits_of_single_joints_hold_for_the_joint_and_not_for_its_row(make_sample):
    """Joints that come late, and one whose row was taken back, have their own limits."""
    options = StreamOptions(joint_max_velocity=('b: 1.0', 'd: 1.0'), max_rejected=100)
    stream = Stream(Difference(), options)
    for i in range(20):
        stream.push(make_sample(STEP_S * i, [5.0 * i], ['a']))
        stream.push(make_sample(STEP_S * i, [np.nan], ['x']))
        stream.push(make_sample(STEP_S * i, [5.0 * i, 5.0 * i], ['c', 'b']))
        stream.push(make_sample(STEP_S * i, [0.0 if i < 5 else 9.0], ['d']))
    # The first of each has nothing to be compared with.
    assert stream.counts['value_jump'] == 19 + 15
    assert stream.counts['drop_all_rejected'] == 20 + 15
