"""Padded batches: every result equals that of the sequence alone, whatever the padding holds."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from seqmem_ros.nn import Bidirectional
from seqmem_ros.nn import causal_transformer
from seqmem_ros.nn import Dense
from seqmem_ros.nn import forward_padded
from seqmem_ros.nn import forward_sequences
from seqmem_ros.nn import GRU
from seqmem_ros.nn import LastStep
from seqmem_ros.nn import LayerNorm
from seqmem_ros.nn import LSTM
from seqmem_ros.nn import MeanOverTime
from seqmem_ros.nn import MultiHeadSelfAttention
from seqmem_ros.nn import pad_sequences
from seqmem_ros.nn import recurrent_net
from seqmem_ros.nn import Residual
from seqmem_ros.nn import RNN
from seqmem_ros.nn import Sequential
from seqmem_ros.nn import transformer_encoder
from seqmem_ros.nn import TransformerBlock
from seqmem_ros.nn import unpad
from seqmem_ros.nn import unroll_padded

WIDTH = 4
LENGTHS = (4, 1, 4)  # few different ones, since each is compiled for itself as well
LONGEST = 6  # so that even the longest sequence has padding

LAYERS = {
    'rnn': lambda key: RNN(WIDTH, 3, key),
    'gru': lambda key: GRU(WIDTH, 3, key, layer_norm=True),
    'lstm': lambda key: LSTM(WIDTH, 3, key),
    'dense': lambda key: Dense(WIDTH, 3, key),
    'bidirectional': lambda key: Bidirectional(GRU(WIDTH, 3, key), LSTM(WIDTH, 2, key)),
    'attention': lambda key: MultiHeadSelfAttention(WIDTH, 2, key, positions='rotary'),
    'causal attention': lambda key: MultiHeadSelfAttention(WIDTH, 2, key, causal=True),
    'window attention': lambda key: MultiHeadSelfAttention(WIDTH, 2, key, causal=True, window=2),
    'block': lambda key: TransformerBlock(WIDTH, 2, 6, key, activation='gelu'),
    'residual': lambda key: Residual(MultiHeadSelfAttention(WIDTH, 2, key)),
    'mean': lambda key: Sequential(LayerNorm(WIDTH), MeanOverTime()),
    'mean of window': lambda key: Sequential(GRU(WIDTH, 3, key), MeanOverTime(2)),
    'last': lambda key: Sequential(LSTM(WIDTH, 3, key), LastStep()),
    'recurrent net': lambda key: recurrent_net(WIDTH, 3, 2, key, 'gru', 2, last_only=True),
    'encoder': lambda key: transformer_encoder(WIDTH, 4, 2, 6, 2, 3, key, max_len=LONGEST),
    'causal transformer': lambda key: causal_transformer(WIDTH, 4, 2, 6, 2, 3, key, window=3),
    'nested': lambda key: Sequential(
        Bidirectional(Sequential(GRU(WIDTH, 3, key), Dense(3, 2, key)), Dense(WIDTH, 2, key)),
        Residual(Bidirectional(RNN(4, 2, key), RNN(4, 2, key))),
        MultiHeadSelfAttention(4, 2, key),
        MeanOverTime(),
        Dense(4, 2, key),
    ),
}

# Here compiling takes longer than running.
FAST = {'xla_backend_optimization_level': 0, 'xla_llvm_disable_expensive_passes': True}


def sum_of_squares(layer, seq):
    return (layer.forward(seq) ** 2).sum()


def sum_of_squares_padded(layer, padded):
    return (forward_padded(layer, padded, np.array(LENGTHS)) ** 2).sum()


forward = jax.jit(lambda layer, seq: layer.forward(seq), compiler_options=FAST)
padded_forward = jax.jit(forward_padded, compiler_options=FAST)
of_one = jax.jit(jax.grad(sum_of_squares, argnums=(0, 1)), compiler_options=FAST)
of_padded = jax.jit(jax.grad(sum_of_squares_padded, argnums=(0, 1)), compiler_options=FAST)


def padded_with(value, sequences):
    padded = np.full((len(sequences), LONGEST, sequences[0].shape[1]), value)
    for row, seq in zip(padded, sequences):
        row[: len(seq)] = seq
    return padded


@pytest.fixture
def sequences(rng):
    return [rng.standard_normal((n, WIDTH)) for n in LENGTHS]


@pytest.mark.parametrize('name', LAYERS)
@pytest.mark.parametrize('padding', [np.nan, np.inf, 1e30])
def test_outputs_equal_those_of_each_sequence_alone(
    name, padding, sequences, x64, rng, randomise, key
):
    layer = randomise(LAYERS[name](key), rng)
    found = padded_forward(layer, padded_with(padding, sequences), np.array(LENGTHS))
    for seq, y in zip(sequences, found):
        if not layer.collapses_time:
            np.testing.assert_array_equal(y[len(seq) :], np.zeros_like(y[len(seq) :]))
            y = y[: len(seq)]
        np.testing.assert_allclose(y, forward(layer, seq), rtol=0, atol=1e-10)


@pytest.mark.parametrize('name', LAYERS)
def test_gradients_equal_those_of_each_sequence_alone(name, sequences, x64, rng, randomise, key):
    layer = randomise(LAYERS[name](key), rng)
    of_layer, of_seq = of_padded(layer, padded_with(np.nan, sequences))
    alone = [of_one(layer, seq) for seq in sequences]
    expected = jax.tree.map(lambda *parts: sum(parts), *(a[0] for a in alone))
    for found, total in zip(jax.tree.leaves(of_layer), jax.tree.leaves(expected)):
        np.testing.assert_allclose(found, total, rtol=1e-9, atol=1e-10)
    for seq, found, (_, gradient) in zip(sequences, of_seq, alone):
        np.testing.assert_allclose(found[: len(seq)], gradient, rtol=1e-9, atol=1e-10)
        np.testing.assert_array_equal(found[len(seq) :], np.zeros((LONGEST - len(seq), WIDTH)))


@pytest.mark.parametrize('cell', [RNN, GRU, LSTM])
@pytest.mark.parametrize('from_zero', [True, False])
def test_final_states_equal_those_of_each_sequence_alone(
    cell, from_zero, sequences, x64, rng, randomise, key
):
    layer = randomise(cell(WIDTH, 3, key), rng)
    start = layer.init_state(batch=len(LENGTHS))
    if not from_zero:
        start = jax.tree.map(lambda a: jnp.asarray(rng.standard_normal(a.shape)), start)
    outputs, last = unroll_padded(
        layer, padded_with(np.nan, sequences), np.array(LENGTHS), None if from_zero else start
    )
    for i, seq in enumerate(sequences):
        state = jax.tree.map(lambda a, i=i: a[i], start)
        for t, x in enumerate(seq):
            y, state = layer.step(x, state)
            np.testing.assert_allclose(outputs[i, t], y, rtol=0, atol=1e-12)
        np.testing.assert_array_equal(outputs[i, len(seq) :], np.zeros((LONGEST - len(seq), 3)))
        for part, expected in zip(jax.tree.leaves(last), jax.tree.leaves(state)):
            np.testing.assert_allclose(part[i], expected, rtol=0, atol=1e-12)


def test_padding_and_back_gives_the_sequences_in_their_order(sequences):
    padded, lengths = pad_sequences(sequences)
    assert padded.shape == (3, 4, WIDTH)
    assert lengths.tolist() == list(LENGTHS)
    assert float(jnp.abs(padded[1, 1:]).max()) == 0
    for seq, again in zip(sequences, unpad(padded, lengths), strict=True):
        np.testing.assert_array_equal(again, seq.astype(np.float32))


@pytest.mark.parametrize('name', ['bidirectional', 'encoder'])
def test_unequal_sequences_at_once_equal_each_alone(name, sequences, x64, rng, randomise, key):
    layer = randomise(LAYERS[name](key), rng)
    found = forward_sequences(layer, sequences)
    for seq, y in zip(sequences, found, strict=True):
        np.testing.assert_allclose(y, forward(layer, seq), rtol=0, atol=1e-10)


def test_dropout_reaches_the_padded_run(rng, sequences, key):
    layer = transformer_encoder(WIDTH, 4, 2, 6, 1, 3, key, max_len=LONGEST, dropout=0.5)
    padded, lengths = pad_sequences(sequences)
    plain = forward_padded(layer, padded, lengths)
    dropped = forward_padded(layer, padded, lengths, jax.random.key(1))
    assert np.abs(plain - dropped).max() > 1e-3
    again = forward_padded(layer, padded, lengths, jax.random.key(1))
    np.testing.assert_array_equal(dropped, again)


@pytest.mark.parametrize(
    'run, text',
    [
        (lambda f: f(np.ones((2, 5, 4)), [3, 6]), 'lengths must be 1 to 5, got 3 to 6'),
        (lambda f: f(np.ones((2, 5, 4)), [0, 5]), 'lengths must be 1 to 5, got 0 to 5'),
        (
            lambda f: f(np.ones((5, 4)), [3]),
            r'expected a padded batch \(batch, T, n\) and lengths \(batch,\), got \(5, 4\) and',
        ),
        (lambda f: f(np.ones((2, 5, 4)), [3]), r'got \(2, 5, 4\) and \(1,\)'),
    ],
)
def test_errors_about_lengths(run, text, key):
    layer = GRU(4, 3, key)
    for function in (forward_padded, unroll_padded):
        with pytest.raises(ValueError, match=text):
            run(lambda padded, lengths, f=function: f(layer, padded, np.array(lengths)))


@pytest.mark.parametrize(
    'shapes', [[], [(3, 2), (0, 2)], [(3, 2), (3, 1)], [(3,), (4,)], [(2, 3, 4)]]
)
def test_sequences_that_make_no_batch_are_refused(shapes):
    with pytest.raises(ValueError, match=r'expected sequences \(T_i, n\) of one width n and'):
        pad_sequences([np.ones(shape) for shape in shapes])
