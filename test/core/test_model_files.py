"""A weights file may say anything: what is loaded runs, and all else is refused in one line."""

import copy
import json

import jax
import numpy as np
import pytest
from safetensors.numpy import load_file
from safetensors.numpy import safe_open
from safetensors.numpy import save_file

from seqmem_ros.core.errors import SeqmemError
from seqmem_ros.core.estimators import load_estimator
from seqmem_ros.core.model import build_network
from seqmem_ros.core.model import SequenceModel
from seqmem_ros.core.spec import ModelSpec
from seqmem_ros.core.weights import load_model
from seqmem_ros.core.weights import save_model

INF, NAN = float('inf'), float('nan')


@pytest.fixture
def contents(tmp_path, make_model):
    """Give a function from a name to the description and the tensors of its file."""

    def read(name):
        path = tmp_path / 'original.safetensors'
        save_model(path, make_model(name))
        with safe_open(str(path), 'numpy') as file:
            return json.loads(file.metadata()['seqmem']), load_file(str(path))

    return read


@pytest.fixture
def outcome(tmp_path):
    """Give a function that writes a file and returns its model, or the refusal."""

    def load(description, tensors):
        path = tmp_path / 'changed.safetensors'
        save_file(tensors, str(path), metadata={'seqmem': json.dumps(description)})
        try:
            return load_model(path)
        except SeqmemError as error:
            assert '\n' not in str(error)
            assert str(error).startswith(f'{path}: ')
            return str(error).removeprefix(f'{path}: ')

    return load


@pytest.mark.parametrize(
    ('field', 'value', 'sentence'),
    [
        ('output_mean', 'abc', 'output_mean: expected a finite number, got abc'),
        ('output_mean', True, 'output_mean: expected a finite number, got True'),
        ('output_scale', NAN, 'output_scale: expected a finite number, got nan'),
        ('output_scale', 10**400, 'output_scale: expected a finite number, got 1000'),
        ('output_scale', [1, 2], 'output_scale: expected a finite number, got (1, 2)'),
        ('input_mean', ['a', 'b'], "input_mean: expected finite numbers, got ('a', 'b')"),
        ('input_mean', {'a': 1}, "input_mean: expected finite numbers, got {'a': 1}"),
        ('input_mean', [[1, 2]], 'input_mean: expected finite numbers, got ([1, 2],)'),
        ('input_mean', [1, 2, 3], 'input_mean: expected 0 or 2 values, got 3'),
        ('input_scale', [1, -INF], 'input_scale: expected finite numbers, got (1, -inf)'),
        ('input_scale', [0, 1], 'input_scale: expected numbers other than 0, got (0, 1)'),
        ('nominal_rate_hz', 'fast', 'nominal_rate_hz: expected finite numbers, got fast'),
        ('nominal_rate_hz', [1], 'nominal_rate_hz: expected the lowest and the highest, got (1,)'),
        ('card', None, 'card: expected names and values, got None'),
        ('network', [1], 'network: expected names and values, got (1,)'),
        ('joints', 'ab', 'joints: expected names, got ab'),
        ('joints', ['a', ''], "joints: expected names, got ('a', '')"),
        ('joints', ['a', 'a'], 'joints: expected each joint once, got a, a'),
        ('features', 'position', 'features: expected names, got position'),
        ('features', [], "features: expected names for readout 'direct' only, got 0 for 'direct'"),
        ('labels', {'a': 1}, "labels: expected names, got {'a': 1}"),
        ('readout', ['direct'], "readout: expected one of observer, direct, got '('direct',)'"),
    ],
)
def test_values_of_the_wrong_kind(field, value, sentence, contents, outcome):
    description, tensors = contents('direct')
    text = outcome({**description, field: value}, tensors)
    assert text == sentence or (len(sentence) < len(text) and text.startswith(sentence))


@pytest.mark.parametrize(
    ('labels', 'sentence'),
    [
        (['a', 'a'], 'labels: expected each label once, got a, a'),
        ([1, 2], 'labels: expected names, got (1, 2)'),
        ('ab', 'labels: expected names, got ab'),
        (['a'], 'network: expected n_out 12, got 14'),
        ([], "labels: expected names for task 'label' only, got 0 for 'label'"),
    ],
)
def test_labels_of_the_wrong_kind(labels, sentence, contents, outcome):
    description, tensors = contents('label')
    assert outcome({**description, 'labels': labels}, tensors) == sentence


def test_a_description_that_lacks_its_task(contents, outcome):
    description, tensors = contents('gru')
    del description['task']
    assert outcome(description, tensors).startswith('metadata: a value is of the wrong kind: ')


BUILDERS = 'recurrent_net, causal_transformer, layer_stack'
GRU = {'builder': 'recurrent_net', 'n_in': 23, 'n_hidden': 12, 'n_out': 10, 'cell': 'gru'}


@pytest.mark.parametrize(
    ('changes', 'sentence'),
    [
        ({'builder': []}, f"network: expected a builder out of {BUILDERS}, got '[]'"),
        ({'builder': {}}, f"network: expected a builder out of {BUILDERS}, got '{{}}'"),
        ({'builder': None}, f"network: expected a builder out of {BUILDERS}, got 'None'"),
        ({'n_hidden': 0}, 'does not take'),
        ({'n_hidden': INF}, 'network: expected n_hidden from 0 to 16384, got inf'),
        ({'n_hidden': NAN}, 'network: expected n_hidden from 0 to 16384, got nan'),
        ({'cell': []}, 'does not take'),
        ({'key': 3}, 'does not take'),
        ({'dropout': 2.0}, 'does not take'),
        ({'reset_after': [1]}, 'does not take'),
    ],
)
def test_networks_that_cannot_be_built(changes, sentence, contents, outcome):
    description, tensors = contents('gru')
    assert sentence in outcome({**description, 'network': {**GRU, **changes}}, tensors)


def stack(*layers):
    return {'builder': 'layer_stack', 'n_in': 23, 'n_out': 10, 'layers': list(layers)}


DENSE = {'type': 'Dense', 'n_in': 23, 'n_out': 10}
ATTENTION = {'type': 'MultiHeadSelfAttention', 'd_model': 23, 'n_heads': 1}


@pytest.mark.parametrize(
    ('network', 'sentence'),
    [
        ({**GRU, 'n_layers': 0}, 'Dense expected input of width 12'),
        (stack(ATTENTION, DENSE), 'cannot stream: layer 0 (MultiHeadSelfAttention)'),
        # A cache that grows has no place in a scan, and none in a node that runs for days.
        (stack({**ATTENTION, 'causal': True}, DENSE), 'carry'),
    ],
)
def test_networks_that_are_built_but_do_not_run(network, sentence, tmp_path):
    spec = ModelSpec('velocity', network)
    path = tmp_path / 'm.safetensors'
    save_model(path, SequenceModel(spec, build_network(network, jax.random.key(0))))
    with pytest.raises(SeqmemError) as error:
        load_model(path)
    assert str(error.value).startswith(f'{path}: network: its layers do not run together: ')
    assert sentence in str(error.value)


def paths_into(value, path=()):
    """List the places of all values in a description."""
    children = value.items() if isinstance(value, dict) else ()
    children = enumerate(value) if isinstance(value, list) else children
    return [path, *(found for key, child in children for found in paths_into(child, (*path, key)))]


ODD = [
    None, True, False, 0, 1, -1, 2, 19, 10, 1.0, 0.5, 1e308, 10**30, NAN, INF, '', 'a', 'gru',
    'lstm', 'rnn', 'relu', 'velocity', 'label', 'observer', 'direct', 'position', [], [1], ['a'],
    ['a', 'b'], {}, {'type': 'GRU'}, [[1]], [{}], {'a': {'b': []}},
]  # fmt: skip


@pytest.mark.parametrize('name', ['gru', 'attention', 'direct', 'arm_label'])
def test_descriptions_with_odd_values_are_refused_or_run(name, contents, outcome):
    original, tensors = contents(name)
    rng = np.random.default_rng(sorted(name.encode()))
    places = [path for path in paths_into(original) if path]
    loaded = 0
    for _ in range(80):
        description = copy.deepcopy(original)
        target = description
        *way, last = places[rng.integers(len(places))]
        for key in way:
            target = target[key]
        if rng.random() < 0.2 and isinstance(target, dict):
            del target[last]
        else:
            target[last] = copy.deepcopy(ODD[rng.integers(len(ODD))])
        model = outcome(description, tensors)
        if isinstance(model, str):
            continue
        loaded += 1
        assert model.kind in ('gru', 'lstm', 'attention')
        assert isinstance(model.spec.per_joint, bool)
        if description['network'] != original['network']:
            axes = (5, len(model.spec.joints), 11) if model.spec.joints else (5, 11)
            assert np.isfinite(model.forward(np.ones(axes, np.float32))).all()
    assert 0 < loaded < 60


def test_a_recurrent_network_without_a_cell_is_what_its_builder_makes(tmp_path):
    network = {key: value for key, value in GRU.items() if key != 'cell'}
    model = SequenceModel(
        ModelSpec('velocity', network), build_network(network, jax.random.key(0))
    )
    path = tmp_path / 'm.safetensors'
    save_model(path, model)
    assert load_estimator('lstm', path).name == 'lstm'


def test_the_advice_names_only_models_that_exist(tmp_path):
    network = {**GRU, 'cell': 'rnn'}
    path = tmp_path / 'm.safetensors'
    model = SequenceModel(
        ModelSpec('velocity', network), build_network(network, jax.random.key(0))
    )
    save_model(path, model)
    assert load_estimator('auto', path).name == 'rnn'
    with pytest.raises(SeqmemError) as error:
        load_estimator('gru', path)
    assert str(error.value) == (
        f"model 'gru' does not fit {path}, which holds 'rnn': set model to 'auto', or give other "
        'weights'
    )


def test_the_text_of_weights_that_are_not_finite(contents, outcome):
    description, tensors = contents('gru')
    tensors['layers.0.b_z'][3] = np.nan
    text = 'tensor layers.0.b_z: expected finite float32, got NaN or infinity'
    assert outcome(description, tensors) == text


def test_a_file_that_cannot_be_written(tmp_path, make_model):
    path = tmp_path / 'missing' / 'm.safetensors'
    with pytest.raises(SeqmemError) as error:
        save_model(path, make_model('gru'))
    assert str(error.value) == f'{path}: cannot be written: No such file or directory'


def test_double_precision_weights_are_named(contents, outcome):
    description, tensors = contents('gru')
    tensors['layers.0.b_z'] = tensors['layers.0.b_z'].astype(np.float64)
    text = 'tensor layers.0.b_z: expected finite float32, got float64'
    assert outcome(description, tensors) == text
