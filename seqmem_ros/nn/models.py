"""Whole networks from the layers."""

from __future__ import annotations

from typing import Any

import jax

from seqmem_ros.nn.dense import Dense
from seqmem_ros.nn.dense import Dropout
from seqmem_ros.nn.module import Module
from seqmem_ros.nn.pooling import LastStep
from seqmem_ros.nn.pooling import MeanOverTime
from seqmem_ros.nn.positions import AddPositions
from seqmem_ros.nn.recurrent import GRU
from seqmem_ros.nn.recurrent import LSTM
from seqmem_ros.nn.recurrent import RNN
from seqmem_ros.nn.sequential import Sequential
from seqmem_ros.nn.transformer import TransformerBlock

CELLS = {'rnn': RNN, 'gru': GRU, 'lstm': LSTM}


def recurrent_net(
    n_in: int,
    n_hidden: int,
    n_out: int,
    key: jax.Array,
    cell: str = 'lstm',
    n_layers: int = 1,
    dropout: float = 0.0,
    *,
    last_only: bool = False,
    **cell_options: Any,
) -> Sequential:
    """
    Stack recurrent layers under a linear output: ``y_t = W h_t + b``.

    Stacking as in Graves, *Generating sequences with recurrent neural networks*, arXiv:1308.0850
    (2013), Eqs. 1 to 3, without its skip connections; dropout between the layers only, never on
    the recurrent way, as in Zaremba, Sutskever and Vinyals, *Recurrent neural network
    regularization*, arXiv:1409.2329 (2014), section 3.

    :param n_in: width of the samples
    :param n_hidden: width of every recurrent layer
    :param n_out: width of the output
    :param key: random key, split once for each layer with weights
    :param cell: ``rnn``, ``gru`` or ``lstm``
    :param n_layers: number of recurrent layers
    :param dropout: rate of the dropout after each recurrent layer
    :param last_only: True gives the output after the last sample only, (n_out,)
    :param cell_options: further arguments of the cell, such as ``reset_after`` or ``layer_norm``
    :returns: network from (T, n_in) to (T, n_out), able to stream
    :raises ValueError: for an unknown cell; lists the choices
    """
    if cell not in CELLS:
        raise ValueError(f'unknown cell {cell!r}; choose one of {", ".join(CELLS)}')
    layers: list[Module] = []
    for index in range(n_layers):
        key, layer_key = jax.random.split(key)
        width = n_hidden if index else n_in
        layers.append(CELLS[cell](width, n_hidden, layer_key, **cell_options))
        layers += [Dropout(dropout)] if dropout else []
    layers += [LastStep()] if last_only else []
    key, layer_key = jax.random.split(key)
    return Sequential(*layers, Dense(n_hidden, n_out, layer_key))


def transformer_encoder(
    n_in: int,
    d_model: int,
    n_heads: int,
    d_ff: int,
    depth: int,
    n_out: int,
    key: jax.Array,
    max_len: int,
    *,
    dropout: float = 0.0,
    **block_options: Any,
) -> Sequential:
    """
    Classify or measure a whole sequence: ``y = W mean_t(blocks(W_in x_t + b_in + P[t])) + b``.

    Vaswani et al., *Attention is all you need*, NeurIPS 2017 (arXiv:1706.03762), the encoder of
    Fig. 1, with a dense layer for the embedding and the mean over time under the output.

    :param n_in: width of the samples
    :param d_model: width inside
    :param n_heads: number of heads, a divisor of d_model
    :param d_ff: width between the two dense layers of a block
    :param depth: number of blocks
    :param n_out: width of the output
    :param key: random key, split once for each layer with weights
    :param max_len: longest sequence, in samples
    :param dropout: rate, after the positions and in the blocks
    :param block_options: of :class:`TransformerBlock`, such as ``activation`` or ``bias``
    :returns: network from (T, n_in) to (n_out,)
    :raises ValueError: if d_model is not divisible by n_heads
    """
    key, layer_key = jax.random.split(key)
    layers: list[Module] = [Dense(n_in, d_model, layer_key), AddPositions(max_len, d_model)]
    layers += [Dropout(dropout)] if dropout else []
    options = {'dropout': dropout, **block_options}
    for _ in range(depth):
        key, layer_key = jax.random.split(key)
        layers.append(TransformerBlock(d_model, n_heads, d_ff, layer_key, **options))
    key, layer_key = jax.random.split(key)
    return Sequential(*layers, MeanOverTime(), Dense(d_model, n_out, layer_key))


def causal_transformer(
    n_in: int,
    d_model: int,
    n_heads: int,
    d_ff: int,
    depth: int,
    n_out: int,
    key: jax.Array,
    window: int,
    *,
    dropout: float = 0.0,
    **block_options: Any,
) -> Sequential:
    """
    Give an output for each sample from the past alone: ``y_t = W blocks(W_in x + b_in)_t + b``.

    The blocks of Vaswani et al., *Attention is all you need*, NeurIPS 2017 (arXiv:1706.03762),
    masked as in section 3.2.3, each attending to its last ``window`` inputs (Beltagy, Peters and
    Cohan, *Longformer*, arXiv:2004.05150, section 3.1, here one-sided), with rotary positions.
    An output reaches back over depth (window - 1) + 1 samples.

    :param n_in: width of the samples
    :param d_model: width inside
    :param n_heads: number of heads, a divisor of d_model
    :param d_ff: width between the two dense layers of a block
    :param depth: number of blocks
    :param n_out: width of the output
    :param key: random key, split once for each layer with weights
    :param window: number of samples that each block attends to
    :param dropout: rate, in the blocks
    :param block_options: of :class:`TransformerBlock`, such as ``activation`` or ``bias``
    :returns: network from (T, n_in) to (T, n_out), able to stream without end
    :raises ValueError: if d_model is not divisible by n_heads, or a head has an odd width
    """
    options = {'causal': True, 'window': window, 'positions': 'rotary', 'dropout': dropout}
    options.update(block_options)
    key, layer_key = jax.random.split(key)
    layers: list[Module] = [Dense(n_in, d_model, layer_key)]
    for _ in range(depth):
        key, layer_key = jax.random.split(key)
        layers.append(TransformerBlock(d_model, n_heads, d_ff, layer_key, **options))
    key, layer_key = jax.random.split(key)
    return Sequential(*layers, Dense(d_model, n_out, layer_key))
