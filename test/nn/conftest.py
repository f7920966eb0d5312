"""What the tests of the layers share: weights that are nowhere zero."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest


@pytest.fixture
def randomise():
    """Give a function that fills all parameters of a module, biases too, and returns it."""

    def fill(module, rng, scale=0.6):
        for param in module.params():
            value = scale * rng.standard_normal(param.shape)
            param.value = jnp.asarray(value, param.dtype)
        return module

    return fill


@pytest.fixture
def key():
    return jax.random.key(7)


@pytest.fixture
def rng():
    return np.random.default_rng(11)
