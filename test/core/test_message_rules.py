"""The rules for one message: lengths, names, stamps, rows and values."""

import numpy as np
import pytest

from seqmem_ros.core.checks import checked_names
from seqmem_ros.core.checks import checked_stamp_ns
from seqmem_ros.core.dropped import Dropped
from seqmem_ros.core.gates import ValueGates
from seqmem_ros.core.joint_map import JointMap
from seqmem_ros.core.joint_map import MAX_REMEMBERED_LISTS
from seqmem_ros.core.joint_map import MOST_JOINTS
from seqmem_ros.core.joints import JointSample
from seqmem_ros.core.options import StreamOptions

ORDER = StreamOptions(assume_joint_order=('x', 'y'))
RECEIPT = StreamOptions(zero_stamp='receive_time')


def sample(names=(), position=0, velocity=0, effort=0, stamp_ns=1):
    """Make a sample from the lengths of its fields."""
    return JointSample(
        stamp_ns, tuple(names), np.zeros(position), np.zeros(velocity), np.zeros(effort)
    )


def dropped(call, *args):
    """Return key and sentence of a refusal."""
    with pytest.raises(Dropped) as drop:
        call(*args)
    return drop.value.key, str(drop.value)


@pytest.mark.parametrize(
    ('given', 'fields', 'options', 'expected'),
    [
        (sample('ab', 2), ('position',), StreamOptions(), ('a', 'b')),
        (sample('ab', 2, 2, 2), ('position',), StreamOptions(), ('a', 'b')),
        (sample('ab', 2, 0, 2), ('position', 'effort'), StreamOptions(), ('a', 'b')),
        (sample((), 2), ('position',), ORDER, ('x', 'y')),
        # The message's own names go first.
        (sample('ab', 2), ('position',), ORDER, ('a', 'b')),
    ],
)
def test_names_for_each_value(given, fields, options, expected):
    assert checked_names(given, fields, options) == expected


@pytest.mark.parametrize(
    ('given', 'fields', 'options', 'key', 'sentence'),
    [
        (
            sample('abc', 2), ('position',), ORDER, 'drop_length_mismatch',
            'position: expected 0 or 3 values, got 2',
        ),
        (
            # A field that nobody reads shows all the same that the message is broken.
            sample('abc', 3, 3, 4), ('position',), ORDER, 'drop_length_mismatch',
            'effort: expected 0 or 3 values, got 4',
        ),
        (
            sample((), 2, 3), ('position',), ORDER, 'drop_length_mismatch',
            'velocity: expected 0 or 2 values, got 3',
        ),
        (
            sample('ab', 0, 2), ('position',), ORDER, 'drop_no_position',
            'position: expected a value for each joint, got none',
        ),
        (
            sample('ab', 2), ('position', 'velocity'), ORDER, 'drop_no_velocity',
            'velocity: expected a value for each joint, got none',
        ),
        (
            sample('ab', 2), ('position', 'effort'), ORDER, 'drop_no_effort',
            'effort: expected a value for each joint, got none',
        ),
        (
            sample(), ('position',), ORDER, 'drop_no_position',
            'position: expected a value for each joint, got none',
        ),
        (
            sample((), 2), ('position',), StreamOptions(), 'drop_no_names',
            'expected names for 2 joints, got none; assume_joint_order (offline: '
            '--assume-joint-order) lists 0: list all, in the order of the message',
        ),
        (
            sample((), 3), ('position',), ORDER, 'drop_no_names',
            'expected names for 3 joints, got none; assume_joint_order (offline: '
            '--assume-joint-order) lists 2: list all, in the order of the message',
        ),
    ],
)  # fmt: skip
def test_messages_that_lack_something(given, fields, options, key, sentence):
    assert dropped(checked_names, given, fields, options) == (key, sentence)


@pytest.mark.parametrize(
    ('stamp_ns', 'receive_ns', 'options', 'expected'),
    [(7, 9, StreamOptions(), 7), (7, 9, RECEIPT, 7), (0, 9, RECEIPT, 9), (-5, None, RECEIPT, -5)],
)
def test_time_of_measurement(stamp_ns, receive_ns, options, expected):
    assert checked_stamp_ns(sample(stamp_ns=stamp_ns), receive_ns, options) == expected


@pytest.mark.parametrize(
    ('receive_ns', 'options'), [(9, StreamOptions()), (None, StreamOptions()), (None, RECEIPT)]
)
def test_messages_without_a_time(receive_ns, options):
    key, sentence = dropped(checked_stamp_ns, sample(stamp_ns=0), receive_ns, options)
    assert key == 'drop_zero_stamp'
    assert sentence == (
        "expected a header stamp, got 0; zero_stamp: 'receive_time' (offline: --zero-stamp) takes "
        'the time of receipt'
    )


def rows_of(joints, names):
    """Return the pairs of index in the message and row."""
    columns, rows = joints.rows(tuple(names))
    return list(zip(columns.tolist(), rows.tolist()))


def test_rows_are_given_as_joints_appear_and_kept_when_lists_change():
    joints = JointMap()
    assert len(joints) == 0
    assert rows_of(joints, 'ba') == [(0, 0), (1, 1)]
    assert rows_of(joints, 'ab') == [(0, 1), (1, 0)]
    assert rows_of(joints, 'cab') == [(0, 2), (1, 1), (2, 0)]
    assert rows_of(joints, 'b') == [(0, 0)]
    assert len(joints) == 3


def test_only_wanted_joints_get_rows():
    joints = JointMap(wanted=('c', 'a'))
    assert rows_of(joints, 'abc') == [(0, 0), (2, 1)]
    assert dropped(joints.rows, ('x', 'y')) == (
        'drop_no_known_joint', 'expected some of the joints a, c, got x, y',
    )  # fmt: skip
    assert len(joints) == 2


def test_a_model_gets_its_joints_in_its_order():
    joints = JointMap(joints=('c', 'a'), wanted=('b',))
    assert rows_of(joints, 'abc') == [(2, 0), (0, 1)]
    assert rows_of(joints, 'cxa') == [(0, 0), (2, 1)]
    assert dropped(joints.rows, ('b', 'c')) == (
        'drop_missing_joint', 'expected 2 joints c, a, missing a',
    )  # fmt: skip
    assert len(joints) == 2


@pytest.mark.parametrize('joints', [JointMap(), JointMap(('a',)), JointMap(wanted=('b',))])
def test_a_name_that_stands_twice(joints):
    for _ in range(2):
        assert dropped(joints.rows, ('b', 'a', 'c', 'a', 'b')) == (
            'drop_duplicate_names', 'expected each joint once, got twice: a, b',
        )  # fmt: skip


def test_sentences_do_not_grow_with_the_message():
    names = tuple(f'j{i:06d}' for i in range(50_000))
    key, sentence = dropped(JointMap(wanted=('arm',)).rows, names)
    assert key == 'drop_no_known_joint'
    assert sentence.endswith('j000014, j000015 and 49984 more')
    # Counting each name in the whole message would take minutes here.
    key, sentence = dropped(JointMap().rows, names + names)
    assert key == 'drop_duplicate_names'
    assert len(sentence) < 300


def test_names_cannot_break_a_line():
    key, sentence = dropped(JointMap(wanted=('arm',)).rows, ('a\nb', 'x' * 5000))
    assert key == 'drop_no_known_joint'
    assert sentence == f'expected some of the joints arm, got a b, {"x" * 80}'


def test_refused_names_leave_no_trace():
    joints = JointMap()
    rows_of(joints, [f'joint_{i}' for i in range(MOST_JOINTS - 1)])
    key, sentence = dropped(joints.rows, ('joint_0', 'new_1', 'new_2'))
    assert key == 'drop_too_many_joints'
    assert sentence == (
        f'expected at most {MOST_JOINTS} different joints, got 2 new ones after '
        f'{MOST_JOINTS - 1}; name those to use in the parameter joints'
    )
    assert len(joints) == MOST_JOINTS - 1
    assert rows_of(joints, ('new_1', 'joint_0')) == [(0, MOST_JOINTS - 1), (1, 0)]
    assert dropped(joints.rows, ('new_2',))[0] == 'drop_too_many_joints'


def test_wanted_joints_are_found_among_any_number():
    joints = JointMap(wanted=('arm',))
    for i in range(3):
        names = [f'joint_{i}_{k}' for k in range(MOST_JOINTS)]
        assert rows_of(joints, [*names, 'arm']) == [(MOST_JOINTS, 0)]


def test_lists_of_names_are_not_all_remembered():
    """Subsets of a few joints make endless different lists."""
    joints = JointMap()
    rng = np.random.default_rng(0)
    names = [f'joint_{i}' for i in range(30)]
    for _ in range(10 * MAX_REMEMBERED_LISTS):
        chosen = rng.permutation(names)[:20].tolist()
        _, rows = joints.rows(tuple(chosen))
        known = dict(zip(chosen, rows))
    assert len(joints) == 30
    assert len(joints._remembered) <= MAX_REMEMBERED_LISTS
    assert all(joints.rows((name,))[1][0] == row for name, row in known.items())


def test_values_to_compute_with():
    gates = ValueGates(StreamOptions(), 4)
    first = np.array([1.0, np.nan, 2.0, -999_999_999.0])
    second = np.array([1.0, 1.0, -np.inf, 0.0])
    np.testing.assert_array_equal(gates.finite(first, second), [True, False, False, True])
    np.testing.assert_array_equal(gates.finite(np.array([1e9, -1e300])), [False, False])


def test_how_far_a_joint_may_have_moved():
    gates = ValueGates(StreamOptions(max_velocity_rad_s=2.0), 4)
    gates.name_rows('abcd')
    rows = np.arange(4)
    difference = np.array([0.2, -0.2, 0.21, -50.0])
    continues = np.array([True, True, True, False])
    near = gates.reachable(rows, difference, np.full(4, 0.1), continues)
    np.testing.assert_array_equal(near, [True, True, False, True])
    gates.use(StreamOptions())
    assert gates.reachable(rows, difference, np.full(4, 0.1), continues).all()


def test_each_joint_may_have_a_limit_of_its_own():
    options = StreamOptions(max_velocity_rad_s=2.0, joint_max_velocity=('b: 50', 'arm:c: 0'))
    gates = ValueGates(options, 4)
    gates.name_rows(('a', 'b', 'arm:c'))
    moved, step_s, yes = np.full(3, 0.3), np.full(3, 0.1), np.full(3, True)
    near = gates.reachable(np.array([0, 1, 2]), moved, step_s, yes)
    np.testing.assert_array_equal(near, [False, True, True])
    near = gates.reachable(np.array([1, 2, 0]), 100 * moved, step_s, yes)
    np.testing.assert_array_equal(near, [False, True, False])


def test_rejections_are_counted_in_a_row_and_joint_by_joint():
    gates = ValueGates(StreamOptions(max_rejected=3), 2)
    both, first = np.array([0, 1]), np.array([0])
    no, yes = np.array([False]), np.array([True])
    assert not gates.exhausted(both, np.array([False, False])).any()
    assert not gates.exhausted(first, no).any()
    gates.resize(4)
    np.testing.assert_array_equal(gates.exhausted(both, np.array([False, True])), [True, False])
    # Both begin again: the first was exhausted, the second had a good value.
    assert not gates.exhausted(both, np.array([False, False])).any()
    assert not gates.exhausted(both, np.array([False, False])).any()
    assert not gates.exhausted(first, yes).any()
    np.testing.assert_array_equal(
        gates.exhausted(np.array([1, 0, 3]), np.array([False, False, False])),
        [True, False, False],
    )
