"""Networks listed layer by layer, for those that no other builder makes."""

from collections.abc import Mapping
from collections.abc import Sequence
import inspect
from typing import Any

import jax

from seqmem_ros import nn

LAYERS: dict[str, type[nn.Module]] = {
    cls.__name__: cls
    for cls in (
        nn.RNN,
        nn.GRU,
        nn.LSTM,
        nn.Dense,
        nn.LayerNorm,
        nn.MultiHeadSelfAttention,
        nn.TransformerBlock,
        nn.AddPositions,
        nn.LastStep,
        nn.MeanOverTime,
        nn.Residual,
        nn.Bidirectional,
    )
}
KINDS = {
    'RNN': 'rnn',
    'GRU': 'gru',
    'LSTM': 'lstm',
    'MultiHeadSelfAttention': 'attention',
    'TransformerBlock': 'attention',
}
# A file may ask for any size; nobody streams through more than this.
LARGEST_SIZE = 16384
MOST_LAYERS = 64

Description = Mapping[str, Any]


def layer_stack(
    n_in: int, n_out: int, layers: Sequence[Description], key: jax.Array
) -> nn.Sequential:
    """
    Build a network from descriptions of its layers.

    A description is the class under ``type`` and the arguments of its constructor, such as
    ``{'type': 'GRU', 'n_in': 7, 'n_hidden': 32, 'reset_after': True}``; an argument that is a
    layer is a description as well. Everything in it is plain JSON.

    :param n_in: width of the samples
    :param n_out: width of the output
    :param layers: descriptions, in the order of the data
    :param key: random key, split once for each layer
    :returns: the network
    :raises ValueError: for an unknown layer, a size out of range, or layers that do not fit
    """
    if not 1 <= len(layers) <= MOST_LAYERS:
        raise ValueError(f'expected 1 to {MOST_LAYERS} layers, got {len(layers)}')
    keys = jax.random.split(key, len(layers))
    network = nn.Sequential(*(_build(layer, k) for layer, k in zip(layers, keys)))
    try:
        out = jax.eval_shape(network.forward, jax.ShapeDtypeStruct((2, n_in), 'float32'))
    except ValueError as error:
        raise ValueError(f'the layers do not fit one another: {error}') from error
    if out.shape[-1] != n_out:
        raise ValueError(f'expected the last layer to give n_out={n_out}, got {out.shape[-1]}')
    return network


def kind_of_stack(layers: Sequence[Description]) -> str:
    """
    Name a network after its first layer with memory.

    :param layers: descriptions
    :returns: ``rnn``, ``gru``, ``lstm``, ``attention``, or ``dense`` if it has no memory
    """
    for description in layers:
        inner = (value for value in description.values() if isinstance(value, Mapping))
        name = description.get('type')
        found = KINDS.get(name) if isinstance(name, str) else None
        kind = found or kind_of_stack(tuple(inner))
        if kind != 'dense':
            return kind
    return 'dense'


def _build(description: Description, key: jax.Array) -> nn.Module:
    if not isinstance(description, Mapping) or description.get('type') not in LAYERS:
        raise ValueError(
            f"expected a description with 'type' out of {', '.join(LAYERS)}, got {description}"
        )
    cls = LAYERS[description['type']]
    arguments = {}
    for index, (name, value) in enumerate(description.items()):
        if isinstance(value, Mapping):
            value = _build(value, jax.random.fold_in(key, index))
        elif isinstance(value, (int, float)) and not 0 <= value <= LARGEST_SIZE:
            raise ValueError(f'expected {name} from 0 to {LARGEST_SIZE}, got {value}')
        if name != 'type':
            arguments[name] = value
    if 'key' in inspect.signature(cls).parameters:
        arguments['key'] = key
    return cls(**arguments)
