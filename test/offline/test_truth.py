"""What a recorded velocity is found to be, where it is known."""

import numpy as np
import pytest

from seqmem_ros.offline.recording import Recording
from seqmem_ros.offline.reference import make_reference
from seqmem_ros.offline.truth import check_truth
from seqmem_ros.offline.truth import summarise

PERIOD_S = 0.01
TIME_NS = 1_700_000_000_000_000_000 + np.arange(800) * 10_000_000
TIME_S = np.arange(800) * PERIOD_S
POSITION = np.sin(2.0 * np.pi * 0.7 * TIME_S)
TRUE_VELOCITY = 1.4 * np.pi * np.cos(2.0 * np.pi * 0.7 * TIME_S)


def check(velocities, position=POSITION):
    """Check one joint for each of the velocities, given by name."""
    position = np.stack([position] * len(velocities), axis=1)
    velocity = np.stack(list(velocities.values()), axis=1)
    recording = Recording(
        tuple(velocities),
        TIME_NS,
        TIME_NS,
        position,
        velocity,
        np.full_like(velocity, np.nan),
        0,
        0,
    )
    reference = make_reference(TIME_NS, position, 0.25).velocity
    moving = np.ptp(position, axis=0) > 0.01
    return check_truth(recording, reference, moving, 0.25)


def backward_difference():
    return np.concatenate([[0.0], np.diff(POSITION) / PERIOD_S])


def low_passed(pole):
    filtered = backward_difference()
    for index in range(1, len(filtered)):
        filtered[index] = pole * filtered[index - 1] + (1.0 - pole) * filtered[index]
    return filtered


def test_the_backward_difference_is_recognised_and_lags_half_a_period():
    found = check({'a': backward_difference()})['a']
    assert found.kind == 'difference'
    assert found.relative_to_difference < 1e-6
    assert found.lag_s == pytest.approx(PERIOD_S / 2, abs=1e-4)


@pytest.mark.parametrize('pole', [0.4, 0.8])
def test_a_low_pass_of_it_is_recognised_with_its_lag(pole):
    found = check({'a': low_passed(pole)})['a']
    assert found.kind == 'low-pass'
    assert found.time_constant_s == pytest.approx(-PERIOD_S / np.log(pole), rel=0.02)
    # Half a period for the difference, pole / (1 - pole) periods for the filter.
    expected = PERIOD_S * (0.5 + pole / (1.0 - pole))
    assert found.lag_s == pytest.approx(expected, rel=0.03)


def test_an_independent_velocity_is_neither():
    rng = np.random.default_rng(8)
    found = check({'a': TRUE_VELOCITY + rng.normal(0.0, 0.05, 800)})['a']
    assert found.kind == 'other'
    assert found.lag_s == pytest.approx(0.0, abs=1e-3)
    # The reference starts three samples after the recording and ends three before.
    assert found.rmse == pytest.approx(0.05, rel=0.1)


def test_constant_absent_and_resting():
    assert check({'a': np.zeros(800)})['a'].kind == 'constant'
    assert check({'a': np.full(800, np.nan)})['a'].kind == 'absent'
    assert check({'a': np.zeros(800)}, position=np.full(800, 0.3))['a'].kind == 'at rest'


def test_the_summary_names_the_commonest_first():
    found = check({'a': backward_difference(), 'b': backward_difference(), 'c': np.zeros(800)})
    assert summarise(found) == (
        'recorded velocity is the backward difference of the recorded positions and lags by '
        '5.0 ms (2 of 3 joints); is constant although the joint moves (1 of 3 joints)'
    )
    absent = check({'a': np.full(800, np.nan)})
    assert summarise(absent) == 'recorded velocity is absent (1 of 1 joints)'
