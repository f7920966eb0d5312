"""Poles and modes against closed forms, Jacobians against differences of NumPy cells."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from seqmem_ros.core.memory_linear import linear_memory
from seqmem_ros.core.memory_linear import linearise
from seqmem_ros.core.memory_linear import one_pole
from seqmem_ros.core.memory_linear import settled_state
from seqmem_ros.core.memory_linear import unit_poles
from seqmem_ros.nn import GRU
from seqmem_ros.nn import LSTM
from seqmem_ros.nn import RNN

KEY = jax.random.key(0)


@pytest.mark.parametrize(
    ('pole', 'horizon'), [(0.9, 9.491), (0.99, 99.499), (0.999, 999.5), (-0.5, 1.4427)]
)
def test_one_pole_horizon(pole, horizon):
    filter_ = one_pole(pole)
    assert filter_.horizon_samples == pytest.approx(horizon, rel=1e-4)
    # After that many samples 1/e is left.
    assert abs(pole) ** filter_.horizon_samples == pytest.approx(1 / math.e, rel=1e-12)


def test_one_pole_dc_gain_is_where_a_constant_input_ends():
    h = 0.0
    for _ in range(500):
        h = 0.9 * h + 0.4
    assert one_pole(0.9, 0.4).dc_gain == pytest.approx(h, rel=1e-12)


def test_poles_that_never_forget():
    assert one_pole(1.0).horizon_samples == math.inf
    assert one_pole(1.2, -0.5).dc_gain == -math.inf
    assert one_pole(0.0) == (0.0, 0.0, 1.0)


def test_damped_rotation():
    memory = linear_memory([[0.9, 0.3], [-0.3, 0.9]])
    assert memory.spectral_radius == pytest.approx(math.sqrt(0.9), rel=1e-12)
    assert memory.largest_singular_value == pytest.approx(math.sqrt(0.9), rel=1e-12)
    for mode in memory.modes:
        assert abs(mode.value.imag) == pytest.approx(0.3, rel=1e-12)
        assert math.degrees(2 * math.pi / mode.period_samples) == pytest.approx(18.435, abs=1e-3)
        assert mode.period_samples == pytest.approx(19.528, abs=1e-3)
        assert mode.horizon_samples == pytest.approx(18.98, abs=0.01)


def test_radius_and_singular_value_differ_where_the_matrix_is_not_normal():
    memory = linear_memory([[0.5, 10.0], [0.0, 0.25]])
    assert [mode.radius for mode in memory.modes] == [0.5, 0.25]
    # Largest root of s^4 - (0.5^2 + 10^2 + 0.25^2) s^2 + (0.5 0.25)^2 = 0.
    square = (100.3125 + math.sqrt(100.3125**2 - 4 * 0.125**2)) / 2
    assert memory.largest_singular_value == pytest.approx(math.sqrt(square), rel=1e-12)


def test_periods_of_real_modes():
    memory = linear_memory(np.diag([0.8, -0.5]))
    assert [mode.period_samples for mode in memory.modes] == [math.inf, 2.0]


def sigmoid(a):
    return 1 / (1 + np.exp(-a))


def rnn_step(p, x, s):
    return np.tanh(p['W'] @ x + p['U'] @ s + p['b'])


def gru_step(p, x, s):
    r = sigmoid(p['W_r'] @ x + p['U_r'] @ s + p['b_r'])
    z = sigmoid(p['W_z'] @ x + p['U_z'] @ s + p['b_z'])
    return z * s + (1 - z) * np.tanh(p['W'] @ x + p['U'] @ (r * s) + p['b'])


def lstm_step(p, x, s):
    y, c = np.split(s, 2)
    z = np.tanh(p['W_z'] @ x + p['R_z'] @ y + p['b_z'])
    i = sigmoid(p['W_i'] @ x + p['R_i'] @ y + p['p_i'] * c + p['b_i'])
    f = sigmoid(p['W_f'] @ x + p['R_f'] @ y + p['p_f'] * c + p['b_f'])
    c = z * i + f * c
    o = sigmoid(p['W_o'] @ x + p['R_o'] @ y + p['p_o'] * c + p['b_o'])
    return np.concatenate([o * np.tanh(c), c])


def differences(step, at):
    columns = []
    for j in range(len(at)):
        nudge = np.zeros(len(at))
        nudge[j] = 1e-6
        columns.append((step(at + nudge) - step(at - nudge)) / 2e-6)
    return np.stack(columns, axis=1)


@pytest.mark.parametrize(('cell', 'step'), [(RNN, rnn_step), (GRU, gru_step), (LSTM, lstm_step)])
def test_linearise_against_differences(cell, step):
    rng = np.random.default_rng(0)
    layer = cell(3, 4, KEY)
    for param in layer.params():
        param.value = rng.normal(size=param.shape) * 0.7
    p = {name: np.asarray(v.value, np.float64) for name, v in layer.named_params().items()}
    x = rng.normal(size=3)
    flat = rng.normal(size=8 if cell is LSTM else 4) * 0.5
    state = tuple(jnp.array(np.split(flat, 2))) if cell is LSTM else jnp.array(flat)
    A, B = linearise(layer, x, state)
    np.testing.assert_allclose(A, differences(lambda s: step(p, x, s), flat), atol=1e-5)
    np.testing.assert_allclose(B, differences(lambda u: step(p, u, flat), x), atol=1e-5)


def test_settled_state_is_where_a_step_changes_nothing():
    layer = GRU(2, 3, KEY)
    x = np.array([0.4, -0.2])
    state = settled_state(layer, x)
    np.testing.assert_allclose(layer.step(jnp.array(x), state)[1], state, atol=1e-6)
    assert np.abs(state).max() > 0.01


def test_units_of_a_gated_cell_are_one_pole_filters():
    # Without recurrent weights a GRU at rest is h' = z h + (1 - z) W x with z = sigmoid(b_z).
    layer = GRU(1, 2, KEY)
    layer.U.value = layer.U_r.value = layer.U_z.value = 0.0
    layer.b_z.value = np.log([9.0, 99.0])  # z = 0.9, 0.99
    layer.W.value = [[2.0], [-3.0]]
    poles = unit_poles(*linearise(layer, np.zeros(1), layer.init_state()))
    np.testing.assert_allclose([p.pole for p in poles], [0.9, 0.99], rtol=1e-5)
    np.testing.assert_allclose([p.horizon_samples for p in poles], [9.491, 99.499], rtol=1e-3)
    np.testing.assert_allclose([p.dc_gain for p in poles], [2.0, -3.0], rtol=1e-3)
