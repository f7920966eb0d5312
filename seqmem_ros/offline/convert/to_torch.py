"""
The way back: layers of this package as a PyTorch state dict.

PyTorch keeps two bias vectors of which, but for the GRU's candidate, only the sum acts. Without a
state dict to follow, the sum is written as ``bias_ih`` and zeros as ``bias_hh``. With one, its
names are taken, and its split as long as its sum is still ours: weights that came from PyTorch and
did not change go back to the bit.
"""

from collections.abc import Iterator
from collections.abc import Sequence
from typing import Any

import numpy as np

from seqmem_ros.core.errors import SeqmemError
from seqmem_ros.nn import Bidirectional
from seqmem_ros.nn import Dense
from seqmem_ros.nn import GRU
from seqmem_ros.nn import LayerNorm
from seqmem_ros.nn import LSTM
from seqmem_ros.nn import Module
from seqmem_ros.nn import MultiHeadSelfAttention
from seqmem_ros.nn import RNN
from seqmem_ros.nn import TransformerBlock
from seqmem_ros.offline.convert.pieces import Tensors
from seqmem_ros.offline.convert.torch_layout import GATES
from seqmem_ros.offline.convert.torch_layout import named
from seqmem_ros.offline.convert.torch_layout import RECURRENT_LETTER


def state_dict_of(
    layers: Sequence[Module], names: Sequence[str | None] = (), like: Tensors | None = None
) -> dict[str, np.ndarray]:
    """
    Lay the weights of a network out as PyTorch does.

    :param layers: in the order of the data
    :param names: module of each layer in PyTorch; the layers of one ``nn.LSTM`` share theirs, and
        None leaves a layer out. Empty: names are made up
    :param like: state dict whose names must come out, and whose split of biases is kept
    :returns: arrays by name
    :raises SeqmemError: if a layer has no counterpart there, or the names or shapes are not those
        of ``like``; lists expected and found
    """
    out: dict[str, np.ndarray] = {}
    for name, index, layer in _placed(layers, names or _made_up(layers)):
        prefix = '' if name == '.' else f'{name}.'
        for key, value in _tensors(layer, index).items():
            out[f'{prefix}{key}'] = value
    return out if like is None else _following(out, like)


def _placed(
    layers: Sequence[Module], names: Sequence[str | None]
) -> Iterator[tuple[str, int, Module]]:
    """Count the layers that share a module."""
    seen: dict[str, int] = {}
    for layer, name in zip(layers, names, strict=True):
        if name is not None:
            yield name, seen.setdefault(name, 0), layer
            seen[name] += 1


def _made_up(layers: Sequence[Module]) -> list[str | None]:
    names: list[str | None] = []
    used: dict[str, int] = {}
    for index, layer in enumerate(layers):
        if index and names[-1] is not None and _stacks_on(layers[index - 1], layer):
            names.append(names[-1])
            continue
        base = type(layer).__name__.lower()
        count = used[base] = used.get(base, -1) + 1
        names.append((f'{base}_{count}' if count else base) if layer.params() else None)
    return names


def _stacks_on(below: Module, layer: Module) -> bool:
    """Tell whether two layers can be one stacked module of PyTorch."""
    first, second = (m.layer_fwd if isinstance(m, Bidirectional) else m for m in (below, layer))
    return (
        type(below) is type(layer)
        and isinstance(first, (RNN, GRU, LSTM))
        and type(first) is type(second)
        and first.n_hidden == second.n_hidden
        and getattr(first, 'activation', None) == getattr(second, 'activation', None)
        and _has_bias(first) == _has_bias(second)
    )


def _tensors(layer: Module, index: int) -> dict[str, np.ndarray]:
    if isinstance(layer, Bidirectional):
        backwards = _recurrent(layer.layer_bwd, f'_l{index}_reverse')
        return {**_recurrent(layer.layer_fwd, f'_l{index}'), **backwards}
    if isinstance(layer, (RNN, GRU, LSTM)):
        return _recurrent(layer, f'_l{index}')
    if isinstance(layer, Dense):
        return _present({'weight': layer.W, 'bias': layer.b})
    if isinstance(layer, LayerNorm):
        return _present({'weight': layer.g, 'bias': layer.b})
    if isinstance(layer, MultiHeadSelfAttention):
        return _attention(layer)
    if isinstance(layer, TransformerBlock):
        return _block(layer)
    raise SeqmemError(f'{type(layer).__name__} has no counterpart in PyTorch')


def _recurrent(layer: Any, suffix: str) -> dict[str, np.ndarray]:
    _check_counterpart(layer)
    kind = type(layer).__name__
    gates = GATES[kind].values()
    letter = RECURRENT_LETTER[kind]
    out = {
        f'weight_ih{suffix}': _rows(layer, [named('W', gate) for gate in gates]),
        f'weight_hh{suffix}': _rows(layer, [named(letter, gate) for gate in gates]),
    }
    if _has_bias(layer):
        out[f'bias_ih{suffix}'] = _rows(layer, [named('b', gate) for gate in gates])
        out[f'bias_hh{suffix}'] = np.zeros_like(out[f'bias_ih{suffix}'])
        if kind == 'GRU':
            out[f'bias_hh{suffix}'][-layer.n_hidden :] = layer.b_U.value
    return out


def _check_counterpart(layer: Any) -> None:
    what = type(layer).__name__
    if not isinstance(layer, (RNN, GRU, LSTM)):
        raise SeqmemError(f'Bidirectional over {what} has no counterpart in PyTorch')
    if layer.layer_norm:
        raise SeqmemError(f"PyTorch's {what} has no layer normalisation inside, this one has")
    if isinstance(layer, GRU) and not layer.reset_after:
        raise SeqmemError(
            "PyTorch's GRU applies the reset gate after the recurrent product, this one before; "
            'train with reset_after=True'
        )
    if isinstance(layer, LSTM) and layer.peepholes:
        raise SeqmemError("PyTorch's LSTM has no peepholes, this one has; train without them")


def _attention(layer: MultiHeadSelfAttention) -> dict[str, np.ndarray]:
    if layer.positions is not None:
        raise SeqmemError(
            f"PyTorch's MultiheadAttention has no {layer.positions} positions, this one has"
        )
    out = {
        'in_proj_weight': _rows(layer, ['W_q', 'W_k', 'W_v']),
        'out_proj.weight': np.asarray(layer.W_o.value),
    }
    if layer.b_q is not None:
        out['in_proj_bias'] = _rows(layer, ['b_q', 'b_k', 'b_v'])
        out['out_proj.bias'] = np.asarray(layer.b_o.value)
    return out


def _block(layer: TransformerBlock) -> dict[str, np.ndarray]:
    out = {f'self_attn.{name}': value for name, value in _attention(layer.attention).items()}
    parts = {
        'linear1': layer.dense_1,
        'linear2': layer.dense_2,
        'norm1': layer.norm_1,
        'norm2': layer.norm_2,
    }
    for name, part in parts.items():
        out.update({f'{name}.{key}': value for key, value in _tensors(part, 0).items()})
    return out


def _following(out: dict[str, np.ndarray], like: Tensors) -> dict[str, np.ndarray]:
    expected = {name: np.shape(value) for name, value in like.items()}
    found = {name: value.shape for name, value in out.items()}
    if expected != found:
        differing = sorted(set(expected.items()) ^ set(found.items()))
        raise SeqmemError(
            'the network does not fit the state dict to follow: expected '
            f'{_listed(n for n in differing if n in expected.items())}, found '
            f'{_listed(n for n in differing if n in found.items())}'
        )
    ordered = {name: out[name] for name in like}
    for name in like:
        if 'bias_ih_l' in name:
            hidden = name.replace('bias_ih_l', 'bias_hh_l')
            b_ih, b_hh = (np.asarray(like[n], np.float32) for n in (name, hidden))
            unchanged = _is_sum(out[name.replace('bias_ih_l', 'weight_hh_l')]) & (
                out[name] == b_ih + b_hh
            )
            ordered[name] = np.where(unchanged, b_ih, out[name])
            ordered[hidden] = np.where(unchanged, b_hh, out[hidden])
    return ordered


def _is_sum(weight_hh: np.ndarray) -> np.ndarray:
    """Mark the rows in which only the sum of the two biases acts: all but a GRU's candidate."""
    n_rows, n_hidden = weight_hh.shape
    rows = np.arange(n_rows)
    return (rows < 2 * n_hidden) | (n_rows != 3 * n_hidden)


def _rows(layer: Module, names: list[str]) -> np.ndarray:
    return np.concatenate([np.asarray(getattr(layer, name).value) for name in names])


def _has_bias(layer: Any) -> bool:
    return getattr(layer, 'b' if isinstance(layer, (RNN, GRU)) else 'b_z') is not None


def _present(params: dict[str, Any]) -> dict[str, np.ndarray]:
    return {name: np.asarray(p.value) for name, p in params.items() if p is not None}


def _listed(shapes: Any) -> str:
    return ', '.join(f'{name} {shape}' for name, shape in shapes) or 'none'
