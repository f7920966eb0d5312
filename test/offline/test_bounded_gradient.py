"""A bound on the gradient of one sample: what it leaves alone, and what it shortens."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from seqmem_ros.nn import Module
from seqmem_ros.nn import MultiHeadSelfAttention
from seqmem_ros.nn import Param
from seqmem_ros.offline.bounded_gradient import BoundedGradient


class Scaled(Module):
    """Gives y = w x and counts the samples."""

    def __init__(self, weights):
        self.w = Param(weights)

    def init_state(self, batch=None, n_in=None):
        return jnp.zeros(())

    def step(self, x, state):
        return self.w.value * x, state + 1


def gradient(largest, x, wanted):
    """Differentiate sum(y * wanted) over the weights; ``wanted`` is the gradient at y."""

    def loss(network):
        y, _ = BoundedGradient(network, largest).step(x, network.init_state())
        return jnp.sum(y * wanted)

    return np.asarray(jax.jit(jax.grad(loss))(Scaled(jnp.array([2.0, 3.0]))).w.value)


def test_outputs_and_memory_are_those_of_the_network():
    network = BoundedGradient(Scaled(jnp.array([2.0, 3.0])), 1e-9)
    y, state = network.step(jnp.array([5.0, 7.0]), network.init_state(4, 2))
    assert y.tolist() == [10.0, 21.0]
    assert state == 1


@pytest.mark.parametrize('largest', [5.0, 1e9])
def test_a_small_gradient_is_left_alone(largest):
    np.testing.assert_allclose(
        gradient(largest, jnp.array([1.0, 10.0]), jnp.array([3.0, 4.0])), [3, 40], rtol=1e-6
    )


def test_a_large_one_keeps_its_direction():
    # Norm 5, to be 1: (0.6, 0.8).
    np.testing.assert_allclose(
        gradient(1.0, jnp.array([1.0, 10.0]), jnp.array([3.0, 4.0])), [0.6, 8], rtol=1e-6
    )


def test_each_recording_of_a_batch_is_judged_by_itself():
    x = jnp.array([[1.0, 0.0], [0.0, 1.0]])
    wanted = jnp.array([[1000.0, 0.0], [0.0, 0.25]])
    np.testing.assert_allclose(gradient(0.5, x, wanted), [0.5, 0.25], rtol=1e-6)


def test_the_bound_may_be_computed_where_it_is_used():
    @jax.jit
    def bias_gradient(n):
        def loss(weights):
            y, _ = BoundedGradient(Scaled(weights), 1.0 / n).step(jnp.ones(2), jnp.zeros(()))
            return 10.0 * y.sum()

        return jax.grad(loss)(jnp.ones(2))

    np.testing.assert_allclose(jnp.linalg.norm(bias_gradient(4)), 0.25, rtol=1e-6)


def test_what_cannot_stream_says_so_still():
    layer = MultiHeadSelfAttention(4, 2, jax.random.key(0))
    assert BoundedGradient(layer, 1.0).why_not_streaming() == layer.why_not_streaming() is not None


def test_none_at_all_stays_none():
    assert gradient(1.0, jnp.ones(2), jnp.zeros(2)).tolist() == [0, 0]


def test_a_gradient_that_is_no_number_stays_one():
    """So that the optimiser can leave the step out."""
    assert np.isnan(gradient(1.0, jnp.ones(2), jnp.array([jnp.nan, 1.0]))).any()
