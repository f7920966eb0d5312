"""Whole networks from the layers."""

from __future__ import annotations

from typing import Any

import jax

from seqmem_ros.nn.dense import Dense
from seqmem_ros.nn.dense import Dropout
from seqmem_ros.nn.module import Module
from seqmem_ros.nn.recurrent import GRU
from seqmem_ros.nn.recurrent import LSTM
from seqmem_ros.nn.recurrent import RNN
from seqmem_ros.nn.sequential import LastStep
from seqmem_ros.nn.sequential import Sequential

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
