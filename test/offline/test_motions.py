"""Motions: exact derivatives, no jumps, the numbers of the formulas."""

import numpy as np
import pytest

from seqmem_ros.offline.motions import chain
from seqmem_ros.offline.motions import hold
from seqmem_ros.offline.motions import jerk_limited_trapezoid
from seqmem_ros.offline.motions import minimum_jerk
from seqmem_ros.offline.motions import rippled
from seqmem_ros.offline.motions import sines
from seqmem_ros.offline.motions import sudden_stop
from seqmem_ros.offline.motions import together

SEGMENTS = {
    'hold': (hold(0.7), []),
    'minimum_jerk': (minimum_jerk(-1.3, 0.8), []),
    # The jerk jumps where the ramps begin, halve and end.
    'trapezoid': (jerk_limited_trapezoid(-2.0, 0.3, 0.5), [0.15, 0.3, 0.8, 0.95]),
    'trapezoid without cruise': (jerk_limited_trapezoid(1.5, 0.2, 0.0), [0.1, 0.2, 0.3]),
    'sudden_stop': (sudden_stop(minimum_jerk(0.9, 1.0), 0.4, 0.004), [0.4]),
}


def _chained():
    return chain([segment for segment, _ in SEGMENTS.values()])


def _chained_joins_s():
    return np.cumsum([segment.duration_s for segment, _ in SEGMENTS.values()])


def _central_differences(motion, time_s, step_s):
    before, after = motion(time_s - step_s), motion(time_s + step_s)
    return [(after[k] - before[k]) / (2 * step_s) for k in (0, 1)]


@pytest.mark.parametrize('name', SEGMENTS)
def test_velocity_and_acceleration_are_the_derivatives(name):
    segment, corners_s = SEGMENTS[name]
    step_s = 1e-6
    time_s = np.linspace(2 * step_s, segment.duration_s - 2 * step_s, 997)
    for corner_s in corners_s:
        time_s = time_s[np.abs(time_s - corner_s) > 2 * step_s]
    _, velocity, acceleration = segment.motion(time_s)
    slope, bend = _central_differences(segment.motion, time_s, step_s)
    np.testing.assert_allclose(velocity, slope, atol=1e-6)
    # After a contact the acceleration is v / decay, up to some hundred rad/s^2.
    np.testing.assert_allclose(acceleration, bend, rtol=1e-6, atol=1e-5)


@pytest.mark.parametrize('name', SEGMENTS)
def test_a_segment_starts_at_zero_and_ends_where_it_says(name):
    segment, _ = SEGMENTS[name]
    position, velocity, _ = segment.motion(np.array([0.0, segment.duration_s]))
    np.testing.assert_allclose(position, [0.0, segment.end_rad], atol=1e-12)
    np.testing.assert_allclose(velocity, 0.0, atol=1e-11)


@pytest.mark.parametrize('name', SEGMENTS)
def test_position_and_velocity_do_not_jump(name):
    segment, _ = SEGMENTS[name]
    time_s = np.linspace(0, segment.duration_s, 200_001)
    position, velocity, acceleration = segment.motion(time_s)
    step_s = time_s[1]
    assert np.abs(np.diff(position)).max() <= 1.001 * np.abs(velocity).max() * step_s + 1e-15
    assert np.abs(np.diff(velocity)).max() <= 1.001 * np.abs(acceleration).max() * step_s + 1e-15


def test_chain_is_smooth_where_segments_meet_and_beyond_both_ends():
    motion = _chained()
    joins_s = np.concatenate([[0.0], _chained_joins_s()])
    before, after = motion(joins_s - 1e-9), motion(joins_s + 1e-9)
    np.testing.assert_allclose(before[0], after[0], atol=1e-7)
    np.testing.assert_allclose(before[1], after[1], atol=1e-5)


def test_chain_adds_up_what_its_segments_travel():
    motion = _chained()
    # By hand: 0, then D = -1.3, then v (ramp + cruise) = -2 (0.3 + 0.5), then 1.5 * 0.2; the
    # stopped move holds the point of contact, where s = 0.4, plus what it coasts, v decay.
    contact = 0.9 * (10 * 0.4**3 - 15 * 0.4**4 + 6 * 0.4**5)
    coast = 0.9 * 30 * 0.4**2 * 0.6**2 * 0.004
    travelled = np.cumsum([0.0, -1.3, -1.6, 0.3, contact + coast])
    np.testing.assert_allclose(motion(_chained_joins_s())[0], travelled, atol=1e-9)


def test_chain_stands_still_before_its_start_and_after_its_end():
    motion = _chained()
    end_s = _chained_joins_s()[-1]
    position, velocity, acceleration = motion(np.array([-5.0, -1e-4, end_s + 1e-4, end_s + 5]))
    np.testing.assert_array_equal(position[:2], 0.0)
    assert position[2] == position[3] != 0.0
    np.testing.assert_array_equal(velocity, 0.0)
    np.testing.assert_array_equal(acceleration, 0.0)


def test_minimum_jerk_passes_its_middle_at_15_eighths_of_the_mean_velocity():
    move = minimum_jerk(0.6, 1.5)
    position, velocity, acceleration = move.motion(np.linspace(0, 1.5, 3001))
    assert velocity.argmax() == 1500
    assert velocity.max() == pytest.approx(15 / 8 * 0.6 / 1.5, rel=1e-12)
    assert position[1500] == pytest.approx(0.3, rel=1e-12)
    assert acceleration[1500] == pytest.approx(0.0, abs=1e-12)


def test_trapezoid_cruises_at_its_speed_with_the_jerk_of_half_ramps():
    ramp_s, speed_rad_s = 0.3, -2.0
    segment = jerk_limited_trapezoid(speed_rad_s, ramp_s, 0.5)
    _, velocity, acceleration = segment.motion(np.array([0.15, 0.3, 0.55, 0.8, 0.95]))
    np.testing.assert_allclose(velocity, [-1.0, -2.0, -2.0, -2.0, -1.0], atol=1e-12)
    # Half a ramp with constant jerk j reaches half the speed: j (T/2)^2 / 2 = v / 2.
    peak = 4 * speed_rad_s / ramp_s**2 * ramp_s / 2
    np.testing.assert_allclose(acceleration, [peak, 0.0, 0.0, 0.0, -peak], atol=1e-9)
    assert segment.end_rad == pytest.approx(speed_rad_s * (ramp_s + 0.5), rel=1e-12)


def test_sudden_stop_lets_the_velocity_decay_exponentially():
    before = minimum_jerk(0.9, 1.0)
    contact_velocity = 0.9 * 30 * 0.4**2 * 0.6**2
    time_s = np.array([0.4, 0.404, 0.408])
    _, velocity, acceleration = sudden_stop(before, 0.4, 0.004).motion(time_s)
    expected = contact_velocity * np.exp([0.0, -1.0, -2.0])
    np.testing.assert_allclose(velocity, expected, rtol=1e-9)
    np.testing.assert_allclose(acceleration, -expected / 0.004, rtol=1e-9)


def test_sudden_stop_leaves_what_came_before_as_it_was():
    before = minimum_jerk(0.9, 1.0)
    time_s = np.linspace(0, 0.399, 50)
    stopped = sudden_stop(before, 0.4, 0.004)
    np.testing.assert_array_equal(stopped.motion(time_s), before.motion(time_s))


def test_sines_are_a_sum_with_exact_derivatives():
    amplitude, frequency, phase = (np.array(v) for v in ([0.5, 0.02], [0.3, 4.0], [0.4, -2.0]))
    motion = sines(amplitude, frequency, phase)
    time_s = np.linspace(-0.5, 3, 301)
    position, velocity, acceleration = motion(time_s)
    expected = 0.5 * np.sin(2 * np.pi * 0.3 * time_s + 0.4)
    expected += 0.02 * np.sin(2 * np.pi * 4.0 * time_s - 2.0)
    np.testing.assert_allclose(position, expected, atol=1e-12)
    slope, bend = _central_differences(motion, time_s, 1e-5)
    np.testing.assert_allclose(velocity, slope, atol=1e-7)
    np.testing.assert_allclose(acceleration, bend, atol=1e-6)


def test_motions_together_are_their_sum():
    slow = sines(np.array([0.5]), np.array([0.3]), np.array([0.4]))
    fast = sines(np.array([0.02]), np.array([4.0]), np.array([-2.0]))
    time_s = np.linspace(-0.5, 3, 301)
    added = together(slow, fast)(time_s)
    for both, one, other in zip(added, slow(time_s), fast(time_s)):
        np.testing.assert_allclose(both, one + other, rtol=1e-12)
    slope, _ = _central_differences(together(slow, fast), time_s, 1e-5)
    np.testing.assert_allclose(added[1], slope, atol=1e-7)


def test_a_ripple_follows_the_position_and_keeps_its_derivatives():
    smooth = sines(np.array([0.4]), np.array([0.7]), np.array([0.3]))
    motion = rippled(smooth, 30.0, 0.05, 1.0)
    time_s = np.linspace(0.0, 2.0, 801)
    position, velocity, acceleration = motion(time_s)
    expected = np.array([p + 0.05 / 30 * np.sin(30 * p + 1.0) for p in smooth(time_s)[0]])
    np.testing.assert_allclose(position, expected, rtol=1e-12)
    slope, bend = _central_differences(motion, time_s, 1e-6)
    np.testing.assert_allclose(velocity, slope, atol=1e-6)
    np.testing.assert_allclose(acceleration, bend, atol=1e-4)
    share = velocity / smooth(time_s)[1] - 1
    assert np.abs(share).max() == pytest.approx(0.05, rel=1e-2)


def test_what_stands_still_does_not_ripple():
    _, velocity, acceleration = rippled(chain([hold(1.0)]), 30.0, 0.05, 1.0)(np.arange(5) / 10)
    assert not velocity.any() and not acceleration.any()
