"""Estimators by what a user says."""

import hashlib
from pathlib import Path

import numpy as np
import pytest

import seqmem_ros
from seqmem_ros.core import network_estimator
from seqmem_ros.core.errors import SeqmemError
from seqmem_ros.core.estimators import load_estimator
from seqmem_ros.core.estimators import MEMORIES
from seqmem_ros.core.estimators import MODEL_NAMES
from seqmem_ros.core.joints import JointSample
from seqmem_ros.core.stream import Stream
from seqmem_ros.core.weights import save_model

FILTERS = (
    'difference', 'lowpass', 'line', 'quadratic', 'cubic', 'savgol', 'kalman', 'one_euro',
    'super_twisting', 'tracking',
)  # fmt: skip
SHIPPED = {
    'gru': 'velocity_gru', 'lstm': 'velocity_lstm', 'attention': 'velocity_attention',
    'motion': 'motion_gru',
}  # fmt: skip
MOTIONS = ('stationary', 'forward', 'backward')
WEIGHTS_DIR = Path(seqmem_ros.__file__).parent / 'weights'


def refusal(*args, **kwargs):
    with pytest.raises(SeqmemError) as error:
        load_estimator(*args, **kwargs)
    return str(error.value)


def test_the_names_are_those_of_the_documentation():
    assert MODEL_NAMES == ('auto', *SHIPPED, *FILTERS)


@pytest.mark.parametrize('name', FILTERS)
def test_filters(name):
    estimator = load_estimator(name)
    assert estimator.name == name
    assert (estimator.task, estimator.labels, estimator.joints) == ('velocity', (), ())
    assert (estimator.window, estimator.fields, estimator.per_joint) == (5, ('position',), True)
    assert (estimator.source, estimator.digest, estimator.compile_count) == ('filter', '', 0)


@pytest.mark.parametrize('name', SHIPPED)
def test_shipped_models(name):
    estimator = load_estimator(name)
    path = WEIGHTS_DIR / f'{SHIPPED[name]}.safetensors'
    assert estimator.source == str(path)
    assert estimator.digest == hashlib.sha256(path.read_bytes()).hexdigest()[:12]
    assert estimator.task == ('label' if name == 'motion' else 'velocity')
    assert estimator.labels == (MOTIONS if name == 'motion' else ())
    assert estimator.name == ('gru (label)' if name == 'motion' else name)
    assert (estimator.joints, estimator.fields, estimator.per_joint) == ((), ('position',), True)
    assert estimator.memory == 'persistent'


def test_nothing_said_is_the_shipped_gru():
    assert load_estimator().source == str(WEIGHTS_DIR / 'velocity_gru.safetensors')


@pytest.mark.parametrize(('shipped', 'best'), [('gru', 0.06), ('lstm', 0.06), ('attention', 0.1)])
def test_shipped_weights_know_what_they_do(shipped, best):
    """A sine through 12 bits at 100 Hz; the difference errs by 0.08 rad/s, to a tenth."""
    errors = {}
    for name in (shipped, 'difference', 'kalman'):
        stream, squared = Stream(load_estimator(name)), []
        for i in range(400):
            angle = 2 * np.pi * 0.5 * i / 100
            position = np.round(0.5 * np.sin(angle) * 4096 / (2 * np.pi)) * 2 * np.pi / 4096
            sample = JointSample(10**9 + i * 10**7, ('joint',), np.array([position]))
            estimate = stream.push(sample)
            if i >= 50:
                squared.append((estimate.velocity[0] - 0.5 * np.pi * np.cos(angle)) ** 2)
        errors[name] = np.sqrt(np.mean(squared))
    assert errors[shipped] < best
    share = 1.1 if shipped == 'attention' else 1.0  # five samples of memory are few
    assert errors[shipped] < share * errors['kalman'] < share * errors['difference']


def test_a_name_that_nobody_knows():
    assert refusal('gur') == (
        'model: expected one of auto, gru, lstm, attention, motion, difference, lowpass, line, '
        'quadratic, cubic, savgol, kalman, one_euro, super_twisting, tracking, '
        "got 'gur'"
    )


def test_a_filter_has_no_weights():
    assert refusal('kalman', 'w.safetensors') == (
        "weights: the filter 'kalman' has none, got w.safetensors; leave weights empty or choose "
        'another model'
    )


@pytest.mark.parametrize('model', ['auto', 'lstm', 'motion'])
def test_weights_that_are_not_there(model, tmp_path):
    path = tmp_path / 'w.safetensors'
    expected = (
        f'weights: expected a .safetensors file, found none at {path}; correct the path, or leave '
        'weights empty for those of the package'
    )
    assert refusal(model, path) == refusal(model, str(path)) == expected


@pytest.mark.parametrize('model', ['gru', 'kalman'])
def test_a_memory_that_nobody_knows(model):
    text = "memory: expected one of persistent, window, got 'short'"
    assert refusal(model, memory='short') == text


def test_the_memories_are_those_of_the_networks():
    assert MEMORIES == network_estimator.MEMORIES


@pytest.mark.parametrize('asked', ['lstm', 'attention'])
def test_weights_of_another_kind(asked, tmp_path, make_model):
    path = tmp_path / 'w.safetensors'
    save_model(path, make_model('gru'))
    assert refusal(asked, path) == (
        f"model '{asked}' does not fit {path}, which holds 'gru': set model to 'gru' or 'auto', "
        'or give other weights'
    )
    assert load_estimator('gru', path).source == str(path)


def test_memory_goes_through(tmp_path, make_model):
    path = tmp_path / 'w.safetensors'
    save_model(path, make_model('lstm'))
    assert load_estimator('auto', str(path), 'window').memory == 'window'
