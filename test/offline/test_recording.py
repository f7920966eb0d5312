"""Recordings as arrays: order by name, absence, faults."""

import numpy as np
import pytest

from seqmem_ros.core.joints import JointSample
from seqmem_ros.core.options import StreamOptions
from seqmem_ros.offline.health import check_health
from seqmem_ros.offline.recording import JointTable
from seqmem_ros.offline.recording import RecordingBuilder

NAN = float('nan')


def build(samples, options=None):
    builder = RecordingBuilder(options or StreamOptions())
    for record_ns, sample in samples:
        builder.add(record_ns, sample)
    return builder.build()


def test_joints_are_matched_by_name_and_may_come_and_go():
    recording = build(
        [
            (11, JointSample(1, ('a', 'b'), np.array([1.0, 2.0]), np.array([10.0, 20.0]))),
            (12, JointSample(2, ('b', 'a'), np.array([4.0, 3.0]))),
            (13, JointSample(3, ('grip',), np.array([5.0]))),
        ]
    )
    assert recording.names == ('a', 'b', 'grip')
    expected = [[1.0, 2.0, NAN], [3.0, 4.0, NAN], [NAN, NAN, 5.0]]
    np.testing.assert_array_equal(recording.position, expected)
    np.testing.assert_array_equal(recording.velocity, [[10.0, 20.0, NAN], [NAN] * 3, [NAN] * 3])
    assert np.isnan(recording.effort).all() and recording.effort.shape == (3, 3)


def test_without_a_stamp_the_record_time_counts():
    recording = build([(7, JointSample(0, ('a',), np.zeros(1))), (9, JointSample(8, ('a',)))])
    assert recording.time_ns.tolist() == [7, 8]


def test_the_options_choose_joints_and_name_the_nameless():
    sample = JointSample(1, (), np.array([1.0, 2.0]))
    options = StreamOptions(joints=('b',), assume_joint_order=('a', 'b'))
    recording = build([(1, sample)], options)
    assert recording.names == ('b',)
    np.testing.assert_array_equal(recording.position, [[2.0]])


def test_malformed_messages_keep_their_row_and_are_counted():
    recording = build(
        [
            (1, JointSample(1, ('a', 'b'), np.array([1.0, 2.0]))),
            (2, JointSample(2, ('a', 'b'), np.array([1.0]))),
            (3, JointSample(3, (), np.array([1.0]))),
            (4, JointSample(4, ('a', 'a'), np.array([1.0, 2.0]))),
            (5, JointSample(5, ('a', 'b'))),
            (6, JointSample(6, ('a', 'b'), np.array([NAN, np.inf]))),
        ]
    )
    assert recording.malformed == 4
    assert recording.non_finite == 2
    assert np.isnan(recording.position[1:5]).all()
    assert recording.position.shape == (6, 2)


def test_a_recording_of_nothing_is_empty():
    recording = build([])
    assert recording.names == () and recording.position.shape == (0, 0)


def test_a_table_lays_out_scores_too():
    table = JointTable()
    table.put(1, ('b',), np.array([[0.2, 0.8]]))
    laid_out = table.array(2, ('a', 'b'))
    assert laid_out.shape == (2, 2, 2)
    np.testing.assert_array_equal(laid_out[1, 1], [0.2, 0.8])
    assert np.isnan(laid_out).sum() == 6


def test_health_counts_every_fault_once():
    step_ns = 10_000_000
    stamps = [step_ns * (100 + index) for index in range(20)]
    stamps[5:7] = [stamps[6], stamps[5]]  # one late message
    stamps.insert(10, stamps[9])  # one stamp twice
    stamps += [stamps[-1] + 500_000_000]  # one gap
    stamps += [step_ns * 10, step_ns * 11, 0]  # a restart, and one without a stamp
    samples = [
        (
            stamp + 3_000_000,
            JointSample(stamp, ('a', 'b'), np.array([0.1, NAN if i == 3 else 0.2])),
        )
        for i, stamp in enumerate(stamps)
    ]
    samples[-1] = (step_ns * 12, samples[-1][1])
    health = check_health(build(samples), max_gap_s=0.25)
    assert (health.messages, health.joints) == (25, 2)
    assert (health.late, health.duplicate_stamps, health.gaps) == (1, 1, 1)
    assert (health.clock_restarts, health.zero_stamps, health.non_finite) == (1, 1, 1)
    assert health.longest_gap_s == pytest.approx(0.5)
    assert health.rate_hz == pytest.approx(100.0)
    assert health.delay_s == pytest.approx(0.003)
    # 0.19 s, the gap, and two steps after the restart.
    assert health.duration_s == pytest.approx(0.19 + 0.5 + 0.02)
    assert str(health) == (
        '25 messages, 2 joints, 0.71 s at 100 Hz, gaps 1, late 1, clock restarts 1, '
        'duplicate stamps 1, zero stamps 1, NaN or infinite 1, record times that go back 2'
    )
