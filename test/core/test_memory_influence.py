"""Influence and gradients against differences of NumPy networks, written out here."""

import jax
import numpy as np
import pytest

from seqmem_ros.core.memory_influence import gradient_along
from seqmem_ros.core.memory_influence import influence
from seqmem_ros.nn import Dense
from seqmem_ros.nn import LSTM
from seqmem_ros.nn import recurrent_net
from seqmem_ros.nn import Residual
from seqmem_ros.nn import RNN
from seqmem_ros.nn import Sequential

KEY = jax.random.key(0)


def rotation(angle_rad):
    c, s = np.cos(angle_rad), np.sin(angle_rad)
    return np.array([[c, -s], [s, c]])


@pytest.mark.parametrize(
    ('gain', 'expected'),
    [
        (0.5, [0.4266, 0.0083, 0.0001, 0.0]),
        (0.9, [0.7679, 0.0989, 0.0152, 0.0004]),
        (1.5, [1.2798, 0.8562, 1.2180, 1.1539]),
        (2.0, [1.7064, 2.2703, 2.4696, 1.3574]),
    ],
)
def test_influence_of_two_units_that_turn(gain, expected):
    layer = RNN(2, 2, KEY, bias=False)
    layer.W.value, layer.U.value = np.eye(2), gain * rotation(0.8)
    got = [influence(layer, np.tile([0.5, -0.3], (n, 1)))[0] for n in (1, 5, 10, 20)]
    np.testing.assert_allclose(got, expected, atol=6e-5)


def lstm_run(p, xs, s):
    for x in xs:
        y, c = np.split(s, 2)
        a = {g: p[f'W_{g}'] @ x + p[f'R_{g}'] @ y + p[f'b_{g}'] for g in 'zifo'}
        i = 1 / (1 + np.exp(-a['i'] - p['p_i'] * c))
        f = 1 / (1 + np.exp(-a['f'] - p['p_f'] * c))
        c = np.tanh(a['z']) * i + f * c
        o = 1 / (1 + np.exp(-a['o'] - p['p_o'] * c))
        s = np.concatenate([o * np.tanh(c), c])
    return s


def test_influence_of_an_lstm_against_differences():
    rng = np.random.default_rng(1)
    layer = LSTM(3, 2, KEY)
    for param in layer.params():
        param.value = rng.normal(size=param.shape) * 0.8
    p = {name: np.asarray(v.value, np.float64) for name, v in layer.named_params().items()}
    xs = rng.normal(size=(6, 3))
    expected = []
    for k in range(7):
        at = lstm_run(p, xs[:k], np.zeros(4))
        columns = []
        for j in range(4):
            nudge = np.eye(4)[j] * 1e-6
            columns.append(
                (lstm_run(p, xs[k:], at + nudge) - lstm_run(p, xs[k:], at - nudge)) / 2e-6
            )
        expected.append(np.linalg.norm(columns) / 2)  # sqrt(S) = 2
    np.testing.assert_allclose(influence(layer, xs), expected, atol=1e-4)
    assert influence(layer, xs)[-1] == 1.0


def test_influence_goes_on_from_a_given_state():
    layer = RNN(1, 1, KEY, bias=False)
    layer.W.value, layer.U.value = 0.0, 0.8
    # h_1 = tanh(0.8 h_0): dh_1/dh_0 = 0.8 (1 - h_1^2).
    got = influence(layer, np.zeros((1, 1)), jax.numpy.array([1.5]))
    assert got[0] == pytest.approx(0.8 * (1 - np.tanh(1.2) ** 2), rel=1e-5)


def stack_loss(p, xs, n_last, nudge=None, residual=False):
    """Two RNN layers and a dense one; ``nudge`` = (layer, sample, vector) is added to a state."""
    h = [np.zeros(3), np.zeros(3)]
    outputs = []
    for t, x in enumerate(xs):
        for n in range(2):
            below = x
            h[n] = np.tanh(p[f'W{n}'] @ below + p[f'U{n}'] @ h[n] + p[f'b{n}'])
            if nudge is not None and nudge[:2] == (n, t):
                h[n] = h[n] + nudge[2]
            x = h[n] + below if residual and n == 1 else h[n]
        outputs.append(p['W'] @ x + p['b'])
    return np.mean(np.square(outputs[-n_last:]))


@pytest.mark.parametrize('residual', [False, True])
@pytest.mark.parametrize('n_last', [1, 3])
def test_gradient_along_two_layers_against_differences(n_last, residual):
    rng = np.random.default_rng(2)
    network = recurrent_net(2, 3, 2, KEY, cell='rnn', n_layers=2)
    for param in network.params():
        param.value = rng.normal(size=param.shape) * 0.7
    first, second, dense = network.layers
    p = {'W': dense.W, 'b': dense.b}
    for n, layer in enumerate((first, second)):
        p.update({f'W{n}': layer.W, f'U{n}': layer.U, f'b{n}': layer.b})
    p = {name: np.asarray(v.value, np.float64) for name, v in p.items()}
    if residual:
        network = Sequential(first, Residual(second), dense)
    xs = rng.normal(size=(5, 2))
    got = gradient_along(network, xs, n_last)
    for n in range(2):
        expected = []
        for t in range(5):
            gradient = [
                stack_loss(p, xs, n_last, (n, t, e * 1e-6), residual)
                - stack_loss(p, xs, n_last, (n, t, -e * 1e-6), residual)
                for e in np.eye(3)
            ]
            expected.append(np.linalg.norm(gradient) / 2e-6)
        np.testing.assert_allclose(got[f'layers.{n}'], expected, rtol=2e-3, atol=1e-5)


def test_gradient_along_an_lstm_reaches_the_cell():
    # Forget gate open, input gate shut: the gradient with respect to c travels unchanged.
    layer = LSTM(1, 1, KEY, peepholes=False)
    for param in layer.params():
        param.value = 0.0
    layer.b_f.value, layer.b_i.value, layer.b_o.value = 20.0, -20.0, 20.0
    got = gradient_along(layer, np.zeros((4, 1)), 1, loss=lambda y: y.sum())['layers.0']
    # At the last sample y itself is asked for; before it, dL/dc = o (1 - tanh^2 c) = 1 at c = 0.
    np.testing.assert_allclose(got, [1, 1, 1, 1], rtol=1e-5)


def test_errors_say_what_was_expected():
    with pytest.raises(ValueError, match='n_last: expected 1 to 4 outputs, got 5'):
        gradient_along(RNN(1, 1, KEY), np.zeros((4, 1)), 5)
    with pytest.raises(ValueError, match='expected a network with an RNN, GRU or LSTM, got none'):
        gradient_along(Dense(1, 1, KEY), np.zeros((4, 1)))
