"""Laws that every layer and network able to stream must keep, as one table."""

import jax
import jax.numpy as jnp
from layer_table import causal
from layer_table import FAST
from layer_table import SHORT
from layer_table import STREAMING
from layer_table import WIDTH
from layer_table import WINDOW
import numpy as np
import pytest

LENGTHS = [1, WINDOW - 1, WINDOW, SHORT, 3 * WINDOW]
HAS_WINDOW = [
    name for name in STREAMING if name.startswith(('attention w', 'block w', 'tr', 'mean'))
]
GROWING = 'attention growing'  # its memory has another shape, and its step a program, each time

forward = jax.jit(lambda network, seq: network.forward(seq), compiler_options=FAST)
step = jax.jit(lambda network, x, state: network.step(x, state), compiler_options=FAST)


@pytest.fixture(params=STREAMING)
def name(request):
    return request.param


@pytest.fixture(params=[name for name in STREAMING if name != GROWING])
def fixed_name(request):
    return request.param


def build(name, key, randomise, rng, dtype=None):
    network = randomise(STREAMING[name](key), rng)
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
    lengths = LENGTHS if name in HAS_WINDOW else [1, SHORT if name == GROWING else 3 * WINDOW]
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


def test_compiled_steps_equal_plain_ones(name, x64, rng, randomise, key):
    network = build(name, key, randomise, rng)
    # Each size of a memory that grows is compiled operation by operation as well.
    seq = rng.standard_normal((2 if name == GROWING else SHORT, WIDTH))
    compiled = stream(network, seq)
    with jax.disable_jit():
        plain = stream(network, seq)
    np.testing.assert_allclose(compiled, plain, rtol=0, atol=1e-10)


def test_streams_under_vmap_have_their_own_memory(fixed_name, x64, rng, randomise, key):
    network = build(fixed_name, key, randomise, rng)
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


def test_a_loop_over_steps_compiles_and_equals_them(fixed_name, x64, rng, randomise, key):
    network = build(fixed_name, key, randomise, rng)
    seq = rng.standard_normal((SHORT, WIDTH))

    def advance(state, x):
        y, state = network.step(x, state)
        return state, y

    _, found = jax.lax.scan(advance, network.init_state(), jnp.asarray(seq))
    np.testing.assert_allclose(found, stream(network, seq), rtol=0, atol=1e-10)


@pytest.mark.parametrize('dtype', ['float32', 'float64'])
def test_the_type_of_the_weights_is_kept(name, dtype, x64, rng, randomise, key):
    network = build(name, key, randomise, rng, dtype)
    # Layers without weights keep the input's type, all others their own.
    given = 'float64' if network.params() else dtype
    seq = rng.standard_normal((SHORT, WIDTH)).astype(given)
    assert stream(network, seq).dtype == dtype


@pytest.mark.parametrize('value', [1e4, -1e4, 0.0])
def test_extreme_inputs_give_finite_outputs(name, value, x64, rng, randomise, key):
    network = build(name, key, randomise, rng, 'float32')
    seq = np.full((SHORT, WIDTH), value, np.float32)
    seq[2, 1] = -value
    assert np.isfinite(stream(network, seq)).all()


@pytest.mark.parametrize('batch', [None, 3])
def test_a_step_keeps_the_form_of_its_memory(fixed_name, batch, key):
    network = STREAMING[fixed_name](key)
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


def test_a_memory_is_zero_at_first(name, rng, randomise, key):
    """Streams rely on it: to start again is to set all of it to zero."""
    for leaf in jax.tree.leaves(build(name, key, randomise, rng).init_state()):
        np.testing.assert_array_equal(leaf, 0)
