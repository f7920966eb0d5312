"""Layers made of layers, and the layers that turn a sequence into one vector."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from seqmem_ros.nn.module import Module


class Sequential(Module):
    """
    Layers one after another: ``y = layer_n(... layer_1(x))``.

    The state is the tuple of the layers' states. It streams if every layer does.

    :param layers: in the order of the data
    """

    def __init__(self, *layers: Module):
        self.layers = layers

    def width_after(self, n_in: int | None) -> int | None:
        for layer in self.layers:
            n_in = layer.width_after(n_in)
        return n_in

    def why_not_streaming(self) -> str | None:
        for index, layer in enumerate(self.layers):
            reason = layer.why_not_streaming()
            if reason is not None:
                return f'layer {index} ({type(layer).__name__}) cannot stream: {reason}'
        return None

    def require_streaming(self) -> None:
        reason = self.why_not_streaming()
        if reason is not None:
            raise ValueError(f'{reason}. Use forward on whole sequences.')

    def init_state(self, batch: int | None = None, n_in: int | None = None) -> tuple[Any, ...]:
        """
        Make the empty memory of every layer.

        :param batch: number of independent streams, None for a single one
        :param n_in: width of the samples, needed only before layers that were not told it
        :returns: one state for each layer
        :raises ValueError: if a layer cannot stream; names it and the reason
        """
        self.require_streaming()
        states = []
        for layer in self.layers:
            states.append(layer.init_state(batch, n_in))
            n_in = layer.width_after(n_in)
        return tuple(states)

    def step(self, x: jax.Array, state: tuple[Any, ...]) -> tuple[jax.Array, tuple[Any, ...]]:
        """
        Take one sample through all layers.

        :param x: sample, shape (n_in,) or (batch, n_in)
        :param state: from :meth:`init_state` or the step before
        :returns: output, (n_out,) or (batch, n_out), and the new state
        :raises ValueError: if a layer cannot stream; names it and the reason
        """
        self.require_streaming()
        new_states = []
        for layer, layer_state in zip(self.layers, state):
            x, layer_state = layer.step(x, layer_state)
            new_states.append(layer_state)
        return x, tuple(new_states)

    def forward(self, seq: jax.Array, rng_key: jax.Array | None = None) -> jax.Array:
        """
        Run a whole sequence through all layers.

        :param seq: shape (T, n_in) or (batch, T, n_in)
        :param rng_key: random key of the dropout; None for no dropout
        :returns: what the last layer gives
        """
        for layer, layer_key in zip(self.layers, split_for(self.layers, rng_key)):
            seq = layer.forward(seq, layer_key)
        return seq


def split_for(layers: tuple[Module, ...], rng_key: jax.Array | None) -> list[jax.Array | None]:
    """
    Give every layer a key of its own.

    :param layers: that share the key
    :param rng_key: random key, or None for no dropout
    :returns: one key, or None, for each layer
    """
    return (
        [None] * len(layers) if rng_key is None else list(jax.random.split(rng_key, len(layers)))
    )


class LastStep(Module):
    """
    Keep the last sample of a sequence, ``y = x_T``.

    In a stream that is the current one: a step passes its sample on.
    """

    def forward(self, seq: jax.Array, rng_key: jax.Array | None = None) -> jax.Array:
        """
        Take the last sample.

        :param seq: shape (T, n) or (batch, T, n)
        :param rng_key: not used
        :returns: shape (n,) or (batch, n)
        """
        return jnp.asarray(seq)[..., -1, :]

    def step(self, x: jax.Array, state: tuple[()]) -> tuple[jax.Array, tuple[()]]:
        """
        Pass the sample on.

        :param x: sample, shape (n,) or (batch, n)
        :param state: empty
        :returns: the sample and the empty state
        """
        return x, state
