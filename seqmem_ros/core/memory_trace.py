"""What each layer holds and looks at while a sequence runs through a network."""

from __future__ import annotations

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from seqmem_ros.core.memory_counts import leaf_layers
from seqmem_ros.nn import masked_softmax
from seqmem_ros.nn import Module
from seqmem_ros.nn import MultiHeadSelfAttention
from seqmem_ros.nn import rotate
from seqmem_ros.nn import Sequential
from seqmem_ros.nn import TransformerBlock


class LayerTrace(NamedTuple):
    """
    One layer along a sequence.

    :param path: dotted path of the layer in the network
    :param kind: name of its class
    :param norms: size of its output after each sample, ``|h_t|``, shape (T,); of a transformer
        block, whose output is normalised, the size of what its attention adds; empty for a layer
        that gives one vector for the sequence
    :param attention: weights averaged over the heads, shape (T, T), row t for the sample that
        attends; None for a layer without attention
    """

    path: str
    kind: str
    norms: np.ndarray
    attention: np.ndarray | None


def attention_weights(layer: MultiHeadSelfAttention, seq: np.ndarray) -> np.ndarray:
    """
    Compute which samples a layer attends to, averaged over its heads.

    ``mean_h softmax(q_h k_h^T / sqrt(d_k))`` with the layer's own mask and positions. Vaswani et
    al., *Attention is all you need*, NeurIPS 2017 (arXiv:1706.03762), Eq. 1.

    :param layer: the attention
    :param seq: its inputs, shape (T, d_model)
    :returns: shape (T, T), row t for the sample that attends; rows sum to 1
    """
    seq = jnp.asarray(seq, layer.dtype)
    index = jnp.arange(len(seq))
    q = _heads(layer, seq, 'q')
    k = _heads(layer, seq, 'k')
    if layer.positions == 'rotary':
        q, k = rotate(q, index), rotate(k, index)
    scores = q @ jnp.swapaxes(k, -1, -2) / jnp.sqrt(q.shape[-1])
    ages = index[:, None] - index[None, :]
    allowed = (ages >= 0) if layer.causal else jnp.ones_like(ages, bool)
    if layer.window is not None:
        allowed &= ages < layer.window
    return np.asarray(masked_softmax(scores, allowed).mean(0), np.float64)


def trace(network: Module, seq: np.ndarray) -> list[LayerTrace]:
    """
    Run a sequence through a network and look at every layer.

    :param network: a layer, or a Sequential
    :param seq: inputs, shape (T, n_in)
    :returns: one entry for each layer that holds memory, in the order of the data
    """
    is_stack = isinstance(network, Sequential)
    traces = []
    x = jnp.asarray(seq)
    for index, layer in enumerate(network.layers if is_stack else (network,)):
        y = layer.forward(x)
        attention = _attention_of(layer)
        if attention is not None or _has_memory(layer):
            weights = None if attention is None else attention_weights(attention, x)
            h = attention.forward(x) if isinstance(layer, TransformerBlock) else y
            norms = jnp.linalg.norm(h, axis=-1) if h.ndim == 2 else []
            path = f'layers.{index}' if is_stack else ''
            kind = type(layer).__name__
            traces.append(LayerTrace(path, kind, np.asarray(norms, np.float64), weights))
        x = y
    return traces


def by_age(weights: np.ndarray) -> np.ndarray:
    """
    Turn attention weights from places to ages.

    ``a_tk = w_(t, t-k)``, k the age of the sample attended to, up to the oldest that has weight.

    :param weights: of causal attention, shape (T, T)
    :returns: shape (T, K), 0 where the sequence had not begun
    """
    ages = range(len(weights))
    columns = [np.pad(np.diagonal(weights, -age), (age, 0)) for age in ages]
    used = [age for age in ages if np.any(columns[age])]
    return np.stack(columns[: used[-1] + 1], axis=1)


def mean_by_age(weights: np.ndarray) -> np.ndarray | None:
    """
    Average causal attention over the samples that had the whole reach before them.

    :param weights: shape (T, T)
    :returns: shape (K,), youngest first, sum 1; None where samples attend to later ones
    """
    if np.any(np.triu(weights, 1)):
        return None
    ages = by_age(weights)
    return ages[ages.shape[1] - 1 :].mean(axis=0)


def attention_reach(network: Module) -> float | None:
    """
    Count the samples that can reach an output through attention alone.

    ``1 + sum_l (W_l - 1)``: each layer looks W - 1 samples further back. Beltagy, Peters and
    Cohan, *Longformer*, arXiv:2004.05150, section 3.1, here one-sided.

    :param network: a layer or network
    :returns: in samples, infinite for a layer without a window; None without attention
    """
    layers = [layer for _, layer in leaf_layers(network)]
    windows = [layer.window for layer in layers if isinstance(layer, MultiHeadSelfAttention)]
    if not windows:
        return None
    return 1 + sum(math.inf if window is None else window - 1 for window in windows)


def _heads(layer: MultiHeadSelfAttention, seq: jax.Array, name: str) -> jax.Array:
    x = seq @ getattr(layer, f'W_{name}').value.T
    bias = getattr(layer, f'b_{name}')
    x = x if bias is None else x + bias.value
    # (T, d_model) -> (T, n_heads, d_head) -> (n_heads, T, d_head)
    return jnp.swapaxes(x.reshape(len(x), layer.n_heads, -1), 0, 1)


def _attention_of(layer: Module) -> MultiHeadSelfAttention | None:
    inner = (
        layer.attention if isinstance(layer, TransformerBlock) else getattr(layer, 'layer', layer)
    )
    return inner if isinstance(inner, MultiHeadSelfAttention) else None


def _has_memory(layer: Module) -> bool:
    return hasattr(layer, 'unroll') or hasattr(layer, 'layer') or hasattr(layer, 'layer_fwd')
