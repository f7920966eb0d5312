"""The real node over the real middleware: what comes out for what goes in."""

import numpy as np
import pytest

pytest.importorskip('rclpy', reason='rclpy is not installed')

from builtin_interfaces.msg import Time
from ros_harness import arm_samples
from ros_harness import NAMES
from ros_harness import PERIOD_NS
from ros_harness import stamps_ns
from ros_harness import START_NS
from sensor_msgs.msg import JointState
from std_msgs.msg import Header
from std_srvs.srv import Trigger

from seqmem_ros.core.joints import JointSample

FILTER = {'model': 'difference'}


def backward_difference(samples: list[JointSample]) -> np.ndarray:
    position = np.array([s.position for s in samples])
    return np.diff(position, axis=0) * 1e9 / PERIOD_NS


def test_one_estimate_a_message_once_the_window_is_full(harness):
    received = harness.collect()
    harness.start(FILTER)
    samples = arm_samples(40)
    harness.play(harness.player(), samples)
    assert harness.spin_until(lambda: len(received) == 36), len(received)
    assert stamps_ns(received) == [s.stamp_ns for s in samples[4:]]
    assert {m.header.frame_id for m in received} == {'base'}
    assert {tuple(m.name) for m in received} == {NAMES}
    expected = backward_difference(samples)[3:]
    np.testing.assert_allclose([m.velocity for m in received], expected, rtol=1e-9, atol=1e-9)
    np.testing.assert_array_equal(
        [m.position for m in received], [s.position for s in samples[4:]]
    )
    assert all(len(m.effort) == 0 for m in received)


def test_the_header_is_that_of_the_input_bit_for_bit(harness):
    received = harness.collect()
    harness.start(FILTER)
    player = harness.player()
    headers = [
        Header(stamp=Time(sec=7, nanosec=nanosec), frame_id=f'frame {nanosec} é')
        for nanosec in (1, 2_000_003, 13_000_005, 17_000_007, 29_000_011, 31_000_013)
    ]
    for header in headers:
        player._publisher.publish(JointState(header=header, name=['a'], position=[0.5]))
    assert harness.spin_until(lambda: len(received) == 2)
    assert [m.header for m in received] == headers[4:]


@pytest.mark.parametrize('reliable', [True, False])
def test_a_burst_of_messages_is_used_to_the_last_from_either_kind_of_publisher(harness, reliable):
    received = harness.collect()
    harness.start(FILTER, qos={})
    player = harness.player(reliable=reliable)
    samples = arm_samples(4 + 12)
    harness.play(player, samples[:4])
    harness.play(player, samples[4:], rate=float('inf'))
    assert harness.spin_until(lambda: len(received) == 12), len(received)
    assert stamps_ns(received) == [s.stamp_ns for s in samples[4:]]


def test_a_position_that_is_not_a_number_never_comes_out(harness):
    received = harness.collect()
    harness.start(FILTER)
    samples = arm_samples(30)
    for k, bad in ((10, np.nan), (11, np.inf), (20, -np.inf)):
        samples[k].position[1] = bad
    samples[15].position[:] = np.nan
    harness.play(harness.player(), samples)
    assert harness.spin_until(lambda: len(received) == 25), len(received)
    by_stamp = dict(zip(stamps_ns(received), received))
    for k in (10, 11, 20):
        assert by_stamp[samples[k].stamp_ns].name == ['shoulder', 'wrist']
    assert samples[15].stamp_ns not in by_stamp
    for message in received:
        assert np.isfinite([*message.position, *message.velocity]).all()
        assert len(message.name) == len(message.position) == len(message.velocity)


def test_publishers_of_some_joints_each_are_kept_apart(harness):
    received = harness.collect()
    harness.start(FILTER)
    arm = arm_samples(20, ('shoulder', 'elbow'))
    hand = [
        JointSample(s.stamp_ns + PERIOD_NS // 2, ('finger',), np.array([0.001 * k * k]))
        for k, s in enumerate(arm)
    ]
    both = [sample for pair in zip(arm, hand) for sample in pair]
    harness.play(harness.player(), both)
    assert harness.spin_until(lambda: len(received) == 32), len(received)
    fingers = [m for m in received if list(m.name) == ['finger']]
    expected = backward_difference(hand)[3:]
    np.testing.assert_allclose([m.velocity for m in fingers], expected, rtol=1e-9)
    assert {tuple(m.name) for m in received} == {('shoulder', 'elbow'), ('finger',)}


def test_only_the_joints_asked_for_are_estimated(harness):
    received = harness.collect()
    harness.start(FILTER | {'joints': ['wrist']})
    harness.play(harness.player(), arm_samples(6))
    assert harness.spin_until(lambda: len(received) == 2)
    assert {tuple(m.name) for m in received} == {('wrist',)}


def test_stamps_that_start_over_restart_the_memory(harness):
    received = harness.collect()
    process = harness.start(FILTER)
    player = harness.player()
    first = arm_samples(20, start=1000)
    again = arm_samples(30)
    harness.play(player, first + again)
    assert harness.spin_until(lambda: stamps_ns(received)[-1:] == [again[-1].stamp_ns])
    early = [s for s in stamps_ns(received) if s < first[0].stamp_ns]
    # None across the break: a full window of the new time comes first.
    assert min(early) >= again[4].stamp_ns
    assert len(stamps_ns(received)) - len(early) == 16
    assert process.output().count('reset_time_backwards') == 1


def test_a_message_without_a_stamp_is_dropped_or_stamped_on_receipt(harness):
    dropped = harness.collect('/seqmem/joint_states')
    stamped = harness.collect('/other/seqmem/joint_states')
    harness.start(FILTER)
    harness.start(
        FILTER | {'zero_stamp': 'receive_time'},
        namespace='/other',
        remappings={'joint_states': '/joint_states'},
    )
    player = harness.player(nodes=('/seqmem', '/other/seqmem'))
    before_ns = harness.node.get_clock().now().nanoseconds
    harness.play(player, [JointSample(0, ('a',), np.array([0.1]))] * 8)
    assert harness.spin_until(lambda: len(stamped) == 4), len(stamped)
    assert before_ns < stamps_ns(stamped)[0] < stamps_ns(stamped)[-1]
    assert {m.header.frame_id for m in stamped} == {'base'}
    assert dropped == []


def test_reset_starts_the_window_again(harness):
    received = harness.collect()
    process = harness.start(FILTER)
    player = harness.player()
    samples = arm_samples(20)
    harness.play(player, samples[:10])
    assert harness.spin_until(lambda: len(received) == 6)
    answer = harness.call(Trigger, '/seqmem/reset')
    assert answer.success
    assert answer.message == 'memory cleared; the next estimate comes after 5 samples'
    harness.play(player, samples[10:])
    assert harness.spin_until(lambda: len(received) == 12), len(received)
    assert stamps_ns(received)[6:] == [s.stamp_ns for s in samples[14:]]
    assert process.output().count('reset on request') == 1
    assert START_NS == samples[0].stamp_ns
