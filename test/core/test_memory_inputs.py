"""What networks are fed with, against a filter and features written out in NumPy."""

from dataclasses import replace

import jax
import numpy as np
import pytest

from seqmem_ros.core.memory_inputs import network_inputs
from seqmem_ros.core.memory_inputs import recurrent_layers
from seqmem_ros.core.model import SequenceModel
from seqmem_ros.nn import Bidirectional
from seqmem_ros.nn import Dense
from seqmem_ros.nn import GRU
from seqmem_ros.nn import Residual
from seqmem_ros.nn import RNN
from seqmem_ros.nn import Sequential

KEY = jax.random.key(0)
STEP_S = 0.01


def raw_of(position, step_s=STEP_S):
    """Raw inputs of one joint at a fixed rate; velocity 2, effort 3."""
    raw = np.zeros((len(position), 11))
    for t, p in enumerate(position):
        raw[t, :3] = p, 2.0, 3.0
        for lag in range(1, 5):
            raw[t, 2 + lag] = p - position[max(t - lag, 0)]
            raw[t, 6 + lag] = step_s * (t - max(t - lag, 0))
    return raw


def size(value, floor):
    return (np.log(np.abs(value) + floor) + 9) / 4


def test_an_observer_s_network_sees_the_innovations_of_its_filter(make_model):
    model = make_model('gru')
    for param in model.network.params():
        param.value = 0.0
    position = 0.3 * np.sin(np.arange(40) * 0.13)
    raw = raw_of(position)
    got = network_inputs(model, raw)
    assert got.shape == (40, 23)
    # A network that says nothing leaves the filter with the gains of its zero.
    b = 1 / (1 + np.exp(1.0))
    k_1, k_2 = 1 - (1 - b) ** 3, 1.5 * b**2 * (2 - b)
    k_3 = min(b**3, 0.9 * k_1 * k_2)
    decay, pull = 1 / (1 + np.exp(-3.0)), 1 / (1 + np.exp(3.0))
    p = v = a = 0.0
    p = position[0]
    for t in range(1, 40):
        lags_s = np.maximum(raw[t, 7:], raw[t, 10] / 8 + 1e-6)
        mean_velocity = np.mean(raw[t, 3:7] / lags_s)
        innovation = position[t] - p - v * STEP_S - a * STEP_S**2 / 2
        predicted = v + a * STEP_S
        seen = [innovation, raw[t, 3], raw[t, 4], raw[t, 6], predicted * STEP_S, a * STEP_S**2]
        floor = 1e-6 + 1e-4 * (abs(raw[t, 3]) + abs(predicted * STEP_S))
        expected = [size(value, floor) for value in seen]
        np.testing.assert_allclose(got[t, :6], expected, atol=2e-3, err_msg=f'sample {t}')
        p = position[t] - (1 - k_1) * innovation
        v = (1 - pull) * (predicted + k_2 * innovation / STEP_S) + pull * mean_velocity
        a = (1 - pull) * (decay * a + k_3 * innovation / STEP_S**2)


def test_a_network_steers_what_it_sees_next(make_model):
    position = 0.3 * np.sin(np.arange(30) * 0.13)
    first, second = (network_inputs(make_model('gru', seed), raw_of(position)) for seed in (0, 1))
    # Differences are those of the positions, innovations those of the filter.
    np.testing.assert_allclose(first[:, 1:4], second[:, 1:4], atol=2e-3)
    assert np.abs(first[5:, 0] - second[5:, 0]).max() > 0.1


def test_a_direct_network_sees_scaled_features(make_model):
    position = np.linspace(0.0, 1.0, 6)
    got = network_inputs(make_model('direct'), raw_of(position))
    difference = np.array([0.0, 0.2, 0.2, 0.2, 0.2, 0.2])
    expected = np.stack([(position - 0.1) / 2.0, difference / 0.01], axis=1)
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-6)


def test_a_network_over_named_joints_sees_them_side_by_side(make_model):
    positions = np.arange(15.0).reshape(5, 3)
    raw = np.stack([raw_of(positions[:, j]) for j in range(3)], axis=1)
    got = network_inputs(make_model('named'), raw)
    expected = np.stack([positions, np.full((5, 3), 3.0)], axis=2).reshape(5, 6)
    np.testing.assert_allclose(got, expected)


def test_a_network_that_cannot_stream_is_fed_alike(make_model):
    direct = make_model('direct')
    layer = Bidirectional(RNN(2, 3, KEY), RNN(2, 3, KEY))
    model = SequenceModel(replace(direct.spec), Sequential(layer, Dense(6, 1, KEY)))
    raw = raw_of(np.linspace(0.0, 1.0, 6))
    np.testing.assert_array_equal(network_inputs(model, raw), network_inputs(direct, raw))


def test_each_recurrent_layer_comes_with_what_it_reads():
    dense, gru = Dense(2, 4, KEY), GRU(4, 4, KEY)
    both = Bidirectional(RNN(4, 3, KEY), RNN(4, 3, KEY))
    network = Sequential(dense, Residual(gru), both, Dense(6, 1, KEY))
    xs = np.random.default_rng(0).normal(size=(5, 2)).astype(np.float32)
    found = {path: (layer, seq) for path, layer, seq in recurrent_layers(network, xs)}
    assert list(found) == ['layers.1.layer', 'layers.2.layer_fwd', 'layers.2.layer_bwd']
    below = xs @ np.asarray(dense.W.value).T + np.asarray(dense.b.value)
    np.testing.assert_allclose(found['layers.1.layer'][1], below, rtol=1e-5, atol=1e-6)
    added = below + np.asarray(gru.forward(below))
    np.testing.assert_allclose(found['layers.2.layer_fwd'][1], added, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(found['layers.2.layer_bwd'][1], added[::-1], rtol=1e-5, atol=1e-6)
    assert found['layers.1.layer'][0] is gru


def test_a_layer_alone_has_no_path():
    assert [path for path, _, _ in recurrent_layers(GRU(2, 3, KEY), np.zeros((4, 2)))] == ['']
    with pytest.raises(StopIteration):
        next(recurrent_layers(Dense(2, 1, KEY), np.zeros((4, 2))))
