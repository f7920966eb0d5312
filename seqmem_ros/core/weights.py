"""
One file for a model: a safetensors file whose metadata says the rest.

Nothing in it is executed, and nothing is believed: sizes are compared with what is in the file
before anything is allocated.
"""

import dataclasses
import hashlib
import json
from pathlib import Path
from typing import Any

import jax
import numpy as np
from safetensors import safe_open
from safetensors import SafetensorError
from safetensors.numpy import save

from seqmem_ros.core.errors import SeqmemError
from seqmem_ros.core.inputs import N_RAW
from seqmem_ros.core.model import build_network
from seqmem_ros.core.model import SequenceModel
from seqmem_ros.core.spec import ModelSpec
from seqmem_ros.core.spec import WINDOW

METADATA_KEY = 'seqmem'
FORMAT_VERSION = 1
DIGEST_DIGITS = 12
LONGEST_REASON = 800


def save_model(path: str | Path, model: SequenceModel) -> None:
    """
    Write a model.

    :param path: file to write, by custom ``*.safetensors``
    :param model: network and spec
    :raises SeqmemError: if the file cannot be written
    """
    tensors = {
        name: np.asarray(param.value) for name, param in model.network.named_params().items()
    }
    description = {'format': FORMAT_VERSION, **dataclasses.asdict(model.spec)}
    metadata = {METADATA_KEY: json.dumps(description, sort_keys=True)}
    # Not save_file: it makes files that only their owner can read.
    content = save(tensors, metadata=metadata)
    try:
        Path(path).write_bytes(content)
    except OSError as error:
        raise SeqmemError(f'{path}: cannot be written: {error.strerror}') from error


def load_model(path: str | Path) -> SequenceModel:
    """
    Read a model.

    :param path: file written by :func:`save_model`
    :returns: network and spec
    :raises SeqmemError: if there is no such file, or it is not what it must be
    """
    metadata, tensors = _read(Path(path))
    try:
        spec = _spec(metadata)
        network = jax.eval_shape(lambda: build_network(spec.network, jax.random.key(0)))
        _check_shapes(network, tensors)
        # One by one and as they are, JAX would compile a program for each shape.
        network.load_params(jax.device_put(tensors))
        model = SequenceModel(spec, network)
        _check_runs(model)
    except SeqmemError as error:
        raise SeqmemError(f'{path}: {_bounded(error)}') from error
    return model


def file_digest(path: str | Path) -> str:
    """
    Tell files apart.

    :param path: any file
    :returns: first 12 hexadecimal digits of its SHA-256
    """
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()[:DIGEST_DIGITS]


def _read(path: Path) -> tuple[dict[str, str], dict[str, np.ndarray]]:
    if not path.is_file():
        raise SeqmemError(
            f'weights: expected a .safetensors file, found none at {path}; correct the path, or '
            'leave weights empty for those of the package'
        )
    try:
        with safe_open(str(path), framework='numpy') as file:
            tensors = {name: file.get_tensor(name) for name in file.keys()}
            return file.metadata() or {}, tensors
    except (SafetensorError, OSError, ValueError, TypeError) as error:
        raise SeqmemError(
            f'{path}: expected a .safetensors file, but it cannot be read ({_bounded(error)}); '
            f'copy or convert it again'
        ) from error


def _bounded(error: Exception) -> str:
    """Keep what a file says of itself from filling a log."""
    text = ' '.join(str(error).split())
    return text if len(text) <= LONGEST_REASON else text[:LONGEST_REASON] + ' ...'


def _spec(metadata: dict[str, str]) -> ModelSpec:
    if METADATA_KEY not in metadata:
        raise SeqmemError(
            f"expected metadata '{METADATA_KEY}', got {sorted(metadata) or 'none'}: weights of "
            f'other programs are read by `seqmem convert`'
        )
    try:
        description = json.loads(metadata[METADATA_KEY])
        version = description.pop('format')
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise SeqmemError(f"metadata '{METADATA_KEY}' is not what was written: {error}") from error
    if version != FORMAT_VERSION:
        raise SeqmemError(
            f'expected format {FORMAT_VERSION}, got {version}: it was written by another version '
            f'of seqmem_ros'
        )
    return _spec_from(description)


def _spec_from(description: dict[str, Any]) -> ModelSpec:
    fields = {field.name: field for field in dataclasses.fields(ModelSpec)}
    unknown = sorted(set(description) - set(fields))
    if unknown:
        raise SeqmemError(f'metadata: expected {", ".join(fields)}, got also {unknown}')
    values = {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in description.items()
    }
    try:
        return ModelSpec(**values)
    except SeqmemError:
        raise
    except (TypeError, ValueError, AttributeError) as error:
        raise SeqmemError(f'metadata: a value is of the wrong kind: {error}') from error


def _check_shapes(network: Any, tensors: dict[str, np.ndarray]) -> None:
    expected = {name: param.shape for name, param in network.named_params().items()}
    found = {name: tensor.shape for name, tensor in tensors.items()}
    for name in sorted({*expected, *found}):
        if expected.get(name) != found.get(name):
            raise SeqmemError(
                f'tensor {name}: expected shape {expected.get(name, "none")}, '
                f'got {found.get(name, "none")}'
            )
    for name, tensor in tensors.items():
        got = 'NaN or infinity' if tensor.dtype == np.float32 else tensor.dtype
        if tensor.dtype != np.float32 or not np.isfinite(tensor).all():
            raise SeqmemError(f'tensor {name}: expected finite float32, got {got}')


def _check_runs(model: SequenceModel) -> None:
    """Refuse layers that do not fit together or give something else; nothing is computed."""
    spec = model.spec
    axes = (WINDOW, len(spec.joints), N_RAW) if spec.joints else (WINDOW, N_RAW)
    expected = (len(spec.labels),) if spec.labels else (len(spec.joints),) * bool(spec.joints)
    try:
        found = jax.eval_shape(model.forward, jax.ShapeDtypeStruct(axes, 'float32')).shape[1:]
    # Whatever a file may ask of the layers, it is the file that is at fault.
    except Exception as error:
        first_line = str(error).partition('\n')[0]
        raise SeqmemError(f'network: its layers do not run together: {first_line}') from error
    if found != expected:
        raise SeqmemError(f'network: expected outputs of shape {expected}, got {found}')
