"""Laws of whole sequences, which every layer and network must keep whether it streams or not."""

import jax
import jax.numpy as jnp
from layer_table import ALL
from layer_table import FAST
from layer_table import SHORT
from layer_table import STREAMING
from layer_table import WHOLE
from layer_table import WIDTH
from layer_table import WINDOW
import numpy as np
import pytest
from safetensors.numpy import load_file
from safetensors.numpy import save_file

from seqmem_ros import nn
from seqmem_ros.nn import Sequential

forward = jax.jit(lambda network, seq: network.forward(seq), compiler_options=FAST)
gradients = jax.jit(
    jax.grad(lambda network, seq, weights: (network.forward(seq) * weights).sum(), argnums=(0, 1)),
    compiler_options=FAST,
)


@pytest.fixture(params=ALL)
def name(request):
    return request.param


def build(name, key, randomise, rng, dtype=None):
    network = randomise(ALL[name](key), rng)
    return network if dtype is None else jax.tree.map(lambda a: a.astype(dtype), network)


def parts_of(module):
    yield module
    for child in vars(module).values():
        for part in child if isinstance(child, (list, tuple)) else [child]:
            if isinstance(part, nn.Module):
                yield from parts_of(part)


def test_every_layer_of_the_package_is_in_the_table(key):
    layers = {
        thing
        for thing in (getattr(nn, name) for name in nn.__all__)
        if isinstance(thing, type) and issubclass(thing, nn.Module) and thing is not nn.Module
    }
    assert layers == {type(part) for make in ALL.values() for part in parts_of(make(key))}
    assert [name for name in STREAMING if STREAMING[name](key).why_not_streaming()] == []
    assert [name for name in WHOLE if not WHOLE[name](key).why_not_streaming()] == []


def test_forward_of_a_batch_equals_each_sequence(name, x64, rng, randomise, key):
    network = build(name, key, randomise, rng)
    batch = rng.standard_normal((3, SHORT, WIDTH))
    for seq, found in zip(batch, forward(network, batch)):
        np.testing.assert_allclose(found, forward(network, seq), rtol=0, atol=1e-10)


def test_compiled_equals_plain(name, x64, rng, randomise, key):
    network = build(name, key, randomise, rng)
    seq = rng.standard_normal((SHORT, WIDTH))
    with jax.disable_jit():
        plain = network.forward(jnp.asarray(seq))
    np.testing.assert_allclose(forward(network, seq), plain, rtol=0, atol=1e-10)


def test_weights_survive_a_file(name, x64, rng, randomise, key, tmp_path):
    network = build(name, key, randomise, rng, 'float32')
    named = {path: np.asarray(param.value) for path, param in network.named_params().items()}
    save_file(named, tmp_path / 'weights.safetensors')
    other = ALL[name](jax.random.key(99))
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


def test_extreme_inputs_give_finite_outputs_and_gradients(name, x64, rng, randomise, key):
    network = build(name, key, randomise, rng, 'float32')
    for value in (1e4, -1e4, 0.0):
        seq = np.full((SHORT, WIDTH), value, np.float32)
        seq[2, 1] = -value
        outputs = forward(network, seq)
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
        # The softmax does not feel a bias that all keys share.
        if not path.endswith('b_k'):
            assert np.abs(gradient.value).max() > 1e-7, path
    first = {'last': SHORT - 1, 'mean of window': SHORT - WINDOW}
    first['rnn relu'] = SHORT  # a closed relu lets nothing through
    for t in range(first.get(name, 0), SHORT):
        assert np.abs(of_seq[t]).max() > 1e-7, t


@pytest.mark.parametrize('name', STREAMING)
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


@pytest.mark.parametrize('name', WHOLE)
def test_what_cannot_stream_needs_the_future(name, x64, rng, randomise, key):
    network = build(name, key, randomise, rng)
    layers = getattr(network, 'layers', ())
    if network.collapses_time:
        network = Sequential(*layers[: [part.collapses_time for part in layers].index(True)])
    seq = rng.standard_normal((SHORT, WIDTH))
    changed = seq.copy()
    changed[-1] += 1
    assert np.abs(forward(network, changed)[0] - forward(network, seq)[0]).max() > 1e-6


@pytest.mark.parametrize('name', WHOLE)
def test_what_cannot_stream_says_so(name, key):
    network = WHOLE[name](key)
    text = rf'{type(network).__name__} cannot stream: .*\. Use forward on whole sequences\.$'
    with pytest.raises(ValueError, match=text):
        network.init_state()
    with pytest.raises(ValueError, match=text):
        network.step(np.ones(WIDTH), ())


@pytest.mark.parametrize('name', [n for n in ALL if n not in ('dropout', 'last', 'mean')])
def test_an_input_of_the_wrong_width_is_refused(name, key):
    network = ALL[name](key)
    text = r'\w+ expected input of width 4, shape .*; got \(6, 5\)$'
    with pytest.raises(ValueError, match=text):
        network.forward(np.ones((6, WIDTH + 1)))
    if name in STREAMING:
        with pytest.raises(ValueError, match=r'expected input of width 4, shape .*; got \(5,\)$'):
            network.step(np.ones(WIDTH + 1), network.init_state())


def test_modules_are_pytrees(name, rng, randomise, key):
    network = build(name, key, randomise, rng)
    leaves, treedef = jax.tree.flatten(network)
    again = jax.tree.unflatten(treedef, leaves)
    assert type(again) is type(network)
    assert list(again.named_params()) == list(network.named_params())
    assert [leaf is p.value for leaf, p in zip(leaves, network.params())] == [True] * len(leaves)
    # Equal structures are what keeps a compiled function from being compiled for new weights.
    other = jax.tree.structure(ALL[name](jax.random.key(99)))
    assert other == treedef == jax.tree.structure(again)
    assert hash(other) == hash(treedef)
