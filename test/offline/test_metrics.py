"""Errors and lags, against signals whose answers are known."""

import numpy as np
import pytest

from seqmem_ros.offline.metrics import lag_curve
from seqmem_ros.offline.metrics import score
from seqmem_ros.offline.metrics import standstill
from seqmem_ros.offline.shifted import shifted_errors

START_NS = 1_700_000_000_000_000_000


def even(count, period_ns=10_000_000):
    return START_NS + np.arange(count) * period_ns


def sine(time_ns, delay_s=0.0, frequency_hz=1.0):
    return np.sin(2.0 * np.pi * frequency_hz * ((time_ns - START_NS) * 1e-9 - delay_s))


@pytest.mark.parametrize('lag_s', [0.0, 0.0137, 0.05, 0.12345, -0.021])
@pytest.mark.parametrize('period_ns', [1_000_000, 4_000_000, 10_000_000])
def test_the_lag_of_a_delayed_sine_is_found(lag_s, period_ns):
    time_ns = even(3_000_000_000 // period_ns, period_ns)
    curve = lag_curve(time_ns, sine(time_ns), sine(time_ns, lag_s), max_gap_s=0.25)
    assert curve.best_lag_s() == pytest.approx(lag_s, abs=1e-4)


def test_the_lag_is_found_on_uneven_stamps():
    rng = np.random.default_rng(5)
    time_ns = START_NS + np.cumsum(rng.integers(2_000_000, 18_000_000, 600))
    curve = lag_curve(time_ns, sine(time_ns), sine(time_ns, 0.0333), max_gap_s=0.25)
    assert curve.best_lag_s() == pytest.approx(0.0333, abs=1e-4)


def test_the_lag_of_a_first_order_low_pass_is_its_time_constant():
    time_ns = even(20_000, 1_000_000)
    slow = sine(time_ns, frequency_hz=0.2)
    filtered = np.zeros_like(slow)
    for index in range(1, len(slow)):
        filtered[index] = filtered[index - 1] + (slow[index] - filtered[index - 1]) / 50.0
    settled = np.where(np.arange(len(slow)) > 1000, filtered, np.nan)
    # H(z) = (1 - a) / (1 - a / z) with a = 0.98 delays slow signals by a / (1 - a) samples.
    curve = lag_curve(time_ns, slow, settled, max_gap_s=0.25)
    assert curve.best_lag_s() == pytest.approx(0.049, abs=2e-4)


def test_noise_beyond_the_grid_has_no_lag():
    time_ns = even(500)
    reference = sine(time_ns, frequency_hz=0.5)
    late = lag_curve(time_ns, reference, sine(time_ns, 0.4, 0.5), max_gap_s=0.25)
    assert np.isnan(late.best_lag_s())
    short = lag_curve(time_ns[:10], reference[:10], reference[:10], max_gap_s=0.25)
    assert np.isnan(short.best_lag_s())


def test_curves_of_joints_add_up():
    time_ns = even(1000)
    fast, slow = (sine(time_ns, frequency_hz=f) for f in (2.0, 0.5))
    # The fast joint pulls hardest: curvatures weigh as squared frequencies.
    late = lag_curve(time_ns, fast, sine(time_ns, 0.02, 2.0), 0.25)
    early = lag_curve(time_ns, slow, sine(time_ns, 0.0, 0.5), 0.25)
    expected = 0.02 * 4.0 / (4.0 + 0.25)
    assert (late + early).best_lag_s() == pytest.approx(expected, abs=3e-4)


def test_no_sample_is_interpolated_across_a_gap():
    time_ns = even(400)
    time_ns[200:] += 2_000_000_000
    errors = shifted_errors(time_ns, sine(time_ns), sine(time_ns), np.array([0.1]), 0.25)
    assert errors.shape == (1, 2 * (200 - 10))
    expected = sine(time_ns) - sine(time_ns, 0.1)
    kept = np.r_[10:200, 210:400]
    np.testing.assert_allclose(errors[0], expected[kept], atol=1e-4)


def test_shifting_back_a_delayed_estimate_leaves_what_is_not_delay():
    time_ns = even(1000)
    ripple = 0.05 * np.cos(2.0 * np.pi * 9.0 * np.arange(1000) * 0.01)
    late = sine(time_ns, 0.0412) + ripple
    errors = shifted_errors(time_ns, sine(time_ns), late, np.array([0.0412]), 0.25)[0]
    assert np.sqrt(np.mean(errors**2)) == pytest.approx(0.05 / np.sqrt(2.0), rel=0.01)


def test_the_sums_are_those_of_numpy():
    errors = np.random.default_rng(6).normal(0.0, 0.1, 1000)
    result = score(errors, errors[:10], 0.01, errors[10:])
    assert result.samples == 1000
    assert result.rmse == pytest.approx(np.linalg.norm(errors) / np.sqrt(1000))
    assert result.rmse_at_lag == pytest.approx(np.linalg.norm(errors[10:]) / np.sqrt(990))
    assert result.standstill_rms == pytest.approx(np.linalg.norm(errors[:10]) / np.sqrt(10))
    assert np.mean(np.abs(errors) > result.p99) == pytest.approx(0.01, abs=0.0015)
    empty = score(np.empty(0), np.empty(0), float('nan'), np.empty(0))
    assert empty.samples == 0 and np.isnan([empty.rmse, empty.p99, empty.standstill_rms]).all()


def test_standstill_keeps_away_from_motion():
    time_ns = even(100)
    reference = np.zeros(100)
    reference[50] = 0.01
    reference[80] = np.nan
    resting = standstill(time_ns, reference)
    expected = np.ones(100, dtype=bool)
    expected[40:61] = False
    expected[80] = False
    np.testing.assert_array_equal(resting, expected)
    assert standstill(time_ns, np.full(100, 0.004)).all()
    assert not standstill(time_ns, np.full(100, -0.006)).any()
