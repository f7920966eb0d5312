"""How much the past still counts in a run: what is left of a state, what a loss asks of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
from jax.flatten_util import ravel_pytree
import jax.numpy as jnp
import numpy as np

from seqmem_ros.nn import Module
from seqmem_ros.nn import Residual
from seqmem_ros.nn import Sequential
from seqmem_ros.nn.recurrent_layer import RecurrentLayer


def influence(layer: Module, seq: np.ndarray, state: Any = None) -> np.ndarray:
    """
    Measure how much of each earlier state is left in the last one.

    ``|ds_T / ds_k|_F / sqrt(S)`` with ``ds_T / ds_k = J_T J_(T-1) ... J_(k+1)``, J_t the Jacobian
    of step t: 1 for a perfect memory, falling to 0 where gradients vanish. Pascanu, Mikolov and
    Bengio, *On the difficulty of training recurrent neural networks*, ICML 2013, Eq. 5.

    :param layer: RNN, GRU or LSTM; the LSTM's state is y and c together, S = 2 H, else S = H
    :param seq: inputs, shape (T, n_in)
    :param state: s_0; None for zero
    :returns: shape (T + 1,), element k for s_k, the last one 1
    """
    state = layer.init_state() if state is None else state
    earlier = _left_of_earlier_states(layer, state, jnp.asarray(seq, layer.dtype))
    return np.append(np.asarray(earlier, np.float64), 1.0)


def gradient_along(
    network: Module,
    seq: np.ndarray,
    n_last: int = 1,
    loss: Callable[[jax.Array], jax.Array] | None = None,
) -> dict[str, np.ndarray]:
    """
    Measure how strongly a loss on the last outputs pulls at the state after each sample.

    ``|dL / ds_k|`` for each recurrent layer: what backpropagation through time carries along it.

    :param network: a recurrent layer, or a Sequential with some; must stream
    :param seq: inputs, shape (T, n_in)
    :param n_last: number of outputs that the loss sees
    :param loss: scalar function of outputs of shape (n_last, n_out); None for the mean of their
        squares
    :returns: for each recurrent layer, by path, shape (T,), element k - 1 for the state after
        sample k
    :raises ValueError: if the network has no recurrent layer, or n_last is not within the sequence
    """
    if not 1 <= n_last <= len(seq):
        raise ValueError(f'n_last: expected 1 to {len(seq)} outputs, got {n_last}')
    network = network if isinstance(network, Sequential) else Sequential(network)
    recurrent = [i for i, layer in enumerate(network.layers) if _is_recurrent(layer)]
    if not recurrent:
        raise ValueError('expected a network with an RNN, GRU or LSTM, got none')
    loss = loss or (lambda y: jnp.mean(y**2))

    def total(nudges: list[Any], seq: jax.Array) -> jax.Array:
        def advance(
            state: tuple[Any, ...], inputs: tuple[Any, jax.Array]
        ) -> tuple[Any, jax.Array]:
            nudge, x = inputs
            return _nudged_step(network, x, state, dict(zip(recurrent, nudge)))

        state = network.init_state(n_in=seq.shape[-1])
        return loss(jax.lax.scan(advance, state, (nudges, seq))[1][-n_last:])

    seq = jnp.asarray(seq, network.dtype)
    states = [network.layers[i].init_state() for i in recurrent]
    nudges = jax.tree.map(lambda s: jnp.zeros((len(seq), *s.shape), s.dtype), states)
    gradients = jax.jit(jax.grad(total))(nudges, seq)
    return {f'layers.{i}': _norms(gradient) for i, gradient in zip(recurrent, gradients)}


# The layer is an argument, so that layers of one kind and size share a compilation.
@jax.jit
def _left_of_earlier_states(layer: Module, state: Any, seq: jax.Array) -> jax.Array:
    flat, unflatten = ravel_pytree(state)

    def advance(flat: jax.Array, x: jax.Array) -> jax.Array:
        return ravel_pytree(layer.step(x, unflatten(flat))[1])[0]

    def run(flat: jax.Array, x: jax.Array) -> tuple[jax.Array, jax.Array]:
        return advance(flat, x), jax.jacfwd(advance)(flat, x)

    def further_back(product: jax.Array, J: jax.Array) -> tuple[jax.Array, jax.Array]:
        product = product @ J
        return product, jnp.linalg.norm(product) / jnp.sqrt(flat.size)

    _, jacobians = jax.lax.scan(run, flat, seq)
    eye = jnp.eye(flat.size, dtype=flat.dtype)
    return jax.lax.scan(further_back, eye, jacobians, reverse=True)[1]


def _is_recurrent(layer: Module) -> bool:
    if isinstance(layer, Residual):
        return isinstance(layer.layer, RecurrentLayer)
    return isinstance(layer, RecurrentLayer)


def _nudged_step(
    network: Sequential, x: jax.Array, states: tuple[Any, ...], nudges: dict[int, Any]
) -> tuple[tuple[Any, ...], jax.Array]:
    # A nudge is zero and stands for the state's own variation: d/d(nudge) is d/d(state).
    new_states = []
    for index, (layer, state) in enumerate(zip(network.layers, states)):
        below, (x, state) = x, layer.step(x, state)
        if index in nudges:
            state = jax.tree.map(jnp.add, state, nudges[index])
            # y is the first array of every recurrent state; a nudge must reach it as well.
            x = jax.tree.leaves(state)[0]
            x = x + below if isinstance(layer, Residual) else x
        new_states.append(state)
    return tuple(new_states), x


def _norms(gradient: Any) -> np.ndarray:
    # (T, H) for each array of the state -> (T,)
    squares = sum(jnp.sum(part**2, axis=-1) for part in jax.tree.leaves(gradient))
    return np.asarray(jnp.sqrt(squares), np.float64)
