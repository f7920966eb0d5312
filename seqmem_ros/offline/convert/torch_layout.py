"""
The layout of PyTorch's modules, into layers of this package.

Rows of ``weight_ih_l*`` and ``weight_hh_l*`` are the gates one under another: ``r z n`` for
``nn.GRU``, ``i f g o`` for ``nn.LSTM`` (n and g are the candidate and the block input); matrices
are (outputs, inputs) as here, so nothing is transposed. There are two bias vectors, which are
added, but for the GRU's candidate: there ``bias_hh`` stands inside the reset gate's product.
PyTorch documentation, ``torch.nn.RNN``, ``GRU``, ``LSTM``, ``MultiheadAttention``,
``TransformerEncoderLayer``.
"""

from collections.abc import Mapping
import re
from typing import Any

import numpy as np

from seqmem_ros.core.errors import SeqmemError
from seqmem_ros.offline.convert.pieces import both_ways
from seqmem_ros.offline.convert.pieces import linear_piece
from seqmem_ros.offline.convert.pieces import Piece
from seqmem_ros.offline.convert.pieces import SourceModule
from seqmem_ros.offline.convert.pieces import split_rows
from seqmem_ros.offline.convert.pieces import take

# PyTorch's letter of each gate in the order of the rows -> ours.
GATES = {
    'RNN': {'h': ''},
    'GRU': {'r': 'r', 'z': 'z', 'n': ''},
    'LSTM': {'i': 'i', 'f': 'f', 'g': 'z', 'o': 'o'},
}
RECURRENT_LETTER = {'RNN': 'U', 'GRU': 'U', 'LSTM': 'R'}
BLOCK_TENSORS = (
    'self_attn.in_proj_weight', 'self_attn.out_proj.weight',
    'linear1.weight', 'linear1.bias', 'linear2.weight', 'linear2.bias',
    'norm1.weight', 'norm1.bias', 'norm2.weight', 'norm2.bias',
)  # fmt: skip

Options = Mapping[str, Any]


def named(letter: str, gate: str) -> str:
    """
    Name a parameter of a recurrent layer.

    :param letter: ``W``, ``U``, ``R`` or ``b``
    :param gate: its suffix; empty for a candidate
    :returns: the name
    """
    return f'{letter}_{gate}' if gate else letter


def recurrent_pieces(module: SourceModule, options: Options) -> list[Piece]:
    """
    Convert ``nn.RNN``, ``nn.GRU`` or ``nn.LSTM``, with all its layers and directions.

    :param module: its kind is the class
    :param options: ``activation`` of an RNN, ``tanh`` or ``relu``: the file does not say it
    :returns: one layer each
    :raises SeqmemError: if tensors are missing or there are others; lists both
    """
    suffixes = sorted(
        {m[1] for m in (re.search(r'_l(\d+)', n) for n in module.tensors) if m}, key=int
    )
    if suffixes != [str(index) for index in range(len(suffixes))]:
        raise SeqmemError(
            f"{module.kind} '{module.name}': expected layers l0, l1, ... without a gap, found "
            f'{", ".join("l" + s for s in suffixes)}'
        )
    if any(name.startswith('weight_hr') for name in module.tensors):
        raise SeqmemError(
            f"LSTM '{module.name}': expected no projection, found weight_hr_l0; proj_size has no "
            f'counterpart here, train with proj_size=0'
        )
    backwards = any(name.endswith('_reverse') for name in module.tensors)
    pieces = []
    for index in range(len(suffixes)):
        forward = _direction(module, f'_l{index}', options)
        if backwards:
            forward = both_ways(forward, _direction(module, f'_l{index}_reverse', options))
        pieces.append(forward)
    return pieces


def linear_pieces(module: SourceModule, options: Options) -> list[Piece]:
    """
    Convert ``nn.Linear``.

    :param module: with ``weight`` and perhaps ``bias``
    :param options: ``activation`` after it
    :returns: one layer
    :raises SeqmemError: if tensors are missing or there are others; lists both
    """
    weight, bias = take(module, ['weight'], ['bias'])
    return [linear_piece(weight, bias, options.get('activation'))]


def norm_pieces(module: SourceModule, options: Options) -> list[Piece]:
    """
    Convert ``nn.LayerNorm`` over the last axis.

    :param module: with ``weight`` and ``bias``
    :param options: ``eps``, 1e-5 if not given
    :returns: one layer
    :raises SeqmemError: if tensors are missing or there are others; lists both
    """
    weight, bias = take(module, ['weight', 'bias'])
    description = {'type': 'LayerNorm', 'n_in': len(weight), **options}
    return [Piece(description, {'g': weight, 'b': bias})]


def attention_pieces(module: SourceModule, options: Options) -> list[Piece]:
    """
    Convert ``nn.MultiheadAttention`` used on one sequence: query, key and value the same.

    ``in_proj_weight`` is q, k, v one under another, each (d_model, d_model); heads are blocks of
    rows, as here.

    :param module: with ``in_proj_weight``, ``out_proj.weight`` and perhaps their biases
    :param options: ``n_heads``, which the file does not say; ``window`` or ``causal``
    :returns: one layer
    :raises SeqmemError: if tensors are missing or there are others; lists both
    """
    biases = ('in_proj_bias', 'out_proj.bias')
    arrays = take(module, ['in_proj_weight', 'out_proj.weight'], biases)
    params = _attention_params(module, *arrays)
    description = {
        'type': 'MultiHeadSelfAttention',
        'd_model': arrays[1].shape[0],
        'bias': arrays[2] is not None,
        **_attention_options(module, options),
    }
    return [Piece(description, params)]


def block_pieces(module: SourceModule, options: Options) -> list[Piece]:
    """
    Convert ``nn.TransformerEncoderLayer`` with its normalisation after each addition.

    A layer made with ``norm_first=True`` has the same tensors and cannot be told apart; it has no
    counterpart here.

    :param module: with the tensors of the class
    :param options: ``n_heads`` and ``activation``, which the file does not say; ``window`` or
        ``causal``
    :returns: one layer
    :raises SeqmemError: if tensors are missing or there are others; lists both
    """
    biases = ('self_attn.in_proj_bias', 'self_attn.out_proj.bias')
    arrays = take(module, BLOCK_TENSORS, biases)
    in_proj, out_proj, w_1, b_1, w_2, b_2, g_1, s_1, g_2, s_2, in_bias, out_bias = arrays
    attention = _attention_params(module, in_proj, out_proj, in_bias, out_bias)
    params = {f'attention.{name}': value for name, value in attention.items()}
    params.update({'dense_1.W': w_1, 'dense_1.b': b_1, 'dense_2.W': w_2, 'dense_2.b': b_2})
    params.update({'norm_1.g': g_1, 'norm_1.b': s_1, 'norm_2.g': g_2, 'norm_2.b': s_2})
    description = {
        'type': 'TransformerBlock',
        'd_model': out_proj.shape[0],
        'd_ff': w_1.shape[0],
        'bias': in_bias is not None,
        **_attention_options(module, options),
    }
    return [Piece(description, params)]


def _direction(module: SourceModule, suffix: str, options: Options) -> Piece:
    weights = [f'weight_ih{suffix}', f'weight_hh{suffix}']
    biases = [f'bias_ih{suffix}', f'bias_hh{suffix}']
    present = {n: v for n, v in module.tensors.items() if re.search(rf'{suffix}$', n)}
    own = SourceModule(module.name, module.kind, present)
    w_ih, w_hh, b_ih, b_hh = take(own, weights, biases)
    n_hidden = w_hh.shape[1]
    gates = GATES[module.kind]
    split = {
        name: split_rows(array, ''.join(gates), n_hidden, f"{module.kind} '{module.name}' {name}")
        for name, array in zip(weights + biases, (w_ih, w_hh, b_ih, b_hh))
        if array is not None
    }
    params = {}
    for theirs, ours in gates.items():
        params[named('W', ours)] = split[weights[0]][theirs]
        params[named(RECURRENT_LETTER[module.kind], ours)] = split[weights[1]][theirs]
        if b_ih is not None:
            inside_reset = module.kind == 'GRU' and theirs == 'n'
            b, b_U = split[biases[0]][theirs], split[biases[1]][theirs]
            params[named('b', ours)] = b if inside_reset else b + b_U
            params.update({'b_U': b_U} if inside_reset else {})
    description = {
        'type': module.kind,
        'n_in': w_ih.shape[1],
        'n_hidden': n_hidden,
        'bias': b_ih is not None,
        **{'RNN': dict(options), 'GRU': {'reset_after': True}, 'LSTM': {'peepholes': False}}[
            module.kind
        ],
    }
    return Piece(description, params)


def _attention_params(
    module: SourceModule,
    in_proj: np.ndarray,
    out_proj: np.ndarray,
    in_bias: np.ndarray | None,
    out_bias: np.ndarray | None,
) -> dict[str, np.ndarray]:
    owner = f"{module.kind} '{module.name}'"
    rows = split_rows(in_proj, 'qkv', len(out_proj), owner)
    params = {f'W_{name}': value for name, value in rows.items()} | {'W_o': out_proj}
    if in_bias is not None:
        rows = split_rows(in_bias, 'qkv', len(out_proj), owner)
        params.update({f'b_{name}': value for name, value in rows.items()})
        params['b_o'] = out_bias
    return params


def _attention_options(module: SourceModule, options: Options) -> dict[str, Any]:
    if 'n_heads' not in options:
        raise SeqmemError(
            f"{module.kind} '{module.name}': expected n_heads, which the file does not say; write "
            f'{module.name or "."}:n_heads=4:window=5 in --network'
        )
    return {'causal': 'window' in options, **options}


CONVERTERS = {
    'RNN': recurrent_pieces,
    'GRU': recurrent_pieces,
    'LSTM': recurrent_pieces,
    'Linear': linear_pieces,
    'LayerNorm': norm_pieces,
    'MultiheadAttention': attention_pieces,
    'TransformerEncoderLayer': block_pieces,
}
OPTIONS = {
    'RNN': ('activation',),
    'LayerNorm': ('eps',),
    'MultiheadAttention': ('n_heads', 'window', 'causal'),
    'TransformerEncoderLayer': ('n_heads', 'window', 'causal', 'activation'),
}
