"""The classical filters against SciPy, textbooks' loops and known numbers."""

import numpy as np
import pytest
from scipy.linalg import solve_discrete_are
from scipy.signal import lfilter
from scipy.signal import savgol_coeffs

from seqmem_ros.core.estimators import FILTERS
from seqmem_ros.core.filters import Cubic
from seqmem_ros.core.filters import Difference
from seqmem_ros.core.filters import Kalman
from seqmem_ros.core.filters import Line
from seqmem_ros.core.filters import LowPass
from seqmem_ros.core.filters import OneEuro
from seqmem_ros.core.filters import Quadratic
from seqmem_ros.core.filters import SavitzkyGolay
from seqmem_ros.core.filters import SuperTwisting
from seqmem_ros.core.filters import Tracking
from seqmem_ros.core.window import JointWindows

STEP_S = 0.01
POLYNOMIALS = {1: Line, 2: Quadratic, 3: Cubic}


def run(estimator, times_s, positions):
    """Feed one joint and return the estimate at every sample."""
    windows = JointWindows(1)
    state, out = estimator.init_state(1), []
    for t, p in zip(times_s, positions):
        windows.push(np.array([0]), round(t * 1e9), np.array([p]))
        y, state = estimator.step(windows, np.array([True]), state)
        out.append(y[0])
    return np.array(out)


@pytest.fixture
def even():
    times_s = STEP_S * np.arange(200)
    return times_s, np.cumsum(np.random.default_rng(0).standard_normal(200))


@pytest.fixture
def uneven():
    rng = np.random.default_rng(1)
    times_s = np.round(np.cumsum(rng.uniform(0.002, 0.03, 200)), 9)
    return times_s, np.cumsum(rng.standard_normal(200))


def test_difference(uneven):
    times_s, positions = uneven
    expected = np.diff(positions) / np.diff(times_s)
    np.testing.assert_allclose(run(Difference(), *uneven)[1:], expected, rtol=1e-6)


def test_low_pass_equals_lfilter_at_even_sampling(even):
    positions = even[1]
    pole = np.exp(-2 * np.pi * 7.0 * STEP_S)
    difference = np.diff(positions) / STEP_S
    # Starts settled at the first difference.
    expected, _ = lfilter([1 - pole], [1, -pole], difference, zi=[pole * difference[0]])
    got = run(LowPass(cutoff_hz=7.0), *even)
    np.testing.assert_allclose(got[1:], expected, rtol=1e-6, atol=1e-6)


def test_low_pass_over_two_steps_equals_one_of_their_length():
    """Exact for uneven sampling: with a constant input only the time that passes counts."""
    fine = run(LowPass(3.0), [0, 0.01, 0.02, 0.03, 0.04], [0, 0.0, 0.5, 1.0, 1.5])
    coarse = run(LowPass(3.0), [0, 0.01, 0.04], [0, 0.0, 1.5])
    assert fine[-1] == pytest.approx(coarse[-1], rel=1e-9)


@pytest.mark.parametrize('degree', [1, 2, 3])
def test_polynomials_equal_polyfit_at_uneven_sampling(degree, uneven):
    times_s, positions = uneven
    got = run(POLYNOMIALS[degree](), *uneven)
    for i in range(4, 200):
        t = times_s[i - 4 : i + 1] - times_s[i]
        expected = np.polyfit(t, positions[i - 4 : i + 1], degree)[-2]
        assert got[i] == pytest.approx(expected, rel=1e-5, abs=1e-4)


@pytest.mark.parametrize('samples', [5, 9, 45])
@pytest.mark.parametrize('degree', [1, 2, 3])
def test_savitzky_golay_equals_scipy_and_the_polynomials(degree, samples, even):
    positions = even[1]
    last = samples - 1
    weights = savgol_coeffs(samples, degree, deriv=1, delta=STEP_S, pos=last, use='dot')
    expected = [weights @ positions[i - last : i + 1] for i in range(last, 200)]
    got = run(SavitzkyGolay(degree, samples), *even)
    np.testing.assert_allclose(got[last:], expected, rtol=1e-6, atol=1e-5)
    if samples == 5:
        np.testing.assert_allclose(got[4:], run(POLYNOMIALS[degree](), *even)[4:], rtol=1e-5)


def test_savitzky_golay_starts_with_as_many_samples_as_there_are(uneven):
    times_s, positions = uneven
    got = run(SavitzkyGolay(2, 9), *uneven)
    assert got[0] == 0
    for n in range(2, 12):
        used = min(n, 9)
        mean_s = (times_s[n - 1] - times_s[n - used]) / (used - 1)
        slope = np.polyfit(np.arange(used), positions[n - used : n], min(2, used - 1))
        slope = np.polyval(np.polyder(slope), used - 1) / mean_s
        assert got[n - 1] == pytest.approx(slope, rel=1e-6)


@pytest.mark.parametrize(
    ('estimator', 'gain'),
    [
        (Difference(), 1.414),
        (Line(), 0.316),
        (Quadratic(), 1.115),
        (Cubic(), 2.526),
        (SavitzkyGolay(1, 5), 0.316),
        (SavitzkyGolay(2, 5), 1.115),
        (SavitzkyGolay(3, 5), 2.526),
    ],
)
def test_noise_gain(estimator, gain):
    """Root of the sum of squares of the response to one sample of noise, times T."""
    response = []
    for where in range(5):
        positions = np.zeros(5)
        positions[where] = 1.0
        response.append(run(estimator, STEP_S * np.arange(5), positions)[-1])
    assert np.linalg.norm(response) * STEP_S == pytest.approx(gain, abs=5e-4)


@pytest.mark.parametrize(
    ('estimator', 'lag'), [(Difference(), 0.5), (Line(), 2), (SavitzkyGolay(1, 9), 4)]
)
def test_lag_in_steps_of_what_fits_a_line(estimator, lag):
    times_s = STEP_S * np.arange(40)
    got = run(estimator, times_s, 0.5 * 3.0 * times_s**2)
    np.testing.assert_allclose(got[9:], 3.0 * (times_s[9:] - lag * STEP_S), rtol=1e-6)


def process_noise(dt, density):
    """Integrate F(s) e3 e3' F(s)' over a step, by quadrature."""
    nodes, weights = np.polynomial.legendre.leggauss(5)
    s = dt * (nodes + 1) / 2
    column = np.stack([s**2 / 2, s, np.ones_like(s)])
    return density * dt / 2 * (column * weights) @ column.T


def test_kalman_equals_a_textbook_loop(uneven):
    times_s, positions = uneven
    density, noise = 50.0, 0.3
    x, P = np.array([positions[0], 0, 0]), np.diag([noise**2, 10.0**2, 100.0**2])
    expected = [0.0]
    for i in range(1, 200):
        dt = times_s[i] - times_s[i - 1]
        F = np.array([[1, dt, dt**2 / 2], [0, 1, dt], [0, 0, 1]])
        x, P = F @ x, F @ P @ F.T + process_noise(dt, density)
        K = P[:, 0] / (P[0, 0] + noise**2)
        x, P = x + K * (positions[i] - x[0]), P - np.outer(K, P[0])
        expected.append(x[1])
    got = run(Kalman(density, noise), *uneven)
    np.testing.assert_allclose(got, expected, rtol=1e-7, atol=1e-7)


def test_kalman_settles_at_the_gain_of_the_riccati_equation():
    density, noise = 1e3, 1e-3
    F = np.array([[1, STEP_S, STEP_S**2 / 2], [0, 1, STEP_S], [0, 0, 1]])
    H = np.array([[1.0, 0, 0]])
    P = solve_discrete_are(F.T, H.T, process_noise(STEP_S, density), [[noise**2]])
    gain = P[:, 0] / (P[0, 0] + noise**2)
    # At rest at zero, one sample at 1 moves the velocity by its gain.
    positions = np.zeros(300)
    positions[-1] = 1.0
    got = run(Kalman(density, noise), STEP_S * np.arange(300), positions)
    assert got[-1] == pytest.approx(gain[1], rel=1e-6)


def test_one_euro_equals_the_loop_of_its_paper(uneven):
    times_s, positions = uneven
    difference = np.diff(positions) / np.diff(times_s)

    def alpha(cutoff_hz, dt):
        tau = 1 / (2 * np.pi * cutoff_hz)
        return 1 / (1 + tau / dt)

    speed = velocity = difference[0]
    expected = [velocity]
    for d, dt in zip(difference[1:], np.diff(times_s)[1:]):
        a = alpha(3.0, dt)
        speed = a * d + (1 - a) * speed
        a = alpha(1.5 + 0.01 * abs(speed), dt)
        velocity = a * d + (1 - a) * velocity
        expected.append(velocity)
    got = run(OneEuro(1.5, 0.01, 3.0), *uneven)
    assert got[0] == 0
    np.testing.assert_allclose(got[1:], expected, rtol=1e-6)


def test_one_euro_without_beta_is_a_low_pass_with_the_pole_of_its_paper(even):
    a = 1 / (1 + 1 / (2 * np.pi * 4.0 * STEP_S))
    difference = np.diff(even[1]) / STEP_S
    expected, _ = lfilter([a], [1, a - 1], difference, zi=[(1 - a) * difference[0]])
    got = run(OneEuro(4.0, 0.0), *even)
    np.testing.assert_allclose(got[1:], expected, rtol=1e-6, atol=1e-6)


def test_super_twisting_solves_the_implicit_equations(uneven):
    """Each step is checked by bisection of the inclusion, not by the code's closed form."""
    times_s, positions = uneven
    bound, z_0, z_1 = 3e4, positions[1], None
    z_1 = (positions[1] - positions[0]) / (times_s[1] - times_s[0])
    expected = [z_1]
    for i in range(2, 200):
        h, p = times_s[i] - times_s[i - 1], positions[i]

        def residual(error, h=h, p=p, z_0=z_0, z_1=z_1):
            sign = np.sign(error)
            new = z_1 - h * 1.1 * bound * sign
            return error + p - z_0 - h * (new - 1.5 * np.sqrt(bound * abs(error)) * sign)

        # The residual rises with the error, and jumps at zero.
        low, high = -1e3, 1e3
        for _ in range(200):
            middle = (low + high) / 2
            low, high = (middle, high) if residual(middle) < 0 else (low, middle)
        error = high if abs(high) > 1e-12 else 0.0
        z_1 = z_1 - h * 1.1 * bound * np.sign(error) if error else (p - z_0) / h
        z_0 = p + error
        expected.append(z_1)
    np.testing.assert_allclose(run(SuperTwisting(bound), *uneven)[1:], expected, rtol=1e-5)


def test_super_twisting_is_exact_where_the_acceleration_stays_below_its_bound():
    """Once it slides it gives the exact first difference, half a step late, and never chatters."""
    times_s = STEP_S * np.arange(300)
    got = run(SuperTwisting(5.0), times_s, np.sin(2.0 * times_s))  # at most 4 rad/s^2
    expected = 2.0 * np.cos(2.0 * (times_s - STEP_S / 2))
    np.testing.assert_allclose(got[100:], expected[100:], atol=1e-4)


@pytest.mark.parametrize('damping', [0.4, 1.0])
def test_tracking_is_a_transfer_function_with_the_poles_of_the_loop(damping, even):
    """Poles at exp(s T) of s^2 + 2 zeta w s + w^2; from p: (h z (z - 1)) / ((z-z1)(z-z2) T)."""
    omega = 2 * np.pi * 5.0
    poles = np.roots([1, 2 * damping * omega, omega**2]).astype(complex)
    z = np.exp(poles * STEP_S)
    gain = np.real((1 - z[0]) * (1 - z[1])) / STEP_S
    positions = np.concatenate([[0.0, 0.0], even[1]])  # starts at rest
    expected = lfilter([gain, -gain], np.real(np.poly(z)), positions)
    got = run(Tracking(5.0, damping), STEP_S * np.arange(202), positions)
    np.testing.assert_allclose(got, expected, rtol=1e-6, atol=1e-6)


def test_tracking_of_a_uniform_motion_is_exact_at_any_steps(uneven):
    times_s, _ = uneven
    got = run(Tracking(3.0, 0.7), times_s, 1e3 + 0.2 * times_s)
    np.testing.assert_allclose(got[1:], 0.2, rtol=1e-6)


@pytest.mark.parametrize(
    ('make', 'text'),
    [
        (lambda: SavitzkyGolay(4), 'degree: expected 1, 2 or 3, got 4'),
        (lambda: SavitzkyGolay(3, 3), 'samples: expected more than the degree 3, got 3'),
        (lambda: LowPass(0.0), 'cutoff_hz: expected a number above 0 Hz, got 0.0'),
        (lambda: Kalman(-1.0), 'jerk_density: expected a number above 0 rad^2/s^5, got -1.0'),
        (lambda: Kalman(1.0, 0), 'noise_rad: expected a number above 0 rad, got 0'),
        (lambda: OneEuro(float('nan')), 'min_cutoff_hz: expected a number above 0 Hz, got nan'),
        (lambda: OneEuro(1.0, -1.0), 'beta: expected a number from 0 up, got -1.0'),
        (lambda: SuperTwisting(0), 'max_acceleration: expected a number above 0 rad/s^2, got 0'),
        (lambda: Tracking(1.0, 2.0), 'damping: expected a number above 0 and up to 1, got 2.0'),
    ],
)
def test_settings_that_do_not_fit_are_refused(make, text):
    with pytest.raises(ValueError) as error:
        make()
    assert str(error.value) == text


@pytest.mark.parametrize('name', FILTERS)
def test_every_filter_holds_the_laws_of_an_estimator(name, even):
    """Rows are independent, wait unchanged, restart where their count is 1, and stay finite."""
    times_s, positions = even
    estimator = FILTERS[name]()
    alone = run(estimator, times_s[:60], positions[:60])
    assert alone[0] == 0
    windows, state = JointWindows(2), estimator.init_state(2)
    for i in range(120):
        if i == 60:
            windows.restart(np.array([0]))
            # A row that starts takes nothing from its memory, whatever that holds.
            for values in state.values():
                values[0] = np.nan if values.dtype == float else 10**12
        windows.push(np.array([0]), round(times_s[i] * 1e9), positions[i % 60 : i % 60 + 1])
        y, state = estimator.step(windows, np.array([True, False]), state)
        assert np.isfinite(y).all()
        assert y[0] == pytest.approx(alone[i % 60], rel=1e-6, abs=1e-6)
        windows.push(np.array([1]), round(times_s[i] * 1e9) + 1000, np.array([i * 0.5]))
        _, state = estimator.step(windows, np.array([False, True]), state)


@pytest.mark.parametrize('name', FILTERS)
def test_every_filter_survives_gaps_and_near_coincident_stamps(name):
    rng = np.random.default_rng(4)
    steps_s = rng.choice([1e-9, 1e-4, 1e-3, 0.02, 5.0, 3000.0], 300)
    times_s = np.cumsum(steps_s)
    positions = 0.3 * times_s + 1e-3 * rng.standard_normal(300)
    got = run(FILTERS[name](), times_s, positions)
    assert np.isfinite(got).all()
    # After an hour's silence, even samples of a uniform motion bring every filter back.
    after_s = times_s[-1] + STEP_S * np.arange(1, 400)
    end = run(
        FILTERS[name](),
        np.concatenate([times_s, after_s]),
        np.concatenate([positions, 0.3 * after_s]),
    )
    assert end[-1] == pytest.approx(0.3, rel=1e-3)
