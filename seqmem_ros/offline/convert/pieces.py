"""What every source format is turned into: described layers with their weights."""

from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from seqmem_ros.core.errors import SeqmemError
from seqmem_ros.core.layer_stack import layer_stack
from seqmem_ros.nn import Sequential

Tensors = Mapping[str, np.ndarray]


@dataclass(frozen=True)
class SourceModule:
    """
    One module of another program, as its file has it.

    :param name: its path in the file
    :param kind: what it is there, such as ``LSTM``, ``Linear``, ``SimpleRNN``
    :param tensors: its weights, by the names that they have below the path
    """

    name: str
    kind: str
    tensors: Tensors


@dataclass(frozen=True, eq=False)
class Piece:
    """
    One layer here.

    :param description: for :func:`seqmem_ros.core.layer_stack.layer_stack`
    :param params: values by path within the layer
    """

    description: Mapping[str, Any]
    params: Mapping[str, np.ndarray]


def network_of(
    pieces: Sequence[Piece], n_in: int, n_out: int
) -> tuple[dict[str, Any], Sequential]:
    """
    Put layers together.

    :param pieces: layers in the order of the data
    :param n_in: width of the samples
    :param n_out: width of the output
    :returns: the description of the network for a
        :class:`~seqmem_ros.core.spec.ModelSpec`, and the network with its weights
    :raises SeqmemError: if the layers do not fit one another
    """
    layers = tuple(piece.description for piece in pieces)
    try:
        # Shapes alone: the initial weights would only be thrown away.
        network = jax.eval_shape(lambda: layer_stack(n_in, n_out, layers, jax.random.key(0)))
        network.load_params(
            {
                f'layers.{index}.{name}': value
                for index, piece in enumerate(pieces)
                for name, value in piece.params.items()
            }
        )
    except ValueError as error:
        raise SeqmemError(f'the converted layers make no network: {error}') from error
    return {'builder': 'layer_stack', 'n_in': n_in, 'n_out': n_out, 'layers': layers}, network


def linear_piece(
    weight: np.ndarray, bias: np.ndarray | None, activation: str | None = None
) -> Piece:
    """
    Describe a dense layer.

    :param weight: shape (n_out, n_in)
    :param bias: shape (n_out,), or None
    :param activation: name, or None
    :returns: the layer
    """
    n_out, n_in = weight.shape
    description = {'type': 'Dense', 'n_in': n_in, 'n_out': n_out, 'bias': bias is not None}
    if activation is not None:
        description['activation'] = activation
    return Piece(description, {'W': weight} if bias is None else {'W': weight, 'b': bias})


def width_read(pieces: Sequence[Piece]) -> int | None:
    """
    Tell how wide the input of a row of layers is.

    :param pieces: layers in the order of the data
    :returns: width, None if no layer says it
    """
    for piece in pieces:
        description = piece.description.get('layer_fwd', piece.description)
        for name in ('n_in', 'd_model'):
            if name in description:
                return description[name]
    return None


def width_given(pieces: Sequence[Piece]) -> int | None:
    """
    Tell how wide the output of a row of layers is.

    :param pieces: layers in the order of the data
    :returns: width, None if no layer says it
    """
    for piece in reversed(pieces):
        description = piece.description
        if description['type'] == 'Bidirectional':
            return description['layer_fwd']['n_hidden'] + description['layer_bwd']['n_hidden']
        for name in ('n_hidden', 'n_out', 'd_model', 'n_in'):
            if name in description:
                return description[name]
    return None


def both_ways(forwards: Piece, backwards: Piece) -> Piece:
    """
    Describe a bidirectional layer.

    :param forwards: reads from the first sample on
    :param backwards: reads from the last sample on
    :returns: the layer, whose outputs lie side by side
    """
    description = {
        'type': 'Bidirectional',
        'layer_fwd': forwards.description,
        'layer_bwd': backwards.description,
    }
    params = {f'layer_fwd.{name}': value for name, value in forwards.params.items()}
    params.update({f'layer_bwd.{name}': value for name, value in backwards.params.items()})
    return Piece(description, params)


def take(module: SourceModule, names: Sequence[str], optional: Sequence[str] = ()) -> list[Any]:
    """
    Get exactly the tensors that a module must have, in single precision.

    :param module: from a file
    :param names: tensors that must be there
    :param optional: tensors that may all be there, or none of them
    :returns: arrays for the names, then arrays or None for the optional ones
    :raises SeqmemError: lists what was expected and what was found; or if a value is not finite
    """
    found = set(module.tensors)
    with_optional = set(optional) <= found and bool(optional)
    expected = [*names, *optional] if with_optional else list(names)
    if found != set(expected):
        also = f' (and all or none of {", ".join(optional)})' if optional else ''
        raise SeqmemError(
            f"{module.kind} '{module.name}': expected the tensors {', '.join(names)}{also}, "
            f'found {", ".join(sorted(found)) or "none"}'
        )
    arrays = [np.asarray(module.tensors[name], np.float32) for name in expected]
    for name, array in zip(expected, arrays):
        if not np.isfinite(array).all():
            raise SeqmemError(
                f"{module.kind} '{module.name}' {name}: expected finite numbers, found NaN or "
                f'infinite ones; its training has diverged'
            )
    return arrays if with_optional else arrays + [None] * len(optional)


def split_rows(matrix: np.ndarray, gates: str, n_hidden: int, owner: str) -> dict[str, np.ndarray]:
    """
    Cut what lies gate under gate.

    :param matrix: shape (len(gates) * n_hidden, ...)
    :param gates: one letter for each, in the order of the rows
    :param n_hidden: rows of each
    :param owner: named in the error
    :returns: one array for each letter
    :raises SeqmemError: if there are more or fewer rows
    """
    if len(matrix) != len(gates) * n_hidden:
        raise SeqmemError(
            f'{owner}: expected {len(gates)} gates of {n_hidden} rows each, got {len(matrix)} rows'
        )
    return dict(zip(gates, np.split(matrix, len(gates))))
