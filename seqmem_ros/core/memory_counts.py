"""
How many numbers a network holds, and how many its training holds.

Letters as in the formulas: D inputs, H units, N outputs of a dense layer, B sequences in a batch,
T samples in each, K samples in a window of truncated backpropagation.
"""

from __future__ import annotations

from collections.abc import Iterator
import math
from typing import Any
from typing import NamedTuple

import jax
import jax.numpy as jnp

from seqmem_ros.nn import Dense
from seqmem_ros.nn import GRU
from seqmem_ros.nn import LayerNorm
from seqmem_ros.nn import LSTM
from seqmem_ros.nn import Module
from seqmem_ros.nn import MultiHeadSelfAttention
from seqmem_ros.nn import Param
from seqmem_ros.nn import RNN

Terms = list[tuple[str, int]]


class ParameterCount(NamedTuple):
    """
    The parameters of one layer.

    :param path: dotted path of the layer in the network, ``''`` for a bare layer
    :param kind: name of its class
    :param formula: the count in letters; empty for a layer that has no formula here
    :param sizes: value of each letter
    :param count: number of parameters by the formula
    :param held: number of elements of the arrays that are there
    """

    path: str
    kind: str
    formula: str
    sizes: dict[str, int]
    count: int
    held: int


def leaf_layers(module: Module, path: str = '') -> Iterator[tuple[str, Module]]:
    """
    Walk over the layers that are not made of layers, in the order of the data.

    :param module: a layer or network
    :param path: path of ``module`` itself
    :returns: pairs of dotted path and layer
    """
    children = list(_child_modules(module))
    if not children:
        yield path, module
    for name, child in children:
        yield from leaf_layers(child, f'{path}.{name}' if path else name)


def count_parameters(network: Module) -> list[ParameterCount]:
    """
    Count the parameters of each layer by its formula.

    ::

        RNN   H (H + D) + H
        GRU   3 (H (H + D) + H)                 + H with reset_after
        LSTM  4 (H (H + D) + H)                 + 3 H with peepholes

    Without biases the second term of each bracket is missing; layer normalisation inside a cell
    adds a gain, H, for each gate.

    :param network: a layer or network
    :returns: one entry for each layer with parameters
    """
    counts = []
    for path, layer in leaf_layers(network):
        present = sum(math.prod(param.shape) for param in layer.params())
        if present:
            sizes, terms = _terms(layer)
            formula = ' + '.join(text for text, _ in terms)
            count = sum(value for _, value in terms) if terms else present
            counts.append(
                ParameterCount(path, type(layer).__name__, formula, sizes, count, present)
            )
    return counts


def values_needed(layer: Module, n_samples: int) -> int:
    """
    Count the numbers that backpropagation needs from each sample of a layer.

    ``v H`` with v = 1 for the RNN (h), 5 for the GRU (r, z, candidate, recurrent product, h), 7
    for the LSTM (z, i, f, o, c, tanh c, y): every factor that stands in a derivative. Attention
    needs ``5 D`` (q, k, v, their mixture, output) and a weight for each head and each of the
    samples in reach; other layers need their output. The layer's input is not counted: it is the
    output of the layer before.

    :param layer: one that is not made of layers
    :param n_samples: samples that are held at a time
    :returns: numbers a sample
    """
    if isinstance(layer, MultiHeadSelfAttention):
        reach = min(n_samples, layer.window or n_samples)
        return 5 * layer.n_in + layer.n_heads * reach
    per_unit = {RNN: 1, GRU: 5, LSTM: 7}.get(type(layer), 1)
    width = layer.n_in if isinstance(layer, LayerNorm) else layer.width_after(None)
    return per_unit * (width or 0)


def activation_bytes(network: Module, batch: int, n_samples: int, window: int) -> int:
    """
    Estimate the memory that training needs beside the weights.

    ``4 B min(T, K) sum_l v_l H_l`` bytes in single precision, v H from :func:`values_needed`: with
    truncated backpropagation only the window's samples are held at a time.

    :param network: a layer or network
    :param batch: B
    :param n_samples: T
    :param window: K; T or more for none
    :returns: bytes
    """
    held = min(n_samples, window)
    values = sum(values_needed(layer, held) for _, layer in leaf_layers(network))
    return 4 * batch * held * values


def kept_bytes(network: Module, n_in: int, batch: int, n_samples: int) -> int:
    """
    Find what JAX itself keeps between the forward and the backward pass, without running them.

    These are the residuals of ``jax.vjp``, as JAX traces it before the compiler fuses anything: an
    upper bound, about twice :func:`activation_bytes` for recurrent layers. It covers every layer.

    :param network: with ``forward``
    :param n_in: width of its input
    :param batch: B
    :param n_samples: T; the window K for truncated backpropagation
    :returns: bytes that grow with the batch, so without the weights
    """
    one, two = (_residual_bytes(network, (b, n_samples, n_in)) for b in (batch, 2 * batch))
    return two - one


def _residual_bytes(network: Module, shape: tuple[int, ...]) -> int:
    def residuals(network: Module, seq: jax.Array) -> Any:
        return jax.vjp(lambda net: net.forward(seq), network)[1]

    kept = jax.eval_shape(residuals, network, jax.ShapeDtypeStruct(shape, jnp.float32))
    return sum(math.prod(leaf.shape) * leaf.dtype.itemsize for leaf in jax.tree.leaves(kept))


def _child_modules(module: Module) -> Iterator[tuple[str, Module]]:
    for name, value in vars(module).items():
        if isinstance(value, Module):
            yield name, value
        elif isinstance(value, (list, tuple)):
            yield from (
                (f'{name}.{i}', item) for i, item in enumerate(value) if isinstance(item, Module)
            )


def _terms(layer: Module) -> tuple[dict[str, int], Terms]:
    if isinstance(layer, (RNN, GRU, LSTM)):
        return {'H': layer.n_hidden, 'D': layer.n_in}, _recurrent_terms(layer)
    if isinstance(layer, Dense):
        n, d = layer.n_out, layer.n_in
        return {'N': n, 'D': d}, [('N D', n * d)] + ([] if layer.b is None else [('N', n)])
    if isinstance(layer, LayerNorm):
        return {'D': layer.n_in}, [('2 D', 2 * layer.n_in)]
    if isinstance(layer, MultiHeadSelfAttention):
        d = layer.n_in
        return {'D': d}, [('4 D D', 4 * d * d)] + ([] if layer.b_q is None else [('4 D', 4 * d)])
    return {}, []


def _recurrent_terms(layer: RNN | GRU | LSTM) -> Terms:
    h, d = layer.n_hidden, layer.n_in
    gates = {RNN: 1, GRU: 3, LSTM: 4}[type(layer)]
    has_bias = any(_holds(layer, name) for name in ('b', 'b_z'))
    text = 'H (H + D) + H' if has_bias else 'H (H + D)'
    if gates > 1:
        text = f'{gates} ({text})' if has_bias else f'{gates} {text}'
    terms = [(text, gates * (h * (h + d) + (h if has_bias else 0)))]
    if _holds(layer, 'b_U'):
        terms.append(('H', h))
    if _holds(layer, 'p_i'):
        terms.append(('3 H', 3 * h))
    if layer.layer_norm:
        terms.append((f'{gates} H', gates * h))
    return terms


def _holds(layer: Module, name: str) -> bool:
    return isinstance(getattr(layer, name, None), Param)
