"""Any file of another program, by its suffix, as modules and the plan to use them by."""

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from safetensors import safe_open
from safetensors import SafetensorError

from seqmem_ros.core.errors import SeqmemError
from seqmem_ros.core.weights import METADATA_KEY
from seqmem_ros.offline.convert import keras_layout
from seqmem_ros.offline.convert import torch_layout
from seqmem_ros.offline.convert.keras_file import read_keras
from seqmem_ros.offline.convert.pieces import SourceModule
from seqmem_ros.offline.convert.plan import carry_out
from seqmem_ros.offline.convert.plan import Converted
from seqmem_ros.offline.convert.plan import default_plan
from seqmem_ros.offline.convert.plan import Format
from seqmem_ros.offline.convert.plan import parse_plan
from seqmem_ros.offline.convert.plan import Step
from seqmem_ros.offline.convert.torch_file import modules_of
from seqmem_ros.offline.convert.torch_file import read_state_dict

TORCH_SUFFIXES = ('.safetensors', '.pt', '.pth', '.ckpt', '.bin')
KERAS_SUFFIXES = ('.keras', '.h5')


class Source(NamedTuple):
    """
    A file of another program.

    :param program: ``PyTorch`` or ``Keras``
    :param modules: by name
    :param steps: the order in which the file says that they are used; None if it does not
    """

    program: str
    modules: Mapping[str, SourceModule]
    steps: list[Step] | None


def read_source(path: Path) -> Source:
    """
    Read the weights of another program.

    :param path: ``.safetensors``, ``.pt``, ``.pth``, ``.ckpt``, ``.bin``, ``.keras`` or
        ``.weights.h5``
    :returns: its modules
    :raises SeqmemError: if there is no such file, or it is not what its suffix says
    """
    if not path.is_file():
        raise SeqmemError(f'expected a file of weights, found none at {path}')
    if path.suffix in KERAS_SUFFIXES:
        return Source('Keras', *read_keras(path))
    if path.suffix in TORCH_SUFFIXES:
        return Source('PyTorch', modules_of(read_state_dict(path)), None)
    raise SeqmemError(
        f'{path}: expected a file that ends in one of {", ".join(TORCH_SUFFIXES + KERAS_SUFFIXES)}'
    )


def convert_source(source: Source, plan: str | None = None) -> Converted:
    """
    Turn the modules of a file into layers.

    :param source: the file
    :param plan: what :func:`seqmem_ros.offline.convert.plan.parse_plan` reads; None for the
        file's own order, or the only possible one
    :returns: the layers
    :raises SeqmemError: if the order is not known, or something cannot be converted
    """
    layout = keras_layout if source.program == 'Keras' else torch_layout
    steps, left_out = source.steps, []
    if plan is not None:
        steps, left_out = parse_plan(plan)
    known = Format(layout.CONVERTERS, layout.OPTIONS)
    return carry_out(steps or default_plan(source.modules), left_out, source.modules, known)


def is_own_file(path: Path) -> bool:
    """
    Tell whether a file is a model of this package.

    :param path: any file
    :returns: True for a safetensors file with this package's metadata
    """
    if path.suffix != '.safetensors' or not path.is_file():
        return False
    try:
        with safe_open(str(path), framework='numpy') as file:
            return METADATA_KEY in (file.metadata() or {})
    except SafetensorError:
        return False
