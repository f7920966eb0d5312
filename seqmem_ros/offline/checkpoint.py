"""
A training that was interrupted, in one safetensors file: every array to the bit, no pickle.

Data are drawn from the seed and the number of the epoch alone, so the place in them stands for
the state of the random numbers.
"""

from collections.abc import Mapping
import json
import os
from pathlib import Path
from typing import Any
from typing import NamedTuple

import jax
import numpy as np
from safetensors import safe_open
from safetensors import SafetensorError
from safetensors.numpy import save

from seqmem_ros.core.errors import SeqmemError

METADATA_KEY = 'seqmem_checkpoint'
FORMAT_VERSION = 1


class Place(NamedTuple):
    """
    How far a training has come.

    :ivar step: steps of gradient descent that are done
    :ivar epoch: passes over the data that are done
    :ivar chunk: chunks of the pass after those that are done
    """

    step: int = 0
    epoch: int = 0
    chunk: int = 0


def save_checkpoint(
    path: str | Path,
    state: Any,
    place: Place,
    losses: np.ndarray,
    options: Mapping[str, Any],
    checks: list[tuple[int, float]],
) -> None:
    """
    Write a checkpoint, whole or not at all.

    :param path: of the file
    :param state: pytree of arrays
    :param place: how far it has come
    :param losses: of each step so far, shape (steps,)
    :param options: what is trained and on what, plain JSON
    :param checks: losses on what is held out, with their steps
    :raises SeqmemError: if the file cannot be written
    """
    leaves = {f'state.{i}': np.asarray(x) for i, x in enumerate(jax.tree.leaves(state))}
    tensors = {**leaves, 'losses': np.asarray(losses, np.float64)}
    content = {
        'format': FORMAT_VERSION,
        'place': list(place),
        'options': options,
        'checks': checks,
    }
    data = save(
        {name: np.array(array, order='C') for name, array in tensors.items()},
        metadata={METADATA_KEY: json.dumps(content, sort_keys=True)},
    )
    path = Path(path)
    partial = path.with_name(path.name + '.partial')
    try:
        partial.write_bytes(data)
        os.replace(partial, path)
    except OSError as error:
        raise SeqmemError(f'{path}: cannot be written: {error.strerror}') from error


def load_checkpoint(
    path: str | Path, like: Any, options: Mapping[str, Any]
) -> tuple[Any, Place, np.ndarray, list[tuple[int, float]]]:
    """
    Read a checkpoint.

    :param path: of the file
    :param like: state of a training that has just begun; says structure, shapes and types
    :param options: must be those that it was written with
    :returns: state, place, losses and checks
    :raises SeqmemError: if there is none, it is of another training, or cannot be read
    """
    content, tensors = _read(Path(path))
    for name in sorted({*options, *content['options']}):
        before, now = (_plain(given.get(name)) for given in (content['options'], options))
        if before != now:
            raise SeqmemError(
                f'{path}: expected the training that was interrupted, but {name} was '
                f'{_said(before)} and is {_said(now)}; give the same again, or start anew '
                'without --resume'
            )
    leaves, structure = jax.tree.flatten(like)
    found = [tensors.get(f'state.{index}') for index in range(len(leaves))]
    for index, (leaf, array) in enumerate(zip(leaves, found)):
        if array is None or array.shape != np.shape(leaf) or array.dtype != leaf.dtype:
            raise SeqmemError(f'{path}: its array {index} is not that of this training')
    state = jax.tree.unflatten(structure, [jax.numpy.asarray(array) for array in found])
    checks = [(int(step), float(loss)) for step, loss in content['checks']]
    return state, Place(*content['place']), tensors['losses'], checks


def _read(path: Path) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    if not path.is_file():
        raise SeqmemError(f'nothing to resume: expected the checkpoint {path}, found none')
    try:
        with safe_open(str(path), framework='numpy') as file:
            content = json.loads((file.metadata() or {})[METADATA_KEY])
            tensors = {name: file.get_tensor(name) for name in file.keys()}
    except (SafetensorError, OSError, ValueError, KeyError, TypeError) as error:
        raise SeqmemError(
            f'{path}: expected a checkpoint, but it cannot be read ({error}); start anew without '
            '--resume'
        ) from error
    if content.get('format') != FORMAT_VERSION:
        raise SeqmemError(f'{path}: expected format {FORMAT_VERSION}, got {content.get("format")}')
    return content, tensors


def _said(value: Any) -> Any:
    return 'not given' if value is None else value


def _plain(value: Any) -> Any:
    return json.loads(json.dumps(value))
