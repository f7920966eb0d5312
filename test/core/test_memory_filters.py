"""The classical filters' memory against the filters at work, and against a Riccati equation."""

import math

import numpy as np
import pytest

from seqmem_ros.core.filters import Kalman
from seqmem_ros.core.filters import LowPass
from seqmem_ros.core.memory_filters import filter_memories
from seqmem_ros.core.memory_filters import kalman_matrix
from seqmem_ros.core.memory_filters import low_pass_pole
from seqmem_ros.core.window import JointWindows


@pytest.mark.parametrize(
    ('rate_hz', 'pole', 'horizon'), [(100, 0.2846, 0.7958), (250, 0.6049, 1.9894)]
)
def test_low_pass_pole_by_hand(rate_hz, pole, horizon):
    # exp(-2 pi 20 / rate); the horizon is rate / (2 pi 20).
    got = low_pass_pole(20.0, rate_hz)
    assert got.pole == pytest.approx(pole, abs=5e-5)
    assert got.horizon_samples == pytest.approx(horizon, abs=5e-5)
    assert got.dc_gain == pytest.approx(1.0, rel=1e-12)


def test_low_pass_pole_is_that_of_the_filter_at_work():
    windows, state = JointWindows(1), LowPass(20.0).init_state(1)
    # A joint that jumps once: after it the estimate shrinks by the pole with every sample.
    estimates = []
    for t, position in enumerate([0.0, 0.0, 1.0, 1.0, 1.0, 1.0]):
        windows.push(np.array([0]), t * 4_000_000, np.array([position]))
        value, state = LowPass(20.0).step(windows, np.ones(1, bool), state)
        estimates.append(value[0])
    ratios = np.array(estimates[3:]) / np.array(estimates[2:-1])
    np.testing.assert_allclose(ratios, low_pass_pole(20.0, 250.0).pole, rtol=1e-9)


@pytest.mark.parametrize('rate_hz', [50.0, 250.0, 1000.0])
def test_kalman_matrix_against_a_riccati_equation(rate_hz):
    t = 1 / rate_hz
    F = np.array([[1, t, t**2 / 2], [0, 1, t], [0, 0, 1]])
    Q = 10.0 * np.array(
        [[t**5 / 20, t**4 / 8, t**3 / 6], [t**4 / 8, t**3 / 3, t**2 / 2], [t**3 / 6, t**2 / 2, t]]
    )
    H = np.array([[1.0, 0, 0]])
    P = np.eye(3)
    for _ in range(3000):
        M = F @ P @ F.T + Q
        K = M @ H.T / (M[0, 0] + 1e-8)
        P = (np.eye(3) - K @ H) @ M
    expected = (np.eye(3) - K @ H) @ F
    np.testing.assert_allclose(
        kalman_matrix(Kalman(10.0), rate_hz), expected, rtol=1e-5, atol=1e-9
    )


def test_kalman_modes_at_a_high_rate_are_those_of_its_continuous_limit():
    # There the poles are the three left roots of s^6 = -q / (r^2 T).
    size = (10.0 / (1e-4**2 * 1e-3)) ** (1 / 6)
    modes = filter_memories(1000.0)[3].modes.modes
    # exp(-size / 2000) twice and exp(-size / 1000).
    horizons = [mode.horizon_samples for mode in modes]
    np.testing.assert_allclose(horizons, np.array([2000, 2000, 1000]) / size, rtol=1e-3)
    # They turn at size sin 60 degrees rad/s.
    expected = 2000 * math.pi / (size * math.sqrt(0.75))
    assert modes[0].period_samples == pytest.approx(expected, rel=1e-3)


def test_all_filters_are_listed():
    memories = filter_memories(100.0)
    assert [each.name for each in memories] == ['difference', 'lowpass', 'savgol', 'kalman']
    assert [each.reach_samples for each in memories] == [2, math.inf, 7, math.inf]
