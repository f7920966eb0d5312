"""Dense, LayerNorm, Dropout, pooling, positions and combinations, in NumPy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from seqmem_ros.nn import AddPositions
from seqmem_ros.nn import Bidirectional
from seqmem_ros.nn import Dense
from seqmem_ros.nn import Dropout
from seqmem_ros.nn import GRU
from seqmem_ros.nn import LastStep
from seqmem_ros.nn import LayerNorm
from seqmem_ros.nn import LSTM
from seqmem_ros.nn import MeanOverTime
from seqmem_ros.nn import Residual
from seqmem_ros.nn import RNN
from seqmem_ros.nn import rotate
from seqmem_ros.nn import Sequential
from seqmem_ros.nn import sinusoids

ACTIVATIONS = {
    None: lambda a: a,
    'tanh': np.tanh,
    'relu': lambda a: np.where(a > 0, a, 0),
    'sigmoid': lambda a: 1 / (1 + np.exp(-a)),
}


@pytest.mark.parametrize('activation', ACTIVATIONS)
def test_dense_equals_the_formula(activation, x64, rng, randomise, key):
    for draw in range(25):  # 100 random configurations in all
        layer = randomise(Dense(3, 2, key, activation=activation, bias=draw % 2 == 0), rng)
        x = rng.standard_normal([(3,), (5, 3), (2, 5, 3)][draw % 3])
        W = np.asarray(layer.W.value)
        b = np.zeros(2) if layer.b is None else np.asarray(layer.b.value)
        expected = np.empty((*x.shape[:-1], 2))
        for index in np.ndindex(expected.shape):
            a = sum(W[index[-1], j] * x[(*index[:-1], j)] for j in range(3)) + b[index[-1]]
            expected[index] = ACTIVATIONS[activation](a)
        np.testing.assert_allclose(layer.forward(x), expected, rtol=0, atol=1e-12)


def test_layer_norm_equals_the_formula(x64, rng, randomise):
    for draw in range(100):
        layer = randomise(LayerNorm(4), rng)
        x = rng.standard_normal([(4,), (5, 4), (2, 5, 4)][draw % 3]) * 10.0 ** (draw % 7 - 3)
        g, b = np.asarray(layer.g.value), np.asarray(layer.b.value)
        expected = np.empty_like(x)
        for index in np.ndindex(x.shape[:-1]):
            mean = sum(x[index]) / 4
            variance = sum((x[index] - mean) ** 2) / 4
            expected[index] = g * (x[index] - mean) / (variance + 1e-5) ** 0.5 + b
        np.testing.assert_allclose(layer.forward(x), expected, rtol=0, atol=1e-10)


def test_dropout_without_a_key_changes_nothing(rng):
    x = rng.standard_normal((5, 3)).astype(np.float32)
    layer = Dropout(0.9)
    np.testing.assert_array_equal(layer.forward(x), x)
    y, state = layer.step(x[0], layer.init_state())
    np.testing.assert_array_equal(y, x[0])
    assert state == ()
    np.testing.assert_array_equal(Dropout(0.0).forward(x, jax.random.key(0)), x)


@pytest.mark.parametrize('rate', [0.1, 0.5, 0.8])
def test_dropout_keeps_the_mean_and_drops_its_share(rate):
    x = np.full((400, 50), 3.0, np.float32)
    y = np.asarray(Dropout(rate).forward(x, jax.random.key(2)))
    dropped = y == 0
    np.testing.assert_allclose(y[~dropped], 3 / (1 - rate), rtol=1e-6)
    # Four standard deviations of the share among 20000 independent elements.
    assert abs(dropped.mean() - rate) < 4 * np.sqrt(rate * (1 - rate) / x.size)
    assert (Dropout(rate).forward(x, jax.random.key(3)) == 0).tolist() != dropped.tolist()


def test_dropout_gives_every_layer_its_own_mask():
    x = np.ones((50, 4), np.float32)
    twice = Sequential(Dropout(0.5), Dropout(0.5)).forward(x, jax.random.key(0))
    assert set(np.unique(twice)) == {0.0, 4.0}
    assert abs((twice == 0).mean() - 0.75) < 0.15
    both = Bidirectional(Dropout(0.5), Dropout(0.5)).forward(x, jax.random.key(0))
    assert (both[:, :4] != both[:, 4:]).any()


@pytest.mark.parametrize('rate', [-0.1, 1.0, 1.5])
def test_dropout_rates_that_make_no_sense_are_refused(rate):
    with pytest.raises(ValueError, match=f'rate must be at least 0 and below 1, got {rate}'):
        Dropout(rate)


def test_mean_and_last_equal_numpy(x64, rng):
    for draw in range(100):
        seq = rng.standard_normal([(1, 3), (4, 3), (2, 4, 3), (3, 7, 2)][draw % 4])
        expected = sum(seq[..., t, :] for t in range(seq.shape[-2])) / seq.shape[-2]
        np.testing.assert_allclose(MeanOverTime().forward(seq), expected, rtol=0, atol=1e-12)
        n = min(3, seq.shape[-2])
        expected = sum(seq[..., -1 - t, :] for t in range(n)) / n
        np.testing.assert_allclose(MeanOverTime(3).forward(seq), expected, rtol=0, atol=1e-12)
        np.testing.assert_array_equal(LastStep().forward(seq), seq[..., -1, :])


@pytest.mark.parametrize('window', [None, 4])
@pytest.mark.parametrize('batch', [None, 2])
def test_running_mean_equals_numpy(window, batch, rng):
    seq = 100 + rng.standard_normal((50, *(() if batch is None else (batch,)), 3))
    layer = MeanOverTime(window)
    state = layer.init_state(batch, n_in=3)
    for t, x in enumerate(seq):
        y, state = layer.step(x, state)
        first = 0 if window is None else max(0, t + 1 - window)
        np.testing.assert_allclose(y, seq[first : t + 1].mean(0), rtol=1e-6)


def test_running_mean_never_overflows_its_count():
    layer = MeanOverTime()
    state = (jnp.array([5.0]), jnp.array(2**24, jnp.int32))
    y, (_, count) = layer.step(jnp.array([5.0 + 2**20]), state)
    assert int(count) == 2**24
    np.testing.assert_allclose(y, [5.0625])


def test_mean_needs_to_know_its_width():
    with pytest.raises(ValueError, match='MeanOverTime cannot know how wide its memory must be'):
        MeanOverTime().init_state()
    with pytest.raises(ValueError, match='MeanOverTime cannot know how wide'):
        Sequential(Dropout(0.1), MeanOverTime()).init_state()
    assert Sequential(Dropout(0.1), MeanOverTime()).init_state(n_in=3)[1][0].shape == (3,)
    with pytest.raises(ValueError, match='window must be at least 1 sample, got 0'):
        MeanOverTime(0)


@pytest.mark.parametrize('d_model', [1, 4, 5])
def test_sinusoids_equal_the_formula(d_model, x64):
    table = sinusoids(jnp.arange(50), d_model)
    assert table.shape == (50, d_model)
    for position in range(50):
        for feature in range(d_model):
            angle = position / 10000 ** ((feature - feature % 2) / d_model)
            expected = np.cos(angle) if feature % 2 else np.sin(angle)
            assert float(table[position, feature]) == pytest.approx(expected, abs=1e-12)


def test_positions_are_added_to_sequences_and_batches(x64, rng):
    for draw in range(100):
        seq = rng.standard_normal([(9, 4), (1, 4), (5, 6), (2, 5, 6)][draw % 4])
        d_model = seq.shape[-1]
        expected = seq.copy()
        for t, i in np.ndindex(seq.shape[-2], d_model // 2):
            angle = t / 10000 ** (2 * i / d_model)
            expected[..., t, 2 * i] += np.sin(angle)
            expected[..., t, 2 * i + 1] += np.cos(angle)
        found = AddPositions(9, d_model).forward(seq)
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)


def test_positions_beyond_the_longest_sequence():
    layer = AddPositions(3, 4)
    with pytest.raises(ValueError, match='sequence of 4 samples is longer than max_len=3; cut it'):
        layer.forward(np.zeros((4, 4)))
    state, outputs = layer.init_state(), []
    for _ in range(6):
        y, state = layer.step(np.zeros(4, np.float32), state)
        outputs.append(np.asarray(y))
    np.testing.assert_array_equal(outputs[3:], [outputs[2]] * 3)
    assert np.abs(outputs[2] - outputs[1]).max() > 0.1


def test_rotation_equals_complex_multiplication(x64, rng):
    for draw in range(100):
        d = [2, 4, 6][draw % 3]
        x = rng.standard_normal((5, d))
        positions = rng.integers(-50, 50, 5)
        found = np.asarray(rotate(x, positions))
        for t in range(5):
            for i in range(d // 2):
                angle = positions[t] * 10000 ** (-2 * i / d)
                turned = (x[t, 2 * i] + 1j * x[t, 2 * i + 1]) * np.exp(1j * angle)
                assert found[t, 2 * i] == pytest.approx(turned.real, abs=1e-12)
                assert found[t, 2 * i + 1] == pytest.approx(turned.imag, abs=1e-12)


def run_forwards(layer, seq):
    state, outputs = layer.init_state(), []
    for x in seq:
        y, state = layer.step(x, state)
        outputs.append(y)
    return np.array(outputs)


@pytest.mark.parametrize('cell', [RNN, GRU, LSTM])
def test_bidirectional_equals_two_runs(cell, x64, rng, randomise, key):
    for _ in range(5):
        forwards, backwards = (randomise(cell(3, n, key), rng) for n in (4, 2))
        layer = Bidirectional(forwards, backwards)
        seq = rng.standard_normal((5, 3))
        expected = np.concatenate(
            [run_forwards(forwards, seq), run_forwards(backwards, seq[::-1])[::-1]], axis=1
        )
        np.testing.assert_allclose(layer.forward(seq), expected, rtol=0, atol=1e-12)
        both = np.stack([seq, seq + 1])
        np.testing.assert_allclose(layer.forward(both)[0], expected, rtol=0, atol=1e-12)
    assert layer.width_after(3) == 6


def test_residual_adds_the_input(x64, rng, randomise, key):
    layer = randomise(Dense(3, 3, key), rng)
    seq = rng.standard_normal((5, 3))
    expected = seq + seq @ np.asarray(layer.W.value).T + np.asarray(layer.b.value)
    np.testing.assert_allclose(Residual(layer).forward(seq), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    'run, text',
    [
        (
            lambda k: Residual(Dense(3, 2, k)).forward(np.ones((5, 3))),
            r'Residual expected Dense to keep the shape \(5, 3\) of its input, got \(5, 2\)',
        ),
        (
            lambda k: Residual(GRU(3, 2, k)).step(np.ones(3), np.zeros(2)),
            r'Residual expected GRU to keep the shape \(3,\) of its input, got \(2,\)',
        ),
        (lambda k: Residual(LastStep()), 'Residual needs one output for each sample; LastStep'),
        (
            lambda k: Bidirectional(GRU(3, 2, k), Sequential(GRU(3, 2, k), MeanOverTime())),
            'Bidirectional needs one output for each sample; Sequential gives one',
        ),
        (
            lambda k: Bidirectional(GRU(3, 2, k), GRU(3, 2, k)).init_state(),
            'Bidirectional cannot stream: it reads the sequence from its end as well. Use forward',
        ),
        (
            lambda k: Bidirectional(GRU(3, 2, k), GRU(3, 2, k)).step(np.ones(3), ()),
            'Bidirectional cannot stream: it reads the sequence from its end as well',
        ),
        (
            lambda k: Residual(Bidirectional(GRU(2, 1, k), GRU(2, 1, k))).init_state(),
            'Residual cannot stream: it reads the sequence from its end as well',
        ),
        (
            lambda k: Sequential(
                Dense(2, 2, k), Sequential(Dropout(0.1), Bidirectional(GRU(2, 1, k), GRU(2, 1, k)))
            ).init_state(),
            r'Sequential cannot stream: layer 1 \(Sequential\): layer 1 \(Bidirectional\): it',
        ),
        (
            lambda k: Sequential(Bidirectional(GRU(2, 1, k), GRU(2, 1, k))).step(
                np.ones(2), ((),)
            ),
            r'Sequential cannot stream: layer 0 \(Bidirectional\): it reads the sequence from its',
        ),
        (
            lambda k: LSTM(3, 2, k).step(np.ones(3), np.zeros(2)),
            r'LSTM expected its state as the pair \(y, c\); make it with init_state',
        ),
        (
            lambda k: LSTM(3, 2, k, bias=False, forget_bias=1),
            'forget_bias=1 needs bias=True',
        ),
        (
            lambda k: RNN(3, 2, k, activation='sigmoid'),
            "unknown activation 'sigmoid'; choose one of tanh, relu$",
        ),
        (
            lambda k: Dense(3, 2, k, activation='swish'),
            "unknown activation 'swish'; choose one of tanh, relu, gelu, sigmoid",
        ),
    ],
)
def test_errors_say_what_to_do(run, text, key):
    with pytest.raises(ValueError, match=text):
        run(key)
