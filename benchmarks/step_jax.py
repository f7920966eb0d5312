"""The networks of the step benchmark in other libraries on JAX: equinox and flax."""

from typing import Any

import equinox
from flax import nnx
import jax
import jax.numpy as jnp
import numpy as np
from step_peers import N_HEADS
from step_peers import Step
from step_peers import Weights
from step_peers import WINDOW


def make_equinox(cell: str, weights: Weights, n_joints: int) -> Step:
    """Step by ``equinox.filter_jit``, the module its first argument."""
    module = _EQUINOX[cell](weights)

    @equinox.filter_jit
    def advance(module: Any, x: jax.Array, state: Any) -> tuple:
        return module(x, state)

    return _step_of(lambda x, state: advance(module, x, state), _state(cell, weights, n_joints))


def make_flax(cell: str, weights: Weights, n_joints: int) -> Step:
    """Step by ``nnx.jit``, the module its first argument."""
    module = _FLAX[cell](weights)

    @nnx.jit
    def advance(module: Any, x: jax.Array, state: Any) -> tuple:
        return module(x, state)

    return _step_of(lambda x, state: advance(module, x, state), _state(cell, weights, n_joints))


def _step_of(advance: Any, state: Any) -> Step:
    memory = [state]

    def step(x: np.ndarray) -> np.ndarray:
        y, memory[0] = advance(x, memory[0])
        return np.asarray(y)[:, 0]

    return step


def _state(cell: str, w: Weights, n_joints: int) -> Any:
    if cell == 'attention':
        ring = jnp.zeros((n_joints, WINDOW, len(w['in'])))
        return ring, ring, jnp.full((1, WINDOW), -jnp.inf)
    zero = jnp.zeros((n_joints, w['hidden'].shape[1]))
    return zero if cell == 'gru' else (zero, zero)


class _EquinoxGru(equinox.Module):
    cell: equinox.nn.GRUCell
    out: equinox.nn.Linear

    def __init__(self, w: Weights) -> None:
        self.cell = _with_weights(equinox.nn.GRUCell, w)
        self.cell = equinox.tree_at(
            lambda c: c.bias_n, self.cell, jnp.zeros(self.cell.hidden_size)
        )
        self.out = _equinox_linear(w['out'], w['b_out'])

    def __call__(self, x: jax.Array, h: jax.Array) -> tuple:
        h = jax.vmap(self.cell)(x, h)
        return jax.vmap(self.out)(h), h


class _EquinoxLstm(equinox.Module):
    cell: equinox.nn.LSTMCell
    out: equinox.nn.Linear

    def __init__(self, w: Weights) -> None:
        self.cell = _with_weights(equinox.nn.LSTMCell, w)
        self.out = _equinox_linear(w['out'], w['b_out'])

    def __call__(self, x: jax.Array, state: tuple) -> tuple:
        y, c = jax.vmap(self.cell)(x, state)
        return jax.vmap(self.out)(y), (y, c)


class _EquinoxAttention(equinox.Module):
    embed: equinox.nn.Linear
    qkv: equinox.nn.Linear
    o: equinox.nn.Linear
    out: equinox.nn.Linear

    def __init__(self, w: Weights) -> None:
        self.embed = _equinox_linear(w['in'], w['b_in'])
        self.qkv = _equinox_linear(np.concatenate([w[letter] for letter in 'qkv']))
        self.o = _equinox_linear(w['o'])
        self.out = _equinox_linear(w['out'], w['b_out'])

    def __call__(self, x: jax.Array, state: tuple) -> tuple:
        y, state = _attend(jax.vmap(lambda row: self.qkv(self.embed(row)))(x), state)
        return jax.vmap(lambda row: self.out(self.o(row)))(y), state


class _FlaxGru(nnx.Module):
    def __init__(self, w: Weights) -> None:
        n = w['hidden'].shape[1]
        self.cell = nnx.GRUCell(w['in'].shape[1], n, rngs=nnx.Rngs(0))
        _set_linear(self.cell.dense_i, w['in'], w['b_in'])
        _set_linear(self.cell.dense_h, w['hidden'])
        self.out = _flax_linear(w['out'], w['b_out'])

    def __call__(self, x: jax.Array, h: jax.Array) -> tuple:
        h, y = self.cell(h, x)
        return self.out(y), h


class _FlaxLstm(nnx.Module):
    def __init__(self, w: Weights) -> None:
        n = w['hidden'].shape[1]
        self.cell = nnx.OptimizedLSTMCell(w['in'].shape[1], n, rngs=nnx.Rngs(0))
        _set_linear(self.cell.dense_i, w['in'])
        _set_linear(self.cell.dense_h, w['hidden'], w['b_in'])
        self.out = _flax_linear(w['out'], w['b_out'])

    def __call__(self, x: jax.Array, state: tuple) -> tuple:
        state, y = self.cell(state, x)
        return self.out(y), state


class _FlaxAttention(nnx.Module):
    def __init__(self, w: Weights) -> None:
        self.embed = _flax_linear(w['in'], w['b_in'])
        self.qkv = _flax_linear(np.concatenate([w[letter] for letter in 'qkv']))
        self.o = _flax_linear(w['o'])
        self.out = _flax_linear(w['out'], w['b_out'])

    def __call__(self, x: jax.Array, state: tuple) -> tuple:
        y, state = _attend(self.qkv(self.embed(x)), state)
        return self.out(self.o(y)), state


def _attend(qkv: jax.Array, state: tuple) -> tuple:
    keys, values, hidden = state
    q, k, v = jnp.split(qkv, 3, axis=1)
    keys = jnp.concatenate([keys[:, 1:], k[:, None]], axis=1)
    values = jnp.concatenate([values[:, 1:], v[:, None]], axis=1)
    hidden = jnp.concatenate([hidden[:, 1:], jnp.zeros((1, 1))], axis=1)
    heads = (*keys.shape[:2], N_HEADS, -1)
    d_head = keys.shape[-1] // N_HEADS
    q = q.reshape(len(q), N_HEADS, d_head)
    scores = jnp.einsum('jhd,jthd->jht', q, keys.reshape(heads)) / np.sqrt(d_head)
    shares = jax.nn.softmax(scores + hidden, axis=-1)
    y = jnp.einsum('jht,jthd->jhd', shares, values.reshape(heads))
    return y.reshape(len(q), -1), (keys, values, hidden)


def _with_weights(kind: Any, w: Weights) -> Any:
    cell = kind(w['in'].shape[1], w['hidden'].shape[1], key=jax.random.key(0))
    values = (jnp.array(w['in']), jnp.array(w['hidden']), jnp.array(w['b_in']))
    return equinox.tree_at(lambda c: (c.weight_ih, c.weight_hh, c.bias), cell, values)


def _equinox_linear(weight: np.ndarray, bias: np.ndarray | None = None) -> equinox.nn.Linear:
    n_out, n_in = weight.shape
    layer = equinox.nn.Linear(n_in, n_out, use_bias=bias is not None, key=jax.random.key(0))
    layer = equinox.tree_at(lambda one: one.weight, layer, jnp.array(weight))
    if bias is None:
        return layer
    return equinox.tree_at(lambda one: one.bias, layer, jnp.array(bias))


def _flax_linear(weight: np.ndarray, bias: np.ndarray | None = None) -> nnx.Linear:
    n_out, n_in = weight.shape
    layer = nnx.Linear(n_in, n_out, use_bias=bias is not None, rngs=nnx.Rngs(0))
    _set_linear(layer, weight, bias)
    return layer


def _set_linear(layer: nnx.Linear, weight: np.ndarray, bias: np.ndarray | None = None) -> None:
    layer.kernel[...] = jnp.array(weight.T)
    if bias is not None:
        layer.bias[...] = jnp.array(bias)


_EQUINOX = {'gru': _EquinoxGru, 'lstm': _EquinoxLstm, 'attention': _EquinoxAttention}
_FLAX = {'gru': _FlaxGru, 'lstm': _FlaxLstm, 'attention': _FlaxAttention}
