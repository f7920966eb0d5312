"""The weights file: exact, checked, and never believed."""

import json
import stat
import time

import numpy as np
import pytest
from safetensors.numpy import load_file
from safetensors.numpy import safe_open
from safetensors.numpy import save_file

from seqmem_ros.core.errors import SeqmemError
from seqmem_ros.core.estimators import load_estimator
from seqmem_ros.core.estimators import MODEL_NAMES
from seqmem_ros.core.weights import file_digest
from seqmem_ros.core.weights import load_model
from seqmem_ros.core.weights import save_model

NAMES = ('gru', 'lstm', 'attention', 'label', 'direct', 'named', 'arm_label')


@pytest.fixture
def written(tmp_path, make_model):
    """Give a function that writes a model, with its description or tensors changed."""

    def write(name='gru', tensors=None, raw=None, **changes):
        path = tmp_path / f'{name}.safetensors'
        save_model(path, make_model(name))
        with safe_open(str(path), 'numpy') as file:
            description = json.loads(file.metadata()['seqmem'])
        description.update(changes)
        arrays = load_file(str(path))
        arrays.update(tensors or {})
        text = json.dumps(description) if raw is None else raw
        save_file(arrays, str(path), metadata={'seqmem': text})
        return path

    return write


@pytest.mark.parametrize('name', NAMES)
def test_a_round_trip_is_exact(name, tmp_path, make_model):
    model = make_model(name)
    path = tmp_path / 'm.safetensors'
    save_model(path, model)
    again = load_model(path)
    assert again.spec == model.spec
    assert again.kind == model.kind
    before, after = model.network.named_params(), again.network.named_params()
    assert list(before) == list(after)
    for key in before:
        np.testing.assert_array_equal(before[key].value, after[key].value)


def test_everybody_may_read_what_is_written(tmp_path, make_model):
    path = tmp_path / 'm.safetensors'
    save_model(path, make_model('gru'))
    other = tmp_path / 'plain'
    other.write_text('')
    assert stat.S_IMODE(path.stat().st_mode) == stat.S_IMODE(other.stat().st_mode)


def test_the_digest_is_that_of_the_file(tmp_path):
    path = tmp_path / 'x'
    path.write_bytes(b'abc')
    assert file_digest(path) == 'ba7816bf8f01'


def refusal(path):
    """Return the sentence of the error."""
    with pytest.raises(SeqmemError) as error:
        load_model(path)
    text = str(error.value)
    assert '\n' not in text
    assert str(path) in text
    return text


def test_a_file_that_is_not_there(tmp_path):
    path = tmp_path / 'none.safetensors'
    assert refusal(path) == (
        f'weights: expected a .safetensors file, found none at {path}; correct the path, or leave '
        'weights empty for those of the package'
    )
    assert 'found none at' in refusal(tmp_path)


def test_a_file_of_another_kind(tmp_path):
    path = tmp_path / 'm.pt'
    path.write_bytes(b'PK\x03\x04' + bytes(100))
    assert 'expected a .safetensors file, but it cannot be read' in refusal(path)


def test_truncated_files(written):
    path = written()
    whole = path.read_bytes()
    for length in [*range(0, 40), *range(40, len(whole), 997), len(whole) - 1]:
        path.write_bytes(whole[:length])
        assert 'cannot be read' in refusal(path)


def test_weights_of_other_programs(tmp_path):
    path = tmp_path / 'm.safetensors'
    save_file({'weight': np.zeros(3, np.float32)}, str(path), metadata={'format': 'pt'})
    text = refusal(path)
    assert "expected metadata 'seqmem', got ['format']" in text
    assert 'seqmem convert' in text


@pytest.mark.parametrize(
    ('changes', 'sentence'),
    [
        ({'format': 2}, 'expected format 1, got 2: it was written by another version'),
        ({'surprise': 1}, "got also ['surprise']"),
        ({'task': 'effort'}, "task: expected one of velocity, label, got 'effort'"),
        ({'labels': ['a']}, "expected names for task 'label' only, got 1 for 'velocity'"),
        ({'features': ['mass']}, 'features: expected one of position, velocity'),
        ({'joints': ['a']}, "joints: expected none for readout 'observer'"),
        ({'network': {'builder': 'eval', 'n_in': 23, 'n_out': 10}}, "got 'eval'"),
        ({'network': {'builder': 'recurrent_net', 'n_in': 7, 'n_out': 10}}, 'n_in 23, got 7'),
        ({'network': {'builder': 'recurrent_net', 'n_in': 23, 'n_out': 3}}, 'n_out 10, got 3'),
        ({'network': 7}, 'network: expected names and values, got 7'),
        ({'joints': 7}, 'joints: expected names, got 7'),
    ],
)
def test_descriptions_that_do_not_fit(changes, sentence, written):
    assert sentence in refusal(written(**changes))


@pytest.mark.parametrize('raw', ['', '[]', 'null', '{', '{"task": "velocity"}', '[' * 100_000])
def test_descriptions_that_are_none(raw, written):
    assert "metadata 'seqmem' is not what was written" in refusal(written(raw=raw))


def network(**changes):
    plain = {
        'builder': 'recurrent_net', 'n_in': 23, 'n_hidden': 12, 'n_out': 10, 'cell': 'gru',
        'n_layers': 1,
    }  # fmt: skip
    return {**plain, **changes}


@pytest.mark.parametrize(
    ('changes', 'sentence'),
    [
        ({'n_hidden': 10**9}, 'expected n_hidden from 0 to 16384, got 1000000000'),
        ({'n_layers': 10**9}, 'expected n_layers from 0 to 64, got 1000000000'),
        ({'n_hidden': -3}, 'expected n_hidden from 0 to 16384, got -3'),
        ({'n_hidden': 16384}, 'expected shape (16384, 16384), got (12, 12)'),
        ({'n_hidden': 'many'}, 'does not take'),
        ({'cell': 'gru2'}, "unknown cell 'gru2'"),
        ({'cell': 'lstm'}, 'expected shape'),
        ({'speed': 3}, 'does not take'),
    ],
)
def test_networks_that_do_not_fit_are_refused_at_once(changes, sentence, written):
    start_s = time.process_time()
    assert sentence in refusal(written(network=network(**changes)))
    # Not a measurement: allocating 16384 x 16384 weights three times takes far longer.
    assert time.process_time() - start_s < 20


def test_a_refusal_stays_short_whatever_the_file_says(written):
    text = refusal(written(network=network(speed='x' * 10_000)))
    assert 'does not take' in text
    assert text.endswith('xxx ...')
    assert len(text) < 1200


@pytest.mark.parametrize('value', [np.nan, np.inf])
def test_weights_that_are_not_finite(value, written):
    broken = np.full((12, 23), value, np.float32)
    text = refusal(written(tensors={'layers.0.W_r': broken}))
    assert 'tensor layers.0.W_r: expected finite float32' in text


def test_tensors_of_other_shapes_types_and_names(written):
    text = refusal(written(tensors={'layers.0.W_r': np.zeros((3, 3), np.float32)}))
    assert 'tensor layers.0.W_r: expected shape (12, 23), got (3, 3)' in text
    text = refusal(written(tensors={'layers.0.W_r': np.zeros((12, 23), np.float64)}))
    assert 'tensor layers.0.W_r: expected finite float32, got float64' in text
    text = refusal(written(tensors={'layers.9.W': np.zeros(3, np.float32)}))
    assert 'tensor layers.9.W: expected shape none, got (3,)' in text


def test_mutated_files_are_refused_or_load(written):
    path = written()
    whole = path.read_bytes()
    rng = np.random.default_rng(4)
    refused = 0
    for _ in range(400):
        data = bytearray(whole)
        # Most of what can go wrong is in the header.
        for _ in range(int(rng.integers(1, 4))):
            data[int(rng.integers(0, 1500))] = int(rng.integers(0, 256))
        path.write_bytes(bytes(data))
        try:
            load_model(path)
        except SeqmemError as error:
            refused += 1
            assert '\n' not in str(error)
    assert refused > 200


def test_models_by_name(written):
    assert load_estimator('kalman').name == 'kalman'
    assert load_estimator('auto', written('lstm')).name == 'lstm'
    assert load_estimator('attention', written('attention')).name == 'attention'
    label = load_estimator('auto', written('label'))
    assert (label.task, label.labels, label.name) == ('label', ('still', 'moving'), 'gru (label)')


def test_names_and_files_that_do_not_go_together(written):
    path = written('lstm')
    with pytest.raises(SeqmemError) as error:
        load_estimator('gru', path)
    assert str(error.value) == (
        f"model 'gru' does not fit {path}, which holds 'lstm': set model to 'lstm' or 'auto', or "
        'give other weights'
    )
    with pytest.raises(SeqmemError, match="the filter 'kalman' has none, got"):
        load_estimator('kalman', path)
    with pytest.raises(SeqmemError) as error:
        load_estimator('gur')
    assert str(error.value) == f"model: expected one of {', '.join(MODEL_NAMES)}, got 'gur'"


def test_the_label_model_takes_weights_of_label_models_only(written):
    assert load_estimator('motion', written('label')).labels == ('still', 'moving')
    path = written('gru')
    with pytest.raises(SeqmemError) as error:
        load_estimator('motion', path)
    assert str(error.value) == (
        f"model 'motion' does not fit {path}, which estimates velocity: set model to 'auto', or "
        'give weights of a label model'
    )
