"""Starting values: the property that each promises."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from seqmem_ros.nn import Dense
from seqmem_ros.nn import get_initializer
from seqmem_ros.nn import GRU
from seqmem_ros.nn import orthogonal
from seqmem_ros.nn import recurrent_net
from seqmem_ros.nn import scaled_identity
from seqmem_ros.nn import xavier_normal
from seqmem_ros.nn import zeros


def test_xavier_normal_has_the_promised_variance(key):
    matrix = np.asarray(xavier_normal(key, (300, 200)))
    # The variance estimated from n values scatters by sqrt(2 / n), here 0.6 %.
    assert matrix.var() == pytest.approx(2 / 500, rel=0.03)
    assert abs(matrix.mean()) < 4 * np.sqrt(2 / 500 / matrix.size)
    # A normal distribution, not a uniform one: its fourth moment is three variances squared.
    assert (matrix**4).mean() / matrix.var() ** 2 == pytest.approx(3, rel=0.1)


@pytest.mark.parametrize('shape', [(5, 5), (7, 3), (3, 7), (1, 4), (1, 1)])
def test_every_singular_value_of_an_orthogonal_matrix_is_one(shape, x64, key):
    matrix = np.asarray(orthogonal(key, shape))
    assert matrix.shape == shape
    np.testing.assert_allclose(np.linalg.svd(matrix, compute_uv=False), 1, rtol=0, atol=1e-12)


def test_orthogonal_matrices_are_uniform(x64, key):
    draw = jax.jit(jax.vmap(lambda k: orthogonal(k, (2, 2))))
    matrices = np.asarray(draw(jax.random.split(key, 4000)))
    # Without the sign rule the first element would have one sign and turns would not be uniform.
    assert abs(matrices.mean(0)).max() < 4 / np.sqrt(2 * 4000)
    assert abs((np.linalg.det(matrices) > 0).mean() - 0.5) < 4 * 0.5 / np.sqrt(4000)
    angles = np.arctan2(matrices[:, 1, 0], matrices[:, 0, 0])
    counts, _ = np.histogram(angles, bins=8, range=(-np.pi, np.pi))
    assert abs(counts - 500).max() < 4 * np.sqrt(500)


def test_scaled_identity(key):
    np.testing.assert_array_equal(scaled_identity(key, (3, 3)), np.eye(3))
    np.testing.assert_array_equal(
        scaled_identity(key, (2, 3), scale=0.5), [[0.5, 0, 0], [0, 0.5, 0]]
    )


def test_zeros(key):
    np.testing.assert_array_equal(zeros(key, (2, 3)), np.zeros((2, 3)))


def test_a_function_serves_as_initialiser(key):
    layer = Dense(3, 2, key, initializer=lambda key, shape: jnp.full(shape, 7.0))
    np.testing.assert_array_equal(layer.W.value, np.full((2, 3), 7.0))


@pytest.mark.parametrize(
    'name, function',
    [
        ('xavier_normal', xavier_normal),
        ('orthogonal', orthogonal),
        ('scaled_identity', scaled_identity),
        ('zeros', zeros),
    ],
)
def test_names(name, function):
    assert get_initializer(name) is function


@pytest.mark.parametrize(
    'make',
    [
        get_initializer,
        lambda name: GRU(2, 3, jax.random.key(0), initializer=name),
        lambda name: GRU(2, 3, jax.random.key(0), recurrent_initializer=name),
        lambda name: recurrent_net(2, 3, 1, jax.random.key(0), initializer=name),
    ],
)
def test_unknown_names_list_the_choices(make):
    with pytest.raises(
        ValueError,
        match="unknown initializer 'he'; choose one of xavier_normal, orthogonal, "
        'scaled_identity, zeros',
    ):
        make('he')


def test_keys_decide(key):
    for function in (xavier_normal, orthogonal):
        np.testing.assert_array_equal(function(key, (3, 2)), function(key, (3, 2)))
        assert np.abs(function(key, (3, 2)) - function(jax.random.key(8), (3, 2))).max() > 1e-3
