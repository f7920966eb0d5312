"""Who sends which joints, told from the numbers of the messages."""

import pytest

pytest.importorskip('rclpy', reason='rclpy is not installed')

from seqmem_ros.ros.inputs import message_number
from seqmem_ros.ros.publishers import MOST_GROUPS
from seqmem_ros.ros.publishers import PublisherWatch
from seqmem_ros.ros.publishers import REPORTS_KEPT

ARM, HAND = ('a', 'b'), ('c',)


def shared(messages):
    watch = PublisherWatch()
    for names, number in messages:
        watch.note(names, number)
    return watch.shared_joints()


def test_a_publisher_alone_and_publishers_of_different_joints_share_nothing():
    assert shared([(ARM, k) for k in range(20)]) == []
    assert shared([(names, k) for k in range(20) for names in (ARM, HAND)]) == []
    # One that sends now these, now those joints.
    assert shared([(ARM if k % 2 else ('b', 'c'), k) for k in range(20)]) == []


@pytest.mark.parametrize('ahead', [0, -7, 1000])
def test_two_publishers_of_the_same_joints_do_not_count_alike(ahead):
    messages = [(ARM, k + offset) for k in range(5) for offset in (0, ahead)]
    assert shared(messages) == ['a', 'b']


def test_one_joint_in_two_lists_is_enough():
    messages = [m for k in range(5) for m in ((ARM, k), (('b', 'c'), k + 100))]
    assert shared([*messages, (('d',), 1), (('d',), 2)]) == ['a', 'b', 'c']
    # Known apart at first, and then seen together.
    messages = [m for k in range(5) for m in ((ARM, k), (HAND, k), (('b', 'c'), k + 50))]
    assert shared(messages) == ['a', 'b', 'c']


def test_a_publisher_that_is_restarted_is_none_beside_itself():
    assert shared([(ARM, k) for k in [*range(50, 60), *range(10)]]) == []


def test_without_numbers_lists_that_overlap_are_told():
    assert shared([(ARM, None)] * 5) == []
    assert shared([(ARM, None), (('b', 'c'), None)]) == ['a', 'b', 'c']
    assert message_number({}) is None
    assert message_number({'publication_sequence_number': 2**64 - 1}) is None
    assert message_number({'publication_sequence_number': 3}) == 3


def test_what_was_long_ago_is_forgotten():
    watch = PublisherWatch()
    for k in range(6):
        watch.note(ARM, k % 2)
    told = [watch.shared_joints() for _ in range(REPORTS_KEPT + 1)]
    assert told == [['a', 'b']] * REPORTS_KEPT + [[]]


def test_lists_without_end_do_not_fill_the_memory():
    watch = PublisherWatch()
    for k in range(10 * MOST_GROUPS):
        watch.note((f'joint_{k}',), k)
    assert len(watch._group_of) <= MOST_GROUPS
