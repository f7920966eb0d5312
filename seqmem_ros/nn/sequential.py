"""Layers made of layers."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from seqmem_ros.nn.module import Module
from seqmem_ros.nn.padding import reverse_padded
from seqmem_ros.nn.padding import zero_padding


class Sequential(Module):
    """
    Layers one after another: ``y = layer_n(... layer_1(x))``.

    The state is the tuple of the layers' states. It streams if every layer does.

    :param layers: in the order of the data
    """

    def __init__(self, *layers: Module):
        self.layers = layers

    @property
    def collapses_time(self) -> bool:
        return any(layer.collapses_time for layer in self.layers)

    def width_after(self, n_in: int | None) -> int | None:
        for layer in self.layers:
            n_in = layer.width_after(n_in)
        return n_in

    def why_not_streaming(self) -> str | None:
        for index, layer in enumerate(self.layers):
            reason = layer.why_not_streaming()
            if reason is not None:
                return f'layer {index} ({type(layer).__name__}): {reason}'
        return None

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
        for layer, layer_key in zip(self.layers, _split(rng_key, len(self.layers))):
            seq = layer.forward(seq, layer_key)
        return seq

    def forward_padded(
        self, seq: jax.Array, lengths: jax.Array, rng_key: jax.Array | None = None
    ) -> jax.Array:
        has_time = True
        for layer, layer_key in zip(self.layers, _split(rng_key, len(self.layers))):
            if has_time:
                seq = layer.forward_padded(seq, lengths, layer_key)
            else:
                seq = layer.forward(seq, layer_key)
            has_time = has_time and not layer.collapses_time
        return seq


class Residual(Module):
    """
    A layer whose input is added to its output: ``y = x + layer(x)``.

    He et al., *Deep residual learning for image recognition*, CVPR 2016, Eq. 1.

    :param layer: with an output as wide as its input, one for each sample
    :raises ValueError: for a layer that turns the sequence into one vector
    """

    def __init__(self, layer: Module):
        _require_output_each_sample(layer, self)
        self.layer = layer

    def width_after(self, n_in: int | None) -> int | None:
        return self.layer.width_after(n_in)

    def why_not_streaming(self) -> str | None:
        return self.layer.why_not_streaming()

    def init_state(self, batch: int | None = None, n_in: int | None = None) -> Any:
        """
        Make the empty memory of the layer.

        :param batch: number of independent streams, None for a single one
        :param n_in: width of the samples, for layers that were not told it
        :returns: the layer's state
        :raises ValueError: if the layer cannot stream
        """
        self.require_streaming()
        return self.layer.init_state(batch, n_in)

    def step(self, x: jax.Array, state: Any) -> tuple[jax.Array, Any]:
        """
        Take one sample.

        :param x: sample, shape (n,) or (batch, n)
        :param state: from :meth:`init_state` or the step before
        :returns: the same shape, and the new state
        :raises ValueError: if the layer cannot stream or its output is not as wide as its input
        """
        self.require_streaming()
        y, state = self.layer.step(x, state)
        return self._add(x, y), state

    def forward(self, seq: jax.Array, rng_key: jax.Array | None = None) -> jax.Array:
        """
        Run a whole sequence.

        :param seq: shape (T, n) or (batch, T, n)
        :param rng_key: random key of the dropout; None for no dropout
        :returns: the same shape
        :raises ValueError: if the layer's output is not as wide as its input
        """
        return self._add(seq, self.layer.forward(seq, rng_key))

    def forward_padded(
        self, seq: jax.Array, lengths: jax.Array, rng_key: jax.Array | None = None
    ) -> jax.Array:
        seq, _ = zero_padding(seq, lengths)
        return self._add(seq, self.layer.forward_padded(seq, lengths, rng_key))

    def _add(self, x: jax.Array, y: jax.Array) -> jax.Array:
        x = jnp.asarray(x, y.dtype)
        if x.shape != y.shape:
            raise ValueError(
                f'Residual expected {type(self.layer).__name__} to keep the shape {x.shape} of '
                f'its input, got {y.shape}'
            )
        return x + y


class Bidirectional(Module):
    """
    Two layers, one reading forwards and one backwards: ``y_t = [h_t, h'_t]``.

    h read from the start, h' from the end. Schuster and Paliwal, *Bidirectional recurrent neural
    networks*, IEEE Trans. Signal Processing 45 (1997), pages 2673 to 2681, Fig. 3; outputs put
    side by side, as in PyTorch. Whole sequences only.

    :param layer_fwd: reads from the first sample to the last
    :param layer_bwd: reads from the last sample to the first
    :raises ValueError: for a layer that turns the sequence into one vector
    """

    def __init__(self, layer_fwd: Module, layer_bwd: Module):
        for layer in (layer_fwd, layer_bwd):
            _require_output_each_sample(layer, self)
        self.layer_fwd = layer_fwd
        self.layer_bwd = layer_bwd

    def width_after(self, n_in: int | None) -> int | None:
        widths = self.layer_fwd.width_after(n_in), self.layer_bwd.width_after(n_in)
        return None if None in widths else sum(widths)

    def why_not_streaming(self) -> str | None:
        return 'it reads the sequence from its end as well'

    def forward(self, seq: jax.Array, rng_key: jax.Array | None = None) -> jax.Array:
        """
        Run both layers over a whole sequence.

        :param seq: shape (T, n_in) or (batch, T, n_in)
        :param rng_key: random key of the dropout; None for no dropout
        :returns: shape (T, n_fwd + n_bwd) or (batch, T, n_fwd + n_bwd)
        """
        keys = _split(rng_key, 2)
        seq = jnp.asarray(seq)
        forwards = self.layer_fwd.forward(seq, keys[0])
        backwards = self.layer_bwd.forward(jnp.flip(seq, -2), keys[1])
        return jnp.concatenate([forwards, jnp.flip(backwards, -2)], axis=-1)

    def forward_padded(
        self, seq: jax.Array, lengths: jax.Array, rng_key: jax.Array | None = None
    ) -> jax.Array:
        keys = _split(rng_key, 2)
        forwards = self.layer_fwd.forward_padded(seq, lengths, keys[0])
        reversed_seq = reverse_padded(jnp.asarray(seq), lengths)
        backwards = self.layer_bwd.forward_padded(reversed_seq, lengths, keys[1])
        return jnp.concatenate([forwards, reverse_padded(backwards, lengths)], axis=-1)


def _require_output_each_sample(layer: Module, owner: Module) -> None:
    if layer.collapses_time:
        raise ValueError(
            f'{type(owner).__name__} needs one output for each sample; {type(layer).__name__} '
            'gives one for the sequence'
        )


def _split(rng_key: jax.Array | None, n_keys: int) -> list[jax.Array | None]:
    return [None] * n_keys if rng_key is None else list(jax.random.split(rng_key, n_keys))
