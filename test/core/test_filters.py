"""The classical filters against SciPy, textbooks' loops and known numbers."""

import numpy as np
import pytest
from scipy.linalg import solve_discrete_are
from scipy.signal import lfilter
from scipy.signal import savgol_coeffs

from seqmem_ros.core.filters import Difference
from seqmem_ros.core.filters import Kalman
from seqmem_ros.core.filters import LowPass
from seqmem_ros.core.filters import SavitzkyGolay
from seqmem_ros.core.window import JointWindows

STEP_S = 0.01


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
def test_savitzky_golay_equals_scipy_at_even_sampling(degree, even):
    positions = even[1]
    coefficients = savgol_coeffs(5, degree, deriv=1, delta=STEP_S, pos=4, use='dot')
    expected = np.array([coefficients @ positions[i - 4 : i + 1] for i in range(4, 200)])
    got = run(SavitzkyGolay(degree), *even)
    np.testing.assert_allclose(got[4:], expected, rtol=1e-6, atol=1e-5)


@pytest.mark.parametrize('degree', [1, 2, 3])
def test_savitzky_golay_equals_polyfit_at_uneven_sampling(degree, uneven):
    times_s, positions = uneven
    got = run(SavitzkyGolay(degree), *uneven)
    for i in range(4, 200):
        t = times_s[i - 4 : i + 1] - times_s[i]
        expected = np.polyfit(t, positions[i - 4 : i + 1], degree)[-2]
        assert got[i] == pytest.approx(expected, rel=1e-5, abs=1e-4)


@pytest.mark.parametrize(
    ('estimator', 'gain'),
    [
        (Difference(), 1.414),
        (SavitzkyGolay(1), 0.316),
        (SavitzkyGolay(2), 1.115),
        (SavitzkyGolay(3), 2.526),
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


def test_a_line_over_five_samples_lags_by_two_steps():
    times_s = STEP_S * np.arange(40)
    got = run(SavitzkyGolay(1), times_s, 0.5 * 3.0 * times_s**2)
    np.testing.assert_allclose(got[4:], 3.0 * (times_s[4:] - 2 * STEP_S), rtol=1e-6)


def test_a_degree_that_does_not_fit_is_refused():
    with pytest.raises(ValueError, match='degree: expected 1, 2 or 3, got 4'):
        SavitzkyGolay(4)


def process_noise(dt, density):
    """Integrate F(s) e3 e3' F(s)' over a step, by quadrature."""
    nodes, weights = np.polynomial.legendre.leggauss(5)
    total = np.zeros((3, 3))
    for node, weight in zip(nodes, weights):
        s = dt * (node + 1) / 2
        column = np.array([s**2 / 2, s, 1.0])
        total += weight * dt / 2 * np.outer(column, column)
    return density * total


def test_kalman_equals_the_textbook_on_uneven_times(uneven):
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


@pytest.mark.parametrize('estimator', [LowPass(), Kalman()])
def test_rows_that_do_not_advance_keep_their_memory(estimator, even):
    times_s, positions = even
    alone = run(estimator, times_s[:50], positions[:50])
    windows, state = JointWindows(2), estimator.init_state(2)
    for i in range(50):
        windows.push(np.array([0]), round(times_s[i] * 1e9), positions[i : i + 1])
        y, state = estimator.step(windows, np.array([True, False]), state)
        assert y[0] == pytest.approx(alone[i], rel=1e-12, abs=1e-12)
        windows.push(np.array([1]), round(times_s[i] * 1e9) + 1000, np.array([i * 0.5]))
        _, state = estimator.step(windows, np.array([False, True]), state)
