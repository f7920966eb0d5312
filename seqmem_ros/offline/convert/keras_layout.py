"""
The layout of Keras's layers, into layers of this package.

Keras multiplies from the left, ``x K``: kernels are (inputs, gates * units) and are transposed
here. Gates lie side by side, ``z r h`` for GRU and ``i f c o`` for LSTM (h is the candidate, c the
block input). GRU with ``reset_after`` (its default) has two bias rows, one for the inputs and one
for the recurrent product; they are added, but for the candidate, where the second one stands
inside the reset gate's product. Keras documentation, ``keras.layers.GRU``, ``LSTM``,
``SimpleRNN``, ``Dense``, and the order of the weights in their ``build``.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from seqmem_ros.offline.convert.pieces import both_ways
from seqmem_ros.offline.convert.pieces import linear_piece
from seqmem_ros.offline.convert.pieces import Piece
from seqmem_ros.offline.convert.pieces import SourceModule
from seqmem_ros.offline.convert.pieces import split_rows
from seqmem_ros.offline.convert.pieces import take
from seqmem_ros.offline.convert.torch_layout import named

# Keras's letter of each gate in the order of the columns -> ours.
GATES = {
    'SimpleRNN': {'h': ''},
    'GRU': {'z': 'z', 'r': 'r', 'h': ''},
    'LSTM': {'i': 'i', 'f': 'f', 'c': 'z', 'o': 'o'},
}
KERNELS = ('kernel', 'recurrent_kernel')

Options = Mapping[str, Any]


def recurrent_pieces(module: SourceModule, options: Options) -> list[Piece]:
    """
    Convert ``SimpleRNN``, ``GRU`` or ``LSTM``.

    :param module: with ``kernel``, ``recurrent_kernel`` and perhaps ``bias``
    :param options: ``activation`` of a SimpleRNN
    :returns: one layer
    :raises SeqmemError: if tensors are missing or there are others; lists both
    """
    kernel, recurrent_kernel, bias = take(module, KERNELS, ['bias'])
    gates, n_hidden = GATES[module.kind], len(recurrent_kernel)
    owner = f"{module.kind} '{module.name}'"
    letters = ''.join(gates)
    params = {}
    for letter, matrix in (
        ('W', kernel),
        ('R' if module.kind == 'LSTM' else 'U', recurrent_kernel),
    ):
        rows = split_rows(matrix.T, letters, n_hidden, owner)
        params.update({named(letter, ours): rows[theirs] for theirs, ours in gates.items()})
    description = {
        'type': 'RNN' if module.kind == 'SimpleRNN' else module.kind,
        'n_in': len(kernel),
        'n_hidden': n_hidden,
        'bias': bias is not None,
        **options,
    }
    if bias is not None:
        params.update(_biases(bias, gates, n_hidden, owner))
    if module.kind == 'GRU':
        # Without biases the two look alike; True is what Keras does unless told otherwise.
        has_two_rows = bias is None or bias.ndim == 2
        description['reset_after'] = options.get('reset_after', has_two_rows)
    if module.kind == 'LSTM':
        description['peepholes'] = False
    return [Piece(description, params)]


def bidirectional_pieces(module: SourceModule, options: Options) -> list[Piece]:
    """
    Convert ``Bidirectional`` with its outputs side by side (``merge_mode='concat'``).

    :param module: with the tensors of both layers below ``forward_layer`` and ``backward_layer``,
        and its kind as ``Bidirectional GRU``
    :param options: of the layers
    :returns: one layer
    :raises SeqmemError: if tensors are missing or there are others; lists both
    """
    directions = []
    for part in ('forward_layer', 'backward_layer'):
        tensors = {
            name.removeprefix(f'{part}.'): value
            for name, value in module.tensors.items()
            if name.startswith(f'{part}.')
        }
        kind = module.kind.removeprefix('Bidirectional ')
        own = SourceModule(f'{module.name}.{part}', kind, tensors)
        directions += recurrent_pieces(own, options)
    return [both_ways(*directions)]


def dense_pieces(module: SourceModule, options: Options) -> list[Piece]:
    """
    Convert ``Dense``.

    :param module: with ``kernel`` and perhaps ``bias``
    :param options: ``activation``
    :returns: one layer
    :raises SeqmemError: if tensors are missing or there are others; lists both
    """
    kernel, bias = take(module, ['kernel'], ['bias'])
    return [linear_piece(kernel.T, bias, options.get('activation'))]


def norm_pieces(module: SourceModule, options: Options) -> list[Piece]:
    """
    Convert ``LayerNormalization`` over the last axis.

    :param module: with ``gamma`` and ``beta``
    :param options: ``eps``; Keras's own is 1e-3
    :returns: one layer
    :raises SeqmemError: if tensors are missing or there are others; lists both
    """
    gamma, beta = take(module, ['gamma', 'beta'])
    description = {'type': 'LayerNorm', 'n_in': len(gamma), 'eps': 1e-3, **options}
    return [Piece(description, {'g': gamma, 'b': beta})]


def _biases(
    bias: np.ndarray, gates: Mapping[str, str], n_hidden: int, owner: str
) -> dict[str, np.ndarray]:
    rows = bias if bias.ndim == 2 else bias[None]
    split = [split_rows(row, ''.join(gates), n_hidden, owner) for row in rows]
    params = {}
    for theirs, ours in gates.items():
        inside_reset = len(split) == 2 and ours == ''
        b = split[0][theirs]
        params[named('b', ours)] = b if len(split) == 1 or inside_reset else b + split[1][theirs]
        params.update({'b_U': split[1][theirs]} if inside_reset else {})
    return params


CONVERTERS = {
    'SimpleRNN': recurrent_pieces,
    'GRU': recurrent_pieces,
    'LSTM': recurrent_pieces,
    'Bidirectional SimpleRNN': bidirectional_pieces,
    'Bidirectional GRU': bidirectional_pieces,
    'Bidirectional LSTM': bidirectional_pieces,
    'Dense': dense_pieces,
    'LayerNormalization': norm_pieces,
}
OPTIONS = {
    'SimpleRNN': ('activation',),
    'Bidirectional SimpleRNN': ('activation',),
    'GRU': ('reset_after',),
    'Bidirectional GRU': ('reset_after',),
    'Dense': ('activation',),
    'LayerNormalization': ('eps',),
}
