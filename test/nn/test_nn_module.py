"""Parameters and modules: what can be set, what JAX sees, what is refused."""

import copy
import pickle

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from seqmem_ros.nn import Dense
from seqmem_ros.nn import GRU
from seqmem_ros.nn import Module
from seqmem_ros.nn import Param
from seqmem_ros.nn import recurrent_net
from seqmem_ros.nn import Sequential


class Scaled(Module):
    """A module as a user would write one: nested lists, a static name, nothing registered."""

    def __init__(self, key):
        self.gain = Param(jnp.array([2.0, 3.0]))
        self.title = 'scaled'
        self.parts = [Dense(2, 2, key), [Dense(2, 2, key, bias=False)]]
        self.nothing = None

    def forward(self, seq, rng_key=None):
        return self.gain.value * self.parts[1][0].forward(self.parts[0].forward(seq))


def test_names_follow_the_structure_and_the_order_of_construction(key):
    assert list(Scaled(key).named_params()) == ['gain', 'parts.0.W', 'parts.0.b', 'parts.1.0.W']
    network = recurrent_net(3, 4, 2, key, 'gru')
    assert list(network.named_params()) == [
        *(f'layers.0.{n}' for n in 'W_r U_r b_r W_z U_z b_z W U b'.split()),
        'layers.1.W',
        'layers.1.b',
    ]
    assert [p is q for p, q in zip(network.params(), network.named_params().values())] == [
        True
    ] * 11


def test_setting_a_value_acts_on_the_module(key):
    layer = Dense(2, 1, key)
    layer.params()[0].value = jnp.array([[3.0, 4.0]])
    layer.named_params()['b'].value = jnp.array([5.0])
    np.testing.assert_array_equal(layer.forward(jnp.array([1.0, 10.0])), [48.0])


@pytest.mark.parametrize('given', [2, 2.0, np.float64(2), np.array([[2]]), [[2.0]], True + 1])
def test_numbers_and_arrays_of_one_fill_a_parameter(given, x64):
    param = Param(jnp.zeros((1, 1), jnp.float32))
    param.value = given
    assert param.value.shape == (1, 1)
    assert float(param.value[0, 0]) == 2.0
    assert not param.value.weak_type


def test_a_number_fills_a_larger_parameter():
    param = Param(jnp.zeros((2, 3)))
    param.value = 7
    np.testing.assert_array_equal(param.value, np.full((2, 3), 7.0))


def test_floats_keep_their_type_and_the_rest_takes_the_old_one(x64):
    param = Param(jnp.zeros(2, jnp.float32))
    param.value = np.array([1, 2])
    assert param.dtype == jnp.float32
    param.value = [0.1, 0.2]
    assert param.dtype == jnp.float32
    param.value = np.array([0.1, 0.2])
    assert param.dtype == jnp.float64
    assert float(param.value[0]) == 0.1


@pytest.mark.parametrize('shape', [(3, 2), (6,), (1, 2, 3), (3,), (1,)])
def test_another_shape_is_refused(shape):
    param = Param(jnp.zeros((2, 3)))
    with pytest.raises(
        ValueError, match=r'parameter has shape \(2, 3\), new value has .*transpos'
    ):
        param.value = np.ones(shape)
    np.testing.assert_array_equal(param.value, np.zeros((2, 3)))


def test_an_array_outside_of_a_parameter_is_refused(key):
    layer = Dense(2, 2, key)
    for value in (np.ones((2, 2)), jnp.ones((2, 2)), [1, 2], {}):
        with pytest.raises(ValueError, match=r'Dense.W is a .*; set .value of a Param, or wrap'):
            layer.W = value


def test_gradients_come_as_a_module(key):
    module = Scaled(key)
    x = jnp.array([0.5, -1.0])
    gradients = jax.jit(jax.grad(lambda m: m.forward(x).sum()))(module)
    assert isinstance(gradients, Scaled)
    inner = np.asarray(module.parts[1][0].forward(module.parts[0].forward(x)))
    np.testing.assert_allclose(gradients.gain.value, inner, rtol=1e-6)
    b_gradient = module.parts[1][0].W.value.T @ module.gain.value
    np.testing.assert_allclose(gradients.parts[0].b.value, b_gradient, rtol=1e-6)


def test_one_step_of_descent_by_optax(key):
    optax = pytest.importorskip('optax', reason='optax is needed for training only')
    module = Scaled(key)
    x = jnp.array([0.5, -1.0])
    gradients = jax.grad(lambda m: m.forward(x).sum())(module)
    optimiser = optax.sgd(0.1)
    updates, _ = optimiser.update(gradients, optimiser.init(module), module)
    moved = optax.apply_updates(module, updates)
    for before, gradient, after in zip(module.params(), gradients.params(), moved.params()):
        np.testing.assert_allclose(after.value, before.value - 0.1 * gradient.value, rtol=1e-5)


def test_vmap_over_weights_runs_an_ensemble(key):
    keys = jax.random.split(key, 3)
    ensemble = jax.vmap(lambda k: GRU(2, 3, k))(keys)
    assert ensemble.W.shape == (3, 3, 2)
    seq = jnp.ones((4, 2))
    found = jax.vmap(lambda gru: gru.forward(seq))(ensemble)
    for k, y in zip(keys, found):
        np.testing.assert_allclose(y, GRU(2, 3, k).forward(seq), rtol=0, atol=1e-6)


def test_paths_of_leaves_are_readable(key):
    paths, _ = jax.tree_util.tree_flatten_with_path(recurrent_net(1, 2, 1, key, 'rnn'))
    assert [jax.tree_util.keystr(path) for path, _ in paths] == [
        '.layers[0].W.value',
        '.layers[0].U.value',
        '.layers[0].b.value',
        '.layers[1].W.value',
        '.layers[1].b.value',
    ]


def test_static_attributes_tell_structures_apart(key):
    tanh, relu = (Dense(2, 2, key, activation=name) for name in ('tanh', 'relu'))
    assert jax.tree.structure(tanh) != jax.tree.structure(relu)
    run = jax.jit(lambda layer, x: layer.forward(x))
    x = -jnp.ones(2)
    for layer in (tanh, relu):
        np.testing.assert_allclose(run(layer, x), layer.forward(x), rtol=1e-6)


def test_a_copy_is_independent(key):
    layer = Dense(2, 2, key)
    for twin in (
        copy.deepcopy(layer),
        pickle.loads(pickle.dumps(layer)),
        jax.tree.map(lambda a: a, layer),
    ):
        np.testing.assert_array_equal(twin.W.value, layer.W.value)
        twin.W.value = 0
        assert np.abs(layer.W.value).max() > 0


def test_loading_sets_every_parameter(key):
    layer = Dense(3, 2, key)
    layer.load_params({'W': np.arange(6.0).reshape(2, 3), 'b': np.ones(2)})
    np.testing.assert_array_equal(layer.W.value, [[0, 1, 2], [3, 4, 5]])
    np.testing.assert_array_equal(layer.b.value, [1, 1])


@pytest.mark.parametrize(
    'values, text',
    [
        (
            {'W': np.ones((2, 3))},
            r"weights do not fit the network: missing \['b'\], not in it \[\]",
        ),
        (
            {'W': np.ones((2, 3)), 'b': np.ones(2), 'c': np.ones(1)},
            r"missing \[\], not in it \['c'\]",
        ),
        (
            {'W': np.ones((2, 3)), 'b': np.ones(3)},
            r'weights do not fit the network: b has shape \(2,\), the given array \(3,\)',
        ),
    ],
)
def test_weights_that_do_not_fit_are_refused_and_nothing_is_set(values, text, key):
    layer = Dense(3, 2, key)
    before = layer.W.value
    with pytest.raises(ValueError, match=text):
        layer.load_params(values)
    assert layer.W.value is before


def test_descriptions_show_structure_and_options(key):
    assert repr(Sequential(Dense(2, 1, key), GRU(1, 3, key, reset_after=True))) == (
        'Sequential(layers=(Dense(n_in=2, n_out=1), '
        'GRU(n_in=1, n_hidden=3, reset_after=True, layer_norm=False)))'
    )
    assert repr(Dense(2, 1, key).W) == 'Param(shape=(1, 2), dtype=float32)'


@pytest.mark.parametrize(
    'run, text',
    [
        (
            lambda k: Dense(3, 2, k).forward(np.ones((5, 4))),
            r'Dense expected input of width 3, shape \(\.\.\., 3\); got \(5, 4',
        ),
        (
            lambda k: GRU(3, 2, k).forward(np.ones((5, 4))),
            r'GRU expected input of width 3, shape \(time, 3\) or \(batch, time, 3\); got \(5, 4',
        ),
        (
            lambda k: GRU(3, 2, k).forward(np.ones(3)),
            r'GRU expected input of width 3, shape \(time, 3\) or .* got \(3,\)',
        ),
        (
            lambda k: GRU(3, 2, k).step(np.ones(4), np.zeros(2)),
            r'GRU expected input of width 3, shape \(3,\) or \(batch, 3\); got \(4,\)',
        ),
        (
            lambda k: GRU(3, 2, k).step(np.ones((5, 3)), np.zeros(2)),
            r'GRU expected a state of shape \(5, 2\) for this input, got \(2,\); make it with',
        ),
        (
            lambda k: GRU(3, 2, k).unroll(np.ones((5, 3)), np.zeros(4)),
            r'GRU expected a state of shape \(2,\) for this input, got \(4,\)',
        ),
        (
            lambda k: recurrent_net(3, 4, 2, k).forward(np.ones((5, 2))),
            r'LSTM expected input of width 3',
        ),
        (lambda k: Dense(3, 2, k).forward(np.float32(1)), r'Dense expected .* got \(\)'),
    ],
)
def test_inputs_of_the_wrong_shape_are_refused(run, text, key):
    with pytest.raises(ValueError, match=text):
        run(key)
