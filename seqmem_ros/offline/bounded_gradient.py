r"""
A bound on what a single sample may teach.

A network that steers a filter sits in a loop: where the filter nearly runs away, the gradient
grows from sample to sample, and one recording out of a thousand outshouts all others of its batch.
To shorten the sum of the gradients afterwards keeps the direction of that one.
"""

from typing import Any

import jax
import jax.numpy as jnp

from seqmem_ros.nn import Module
from seqmem_ros.nn import Param

# Half of all gradients with respect to the outputs of one sample are below 0.004, and 99 % below
# 0.2 (of the logarithm of a recording's RMSE, shipped models); the largest are above 100.
LARGEST_GRADIENT = 0.3


class BoundedGradient(Module):
    r"""
    A network whose gradient is bounded at its outputs, for each sample of each recording.

    .. math:: g \leftarrow g \min(1, g_{max} / |g|)

    with the norm over the outputs of one sample of one recording. Graves, *Generating sequences
    with recurrent neural networks*, arXiv:1308.0850 (2013), section 2.1, there for each number by
    itself. The outputs are those of the network.

    :param network: streams
    :param largest: g_max, in the unit of the loss: where that is a mean over N recordings,
        :data:`LARGEST_GRADIENT` / N
    """

    def __init__(self, network: Module, largest: float | jax.Array):
        self.network = network
        self.largest = Param(largest)

    def why_not_streaming(self) -> str | None:
        return self.network.why_not_streaming()

    def init_state(self, batch: int | None = None, n_in: int | None = None) -> Any:
        """
        Make the network's empty memory.

        :param batch: number of recordings, None for a single one
        :param n_in: width of the samples
        :returns: see the network
        """
        return self.network.init_state(batch, n_in)

    def step(self, x: jax.Array, state: Any) -> tuple[jax.Array, Any]:
        """
        Take one sample.

        :param x: shape (n_in,) or (batch, n_in)
        :param state: from :meth:`init_state` or the step before
        :returns: what the network gives
        """
        y, state = self.network.step(x, state)
        return _bounded(y, self.largest.value), state


@jax.custom_vjp
def _bounded(values: jax.Array, largest: jax.Array) -> jax.Array:
    return values


def _forward(values: jax.Array, largest: jax.Array) -> tuple[jax.Array, jax.Array]:
    return values, largest


def _backward(largest: jax.Array, gradient: jax.Array) -> tuple[jax.Array, jax.Array]:
    norm = jnp.linalg.norm(gradient, axis=-1, keepdims=True)
    shorter = jnp.where(norm > largest, largest / norm, 1.0)
    return gradient * shorter, jnp.zeros_like(largest)


_bounded.defvjp(_forward, _backward)
