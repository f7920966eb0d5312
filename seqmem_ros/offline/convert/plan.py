"""
In which order the modules of a file are used, and what stands between them.

Files of weights do not say it: a state dict lists modules in the order in which they were made,
and knows nothing of functions between them. The user does::

    embed,relu,lstm,head
    embed,encoder.layers.0:n_heads=4:window=5,head

Names are those of the file (``.`` for the module without a name), words are layers without weights
(``relu``, ``tanh``, ``gelu``, ``sigmoid``, ``mean``, ``positions``, and at the end ``softmax``),
options follow a colon, and ``-name`` leaves a module out. That a network was trained on its last
output alone is not said: here it gives an output after each sample, and the last is that one.
"""

from collections.abc import Callable
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import field
from dataclasses import replace
from typing import Any
from typing import NamedTuple

import numpy as np

from seqmem_ros.core.errors import SeqmemError
from seqmem_ros.offline.convert.pieces import linear_piece
from seqmem_ros.offline.convert.pieces import Piece
from seqmem_ros.offline.convert.pieces import SourceModule
from seqmem_ros.offline.convert.pieces import width_given

ACTIVATIONS = ('relu', 'tanh', 'gelu', 'sigmoid')
SOFTMAX = 'softmax'
WORDS = {
    'mean': ('MeanOverTime', ('window',)),
    'positions': ('AddPositions', ('max_len',)),
}
MEMORY_KINDS = ('RNN', 'GRU', 'LSTM', 'SimpleRNN')

Converter = Callable[[SourceModule, Mapping[str, Any]], list[Piece]]


@dataclass(frozen=True)
class Step:
    """
    One item of a plan.

    :param name: module or word
    :param options: what the file does not say of it
    """

    name: str
    options: Mapping[str, Any] = field(default_factory=dict)


class Format(NamedTuple):
    """
    What a source format can be converted from.

    :param converters: for each kind of module
    :param options: names of the options that each kind takes
    """

    converters: Mapping[str, Converter]
    options: Mapping[str, Sequence[str]]


class Converted(NamedTuple):
    """
    The layers, and which module each came from.

    :param pieces: layers in the order of the data
    :param origins: name of the module of each layer, None for one that had none
    :param softmax: the source ends with a softmax, which is no layer here: probabilities are
        computed from the outputs of every network with labels
    """

    pieces: list[Piece]
    origins: list[str | None]
    softmax: bool


def parse_plan(text: str) -> tuple[list[Step], list[str]]:
    """
    Read what a user wrote.

    :param text: see above
    :returns: items in the order of the data, and the names of modules to leave out
    :raises SeqmemError: if an item or option is empty
    """
    steps, left_out = [], []
    for item in text.split(','):
        name, *options = (part.strip() for part in item.strip().split(':'))
        if not name or not all(options):
            raise SeqmemError(
                f"network: expected items such as 'lstm' or 'rnn:activation=relu' between commas, "
                f"got '{item}' in '{text}'"
            )
        if name.startswith('-'):
            left_out.append(name[1:])
            continue
        steps.append(Step(name, dict(_option(option) for option in options)))
    return steps, left_out


def default_plan(modules: Mapping[str, SourceModule]) -> list[Step]:
    """
    Order the modules where there is only one way: a recurrent module, then a linear one.

    :param modules: of the file
    :returns: items in the order of the data
    :raises SeqmemError: if more than that is there; lists what was found
    """
    recurrent = [m for m in modules.values() if m.kind.split()[-1] in MEMORY_KINDS]
    linear = [m for m in modules.values() if m.kind in ('Linear', 'Dense')]
    ordered = [*recurrent, *linear]
    if not ordered or len(ordered) < len(modules) or max(len(recurrent), len(linear)) > 1:
        raise SeqmemError(
            f'network: expected one recurrent and at most one linear module, found '
            f'{_listed(modules) or "none"}; say their order and what stands between them, such as '
            f'--network embed,relu,lstm,head'
        )
    return [Step(module.name or '.') for module in ordered]


def carry_out(
    plan: Sequence[Step],
    left_out: Sequence[str],
    modules: Mapping[str, SourceModule],
    source: Format,
) -> Converted:
    """
    Convert the modules of a file in the order of a plan.

    :param plan: items in the order of the data
    :param left_out: names of modules that the network does without
    :param modules: of the file
    :param source: what the file's format can be converted from
    :returns: the layers
    :raises SeqmemError: if a name is unknown or unused, a kind or option not supported, or a
        module's tensors are not what they must be
    """
    modules = {name or '.': module for name, module in modules.items()}
    _check_names([step.name for step in plan], left_out, modules)
    pieces: list[Piece] = []
    origins: list[str | None] = []
    softmax = plan[-1].name == SOFTMAX
    for step in plan[:-1] if softmax else plan:
        module = modules.get(step.name)
        if module is not None:
            new = _convert(module, step, source)
        elif step.name in ACTIVATIONS:
            pieces, new = _activated(pieces, step.name)
        else:
            new = [_word(step, modules, pieces)]
        pieces += new
        origins += [None if module is None else step.name] * len(new)
    return Converted(pieces, origins, softmax)


def _check_names(
    names: Sequence[str], left_out: Sequence[str], modules: Mapping[str, SourceModule]
) -> None:
    unknown = [name for name in left_out if name not in modules]
    if unknown:
        raise SeqmemError(
            f'network: expected to leave out modules of the file ({_listed(modules)}), got '
            f'{", ".join(unknown)}'
        )
    twice = sorted({name for name in modules if names.count(name) > 1})
    if twice:
        raise SeqmemError(f'network: expected each module once, got {", ".join(twice)} again')
    unused = [name for name in modules if name not in {*names, *left_out}]
    if unused:
        raise SeqmemError(
            f'network: the file also holds {_listed({n: modules[n] for n in unused})}; give each '
            f'a place, or leave it out with a minus, such as -{unused[0]}'
        )


def _option(text: str) -> tuple[str, Any]:
    name, separator, value = text.partition('=')
    if not separator:
        return name, True
    for kind in (int, float):
        try:
            return name, kind(value)
        except ValueError:
            continue
    return name, value


def _convert(module: SourceModule, step: Step, source: Format) -> list[Piece]:
    if module.kind not in source.converters:
        raise SeqmemError(
            f"'{step.name}': expected a module out of {', '.join(source.converters)}, found "
            f'tensors {", ".join(f"{n} {v.shape}" for n, v in module.tensors.items())}'
        )
    allowed = source.options.get(module.kind, ())
    unknown = [name for name in step.options if name not in allowed]
    if unknown:
        raise SeqmemError(
            f"'{step.name}': expected options out of {', '.join(allowed) or 'none'} for "
            f'{module.kind}, got {", ".join(unknown)}'
        )
    return source.converters[module.kind](module, step.options)


def _activated(pieces: list[Piece], activation: str) -> tuple[list[Piece], list[Piece]]:
    if not pieces:
        raise SeqmemError(f"network: expected a module before '{activation}'")
    last = pieces[-1]
    if last.description['type'] == 'Dense' and 'activation' not in last.description:
        described = {**last.description, 'activation': activation}
        return [*pieces[:-1], replace(last, description=described)], []
    width = _width_so_far(pieces, activation)
    # The identity times a vector is exactly that vector.
    return pieces, [linear_piece(np.eye(width, dtype=np.float32), None, activation)]


def _word(step: Step, modules: Mapping[str, SourceModule], pieces: list[Piece]) -> Piece:
    if step.name not in WORDS:
        raise SeqmemError(
            f'network: expected a module of the file ({_listed(modules)}) or one of '
            f"{', '.join((*ACTIVATIONS, *WORDS))} (softmax at the end), got '{step.name}'"
        )
    layer, allowed = WORDS[step.name]
    if set(step.options) - set(allowed) or ('max_len' in allowed and not step.options):
        raise SeqmemError(
            f"'{step.name}': expected options {', '.join(allowed) or 'none'}, got "
            f'{", ".join(step.options) or "none"}'
        )
    description = {'type': layer, **step.options}
    if layer == 'AddPositions':
        description['d_model'] = _width_so_far(pieces, step.name)
    return Piece(description, {})


def _width_so_far(pieces: list[Piece], word: str) -> int:
    width = width_given(pieces)
    if width is None:
        raise SeqmemError(f"network: expected a module before '{word}'")
    return width


def _listed(modules: Mapping[str, SourceModule]) -> str:
    return ', '.join(f"'{name or '.'}' ({module.kind})" for name, module in modules.items())
