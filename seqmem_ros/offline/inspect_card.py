"""What a model is, in words."""

from collections.abc import Mapping
import textwrap
from typing import Any

from seqmem_ros.core.model import SequenceModel

WIDTH = 96
_INDENT = 13
_READOUTS = {
    'observer': 'observer: the network steers the gains of a tracking filter',
    'direct': 'direct: the outputs of the network are the estimate',
}


def card(model: SequenceModel, source: str, digest: str) -> str:
    """
    Say what a model is, how it was trained and how well it does.

    :param model: the model
    :param source: path of its file
    :param digest: of the file
    :returns: lines
    """
    spec = model.spec
    lowest_hz, highest_hz = spec.nominal_rate_hz
    training, scores = spec.card.get('training', {}), spec.card.get('scores', {})
    unit = ' (RMSE in rad/s)' if spec.task == 'velocity' and scores else ''
    lines = {
        'task': f'{spec.task}' + (f': {", ".join(spec.labels)}' if spec.labels else ''),
        'network': network_in_words(spec.network),
        'readout': _READOUTS[spec.readout],
        'inputs': ', '.join(spec.features) or 'what the filter knows of positions and stamps',
        'joints': ', '.join(spec.joints) or 'any; one network serves them all',
        'rates': f'{lowest_hz:g} to {highest_hz:g} Hz' if highest_hz else 'not stated',
        'training': _pairs(training) or 'not stated',
        'scores': (_pairs(scores) or 'not stated') + unit,
    }
    # A path stays in one piece, to be copied.
    first = f'{"model":<{_INDENT}}{model.kind}, {source}, digest {digest}'
    return '\n'.join([first, *(_wrapped(name, text) for name, text in lines.items())])


def network_in_words(description: Mapping[str, Any]) -> str:
    """
    Say what a network is made of.

    :param description: of a :class:`~seqmem_ros.core.spec.ModelSpec`
    :returns: its layers where it is a stack of them, else its builder and sizes
    """
    if description['builder'] == 'layer_stack':
        return ', '.join(map(layer_in_words, description['layers']))
    return _pairs(description)


def layer_in_words(description: Mapping[str, Any]) -> str:
    """
    Say what a layer is.

    :param description: as in a :func:`~seqmem_ros.core.layer_stack.layer_stack`
    :returns: such as ``GRU(n_hidden=8, n_in=1)``
    """
    inner = [
        f'{name}: {layer_in_words(value)}'
        for name, value in description.items()
        if isinstance(value, Mapping)
    ]
    options = [
        f'{name}={value}'
        for name, value in description.items()
        if name != 'type' and not isinstance(value, Mapping)
    ]
    return f'{description["type"]}({", ".join(options + inner)})'


def _wrapped(name: str, text: str) -> str:
    return textwrap.fill(
        f'{name:<{_INDENT}}{text}',
        WIDTH,
        subsequent_indent=' ' * _INDENT,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _pairs(values: Mapping[str, Any]) -> str:
    return ', '.join(
        f'{name} {_listed(value)}' for name, value in values.items() if value is not None
    )


def _listed(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return f'[{"; ".join(_listed(each) for each in value)}]'
    return f'({_pairs(value)})' if isinstance(value, Mapping) else f'{value}'
