"""A model over named joints and publishers of some of them each: whole vectors, or nothing."""

from collections import Counter

import numpy as np
import pytest

from seqmem_ros.core.dropped import Dropped
from seqmem_ros.core.dropped import Waiting
from seqmem_ros.core.joints import JointSample
from seqmem_ros.core.merge import VectorMerge
from seqmem_ros.core.network_estimator import NetworkEstimator
from seqmem_ros.core.options import StreamOptions
from seqmem_ros.core.stream import Stream

MS = 1_000_000
STEP_NS = 10 * MS
START_NS = 10**18
ARM, HAND = ('shoulder', 'elbow'), ('wrist',)
JOINTS = (*ARM, *HAND)


@pytest.fixture(scope='module')
def estimators():
    """Share compiled programs between the tests of this file."""
    return {}


@pytest.fixture
def make_stream(estimators, make_model):
    def make(name='named', **options):
        if name not in estimators:
            estimators[name] = NetworkEstimator(make_model(name))
        return Stream(estimators[name], StreamOptions(**options))

    return make


def values(k):
    """Give position and effort of the whole arm at a sample."""
    return np.sin(0.1 * k + np.arange(3)), np.cos(0.2 * k + np.arange(3))


def sample(stamp_ns, names, k):
    at = [JOINTS.index(name) for name in names]
    position, effort = values(k)
    return JointSample(stamp_ns, tuple(names), position[at], effort=effort[at])


def identity_holds(counts):
    dropped = sum(count for key, count in counts.items() if key.startswith('drop_'))
    taken = counts['estimated'] + counts['filling'] + counts['merging']
    return counts['received'] == taken + dropped


def test_parts_of_one_instant_are_as_good_as_a_whole_message(make_stream):
    whole, parts = make_stream(), make_stream()
    for k in range(20):
        stamp_ns = START_NS + k * STEP_NS
        expected = whole.push(sample(stamp_ns, JOINTS, k))
        assert parts.push(sample(stamp_ns, ARM, k)) is None
        got = parts.push(sample(stamp_ns, HAND, k))
        assert (got is None) == (expected is None)
        if got is not None:
            assert got.names == JOINTS
            assert got.stamp_ns == stamp_ns
            np.testing.assert_array_equal(got.velocity, expected.velocity)
            np.testing.assert_array_equal(got.position, values(k)[0])
    assert parts.counts == Counter(received=40, merging=20, filling=4, estimated=16)


def test_each_value_keeps_its_own_stamp_and_enters_once(make_stream):
    """The slowest publisher sets the pace; of the others the newest value is taken."""
    parts, expected_stream = make_stream(), make_stream()
    out = []
    for k in range(40):
        stamp_ns = START_NS + k * STEP_NS
        out.append(parts.push(sample(stamp_ns, ARM, k)))
        if k % 4 == 3:
            out.append(parts.push(sample(stamp_ns + 2 * MS, HAND, k)))
            # What a message would have brought that had the values of that instant.
            expected = expected_stream.push(sample(stamp_ns + 2 * MS, JOINTS, k))
    out = [estimate for estimate in out if estimate is not None]
    assert len(out) == 6
    assert [e.stamp_ns for e in out][-1] == START_NS + 39 * STEP_NS + 2 * MS
    np.testing.assert_array_equal(out[-1].position, expected.position)
    # The steps in time are equal, and so is all that a network over the arm reads.
    np.testing.assert_array_equal(out[-1].velocity, expected.velocity)
    assert parts.counts['merging'] == 40
    assert identity_holds(parts.counts)


def test_parts_that_are_too_far_apart_are_never_a_vector(make_stream):
    stream = make_stream(max_merge_age_s=0.05)
    for k in range(100):
        stamp_ns = START_NS + k * STEP_NS
        assert stream.push(sample(stamp_ns, ARM, k)) is None
        # Its stamps are those of another clock.
        assert stream.push(sample(stamp_ns - 200 * MS, HAND, k)) is None
    assert stream.counts['estimated'] == stream.counts['filling'] == 0
    assert stream.counts['drop_missing_joint'] > 150
    assert stream.last_event == 'expected 3 joints shoulder, elbow, wrist, missing wrist'
    assert identity_holds(stream.counts)


def test_a_joint_that_never_comes_is_named(make_stream):
    stream = make_stream(max_merge_age_s=0.05)
    for k in range(10):
        assert stream.push(sample(START_NS + k * STEP_NS, ARM, k)) is None
    # Six may still be waiting for the hand: 0 to 50 ms.
    assert stream.counts == Counter(received=10, merging=6, drop_missing_joint=4)
    assert stream.last_event == 'expected 3 joints shoulder, elbow, wrist, missing wrist'


def test_of_one_stamp_the_first_value_is_kept(make_stream):
    stream, plain = make_stream(), make_stream()
    for k in range(8):
        stamp_ns = START_NS + k * STEP_NS
        stream.push(sample(stamp_ns, ARM, k))
        assert stream.push(sample(stamp_ns, ARM, k + 50)) is None
        got = stream.push(sample(stamp_ns, HAND, k))
        expected = plain.push(sample(stamp_ns, JOINTS, k))
    np.testing.assert_array_equal(got.velocity, expected.velocity)
    assert stream.counts['drop_duplicate_stamp'] == 8
    assert stream.counts['value_conflict'] == 16


def test_a_part_without_a_value_is_held_and_the_pairs_stay_pairs(make_stream):
    """The arm's next value is taken with the hand's last; then both are of one stamp again."""
    stream, plain = make_stream(), make_stream()
    for k in range(14):
        stamp_ns = START_NS + k * STEP_NS
        arm, expected_sample = sample(stamp_ns, ARM, k), sample(stamp_ns, JOINTS, k)
        if k == 7:
            arm.position[0] = np.nan
        at_arm = stream.push(arm)
        at_hand = stream.push(sample(stamp_ns, HAND, k))
        assert (at_arm is not None) == (k == 8)
        assert (at_hand is None) == (k < 4 or k in (7, 8))
        if k == 7:
            continue
        if k == 8:
            expected_sample.position[2], expected_sample.effort[2] = (v[2] for v in values(7))
        expected = plain.push(expected_sample)
        if k >= 4:
            got = at_arm or at_hand
            assert got.stamp_ns == stamp_ns
            np.testing.assert_array_equal(got.velocity, expected.velocity)
    assert stream.counts['drop_all_rejected'] == stream.counts['drop_late'] == 1
    assert identity_holds(stream.counts)


def test_after_a_gap_of_one_part_the_whole_arm_starts_again(make_stream):
    stream, fresh = make_stream(), make_stream()
    for k in range(60):
        stamp_ns = START_NS + k * STEP_NS
        stream.push(sample(stamp_ns, ARM, k))
        if 10 <= k < 45:
            continue
        got = stream.push(sample(stamp_ns, HAND, k))
        if k >= 45:
            expected = fresh.push(sample(stamp_ns, JOINTS, k))
            assert (got is None) == (expected is None)
    np.testing.assert_array_equal(got.velocity, expected.velocity)
    assert stream.counts['reset_gap'] == 1
    assert stream.last_event == 'expected 3 joints shoulder, elbow, wrist, missing wrist' or (
        stream.last_event.startswith('a gap of 0.36')
    )
    assert identity_holds(stream.counts)


@pytest.mark.parametrize('clock', [None, 'goes on'])
def test_time_that_starts_over_leaves_no_part_behind(clock, make_stream):
    stream, fresh = make_stream(max_rejected=3), make_stream()
    for turn in range(2):
        for k in range(30):
            stamp_ns = START_NS + k * STEP_NS
            receive_ns = None if clock is None else START_NS + (100 * turn + k) * STEP_NS
            stream.push(sample(stamp_ns, HAND, k), receive_ns)
            got = stream.push(sample(stamp_ns, ARM, k), receive_ns)
    for k in range(30):
        expected = fresh.push(sample(START_NS + k * STEP_NS, JOINTS, k))
    assert stream.counts['reset_time_backwards'] == 1
    assert got.stamp_ns == expected.stamp_ns
    if clock is None:
        np.testing.assert_array_equal(got.velocity, expected.velocity)
    assert identity_holds(stream.counts)


def test_one_label_for_parts_of_the_arm(make_stream):
    whole, parts = make_stream('arm_label'), make_stream('arm_label')
    for k in range(9):
        stamp_ns = START_NS + k * STEP_NS
        expected = whole.push(sample(stamp_ns, JOINTS, k))
        parts.push(sample(stamp_ns, ARM, k))
        got = parts.push(sample(stamp_ns, HAND, k))
    assert got.labels == expected.labels
    np.testing.assert_array_equal(got.scores, expected.scores)


def test_merging_can_be_turned_off_and_on(make_stream):
    stream = make_stream(max_merge_age_s=0.0)
    arm, hand = (sample(START_NS, names, 0) for names in (ARM, HAND))
    assert stream.push(arm) is None
    assert stream.counts['drop_missing_joint'] == 1
    stream.change(StreamOptions())
    assert stream.push(arm) is None
    assert stream.push(hand) is None
    assert stream.counts == Counter(received=3, drop_missing_joint=1, merging=1, filling=1)


def test_the_collector_alone():
    merge = VectorMerge(('a', 'b'), StreamOptions(max_merge_age_s=0.1))
    one, two = np.array([1.0]), np.array([2.0])
    with pytest.raises(Waiting):
        merge.add(np.array([0]), 100 * MS, position=one)
    merge.add(np.array([1]), 200 * MS, position=two)
    assert merge.values['position'].tolist() == [1.0, 2.0]
    assert merge.stamp_ns.tolist() == [100 * MS, 200 * MS]
    merge.clear(since_ns=200 * MS)
    with pytest.raises(Waiting):
        merge.add(np.array([0]), 300 * MS, position=one)
    with pytest.raises(Dropped) as drop:
        merge.add(np.array([0]), 300 * MS + 1, position=one)
    assert str(drop.value) == 'expected 2 joints a, b, missing b'
    merge.add(np.array([1]), 250 * MS, position=two)


@pytest.mark.parametrize('clock', ['goes on', 'goes back', 'unknown'])
@pytest.mark.parametrize('partial', [True, False])
def test_time_starts_again_before_the_first_whole_vector(clock, partial, make_stream):
    """Some joints have come, none of them in a step yet, when stamps go back for good."""
    stream = make_stream(max_merge_age_s=1.0)
    stamps_ns = [START_NS + k * STEP_NS for k in range(5)]
    stamps_ns += [START_NS - 10**12 + k * STEP_NS for k in range(20)]
    for k, stamp_ns in enumerate(stamps_ns):
        forward_ns = START_NS + k * STEP_NS
        received_ns = {'goes on': forward_ns, 'goes back': stamp_ns, 'unknown': None}[clock]
        names = ARM if partial or k < 12 else JOINTS
        stream.push(sample(stamp_ns, names, k), received_ns)
        assert identity_holds(stream.counts)
    assert stream.counts['reset_time_backwards'] == 1
    assert '1000.040 s' in stream.events['reset_time_backwards'] or clock == 'goes on'
    assert (stream.counts['estimated'] > 0) == (not partial)
