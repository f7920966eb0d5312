"""Messages become samples, whatever made them."""

from array import array
from types import SimpleNamespace

import numpy as np
import pytest

from seqmem_ros.core.joints import JointSample
from seqmem_ros.core.joints import sample_from_message
from seqmem_ros.core.joints import stamp_to_ns


def message(sec=3, nanosec=4, **fields):
    """Make what rclpy and rosbags hand out."""
    content = {'name': ['a', 'b'], 'position': [], 'velocity': [], 'effort': [], **fields}
    stamp = SimpleNamespace(sec=sec, nanosec=nanosec)
    return SimpleNamespace(header=SimpleNamespace(stamp=stamp), **content)


@pytest.mark.parametrize(
    ('sec', 'nanosec', 'expected_ns'),
    [
        (0, 0, 0),
        (1_700_000_000, 999_999_999, 1_700_000_000_999_999_999),
        (2**31 - 1, 2**32 - 1, 2_147_483_651_294_967_295),
        (-1, 500_000_000, -500_000_000),
        # Fixed-width integers of a reader must not overflow.
        (np.int32(1_700_000_000), np.uint32(7), 1_700_000_000_000_000_007),
    ],
)
def test_stamps_are_whole_nanoseconds(sec, nanosec, expected_ns):
    stamp_ns = stamp_to_ns(SimpleNamespace(sec=sec, nanosec=nanosec))
    assert stamp_ns == expected_ns
    assert type(stamp_ns) is int


@pytest.mark.parametrize('sequence', [list, tuple, np.array, lambda v: array('d', v)])
def test_arrays_of_any_kind_become_float64(sequence):
    sample = sample_from_message(message(position=sequence([1.5, -2.0]), effort=sequence([])))
    assert (sample.names, sample.stamp_ns) == (('a', 'b'), 3_000_000_004)
    assert sample.position.dtype == sample.effort.dtype == np.float64
    np.testing.assert_array_equal(sample.position, [1.5, -2.0])
    assert len(sample.velocity) == len(sample.effort) == 0


def test_a_sample_is_a_copy():
    buffer = np.array([1.0, 2.0])
    sample = sample_from_message(message(position=buffer))
    buffer[:] = 9.0
    np.testing.assert_array_equal(sample.position, [1.0, 2.0])


def test_what_is_not_given_is_absent():
    sample = JointSample(1, ('a',))
    assert [len(x) for x in (sample.position, sample.velocity, sample.effort)] == [0, 0, 0]
