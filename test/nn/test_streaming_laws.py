"""Laws that every layer and network able to stream must keep, as one table."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from safetensors.numpy import load_file
from safetensors.numpy import save_file

from seqmem_ros.nn import AddPositions
from seqmem_ros.nn import causal_transformer
from seqmem_ros.nn import Dense
from seqmem_ros.nn import Dropout
from seqmem_ros.nn import GRU
from seqmem_ros.nn import LastStep
from seqmem_ros.nn import LayerNorm
from seqmem_ros.nn import LSTM
from seqmem_ros.nn import MeanOverTime
from seqmem_ros.nn import MultiHeadSelfAttention
from seqmem_ros.nn import recurrent_net
from seqmem_ros.nn import Residual
from seqmem_ros.nn import RNN
from seqmem_ros.nn import Sequential
from seqmem_ros.nn import TransformerBlock

WIDTH = 4  # of the input of everything in the table
WINDOW = 5
SHORT = WINDOW + 1  # samples in most tests: one length, compiled once
LENGTHS = [1, WINDOW - 1, WINDOW, SHORT, 3 * WINDOW]
CAUSAL = {'causal': True, 'positions': 'rotary'}


def causal(depth):
    # gelu, since a relu that is never above zero would have no gradient.
    return lambda key: causal_transformer(
        WIDTH, 4, 2, 6, depth, 3, key, window=WINDOW, activation='gelu'
    )


NETWORKS = {
    'rnn': lambda key: RNN(WIDTH, 3, key),
    'rnn relu': lambda key: RNN(WIDTH, 3, key, activation='relu', bias=False),
    'gru': lambda key: GRU(WIDTH, 3, key),
    'gru reset after': lambda key: GRU(WIDTH, 3, key, reset_after=True),
    'gru normalised': lambda key: GRU(WIDTH, 3, key, layer_norm=True),
    'lstm': lambda key: LSTM(WIDTH, 3, key),
    'lstm no peepholes': lambda key: LSTM(WIDTH, 3, key, peepholes=False, layer_norm=True),
    'dense': lambda key: Dense(WIDTH, 3, key, activation='gelu'),
    'layer norm': lambda key: LayerNorm(WIDTH),
    'dropout': lambda key: Dropout(0.5),
    'positions': lambda key: AddPositions(40, WIDTH),
    'last': lambda key: Sequential(Dense(WIDTH, 3, key), LastStep()),
    'mean': lambda key: Sequential(Dense(WIDTH, 3, key), MeanOverTime()),
    'mean of window': lambda key: Sequential(Dense(WIDTH, 3, key), MeanOverTime(WINDOW)),
    'residual': lambda key: Residual(GRU(WIDTH, WIDTH, key)),
    'attention window': lambda key: MultiHeadSelfAttention(
        WIDTH, 2, key, causal=True, window=WINDOW
    ),
    'attention window rotary': lambda key: MultiHeadSelfAttention(
        WIDTH, 2, key, window=WINDOW, **CAUSAL
    ),
    'block window': lambda key: TransformerBlock(
        WIDTH, 2, 6, key, dropout=0.1, window=WINDOW, **CAUSAL
    ),
    'rnn net': lambda key: recurrent_net(WIDTH, 3, 2, key, cell='rnn'),
    'gru net deep': lambda key: recurrent_net(WIDTH, 3, 2, key, 'gru', n_layers=3, dropout=0.2),
    'lstm net last': lambda key: recurrent_net(WIDTH, 3, 2, key, last_only=True),
    'transformer depth 1': causal(1),
    'transformer depth 3': causal(3),
    'nested': lambda key: Sequential(
        Dense(WIDTH, 4, key),
        Residual(Sequential(LayerNorm(4), GRU(4, 4, key), Dropout(0.3))),
        AddPositions(40, 4),
        MultiHeadSelfAttention(4, 2, key, window=WINDOW, **CAUSAL),
        MeanOverTime(3),
        Dense(4, 2, key),
    ),
}
HAS_WINDOW = [
    name for name in NETWORKS if name.startswith(('attention w', 'block w', 'tr', 'mean'))
]

# Here compiling takes longer than running.
FAST = {'xla_backend_optimization_level': 0, 'xla_llvm_disable_expensive_passes': True}

forward = jax.jit(lambda network, seq: network.forward(seq), compiler_options=FAST)
step = jax.jit(lambda network, x, state: network.step(x, state), compiler_options=FAST)
gradients = jax.jit(
    jax.grad(lambda network, seq, weights: (network.forward(seq) * weights).sum(), argnums=(0, 1)),
    compiler_options=FAST,
)


@pytest.fixture(params=NETWORKS)
def name(request):
    return request.param


def build(name, key, randomise, rng, dtype=None):
    network = randomise(NETWORKS[name](key), rng)
    return network if dtype is None else jax.tree.map(lambda a: a.astype(dtype), network)


def stream(network, seq, batch=None):
    """Feed samples one by one; the outputs, the newest last."""
    state = network.init_state(batch)
    outputs = []
    for t in range(seq.shape[-2]):
        y, state = step(network, seq[..., t, :], state)
        outputs.append(np.asarray(y))
    return np.stack(outputs, axis=-2)


def test_steps_equal_forward_at_every_length(name, x64, rng, randomise, key):
    network = build(name, key, randomise, rng)
    lengths = LENGTHS if name in HAS_WINDOW else [1, 3 * WINDOW]
    seq = rng.standard_normal((max(lengths), WIDTH))
    outputs = stream(network, seq)
    for n_samples in lengths:
        expected = forward(network, seq[:n_samples])
        found = outputs[n_samples - 1] if network.collapses_time else outputs[:n_samples]
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-10)


def test_steps_of_a_batch_equal_those_of_each_stream(name, x64, rng, randomise, key):
    network = build(name, key, randomise, rng)
    batch = rng.standard_normal((3, SHORT, WIDTH))
    outputs = stream(network, batch, batch=3)
    for seq, found in zip(batch, outputs):
        np.testing.assert_allclose(found, stream(network, seq), rtol=0, atol=1e-10)


def test_forward_of_a_batch_equals_each_sequence(name, x64, rng, randomise, key):
    network = build(name, key, randomise, rng)
    batch = rng.standard_normal((3, SHORT, WIDTH))
    for seq, found in zip(batch, forward(network, batch)):
        np.testing.assert_allclose(found, forward(network, seq), rtol=0, atol=1e-10)


def test_compiled_equals_plain(name, x64, rng, randomise, key):
    network = build(name, key, randomise, rng)
    seq = rng.standard_normal((SHORT, WIDTH))
    compiled = forward(network, seq), stream(network, seq)
    with jax.disable_jit():
        plain = network.forward(jnp.asarray(seq)), stream(network, seq)
    for a, b in zip(compiled, plain):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-10)


def test_the_future_does_not_change_the_past(name, x64, rng, randomise, key):
    network = build(name, key, randomise, rng)
    if network.collapses_time:  # one output for the sequence: nothing of it is in the past
        network = Sequential(*(layer for layer in network.layers if not layer.collapses_time))
    seq = rng.standard_normal((3 * WINDOW, WIDTH))
    before = forward(network, seq)
    for n_past in (1, WINDOW, 2 * WINDOW):
        changed = seq.copy()
        changed[n_past:] += 10 * rng.standard_normal(changed[n_past:].shape)
        after = forward(network, changed)
        np.testing.assert_allclose(after[:n_past], before[:n_past], rtol=0, atol=1e-12)
        assert np.abs(after[n_past:] - before[n_past:]).max() > 1e-3


def test_streams_under_vmap_have_their_own_memory(name, x64, rng, randomise, key):
    network = build(name, key, randomise, rng)
    seq = rng.standard_normal((9, WIDTH))
    # One stream begins three samples after the other.
    states, expected = [], []
    for first in (0, 3):
        state = network.init_state()
        for x in seq[first:8]:
            _, state = step(network, x, state)
        states.append(state)
        expected.append(step(network, seq[8], state)[0])
    stacked = jax.tree.map(lambda *parts: jnp.stack(parts), *states)
    both = np.stack([seq[8], seq[8]])
    found, _ = jax.vmap(network.step)(both, stacked)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-10)


def test_a_loop_over_steps_compiles_and_equals_them(name, x64, rng, randomise, key):
    network = build(name, key, randomise, rng)
    seq = rng.standard_normal((SHORT, WIDTH))

    def advance(state, x):
        y, state = network.step(x, state)
        return state, y

    _, found = jax.lax.scan(advance, network.init_state(), jnp.asarray(seq))
    np.testing.assert_allclose(found, stream(network, seq), rtol=0, atol=1e-10)


def test_weights_survive_a_file(name, x64, rng, randomise, key, tmp_path):
    network = build(name, key, randomise, rng, 'float32')
    named = {path: np.asarray(param.value) for path, param in network.named_params().items()}
    save_file(named, tmp_path / 'weights.safetensors')
    other = NETWORKS[name](jax.random.key(99))
    assert all(param.dtype == 'float64' for param in other.params())
    other.load_params(load_file(tmp_path / 'weights.safetensors'))
    seq = rng.standard_normal((SHORT, WIDTH)).astype(np.float32)
    np.testing.assert_array_equal(forward(other, seq), forward(network, seq))
    if named:
        different = build(name, key, randomise, rng, 'float32')
        assert np.abs(forward(different, seq) - forward(network, seq)).max() > 1e-3


@pytest.mark.parametrize('dtype', ['float32', 'float64'])
def test_the_type_of_the_weights_is_kept(name, dtype, x64, rng, randomise, key):
    network = build(name, key, randomise, rng, dtype)
    # Layers without weights keep the input's type, all others their own.
    given = 'float64' if network.params() else dtype
    seq = rng.standard_normal((SHORT, WIDTH)).astype(given)
    assert forward(network, seq).dtype == dtype
    assert stream(network, seq).dtype == dtype


def test_extreme_inputs_give_finite_outputs_and_gradients(name, x64, rng, randomise, key):
    network = build(name, key, randomise, rng, 'float32')
    for value in (1e4, -1e4, 0.0):
        seq = np.full((SHORT, WIDTH), value, np.float32)
        seq[2, 1] = -value
        outputs = forward(network, seq)
        assert np.isfinite(stream(network, seq)).all()
        assert np.isfinite(outputs).all()
        found = jax.tree.leaves(gradients(network, seq, np.ones_like(outputs)))
        assert len(found) == len(network.params()) + 1
        assert all(np.isfinite(gradient).all() for gradient in found)


def test_every_parameter_and_every_input_matters(name, x64, rng, randomise, key):
    network = build(name, key, randomise, rng, 'float32')
    seq = rng.standard_normal((SHORT, WIDTH)).astype(np.float32)
    weights = rng.standard_normal(forward(network, seq).shape).astype(np.float32)
    of_params, of_seq = gradients(network, seq, weights)
    for path, gradient in of_params.named_params().items():
        assert np.isfinite(gradient.value).all()
        assert np.abs(gradient.value).max() > 1e-7, path
    first = {'last': SHORT - 1, 'mean of window': SHORT - WINDOW}
    first['rnn relu'] = SHORT  # a closed relu lets nothing through
    for t in range(first.get(name, 0), SHORT):
        assert np.abs(of_seq[t]).max() > 1e-7, t


def test_modules_are_pytrees(name, rng, randomise, key):
    network = build(name, key, randomise, rng)
    leaves, treedef = jax.tree.flatten(network)
    again = jax.tree.unflatten(treedef, leaves)
    assert type(again) is type(network)
    assert list(again.named_params()) == list(network.named_params())
    assert [leaf is p.value for leaf, p in zip(leaves, network.params())] == [True] * len(leaves)
    # Equal structures are what keeps a compiled function from being compiled for new weights.
    other = jax.tree.structure(NETWORKS[name](jax.random.key(99)))
    assert other == treedef == jax.tree.structure(again)
    assert hash(other) == hash(treedef)


@pytest.mark.parametrize('batch', [None, 3])
def test_a_step_keeps_the_form_of_its_memory(name, batch, key):
    network = NETWORKS[name](key)
    state = network.init_state(batch)
    x = np.ones((WIDTH,) if batch is None else (batch, WIDTH), np.float32)
    _, after = jax.eval_shape(network.step, x, state)
    assert jax.tree.structure(after) == jax.tree.structure(state)
    for a, b in zip(jax.tree.leaves(after), jax.tree.leaves(state)):
        assert (a.shape, a.dtype, a.weak_type) == (b.shape, b.dtype, b.weak_type)


@pytest.mark.parametrize('depth', [1, 3])
def test_a_stream_without_end_keeps_its_precision(depth, rng, randomise, key):
    network = randomise(causal(depth)(key), rng)
    seq = rng.standard_normal((100_000, WIDTH)).astype(np.float32)

    def advance(state, x):
        y, state = network.step(x, state)
        return state, y

    run = jax.jit(lambda seq: jax.lax.scan(advance, network.init_state(), seq)[1][-1])
    n_seen = depth * (WINDOW - 1) + 1  # a stream that began just now with all that counts
    np.testing.assert_array_equal(run(seq), run(seq[-n_seen:]))
