"""What the recurrent layers share: projecting the inputs, scanning over time, one step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from seqmem_ros.nn.dense import normalise
from seqmem_ros.nn.initializers import get_initializer
from seqmem_ros.nn.initializers import Initializer
from seqmem_ros.nn.input_check import check_input
from seqmem_ros.nn.module import Module
from seqmem_ros.nn.module import Param

LAYER_NORM_EPS = 1e-5


class RecurrentLayer(Module):
    """
    Base of RNN, GRU and LSTM.

    A cell names its gates in the order in which their input products are laid out, and says in
    :meth:`_cell` how the state advances. The input products of a whole sequence do not depend on
    the state, so :meth:`unroll` takes them in one matrix product outside of the loop.

    With ``layer_norm`` the pre-activation of each gate is normalised inside the loop,
    ``f(g normalise(a) + b)`` with a the sum of all inputs of the gate but its bias: Ba, Kiros and
    Hinton, *Layer normalization*, arXiv:1607.06450 (2016), Eq. 4.

    :param n_in: width of the samples
    :param n_hidden: width of the state and of the output
    """

    # Parameter suffixes of the gates; '' is a candidate whose matrices are plain W and U.
    _gates: tuple[str, ...]

    def __init__(self, n_in: int, n_hidden: int):
        self.n_in = n_in
        self.n_hidden = n_hidden

    def _add_matrix(
        self, letter: str, gate: str, key: jax.Array, initializer: str | Initializer
    ) -> None:
        n_from = self.n_in if letter == 'W' else self.n_hidden
        matrix = get_initializer(initializer)(key, (self.n_hidden, n_from))
        setattr(self, _named(letter, gate), Param(matrix))

    def _add_bias(self, gate: str, bias: bool) -> None:
        setattr(self, _named('b', gate), Param(jnp.zeros(self.n_hidden)) if bias else None)

    def _add_gains(self) -> None:
        for gate in self._gates:
            gain = Param(jnp.ones(self.n_hidden)) if self.layer_norm else None
            setattr(self, _named('g', gate), gain)

    def _matrices(self, letter: str, gates: tuple[str, ...]) -> jax.Array:
        # Transposed and side by side, (n_from, gates * n_hidden): one product serves all gates.
        return jnp.concatenate([getattr(self, _named(letter, g)).value for g in gates]).T

    def _bias(self, gate: str) -> jax.Array | float:
        b = getattr(self, _named('b', gate))
        return 0.0 if b is None else b.value

    def _project(self, x: jax.Array) -> jax.Array:
        inputs = x @ self._matrices('W', self._gates)
        if self.layer_norm or getattr(self, _named('b', self._gates[0])) is None:
            return inputs
        return inputs + jnp.concatenate([self._bias(gate) for gate in self._gates])

    def _norm(self, gate: str, a: jax.Array) -> jax.Array:
        if not self.layer_norm:
            return a
        gain = getattr(self, _named('g', gate)).value
        return normalise(a, LAYER_NORM_EPS) * gain + self._bias(gate)

    def _cell(self) -> Callable[[jax.Array, Any], Any]:
        """Gather the weights once; the function advances (projected input, state) to a state."""
        raise NotImplementedError

    def _output(self, state: Any) -> jax.Array:
        return state

    def _advance(self, x: jax.Array, state: Any) -> Any:
        return self._cell()(self._project(x), state)

    def width_after(self, n_in: int | None) -> int:
        return self.n_hidden

    def init_state(self, batch: int | None = None, n_in: int | None = None) -> Any:
        """
        Make the zero state.

        :param batch: number of independent streams, None for a single one
        :param n_in: not used
        :returns: zeros, (n_hidden,) or (batch, n_hidden), dimensionless
        """
        axes = () if batch is None else (batch,)
        return jnp.zeros((*axes, self.n_hidden), self.dtype)

    def step(self, x: jax.Array, state: Any) -> tuple[jax.Array, Any]:
        """
        Take one sample.

        :param x: sample, shape (n_in,) or (batch, n_in)
        :param state: from :meth:`init_state` or the step before
        :returns: output, (n_hidden,) or (batch, n_hidden), and the new state
        :raises ValueError: if the width is not n_in or the state belongs to another batch
        """
        x = check_input(x, self.n_in, self, 'sample')
        self._check_state(x.shape[:-1], state)
        state = self._advance(x, state)
        return self._output(state), state

    def forward(self, seq: jax.Array, rng_key: jax.Array | None = None) -> jax.Array:
        """
        Run over a whole sequence from the zero state.

        :param seq: shape (T, n_in) or (batch, T, n_in)
        :param rng_key: not used
        :returns: outputs, (T, n_hidden) or (batch, T, n_hidden)
        :raises ValueError: if the width is not n_in
        """
        return self.unroll(seq)[0]

    def unroll(
        self, seq: jax.Array, state: Any = None, lengths: jax.Array | None = None
    ) -> tuple[jax.Array, Any]:
        """
        Run over a sequence from any state and keep the last one, to go on from there.

        :param seq: shape (T, n_in) or (batch, T, n_in)
        :param state: to begin with; None for zero
        :param lengths: samples that count in each sequence, shape () or (batch,); the state stays
            as it is after them. None for all
        :returns: outputs, (T, n_hidden) or (batch, T, n_hidden), and the state after the last
            sample
        :raises ValueError: if the width is not n_in or the state belongs to another batch
        """
        seq = check_input(seq, self.n_in, self, 'sequence')
        if state is None:
            state = self.init_state(seq.shape[0] if seq.ndim == 3 else None)
        self._check_state(seq.shape[:-2], state)
        return _scan(self, seq, state, lengths)

    def _check_state(self, batch_shape: tuple[int, ...], state: Any) -> None:
        expected = (*batch_shape, self.n_hidden)
        for part in jax.tree.leaves(state):
            if jnp.shape(part) != expected:
                raise ValueError(
                    f'{type(self).__name__} expected a state of shape {expected} for this input, '
                    f'got {jnp.shape(part)}; make it with init_state(batch)'
                )


def beside(x: jax.Array, h: jax.Array) -> jax.Array:
    """
    Put sample and memory side by side, for one product with the weights of both.

    :param x: shape (..., n_in)
    :param h: shape (..., n_hidden)
    :returns: shape (..., n_in + n_hidden)
    """
    # Without the barrier XLA takes the product apart again.
    return jax.lax.optimization_barrier(jnp.concatenate([x, h], axis=-1))


def _named(letter: str, gate: str) -> str:
    return f'{letter}_{gate}' if gate else letter


# Compiled here as well, for callers that do not compile: a bare scan would be compiled anew by
# every call, this one once for each shape.
@jax.jit
def _scan(
    layer: RecurrentLayer, seq: jax.Array, state: Any, lengths: jax.Array | None
) -> tuple[jax.Array, Any]:
    cell = layer._cell()

    def advance(state: Any, inputs: tuple[jax.Array, jax.Array]) -> tuple[Any, jax.Array]:
        projected, index = inputs
        new = cell(projected, state)
        if lengths is not None:
            counts = (index < lengths)[..., None]
            new = jax.tree.map(lambda n, old: jnp.where(counts, n, old), new, state)
        return new, layer._output(new)

    # (..., T, gates * n_hidden) -> (T, ..., gates * n_hidden): scan runs over the first axis.
    projected = jnp.moveaxis(layer._project(seq), -2, 0)
    state, outputs = jax.lax.scan(advance, state, (projected, jnp.arange(seq.shape[-2])))
    return jnp.moveaxis(outputs, 0, -2), state
