"""The zero-phase reference, against SciPy and NumPy's own polynomial fits."""

import numpy as np
import pytest
from scipy.signal import savgol_filter

from seqmem_ros.offline.reference import local_slopes
from seqmem_ros.offline.reference import make_reference
from seqmem_ros.offline.reference import median_period_s
from seqmem_ros.offline.reference import unbroken_runs

START_NS = 1_700_000_000_000_000_000


def noisy_sine(time_ns, seed=1):
    time_s = (time_ns - time_ns[0]) * 1e-9
    noise = np.random.default_rng(seed).normal(0.0, 1e-3, len(time_ns))
    return np.sin(2.0 * np.pi * 1.3 * time_s) + noise


def test_on_even_stamps_it_is_scipys_savitzky_golay_filter():
    time_ns = START_NS + np.arange(400) * 4_000_000
    position = np.stack([noisy_sine(time_ns, 1), noisy_sine(time_ns, 2)], axis=1)
    reference = make_reference(time_ns, position, max_gap_s=0.25)
    # 20 ms at 250 Hz are five samples on each side.
    expected = savgol_filter(position, 11, 3, deriv=1, delta=0.004, axis=0)
    assert np.isnan(reference.velocity[:5]).all() and np.isnan(reference.velocity[-5:]).all()
    np.testing.assert_allclose(reference.velocity[5:-5], expected[5:-5], atol=1e-9)
    assert reference.half_width_s == pytest.approx(0.022)
    quintic = savgol_filter(position, 11, 5, deriv=1, delta=0.004, axis=0)
    doubt = np.sqrt(np.mean((expected - quintic)[5:-5] ** 2, axis=0))
    np.testing.assert_allclose(reference.doubt_rad_s, doubt, rtol=1e-6)


def test_at_low_rates_the_window_keeps_three_samples_on_each_side():
    time_ns = START_NS + np.arange(100) * 20_000_000
    position = noisy_sine(time_ns)[:, None]
    reference = make_reference(time_ns, position, max_gap_s=0.25)
    expected = savgol_filter(position[:, 0], 7, 3, deriv=1, delta=0.02)
    np.testing.assert_allclose(reference.velocity[3:-3, 0], expected[3:-3], atol=1e-10)


def test_on_uneven_stamps_it_is_the_least_squares_cubic():
    rng = np.random.default_rng(3)
    time_ns = START_NS + np.cumsum(rng.integers(2_000_000, 16_000_000, 300))
    position = noisy_sine(time_ns)
    half_ns = 40_000_000
    slopes = local_slopes(time_ns, position[:, None], half_ns * 1e-9)[:, 0]
    checked = 0
    for index in range(20, 280, 7):
        if np.isnan(slopes[index]):
            continue
        near = np.abs(time_ns - time_ns[index]) <= half_ns
        time_s = (time_ns[near] - time_ns[index]) * 1e-9
        expected = np.polyfit(time_s, position[near], 3)[-2]
        assert slopes[index] == pytest.approx(expected, abs=1e-8)
        checked += 1
    assert checked > 30


def test_it_is_exact_for_a_cubic_on_uneven_stamps():
    rng = np.random.default_rng(4)
    time_ns = START_NS + np.cumsum(rng.integers(8_000_000, 12_000_000, 200))
    time_s = (time_ns - time_ns[0]) * 1e-9
    position = 0.3 * time_s**3 - 0.7 * time_s**2 + time_s
    reference = make_reference(time_ns, position[:, None], max_gap_s=0.25)
    expected = 0.9 * time_s**2 - 1.4 * time_s + 1.0
    known = np.isfinite(reference.velocity[:, 0])
    assert known.sum() > 180
    np.testing.assert_allclose(reference.velocity[known, 0], expected[known], atol=1e-7)


def test_it_has_no_phase_reversing_time_reverses_it():
    time_ns = START_NS + np.arange(200) * 10_000_000
    position = noisy_sine(time_ns)[:, None]
    forward = make_reference(time_ns, position, 0.25).velocity
    backward = make_reference(time_ns, position[::-1], 0.25).velocity
    np.testing.assert_allclose(forward, -backward[::-1], atol=1e-9)


def test_no_window_reaches_across_a_gap():
    time_ns = START_NS + np.arange(100) * 10_000_000
    time_ns[50:] += 1_000_000_000
    # A jump of the position across the gap must leave no trace.
    position = np.where(np.arange(100) < 50, 0.0, 5.0)[:, None]
    velocity = make_reference(time_ns, position, max_gap_s=0.25).velocity[:, 0]
    assert np.isnan(velocity[47:53]).all()
    np.testing.assert_allclose(velocity[np.isfinite(velocity)], 0.0, atol=1e-9)
    assert np.isfinite(velocity).sum() == 100 - 12


def test_bursts_that_would_amplify_noise_are_left_out():
    # First three samples within 20 us every 10 ms, then a sample every 2 ms.
    bursts = np.repeat(np.arange(60) * 10_000_000, 3) + np.tile([0, 10_000, 20_000], 60)
    time_ns = START_NS + np.concatenate([bursts, 600_000_000 + np.arange(400) * 2_000_000])
    position = noisy_sine(time_ns)[:, None]
    velocity = local_slopes(time_ns, position, half_width_s=0.012)[:, 0]
    # Three bursts cannot carry a cubic: the fit would only amplify noise.
    assert np.isnan(velocity[:170]).all()
    truth = 2.6 * np.pi * np.cos(2.6 * np.pi * (time_ns - time_ns[0]) * 1e-9)
    assert np.isfinite(velocity[190:570]).all()
    assert np.abs(velocity - truth)[190:570].max() < 5 * np.sqrt(2.0) * 1e-3 / 0.002


def test_a_joint_in_every_second_message_has_a_reference_of_its_own():
    time_ns = START_NS + np.arange(400) * 5_000_000
    position = np.stack([noisy_sine(time_ns, 1), noisy_sine(time_ns, 2)], axis=1)
    position[1::2, 1] = np.nan
    velocity = make_reference(time_ns, position, 0.25).velocity
    expected = savgol_filter(position[::2, 1], 9, 3, deriv=1, delta=0.01)
    rows = slice(10, -10)
    # +-22.5 ms of a stream at 100 Hz hold two samples on each side.
    five = savgol_filter(position[::2, 1], 5, 3, deriv=1, delta=0.01)
    assert np.isnan(velocity[1::2, 1]).all()
    np.testing.assert_allclose(velocity[::2, 1][rows], five[rows], atol=1e-9)
    assert np.abs(five - expected)[rows].max() > 1e-3


def test_late_and_double_stamps_do_not_disturb_the_others():
    time_ns = START_NS + np.arange(100) * 10_000_000
    position = noisy_sine(time_ns)
    expected = make_reference(time_ns, position[:, None], 0.25).velocity[:, 0]
    order = np.arange(100)
    order[[40, 41]] = [41, 40]
    order = np.insert(order, 60, order[60])
    velocity = make_reference(time_ns[order], position[order, None], 0.25).velocity[:, 0]
    for row, original in enumerate(order):
        if np.isfinite(velocity[row]):
            assert velocity[row] == pytest.approx(expected[original], abs=1e-12)
    assert np.isnan(velocity).sum() == np.isnan(expected).sum() + 1


def test_a_clock_that_starts_over_cuts_the_recording():
    time_ns = START_NS + np.concatenate([np.arange(50), np.arange(30)]) * 10_000_000
    runs = list(unbroken_runs(time_ns, 0.25))
    assert [run.tolist() for run in runs] == [list(range(50)), list(range(50, 80))]


def test_a_window_that_smears_the_motion_is_told_by_its_doubt():
    time_ns = START_NS + np.arange(1000) * 4_000_000
    time_s = (time_ns - START_NS) * 1e-9
    shake = np.sin(2.0 * np.pi * 15.0 * time_s)[:, None]
    narrow, wide = (make_reference(time_ns, shake, 0.25, h) for h in (0.014, 0.060))
    truth = 2.0 * np.pi * 15.0 * np.cos(2.0 * np.pi * 15.0 * time_s)
    errors = []
    for reference in (narrow, wide):
        known = np.isfinite(reference.velocity[:, 0])
        errors.append(np.sqrt(np.mean((reference.velocity[known, 0] - truth[known]) ** 2)))
    assert errors[0] < 2.0 and narrow.doubt_rad_s[0] < 2.0
    assert errors[1] > 40.0 and wide.doubt_rad_s[0] > 20.0


def test_degenerate_recordings_have_no_reference():
    assert median_period_s(np.array([5, 5, 5])) == 0.0
    for count in (0, 1, 2, 4):
        time_ns = START_NS + np.arange(count) * 10_000_000
        reference = make_reference(time_ns, np.zeros((count, 2)), 0.25)
        assert reference.velocity.shape == (count, 2)
        assert np.isnan(reference.velocity).all() and np.isnan(reference.doubt_rad_s).all()
    constant_time = make_reference(np.full(20, START_NS), np.zeros((20, 1)), 0.25)
    assert np.isnan(constant_time.velocity).all()


def test_it_says_how_it_was_made():
    time_ns = START_NS + np.arange(100) * 4_000_000
    reference = make_reference(time_ns, np.zeros((100, 1)), 0.25)
    assert str(reference) == 'slope of a local polynomial of degree 3 over +-22.0 ms, zero phase'
