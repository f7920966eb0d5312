"""Networks from descriptions: the same as those built by hand, and refusals that say why."""

import jax
import numpy as np
import pytest

from seqmem_ros.core.errors import SeqmemError
from seqmem_ros.core.layer_stack import kind_of_stack
from seqmem_ros.core.layer_stack import layer_stack
from seqmem_ros.core.model import build_network
from seqmem_ros.core.model import SequenceModel
from seqmem_ros.core.spec import ModelSpec
from seqmem_ros.core.weights import load_model
from seqmem_ros.core.weights import save_model
from seqmem_ros.nn import Bidirectional
from seqmem_ros.nn import Dense
from seqmem_ros.nn import GRU
from seqmem_ros.nn import Residual
from seqmem_ros.nn import RNN
from seqmem_ros.nn import Sequential

KEY = jax.random.key(0)
DENSE = {'type': 'Dense', 'n_in': 1, 'n_out': 4, 'activation': 'relu'}
GRU_4 = {'type': 'GRU', 'n_in': 4, 'n_hidden': 4, 'reset_after': True}
RNN_4 = {'type': 'RNN', 'n_in': 4, 'n_hidden': 2, 'activation': 'relu'}
LAYERS = (
    DENSE,
    {'type': 'Residual', 'layer': GRU_4},
    {'type': 'Bidirectional', 'layer_fwd': RNN_4, 'layer_bwd': RNN_4},
    {'type': 'Dense', 'n_in': 4, 'n_out': 1},
)


def test_stack_equals_the_network_built_by_hand():
    network = layer_stack(1, 1, LAYERS, KEY)
    by_hand = Sequential(
        Dense(1, 4, KEY, activation='relu'),
        Residual(GRU(4, 4, KEY, reset_after=True)),
        Bidirectional(RNN(4, 2, KEY, activation='relu'), RNN(4, 2, KEY, activation='relu')),
        Dense(4, 1, KEY),
    )
    by_hand.load_params({name: p.value for name, p in network.named_params().items()})
    seq = np.random.default_rng(0).normal(size=(6, 1))
    np.testing.assert_array_equal(network.forward(seq), by_hand.forward(seq))


def test_layers_start_from_different_weights():
    forwards, backwards = vars(layer_stack(4, 4, LAYERS[2:3], KEY).layers[0]).values()
    assert not np.allclose(forwards.W.value, backwards.W.value)


def test_stack_goes_through_a_file(tmp_path):
    layers = (*LAYERS[:2], LAYERS[3])
    network = {'builder': 'layer_stack', 'n_in': 1, 'n_out': 1, 'layers': layers}
    spec = ModelSpec('velocity', network, readout='direct', features=('difference',))
    model = SequenceModel(spec, build_network(network, KEY))
    save_model(tmp_path / 'stack.safetensors', model)
    loaded = load_model(tmp_path / 'stack.safetensors')
    assert loaded.kind == 'gru'
    seq = np.random.default_rng(0).normal(size=(6, 1))
    np.testing.assert_array_equal(loaded.network.forward(seq), model.network.forward(seq))


@pytest.mark.parametrize(
    ('layers', 'kind'),
    [
        (LAYERS, 'gru'),
        ((DENSE, {'type': 'TransformerBlock'}), 'attention'),
        ((LAYERS[2],), 'rnn'),
        ((DENSE,), 'dense'),
    ],
)
def test_kind_is_that_of_the_first_memory(layers, kind):
    assert kind_of_stack(layers) == kind


@pytest.mark.parametrize(
    ('layers', 'text'),
    [
        ((), 'expected 1 to 64 layers, got 0'),
        (({'type': 'Conv1d'},), "expected a description with 'type' out of RNN, GRU, LSTM, Dense"),
        ((DENSE | {'n_out': 10**9},), 'expected n_out from 0 to 16384, got 1000000000'),
        ((DENSE, DENSE), 'the layers do not fit one another: Dense expected input of width 1'),
        ((DENSE,), 'expected the last layer to give n_out=1, got 4'),
        ((DENSE | {'colour': 'red'},), 'colour'),
        ((DENSE | {'activation': 'step'},), "unknown activation 'step'"),
        (('Dense',), "expected a description with 'type' out of"),
    ],
)
def test_bad_descriptions_are_refused(layers, text):
    network = {'builder': 'layer_stack', 'n_in': 1, 'n_out': 1, 'layers': layers}
    with pytest.raises(SeqmemError, match=text):
        build_network(network, KEY)
