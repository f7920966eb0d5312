"""The report: what goes where, sizes of training by hand, what JSON can hold."""

from dataclasses import replace
import json

import jax
import numpy as np
import pytest

from seqmem_ros.core.errors import SeqmemError
from seqmem_ros.core.memory_json import report_json
from seqmem_ros.core.memory_report import report_memory
from seqmem_ros.core.memory_training import training_memory
from seqmem_ros.core.memory_training import TrainingSizes
from seqmem_ros.core.model import SequenceModel
from seqmem_ros.nn import Bidirectional
from seqmem_ros.nn import Dense
from seqmem_ros.nn import GRU
from seqmem_ros.nn import MultiHeadSelfAttention
from seqmem_ros.nn import RNN
from seqmem_ros.nn import Sequential

KEY = jax.random.key(0)


@pytest.fixture
def raw():
    """Raw inputs of one joint, 12 samples at 100 Hz."""
    position = 0.2 * np.sin(np.arange(12) * 0.4)
    raw = np.zeros((12, 11))
    for t in range(12):
        raw[t, 0] = position[t]
        for lag in range(1, 5):
            raw[t, 2 + lag] = position[t] - position[max(t - lag, 0)]
            raw[t, 6 + lag] = 0.01 * min(t, lag)
    return raw


def direct(make_model, *layers):
    return SequenceModel(replace(make_model('direct').spec), Sequential(*layers))


def test_a_cell_is_linearised_where_it_is_asked_for(make_model, raw):
    # h' = tanh(U h + b): at rest A = (1 - h^2) U with h = tanh(U h + b), at sample 0 h = 0.
    layer = RNN(2, 1, KEY)
    layer.W.value, layer.U.value, layer.b.value = 0.0, 0.5, 0.3
    model = direct(make_model, layer, Dense(1, 1, KEY))
    h = 0.0
    for _ in range(200):
        h = np.tanh(0.5 * h + 0.3)
    (rest,) = report_memory(model, raw, 100.0).layers
    assert rest.linear.spectral_radius == pytest.approx(0.5 * (1 - h**2), rel=1e-5)
    (start,) = report_memory(model, raw, 100.0, at=0).layers
    assert start.linear.spectral_radius == pytest.approx(0.5 * (1 - np.tanh(0.3) ** 2), rel=1e-5)
    (later,) = report_memory(model, raw, 100.0, at=1).layers
    second = np.tanh(0.5 * np.tanh(0.3) + 0.3)
    assert later.linear.spectral_radius == pytest.approx(0.5 * (1 - second**2), rel=1e-5)


def test_influence_and_gradient_of_a_cell_by_hand(make_model, raw):
    layer, dense = RNN(2, 1, KEY, bias=False), Dense(1, 1, KEY, bias=False)
    layer.W.value, layer.U.value, dense.W.value = 0.0, 0.5, 2.0
    # The state stays at zero, where tanh is its argument; the loss of y = 0 has no gradient.
    model = direct(make_model, layer, dense)
    (found,) = report_memory(model, raw, 100.0, n_last=3).layers
    np.testing.assert_allclose(found.influence, 0.5 ** np.arange(12, -1, -1), rtol=1e-5)
    np.testing.assert_array_equal(found.gradient, np.zeros(12))


def test_what_carries_no_state_has_no_gradient_but_all_the_rest(make_model, raw):
    both = Bidirectional(RNN(2, 3, KEY), RNN(2, 3, KEY))
    report = report_memory(direct(make_model, both, Dense(6, 1, KEY)), raw, 100.0)
    assert [layer.path for layer in report.layers] == ['layers.0.layer_fwd', 'layers.0.layer_bwd']
    growing = MultiHeadSelfAttention(4, 1, KEY, causal=True)
    model = direct(make_model, GRU(2, 4, KEY), growing, Dense(4, 1, KEY))
    mixed = report_memory(model, raw, 100.0)
    assert [layer.gradient for layer in (*report.layers, *mixed.layers)] == [None] * 3
    assert mixed.reach_samples == np.inf and len(mixed.traces) == 2


def test_filters_stand_beside_velocity_only(make_model, raw):
    assert len(report_memory(make_model('gru'), raw, 100.0).filters) == 4
    assert report_memory(make_model('label'), raw, 100.0).filters == []


def test_json_of_a_report(make_model, raw):
    report = report_memory(make_model('attention'), raw, 100.0)
    content = json.loads(json.dumps(report_json(report), allow_nan=False))
    assert content['attention_reach_samples'] == 9
    ages = content['traces'][0]['mean_attention_by_age']
    assert len(ages) == 5 and sum(ages) == pytest.approx(1.0, abs=1e-5)
    assert content['training']['sizes'] == {
        'batch': 32, 'n_samples': 512, 'hidden': None, 'window': None
    }  # fmt: skip
    lowpass = content['filters'][1]
    assert lowpass['reach_samples'] is None
    assert lowpass['one_pole']['pole'] == pytest.approx(0.4559, abs=5e-5)


def test_json_has_null_for_what_is_infinite(make_model, raw):
    growing = MultiHeadSelfAttention(2, 1, KEY, causal=True)
    report = report_memory(direct(make_model, growing, Dense(2, 1, KEY)), raw, 100.0)
    assert report.reach_samples == np.inf
    assert report_json(report)['attention_reach_samples'] is None


def test_training_memory_by_hand(make_model):
    # GRU of 23 inputs, 12 units, 10 outputs: 4 B K (5 H + outputs).
    model = make_model('gru')
    training = training_memory(model, TrainingSizes(batch=4, n_samples=100, window=20))
    assert training.activations == 4 * 4 * 20 * (5 * 12 + 10)
    assert training.weights == 4 * (3 * (12 * (12 + 23) + 12) + 10 * 12 + 10)
    wide = training_memory(model, TrainingSizes(batch=4, n_samples=100, hidden=50, window=500))
    assert wide.activations == 4 * 4 * 100 * (5 * 50 + 10)
    assert wide.weights == 4 * (3 * (50 * (50 + 23) + 50) + 10 * 50 + 10)
    assert wide.kept > wide.activations


def test_errors_say_what_was_expected(make_model, raw):
    model = make_model('gru')
    with pytest.raises(SeqmemError, match='at: expected a sample from 0 to 11, got 12'):
        report_memory(model, raw, 100.0, at=12)
    with pytest.raises(SeqmemError, match='last: expected 1 to 12 outputs, got 13'):
        report_memory(model, raw, 100.0, n_last=13)
    with pytest.raises(SeqmemError, match='batch: expected at least 1, got 0'):
        TrainingSizes(batch=0)
    with pytest.raises(SeqmemError, match='d_model=7 is not divisible by n_heads=2'):
        training_memory(make_model('attention'), TrainingSizes(hidden=7))
    stack = {'builder': 'layer_stack', 'n_in': 2, 'n_out': 1, 'layers': []}
    other = SequenceModel(replace(make_model('direct').spec, network=stack), model.network)
    with pytest.raises(SeqmemError, match="causal_transformer, got 'layer_stack', whose layers"):
        training_memory(other, TrainingSizes(hidden=8))
