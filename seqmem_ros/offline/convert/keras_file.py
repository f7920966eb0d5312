"""
Keras 3 files: ``.keras`` (weights and configuration) and ``.weights.h5`` (weights alone).

Both hold HDF5 groups ``layers/<class>[_<n>]/.../vars/<i>``, the class in snake case and n counting
layers of one class in the order of the model. Seen in files of Keras 3.0.5 and 3.15.1.
"""

from collections.abc import Iterator
from collections.abc import Mapping
import io
from itertools import pairwise
import json
from pathlib import Path
import re
from typing import Any
import zipfile

import numpy as np

from seqmem_ros.core.errors import SeqmemError
from seqmem_ros.offline.convert.pieces import SourceModule
from seqmem_ros.offline.convert.plan import ACTIVATIONS
from seqmem_ros.offline.convert.plan import SOFTMAX
from seqmem_ros.offline.convert.plan import Step

# What is converted: names of the variables in the order of their numbers.
VARIABLES = {
    'SimpleRNN': ('kernel', 'recurrent_kernel', 'bias'),
    'GRU': ('kernel', 'recurrent_kernel', 'bias'),
    'LSTM': ('kernel', 'recurrent_kernel', 'bias'),
    'Dense': ('kernel', 'bias'),
    'LayerNormalization': ('gamma', 'beta'),
    'Bidirectional': (),
}
GATES_OF = {1: 'SimpleRNN', 3: 'GRU', 4: 'LSTM'}
# They change nothing once training is over.
INERT = (
    'InputLayer', 'Dropout', 'SpatialDropout1D', 'GaussianNoise', 'GaussianDropout',
    'AlphaDropout', 'ActivityRegularization',
)  # fmt: skip
# What a layer's configuration must say, where it says anything: nothing else is converted.
REQUIRED = {
    'go_backwards': (False,),
    'recurrent_activation': ('sigmoid',),
    'merge_mode': ('concat',),
    'axis': (-1, [-1]),
    'rms_scaling': (False,),
}


def read_keras(path: Path) -> tuple[dict[str, SourceModule], list[Step] | None]:
    """
    Read a file of Keras.

    :param path: ``.keras`` or ``.weights.h5``
    :returns: modules by name, and the order in which the configuration uses them, with what it
        says of each; None for ``.weights.h5``, which has no configuration
    :raises SeqmemError: if it cannot be read, or the model is no plain sequence of layers
    """
    h5py = _import_h5py(path)
    try:
        if path.suffix != '.keras':
            with h5py.File(path) as file:
                return _modules_alone(path, file), None
        with zipfile.ZipFile(path) as archive:
            config = json.loads(archive.read('config.json'))
            weights = io.BytesIO(archive.read('model.weights.h5'))
        with h5py.File(weights) as file:
            return _modules_of_config(path, config, file)
    except (OSError, zipfile.BadZipFile, KeyError, json.JSONDecodeError) as error:
        raise SeqmemError(
            f'{path}: expected a .keras or .weights.h5 file of Keras 3, but it cannot be read '
            f'({error}); save it again with model.save("model.keras")'
        ) from error


def _modules_alone(path: Path, file: Any) -> dict[str, SourceModule]:
    kinds = {_snake_case(kind): kind for kind in VARIABLES}
    modules = {}
    for group, content in _layers(path, file).items():
        tensors = _tensors(content)
        if tensors:
            name = str(content['vars'].attrs.get('name', group)) if 'vars' in content else group
            modules[name] = _module(name, kinds.get(re.sub(r'_\d+$', '', group), group), tensors)
    return modules


def _modules_of_config(
    path: Path, config: Mapping[str, Any], file: Any
) -> tuple[dict[str, SourceModule], list[Step]]:
    groups = _layers(path, file)
    modules: dict[str, SourceModule] = {}
    steps: list[Step] = []
    used: dict[str, int] = {}
    for layer in _chain(path, config):
        settings, kind = layer['config'], layer['class_name']
        snake = _snake_case(kind)
        count = used[snake] = used.get(snake, -1) + 1
        tensors = _tensors(groups.get(f'{snake}_{count}' if count else snake, {}))
        if kind == 'TimeDistributed':
            # Here every layer acts on each sample anyway.
            settings = settings['layer']['config'] | {'name': settings['name']}
            kind = layer['config']['layer']['class_name']
        _check_settings(kind, settings)
        if tensors:
            name = settings['name']
            modules[name] = _module(name, kind, tensors)
            steps.append(Step(name, _options(modules[name].kind, settings)))
        steps += _activation_after(kind, settings, bool(tensors))
    return modules, steps


def _chain(path: Path, config: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """List the layers of a model in which each has the one before as its only input."""
    if config.get('class_name') not in ('Sequential', 'Functional'):
        raise SeqmemError(
            f'{path}: expected a Sequential or Functional model, found {config.get("class_name")}'
        )
    layers = config['config']['layers']
    if config['class_name'] == 'Functional':
        for before, layer in pairwise(layers):
            inputs = _histories(layer['inbound_nodes'])
            if inputs != [before['config']['name']]:
                raise SeqmemError(
                    f"{path}: expected one layer after another, but '{layer['config']['name']}' "
                    f'reads {", ".join(inputs) or "nothing"} and follows '
                    f"'{before['config']['name']}'"
                )
    return layers


def _histories(node: Any) -> list[str]:
    if isinstance(node, Mapping):
        if 'keras_history' in node:
            return [node['keras_history'][0]]
        return [name for value in node.values() for name in _histories(value)]
    if isinstance(node, list):
        return [name for value in node for name in _histories(value)]
    return []


def _check_settings(kind: str, settings: Mapping[str, Any]) -> None:
    required = dict(REQUIRED)
    if kind in ('GRU', 'LSTM'):
        required['activation'] = ('tanh',)
    for name, choices in required.items():
        value = settings.get(name, choices[0])
        if value not in choices:
            raise SeqmemError(
                f"{kind} '{settings['name']}': expected {name}={choices[0]}, found {value}, "
                f'which has no counterpart here'
            )
    if kind == 'Bidirectional':
        inner = settings['layer']
        # Else its backward half ends at the first sample, which no output here stands for.
        if not inner['config'].get('return_sequences', True):
            raise SeqmemError(
                f"Bidirectional '{settings['name']}': expected return_sequences=True, found "
                f'False, which has no counterpart here'
            )
        _check_settings(inner['class_name'], inner['config'])


def _options(kind: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    if kind.startswith('Bidirectional'):
        return _options(kind.removeprefix('Bidirectional '), settings['layer']['config'])
    if kind == 'SimpleRNN':
        return {'activation': settings['activation']}
    if kind == 'GRU':
        return {'reset_after': settings['reset_after']}
    if kind == 'LayerNormalization':
        return {'eps': settings['epsilon']}
    return {}


def _activation_after(kind: str, settings: Mapping[str, Any], has_weights: bool) -> list[Step]:
    activation = {'ReLU': 'relu', 'Activation': settings.get('activation')}.get(kind)
    if kind == 'Dense':
        activation = settings.get('activation')
    elif activation is None and not has_weights and kind not in INERT:
        raise SeqmemError(
            f"{kind} '{settings.get('name')}': expected layers out of "
            f'{", ".join((*VARIABLES, "TimeDistributed", "Activation", "ReLU", *INERT))}'
        )
    if activation in (None, 'linear'):
        return []
    if activation not in (*ACTIVATIONS, SOFTMAX):
        raise SeqmemError(
            f"{kind} '{settings['name']}': expected an activation out of "
            f'{", ".join(("linear", *ACTIVATIONS, SOFTMAX))}, found {activation}'
        )
    return [Step(activation)]


def _layers(path: Path, file: Any) -> dict[str, Any]:
    if 'layers' not in file:
        raise SeqmemError(
            f"{path}: expected a group 'layers', found {', '.join(file) or 'nothing'}; older "
            f'files are to be loaded in Keras 3 and saved with model.save("model.keras")'
        )
    return dict(file['layers'].items())


def _tensors(group: Any) -> dict[str, np.ndarray]:
    """Collect the variables below a layer, by path without ``cell`` and ``vars``."""
    return {
        '.'.join(part for part in path.split('/') if part not in ('cell', 'vars', 'layer')): array
        for path, array in _variables(group, '')
        if 'seed_generator' not in path
    }


def _variables(group: Any, path: str) -> Iterator[tuple[str, np.ndarray]]:
    for name, item in group.items():
        below = f'{path}/{name}' if path else name
        if hasattr(item, 'shape'):
            yield below, np.asarray(item)
        else:
            yield from _variables(item, below)


def _module(name: str, kind: str, tensors: Mapping[str, np.ndarray]) -> SourceModule:
    if kind == 'Bidirectional':
        kernel = tensors.get('forward_layer.1')
        inner = None if kernel is None else GATES_OF.get(kernel.shape[1] // kernel.shape[0])
        kind = f'Bidirectional {inner}'
    variables = VARIABLES.get(kind.removeprefix('Bidirectional '), ())
    return SourceModule(name, kind, {_named(key, variables): v for key, v in tensors.items()})


def _named(key: str, variables: tuple[str, ...]) -> str:
    prefix, _, number = key.rpartition('.')
    known = number.isdigit() and int(number) < len(variables)
    word = variables[int(number)] if known else number
    return f'{prefix}.{word}' if prefix else word


def _snake_case(name: str) -> str:
    # As Keras itself: SimpleRNN -> simple_rnn, LSTM -> lstm, TimeDistributed -> time_distributed.
    name = re.sub(r'(.)([A-Z][a-z0-9]+)', r'\1_\2', name)
    return re.sub(r'([a-z])([A-Z])', r'\1_\2', name).lower()


def _import_h5py(path: Path) -> Any:
    try:
        import h5py
    except ImportError:
        raise SeqmemError(
            f'{path}: files of Keras need h5py, which is not installed here; pip install h5py'
        ) from None
    return h5py
