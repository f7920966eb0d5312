"""What networks are fed with, by hand."""

import numpy as np
import pytest

from seqmem_ros.core.inputs import FEATURES
from seqmem_ros.core.inputs import features
from seqmem_ros.core.inputs import lags
from seqmem_ros.core.inputs import raw_inputs
from seqmem_ros.core.inputs import step_inputs
from seqmem_ros.core.window import JointWindows


@pytest.fixture
def raw():
    windows = JointWindows(2)
    rows = np.array([0, 1])
    for i, time_ms in enumerate((0, 10, 30, 60, 100)):
        windows.push(
            rows,
            10**18 + time_ms * 10**6,
            np.array([i**2, -3.0]),
            velocity=np.array([i, 0.5]),
            effort=np.array([10 * i, -0.5]),
        )
    return raw_inputs(windows)


def test_the_raw_vector(raw):
    assert raw.dtype == np.float32
    # 4^2 = 16 after 9, 4, 1 and 0; 100 ms after 60, 30, 10 and 0.
    np.testing.assert_array_equal(raw[0, :7], [16, 4, 40, 7, 12, 15, 16])
    np.testing.assert_array_equal(raw[1, :7], [-3, 0.5, -0.5, 0, 0, 0, 0])
    np.testing.assert_array_equal(raw[:, 7:], np.float32([[0.04, 0.07, 0.09, 0.1]] * 2))


def test_lags_are_differences_and_their_times(raw):
    np.testing.assert_array_equal(lags(raw)[0, :4], [7, 12, 15, 16])
    np.testing.assert_array_equal(lags(raw)[0, 4:], np.float32([0.04, 0.07, 0.09, 0.1]))


@pytest.mark.parametrize(
    ('name', 'expected'),
    [
        ('position', [16]),
        ('velocity', [4]),
        ('effort', [40]),
        ('difference', [7]),
        ('lag_velocity', [7 / 0.04, 12 / 0.07, 15 / 0.09, 16 / 0.1]),
        ('step_s', [0.04]),
    ],
)
def test_each_feature(name, expected, raw):
    values = np.asarray(features(raw, (name,)))
    assert values.shape == (2, FEATURES[name])
    np.testing.assert_allclose(values[0], expected, rtol=1e-6)


def test_features_stand_in_the_order_of_their_names(raw):
    both = np.asarray(features(raw, ('step_s', 'position', 'effort')))
    np.testing.assert_allclose(both, [[0.04, 16, 40], [0.04, -3, -0.5]], rtol=1e-6)
    assert features(raw[None, None], ('lag_velocity', 'effort')).shape == (1, 1, 2, 5)


def test_lags_without_time_give_no_velocity():
    windows = JointWindows(1)
    windows.push(np.array([0]), 5, np.array([2.0]))
    np.testing.assert_array_equal(features(raw_inputs(windows), ('lag_velocity',)), 0.0)


def test_a_step_of_no_time_gives_a_finite_velocity():
    windows = JointWindows(1)
    for stamp_ns, position in ((0, 0.0), (1, 2.0)):
        windows.push(np.array([0]), stamp_ns, np.array([position]))
    # A microsecond is the shortest time that is believed.
    values = features(raw_inputs(windows), ('lag_velocity',))
    np.testing.assert_allclose(values, 2.0e6, rtol=1e-6)


def test_a_step_takes_raw_inputs_and_two_masks():
    windows = JointWindows(3)
    windows.push(np.array([0, 1]), 0, np.array([1.0, 2.0]))
    windows.push(np.array([1]), 10**7, np.array([5.0]), effort=np.array([-4.0]))
    inputs = step_inputs(windows, np.array([False, True, False]))
    assert inputs.dtype == np.float32
    assert inputs.shape == (3, 13)
    # Difference 5 - 2 over every lag, 10 ms each, since there are but two samples.
    expected = [5, 0, -4, 3, 3, 3, 3, *np.float32([0.01] * 4), 1, 0]
    np.testing.assert_array_equal(inputs[1], np.float32(expected))
    np.testing.assert_array_equal(inputs[:, 11:], [[0, 1], [1, 0], [0, 0]])


def test_a_routine_step_has_the_times_it_is_told_and_no_start():
    windows = JointWindows(2)
    for time_ms in (0, 10, 30, 60):
        windows.push(np.arange(2), time_ms * 10**6, np.zeros(2))
    advance = np.array([True, True])
    windows.slide(slice(0, 2), 10**8, [1.0, 2.0, 3.0, 4.0], position=np.ones(2))
    np.testing.assert_array_equal(step_inputs(windows, advance)[:, 7:], [[1, 2, 3, 4, 1, 0]] * 2)
    # What was told is forgotten with the next sample that comes without.
    windows.push(np.arange(2), 10**8 + 5 * 10**6, np.zeros(2))
    expected = np.float32([0.005, 0.045, 0.075, 0.095, 1, 0])
    np.testing.assert_array_equal(step_inputs(windows, advance)[:, 7:], [expected] * 2)


def test_fields_that_nobody_reads_are_zero():
    windows = JointWindows(1)
    windows.push(np.array([0]), 0, np.array([1.0]), velocity=np.array([2.0]))
    advance = np.array([True])
    assert step_inputs(windows, advance)[0, :3].tolist() == [1, 2, 0]
    assert step_inputs(windows, advance, ('position',))[0, :3].tolist() == [1, 0, 0]
