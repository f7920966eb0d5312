"""RNN, GRU and LSTM against the papers' equations, written out in NumPy, sample by sample."""

import itertools

import jax
import numpy as np
import pytest

from seqmem_ros.nn import Bidirectional
from seqmem_ros.nn import GRU
from seqmem_ros.nn import LSTM
from seqmem_ros.nn import Residual
from seqmem_ros.nn import RNN
from seqmem_ros.nn import Sequential

# (n_in, n_hidden, samples, batch): few shapes, since each one is compiled anew.
SHAPES = [(3, 4, 6, None), (1, 2, 5, 3), (2, 1, 1, None), (4, 3, 4, 2)]
DRAWS = 13  # for each of the 8 variants of a cell: 104 random configurations a cell


def sigmoid(a):
    return 1 / (1 + np.exp(-a))


def gate(p, name, a, f, layer_norm):
    """Give f(a + b), or with normalisation f(g (a - mean) / std + b)."""
    suffix = f'_{name}' if name else ''
    b = p.get('b' + suffix, 0.0)
    if not layer_norm:
        return f(a + b)
    mean, var = np.mean(a), np.mean((a - np.mean(a)) ** 2)
    return f(p['g' + suffix] * (a - mean) / np.sqrt(var + 1e-5) + b)


def rnn_sample(p, x, state, layer_norm, activation='tanh'):
    f = np.tanh if activation == 'tanh' else lambda a: np.maximum(a, 0)
    h = gate(p, '', p['W'] @ x + p['U'] @ state, f, layer_norm)
    return h, h


def gru_sample(p, x, h_prev, layer_norm, reset_after=False):
    r = gate(p, 'r', p['W_r'] @ x + p['U_r'] @ h_prev, sigmoid, layer_norm)
    z = gate(p, 'z', p['W_z'] @ x + p['U_z'] @ h_prev, sigmoid, layer_norm)
    if reset_after:
        recurrent = r * (p['U'] @ h_prev + p.get('b_U', 0.0))
    else:
        recurrent = p['U'] @ (r * h_prev)
    candidate = gate(p, '', p['W'] @ x + recurrent, np.tanh, layer_norm)
    h = z * h_prev + (1 - z) * candidate
    return h, h


def lstm_sample(p, x, state, layer_norm, peepholes=True):
    y_prev, c_prev = state
    p_i, p_f, p_o = (p[n] if peepholes else 0.0 for n in ('p_i', 'p_f', 'p_o'))
    z = gate(p, 'z', p['W_z'] @ x + p['R_z'] @ y_prev, np.tanh, layer_norm)
    i = gate(p, 'i', p['W_i'] @ x + p['R_i'] @ y_prev + p_i * c_prev, sigmoid, layer_norm)
    f = gate(p, 'f', p['W_f'] @ x + p['R_f'] @ y_prev + p_f * c_prev, sigmoid, layer_norm)
    c = z * i + c_prev * f
    o = gate(p, 'o', p['W_o'] @ x + p['R_o'] @ y_prev + p_o * c, sigmoid, layer_norm)
    y = np.tanh(c) * o
    return y, (y, c)


CELLS = {
    'rnn': (RNN, rnn_sample, 'activation', ('tanh', 'relu')),
    'gru': (GRU, gru_sample, 'reset_after', (False, True)),
    'lstm': (LSTM, lstm_sample, 'peepholes', (True, False)),
}
VARIANTS = [
    (cell, {option: value}, bias, layer_norm)
    for cell, (_, _, option, values) in CELLS.items()
    for value, bias, layer_norm in itertools.product(values, (True, False), (False, True))
]


def run_in_numpy(sample, p, seq, state, layer_norm, options):
    outputs = []
    for x in seq:
        y, state = sample(p, x, state, layer_norm, **options)
        outputs.append(y)
    return np.array(outputs), state


def random_state(cell, shape, rng):
    if cell == 'lstm':
        return tuple(rng.standard_normal(shape) for _ in range(2))
    return rng.standard_normal(shape)


@pytest.mark.parametrize('cell, options, bias, layer_norm', VARIANTS)
def test_equals_the_equations(cell, options, bias, layer_norm, x64, randomise, rng):
    layer_class, sample, _, _ = CELLS[cell]
    for draw in range(DRAWS):
        n_in, n_hidden, n_samples, batch = SHAPES[draw % len(SHAPES)]
        layer = layer_class(
            n_in, n_hidden, jax.random.key(draw), bias=bias, layer_norm=layer_norm, **options
        )
        randomise(layer, rng)
        p = {name: np.asarray(param.value) for name, param in layer.named_params().items()}
        axes = () if batch is None else (batch,)
        seq = rng.standard_normal((*axes, n_samples, n_in))
        start = random_state(cell, (*axes, n_hidden), rng)
        zero = jax.tree.map(np.zeros_like, start)

        forward = layer.forward(seq)
        outputs, last = layer.unroll(seq, start)
        step_output, step_state = layer.step(seq[..., 0, :], start)

        for i in range(batch or 1):
            row = (lambda a: a) if batch is None else (lambda a, i=i: a[i])
            rows = lambda tree, row=row: jax.tree.map(row, tree)  # noqa: E731
            expected, _ = run_in_numpy(sample, p, row(seq), rows(zero), layer_norm, options)
            np.testing.assert_allclose(row(forward), expected, rtol=0, atol=1e-10)
            expected, state = run_in_numpy(sample, p, row(seq), rows(start), layer_norm, options)
            np.testing.assert_allclose(row(outputs), expected, rtol=0, atol=1e-10)
            np.testing.assert_allclose(rows(last), state, rtol=0, atol=1e-10)
            y, state = sample(p, row(seq)[0], rows(start), layer_norm, **options)
            np.testing.assert_allclose(row(step_output), y, rtol=0, atol=1e-10)
            np.testing.assert_allclose(rows(step_state), state, rtol=0, atol=1e-10)


def run_layer(cell, layer, seq):
    """Run a layer of default options over one sequence from the zero state."""
    p = {name: np.asarray(param.value) for name, param in layer.named_params().items()}
    zero = np.zeros(layer.n_hidden)
    start = (zero, zero) if cell == 'lstm' else zero
    return run_in_numpy(CELLS[cell][1], p, seq, start, False, {})[0]


@pytest.mark.parametrize('cell', CELLS)
def test_combined_layers_equal_the_equations(cell, x64, randomise, rng, key):
    layer_class = CELLS[cell][0]
    first, second = layer_class(3, 4, key), layer_class(4, 4, key)
    forwards, backwards = layer_class(4, 2, key), layer_class(4, 3, key)
    network = Sequential(first, Residual(second), Bidirectional(forwards, backwards))
    run = jax.jit(lambda network, seq: network.forward(seq))
    for draw in range(34):  # 102 random configurations
        randomise(network, rng)
        batch = rng.standard_normal((2, 5, 3))
        found = run(network, batch) if draw % 2 else run(network, batch[0])[None]
        for seq, y in zip(batch, found):
            h = run_layer(cell, first, seq)
            h = h + run_layer(cell, second, h)
            expected = np.concatenate(
                [run_layer(cell, forwards, h), run_layer(cell, backwards, h[::-1])[::-1]], axis=1
            )
            np.testing.assert_allclose(y, expected, rtol=0, atol=1e-10)


def test_gru_of_size_one_gives_the_number_worked_out_by_hand(key):
    gru = GRU(1, 1, key)
    for name, value in {'W_r': 1, 'U_r': 0, 'W_z': 1, 'U_z': 0, 'W': 2, 'U': 1}.items():
        getattr(gru, name).value = [[value]]
    # r = z = 0.731059, h~ = tanh(2 + 0.365529) = 0.982517, h = 0.365529 + 0.268941 * 0.982517
    h, state = gru.step(np.array([1.0]), np.array([0.5]))
    assert round(float(h[0]), 4) == 0.6298
    assert float(state[0]) == float(h[0])


def test_lstm_of_size_one_gives_the_number_worked_out_by_hand(key):
    lstm = LSTM(1, 1, key)
    for name, param in lstm.named_params().items():
        param.value = np.full(param.shape, 1.0 if name.startswith('W') else 0.0)
    # z = 0.462117, i = f = o = 0.622459, c = 0.412141, y = 0.390289 * 0.622459
    y, (y_state, c) = lstm.step(np.array([0.5]), (np.array([0.1]), np.array([0.2])))
    assert round(float(y[0]), 4) == 0.2429
    assert round(float(c[0]), 4) == 0.4121
    assert float(y_state[0]) == float(y[0])


@pytest.mark.parametrize(
    'layer_class, names',
    [
        (RNN, 'W U b'),
        (GRU, 'W_r U_r b_r W_z U_z b_z W U b'),
        (LSTM, 'W_z W_i W_f W_o R_z R_i R_f R_o b_z b_i b_f b_o p_i p_f p_o'),
    ],
)
def test_parameters_have_the_papers_names_and_shapes(layer_class, names, key):
    named = layer_class(3, 4, key).named_params()
    assert list(named) == names.split()
    for name, param in named.items():
        assert param.shape == {'W': (4, 3), 'U': (4, 4), 'R': (4, 4)}.get(name[0], (4,))


def test_gru_reset_after_has_one_bias_more(key):
    named = GRU(3, 4, key, reset_after=True).named_params()
    assert list(named) == 'W_r U_r b_r W_z U_z b_z W U b b_U'.split()


@pytest.mark.parametrize('forget_bias', [0, 1, 2])
def test_forget_bias_fills_the_bias_of_the_forget_gate_alone(forget_bias, key):
    lstm = LSTM(2, 3, key, forget_bias=forget_bias)
    np.testing.assert_array_equal(lstm.b_f.value, np.full(3, forget_bias))
    for name in ('b_z', 'b_i', 'b_o'):
        np.testing.assert_array_equal(getattr(lstm, name).value, np.zeros(3))


def test_an_open_forget_gate_keeps_the_cell(key):
    lstm = LSTM(1, 1, key, forget_bias=2)
    for name, param in lstm.named_params().items():
        if name != 'b_f':
            param.value = 0
    _, (_, c) = lstm.step(np.zeros(1), (np.zeros(1), np.ones(1)))
    assert float(c[0]) == pytest.approx(1 / (1 + np.exp(-2)), abs=1e-6)


def test_zero_states_have_the_promised_shapes(key):
    assert GRU(3, 4, key).init_state().shape == (4,)
    assert RNN(3, 4, key).init_state(batch=5).shape == (5, 4)
    y, c = LSTM(3, 4, key).init_state(batch=5)
    assert y.shape == c.shape == (5, 4)
    assert not np.any(y) and not np.any(c)


def test_initialisers_reach_the_matrices_they_are_meant_for(key):
    layer = GRU(3, 3, key, initializer='zeros', recurrent_initializer='scaled_identity')
    for name in ('W', 'W_r', 'W_z'):
        np.testing.assert_array_equal(getattr(layer, name).value, np.zeros((3, 3)))
    for name in ('U', 'U_r', 'U_z'):
        np.testing.assert_array_equal(getattr(layer, name).value, np.eye(3))
    both = LSTM(3, 3, key, initializer='orthogonal')
    for name in ('W_z', 'R_o'):
        matrix = np.asarray(getattr(both, name).value)
        np.testing.assert_allclose(matrix @ matrix.T, np.eye(3), atol=1e-6)


def test_no_two_matrices_start_alike(key):
    matrices = [p.value for p in LSTM(3, 3, key).params() if p.value.ndim == 2]
    for a, b in itertools.combinations(matrices, 2):
        assert np.abs(a - b).max() > 0.1
