"""Optimisers, compiled steps and truncated backpropagation through time."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from seqmem_ros.nn import Bidirectional
from seqmem_ros.nn import causal_transformer
from seqmem_ros.nn import Dense
from seqmem_ros.nn import GRU
from seqmem_ros.nn import LSTM
from seqmem_ros.nn import recurrent_net
from seqmem_ros.nn import RNN
from seqmem_ros.offline.losses import mse
from seqmem_ros.offline.training import make_optimizer
from seqmem_ros.offline.training import make_train_step
from seqmem_ros.offline.training import make_window_step
from seqmem_ros.offline.training import unroll
from seqmem_ros.offline.training import unroll_truncated
from seqmem_ros.offline.training import windows_of

KEY = jax.random.key(0)


def _sequences(n_in=3, n_out=2, batch=2, n_samples=10):
    rng = np.random.default_rng(0)
    inputs = jnp.array(rng.normal(size=(batch, n_samples, n_in)), jnp.float32)
    targets = jnp.array(rng.normal(size=(batch, n_samples, n_out)), jnp.float32)
    return inputs, targets


def _flat(network):
    return np.concatenate([np.ravel(p.value) for p in network.params()])


@pytest.mark.parametrize('size', [0.3, 3.0])
def test_clipping_scales_all_parameters_together(size):
    network = Dense(3, 2, KEY)
    rng = np.random.default_rng(0)
    gradient = jax.tree.map(lambda p: jnp.array(rng.normal(size=p.shape)), network)
    flat = _flat(gradient)
    gradient = jax.tree.map(lambda g: g * size / np.linalg.norm(flat), gradient)
    optimizer = make_optimizer('sgd', learning_rate=0.1, max_grad_norm=1.0)
    updates, _ = optimizer.update(gradient, optimizer.init(network), network)
    # Below the limit nothing changes, above it the direction is kept and the length is 1.
    expected = -0.1 * flat / np.linalg.norm(flat) * min(size, 1.0)
    np.testing.assert_allclose(_flat(updates), expected, rtol=1e-5)


def test_adam_step_against_its_formula():
    network = Dense(2, 1, KEY, bias=False)
    before = _flat(network)
    inputs, targets = jnp.array([[1.0, 2.0]]), jnp.array([[3.0]])
    optimizer = make_optimizer('adam', learning_rate=0.01, max_grad_norm=None)
    step = make_train_step(lambda net, x, d: mse(net.forward(x), d), optimizer)
    after, _, value = step(network, optimizer.init(network), inputs, targets)
    error = before @ np.array([1.0, 2.0]) - 3.0
    gradient = 2 * error * np.array([1.0, 2.0])
    # Kingma and Ba, Algorithm 1, at t = 1: the bias corrections cancel.
    expected = before - 0.01 * gradient / (np.abs(gradient) + 1e-8)
    assert value == pytest.approx(error**2, rel=1e-5)
    np.testing.assert_allclose(_flat(after), expected, rtol=1e-5)


@pytest.mark.parametrize('name', ['adam', 'adamw', 'rmsprop', 'sgd'])
def test_every_optimizer_fits_a_line(name):
    x = jnp.linspace(-1, 1, 21)[:, None]
    network = Dense(1, 1, KEY)
    optimizer = make_optimizer(name, learning_rate=0.05)
    step = make_train_step(lambda net, x, d: mse(net.forward(x), d), optimizer)
    opt_state = optimizer.init(network)
    for _ in range(300):
        network, opt_state, _ = step(network, opt_state, x, 0.5 * x - 0.2)
    np.testing.assert_allclose(_flat(network), [0.5, -0.2], atol=0.03)


def test_optimizer_errors_say_what_to_do():
    with pytest.raises(ValueError, match="unknown optimizer 'lion'; choose one of adam, adamw"):
        make_optimizer('lion')
    with pytest.raises(ValueError, match='max_grad_norm: expected a number above 0 or None'):
        make_optimizer(max_grad_norm=0)


NETWORKS = {
    'rnn': lambda: recurrent_net(3, 4, 2, KEY, cell='rnn'),
    'gru': lambda: recurrent_net(3, 4, 2, KEY, cell='gru', n_layers=2),
    'lstm': lambda: recurrent_net(3, 4, 2, KEY, cell='lstm'),
    'attention': lambda: causal_transformer(3, 4, 2, 8, 1, 2, KEY, window=4),
}


@pytest.mark.parametrize('name', NETWORKS)
def test_unroll_equals_forward_and_goes_on_from_its_state(name):
    network = NETWORKS[name]()
    inputs, _ = _sequences()
    expected = network.forward(inputs)
    outputs, _ = unroll(network, inputs)
    np.testing.assert_allclose(outputs, expected, atol=1e-5)
    first, state = unroll(network, inputs[:, :6])
    second, _ = unroll(network, inputs[:, 6:], state)
    np.testing.assert_allclose(jnp.concatenate([first, second], 1), expected, atol=1e-5)


@pytest.mark.parametrize('name', NETWORKS)
def test_truncation_keeps_the_value(name):
    network = NETWORKS[name]()
    inputs, _ = _sequences()
    outputs, state = unroll(network, inputs)
    cut_outputs, cut_state = unroll_truncated(network, inputs, window=3)
    np.testing.assert_array_equal(cut_outputs, outputs)
    for cut, whole in zip(jax.tree.leaves(cut_state), jax.tree.leaves(state)):
        np.testing.assert_array_equal(cut, whole)


@pytest.mark.parametrize('cell', [RNN, GRU, LSTM])
@pytest.mark.parametrize('window', [1, 3, 4, 10])
def test_truncated_gradient_is_the_sum_over_windows_with_given_states(cell, window):
    layer = cell(3, 4, KEY)
    inputs, targets = _sequences(n_out=4)

    def truncated(layer):
        return mse(unroll_truncated(layer, inputs, window)[0], targets)

    # The same without stop_gradient: states are computed beforehand, so they are numbers.
    states, state = [], None
    for start in range(0, 10, window):
        states.append(state)
        state = layer.unroll(inputs[:, start : start + window], state)[1]

    def windowed(layer):
        parts = []
        for start, state in zip(range(0, 10, window), states):
            parts.append(layer.unroll(inputs[:, start : start + window], state)[0])
        return mse(jnp.concatenate(parts, 1), targets)

    np.testing.assert_allclose(
        _flat(jax.grad(truncated)(layer)), _flat(jax.grad(windowed)(layer)), atol=1e-6
    )


def test_truncated_gradient_differs_from_the_whole_one_by_hand():
    # h_t = tanh(w x_t + u h_(t-1)), two samples, loss h_2: the whole dh_2/du has the term
    # (1 - h_2^2) u (1 - h_1^2) h_0 = 0, dh_2/dw has (1 - h_2^2) u (1 - h_1^2) x_1 more.
    layer = RNN(1, 1, KEY, bias=False)
    layer.W.value, layer.U.value = 0.7, 0.9
    seq = jnp.array([[0.5], [-0.4]])
    h_1 = np.tanh(0.7 * 0.5)
    h_2 = np.tanh(0.7 * -0.4 + 0.9 * h_1)
    cut = jax.grad(lambda net: unroll_truncated(net, seq, 1)[0][1, 0])(layer).W.value
    whole = jax.grad(lambda net: unroll_truncated(net, seq, 2)[0][1, 0])(layer).W.value
    assert cut.item() == pytest.approx((1 - h_2**2) * -0.4, rel=1e-5)
    assert whole.item() == pytest.approx(
        (1 - h_2**2) * (-0.4 + 0.9 * (1 - h_1**2) * 0.5), rel=1e-5
    )


def test_initial_state_is_not_cut():
    layer = RNN(1, 1, KEY, bias=False)
    layer.U.value = 0.9
    seq = jnp.zeros((1, 1))
    gradient = jax.grad(lambda h: unroll_truncated(layer, seq, 1, h)[0][0, 0])(jnp.array([0.0]))
    assert gradient.item() == pytest.approx(0.9, rel=1e-6)


def test_window_steps_equal_the_same_steps_written_out():
    network = recurrent_net(3, 4, 2, KEY, cell='gru')
    inputs, targets = _sequences()
    mask = jnp.array(np.arange(10) < np.array([[10], [7]]))
    optimizer = optax.sgd(0.1)
    window_step = make_window_step(mse, optimizer)

    got, opt_state, state = network, optimizer.init(network), network.init_state(2)
    values = []
    for x, d, m in windows_of(4, inputs, targets, mask):
        got, opt_state, state, value = window_step(got, opt_state, state, x, d, m)
        values.append(value)

    expected = network
    hidden = jnp.zeros((2, 4))
    for index, start in enumerate((0, 4, 8)):
        part = slice(start, start + 4)

        def loss(net, part=part, hidden=hidden):
            gru, dense = net.layers
            outputs, last = gru.unroll(inputs[:, part], hidden)
            return mse(dense.forward(outputs), targets[:, part], mask[:, part]), last

        (value, hidden), gradient = jax.value_and_grad(loss, has_aux=True)(expected)
        expected = jax.tree.map(lambda p, g: p - 0.1 * g, expected, gradient)
        assert values[index] == pytest.approx(value.item(), rel=1e-5)
    np.testing.assert_allclose(_flat(got), _flat(expected), atol=1e-6)


def test_windows_of_cuts_and_keeps_none():
    inputs, targets = _sequences()
    parts = list(windows_of(4, inputs, None, targets))
    assert [part[0].shape[1] for part in parts] == [4, 4, 2]
    assert all(part[1] is None for part in parts)
    np.testing.assert_array_equal(jnp.concatenate([part[2] for part in parts], 1), targets)


def test_errors_say_what_was_expected():
    inputs, targets = _sequences()
    with pytest.raises(ValueError, match='window: expected at least 1 sample, got 0'):
        unroll_truncated(GRU(3, 4, KEY), inputs, 0)
    with pytest.raises(ValueError, match='window: expected at least 1 sample, got 0'):
        next(windows_of(0, inputs))
    with pytest.raises(ValueError, match=r'sequences of one length, got \[9, 10\]'):
        next(windows_of(4, inputs, targets[:, :9]))
    both_ways = Bidirectional(GRU(3, 4, KEY), GRU(3, 4, KEY))
    with pytest.raises(ValueError, match='Bidirectional cannot stream'):
        unroll(both_ways, inputs)
