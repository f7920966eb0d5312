"""Parameter counts and training memory against counts made by hand."""

import jax
import numpy as np
import pytest

from seqmem_ros.core.memory_counts import activation_bytes
from seqmem_ros.core.memory_counts import count_parameters
from seqmem_ros.core.memory_counts import kept_bytes
from seqmem_ros.core.memory_counts import leaf_layers
from seqmem_ros.nn import AddPositions
from seqmem_ros.nn import Bidirectional
from seqmem_ros.nn import causal_transformer
from seqmem_ros.nn import Dense
from seqmem_ros.nn import GRU
from seqmem_ros.nn import LSTM
from seqmem_ros.nn import MultiHeadSelfAttention
from seqmem_ros.nn import recurrent_net
from seqmem_ros.nn import Residual
from seqmem_ros.nn import RNN
from seqmem_ros.nn import Sequential

KEY = jax.random.key(0)


@pytest.mark.parametrize(
    ('layer', 'formula', 'count'),
    [
        (RNN(4, 6, KEY, bias=False), 'H (H + D)', 60),
        (RNN(4, 6, KEY), 'H (H + D) + H', 66),
        (GRU(4, 6, KEY), '3 (H (H + D) + H)', 198),
        (GRU(4, 6, KEY, bias=False), '3 H (H + D)', 180),
        (GRU(4, 6, KEY, reset_after=True), '3 (H (H + D) + H) + H', 204),
        (GRU(4, 6, KEY, layer_norm=True), '3 (H (H + D) + H) + 3 H', 216),
        (LSTM(4, 6, KEY), '4 (H (H + D) + H) + 3 H', 282),
        (LSTM(4, 6, KEY, peepholes=False), '4 (H (H + D) + H)', 264),
        (Dense(4, 6, KEY), 'N D + N', 30),
        (MultiHeadSelfAttention(8, 2, KEY), '4 D D', 256),
        (MultiHeadSelfAttention(8, 2, KEY, bias=True), '4 D D + 4 D', 288),
    ],
)
def test_count_of_one_layer(layer, formula, count):
    (entry,) = count_parameters(layer)
    assert (entry.formula, entry.count) == (formula, count)
    # The formula is worked out from the sizes, this from the arrays.
    assert sum(np.size(param.value) for param in layer.params()) == count


def test_count_of_a_large_lstm():
    # Shapes alone: the weights themselves would be 32 MB.
    layer = jax.eval_shape(lambda: LSTM(1000, 1000, jax.random.key(0), peepholes=False))
    assert count_parameters(layer)[0].count == 8_004_000


def test_paths_follow_the_data_through_layers_of_layers():
    network = Sequential(
        AddPositions(16, 4),
        Residual(GRU(4, 4, KEY)),
        Bidirectional(RNN(4, 3, KEY), RNN(4, 3, KEY)),
        Dense(6, 2, KEY),
    )
    assert [path for path, _ in leaf_layers(network)] == [
        'layers.0',
        'layers.1.layer',
        'layers.2.layer_fwd',
        'layers.2.layer_bwd',
        'layers.3',
    ]
    counts = count_parameters(network)
    assert [entry.count for entry in counts] == [108, 24, 24, 14]
    assert counts[0].sizes == {'H': 4, 'D': 4}


def test_counts_of_a_transformer_add_up():
    network = causal_transformer(3, 8, 2, 16, 2, 1, KEY, window=5)
    total = sum(np.size(param.value) for param in network.params())
    assert sum(entry.count for entry in count_parameters(network)) == total


def test_activation_memory_by_hand():
    network = recurrent_net(3, 10, 2, KEY, cell='lstm', n_layers=2)
    # B = 8, T = 100: 4 bytes, 7 numbers for each of 10 units in 2 layers, and 2 outputs.
    assert activation_bytes(network, 8, 100, 100) == 4 * 8 * 100 * (7 * 10 * 2 + 2)
    # A window of 20 holds a fifth of it, one beyond the sequence no more than the sequence.
    assert activation_bytes(network, 8, 100, 20) == 4 * 8 * 20 * (7 * 10 * 2 + 2)
    assert activation_bytes(network, 8, 100, 500) == activation_bytes(network, 8, 100, 100)
    assert activation_bytes(RNN(3, 10, KEY), 2, 50, 50) == 4 * 2 * 50 * 10
    assert activation_bytes(GRU(3, 10, KEY), 2, 50, 50) == 4 * 2 * 50 * 50


def test_activation_memory_of_attention_by_hand():
    layer = MultiHeadSelfAttention(8, 2, KEY, causal=True, window=5)
    assert activation_bytes(layer, 1, 100, 100) == 4 * 100 * (5 * 8 + 2 * 5)
    whole = MultiHeadSelfAttention(8, 2, KEY, causal=True)
    assert activation_bytes(whole, 1, 100, 100) == 4 * 100 * (5 * 8 + 2 * 100)


@pytest.mark.parametrize('cell', ['rnn', 'gru', 'lstm'])
def test_what_jax_keeps_is_what_is_needed_up_to_a_small_factor(cell):
    network = recurrent_net(3, 32, 1, KEY, cell=cell)
    needed = activation_bytes(network, 4, 60, 60)
    kept = kept_bytes(network, 3, 4, 60)
    assert needed <= kept <= 4 * needed
    # Proportional to the samples, up to the initial state.
    twice = kept_bytes(network, 3, 4, 120)
    assert twice == pytest.approx(2 * kept, rel=0.05)
