"""PyTorch state dicts: from and to ``.safetensors``, and ``.pt`` where PyTorch is there."""

from collections.abc import Mapping
from pathlib import Path
import re
from typing import Any

import numpy as np
from safetensors import safe_open
from safetensors import SafetensorError
from safetensors.numpy import save_file

from seqmem_ros.core.errors import SeqmemError
from seqmem_ros.offline.convert.pieces import SourceModule
from seqmem_ros.offline.convert.pieces import Tensors

# Where training programs put the state dict when they save more than it.
NESTED_KEYS = ('state_dict', 'model_state_dict', 'model')
RECURRENT_NAME = re.compile(r'(?P<module>.*?)(?P<rest>(weight|bias)_(ih|hh|hr)_l\d+(_reverse)?)$')
BLOCK_NAME = re.compile(r'(?P<module>.*?)(?P<rest>(self_attn\.|linear[12]\.|norm[12]\.).*)$')
ATTENTION_NAME = re.compile(r'(?P<module>.*?)(?P<rest>(in_proj_\w+|out_proj\.\w+))$')
PLAIN_NAME = re.compile(r'(?P<module>.*?)(?P<rest>[^.]+)$')
GATES_OF = {1: 'RNN', 3: 'GRU', 4: 'LSTM'}


def read_state_dict(path: Path) -> dict[str, np.ndarray]:
    """
    Read a state dict; no code in the file is ever run.

    :param path: ``.safetensors``, or ``.pt``, ``.pth`` or ``.ckpt``
    :returns: arrays by name, in the order of the file
    :raises SeqmemError: if it cannot be read, or holds no state dict
    """
    if path.suffix == '.safetensors':
        try:
            with safe_open(str(path), framework='numpy') as file:
                return {name: file.get_tensor(name) for name in file.keys()}
        except (SafetensorError, TypeError, ValueError) as error:
            raise SeqmemError(
                f'{path}: expected a .safetensors file of float tensors, but it cannot be read '
                f'({error}); bfloat16 is to be saved as float32'
            ) from error
    return _read_pickle(path)


def write_state_dict(path: Path, tensors: Tensors) -> None:
    """
    Write a state dict for ``load_state_dict``.

    :param path: ``.safetensors``, or ``.pt`` where PyTorch is installed
    :param tensors: arrays by name
    :raises SeqmemError: if it is for PyTorch, which is not installed
    """
    if path.suffix == '.safetensors':
        save_file({name: np.ascontiguousarray(v) for name, v in tensors.items()}, str(path))
        return
    torch = _import_torch(path)
    torch.save({name: torch.from_numpy(np.array(v)) for name, v in tensors.items()}, str(path))


def modules_of(state_dict: Tensors) -> dict[str, SourceModule]:
    """
    Group the tensors of a state dict into the modules that they belong to.

    What a module is shows in the names and shapes of its tensors; names that fit nothing make a
    module of an unknown kind.

    :param state_dict: arrays by name
    :returns: modules by name, in the order of the file
    """
    blocks = {
        m['module'] for m in (re.match(r'(?P<module>.*?)self_attn\.', n) for n in state_dict) if m
    }
    attentions = {n.removesuffix('in_proj_weight') for n in state_dict if 'in_proj_weight' in n}
    groups: dict[str, dict[str, np.ndarray]] = {}
    for name, array in state_dict.items():
        module, rest = _split(name, blocks, attentions)
        groups.setdefault(module, {})[rest] = array
    return {name.rstrip('.'): _module(name.rstrip('.'), own) for name, own in groups.items()}


def _split(name: str, blocks: set[str], attentions: set[str]) -> tuple[str, str]:
    block = BLOCK_NAME.match(name)
    if block and block['module'] in blocks:
        return block['module'], block['rest']
    attention = ATTENTION_NAME.match(name)
    if attention and attention['module'] in attentions:
        return attention['module'], attention['rest']
    for pattern in (RECURRENT_NAME, PLAIN_NAME):
        match = pattern.match(name)
        if match:
            return match['module'], match['rest']
    return '', name


def _module(name: str, tensors: Mapping[str, np.ndarray]) -> SourceModule:
    return SourceModule(name, _kind(tensors), tensors)


def _kind(tensors: Mapping[str, np.ndarray]) -> str:
    recurrent = next((v for n, v in tensors.items() if n.startswith('weight_hh_l')), None)
    if recurrent is not None and recurrent.ndim == 2:
        # An LSTM with a projection has fewer columns than a quarter of its rows.
        projected = any(name.startswith('weight_hr') for name in tensors)
        return (
            'LSTM' if projected else GATES_OF.get(len(recurrent) // recurrent.shape[1], 'unknown')
        )
    if any(name.startswith('self_attn.') for name in tensors):
        return 'TransformerEncoderLayer'
    if any(name.startswith(('in_proj', 'out_proj')) for name in tensors):
        return 'MultiheadAttention'
    weight = tensors.get('weight')
    if weight is not None and set(tensors) <= {'weight', 'bias'}:
        return {1: 'LayerNorm', 2: 'Linear'}.get(weight.ndim, 'unknown')
    return 'unknown'


def _read_pickle(path: Path) -> dict[str, np.ndarray]:
    torch = _import_torch(path)
    try:
        content: Any = torch.load(str(path), map_location='cpu', weights_only=True)
    except Exception as error:
        # PyTorch raises its own and pickle's many errors here; each means the same to a user.
        raise SeqmemError(
            f'{path}: expected a state dict, but it cannot be read without running code from it; '
            f'save torch.save(model.state_dict(), ...), not the model '
            f'({str(error).splitlines()[0]})'
        ) from error
    for key in NESTED_KEYS:
        if isinstance(content, Mapping) and isinstance(content.get(key), Mapping):
            content = content[key]
    if not isinstance(content, Mapping) or not all(torch.is_tensor(v) for v in content.values()):
        found = ', '.join(map(str, content)) if isinstance(content, Mapping) else type(content)
        raise SeqmemError(
            f'{path}: expected tensors by name, or those under one of {", ".join(NESTED_KEYS)}; '
            f'found {found}'
        )
    return {name: v.detach().to(torch.float32).numpy() for name, v in content.items()}


def _import_torch(path: Path) -> Any:
    try:
        import torch
    except ImportError:
        raise SeqmemError(
            f'{path}: {path.suffix} files need PyTorch, which is not installed here; use '
            f'.safetensors (safetensors.torch.save_file(model.state_dict(), ...)), or '
            f'pip install torch'
        ) from None
    return torch
