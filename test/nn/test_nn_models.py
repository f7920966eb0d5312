"""Whole networks: what they are made of, and recurrent ones in NumPy."""

import inspect

import jax
import numpy as np
import pytest

from seqmem_ros import nn
from seqmem_ros.nn import causal_transformer
from seqmem_ros.nn import recurrent_net
from seqmem_ros.nn import Sequential
from seqmem_ros.nn import transformer_encoder


def kinds(network):
    return [type(layer).__name__ for layer in network.layers]


@pytest.mark.parametrize('cell, count', [('lstm', 17), ('gru', 11), ('rnn', 5)])
def test_parameter_counts(cell, count, key):
    network = recurrent_net(3, 4, 2, key, cell=cell)
    assert isinstance(network, Sequential)
    assert len(network.params()) == count
    assert network.forward(np.ones((5, 3))).shape == (5, 2)
    assert network.forward(np.ones((2, 5, 3))).shape == (2, 5, 2)


def test_the_default_cell_is_the_lstm(key):
    assert kinds(recurrent_net(3, 4, 2, key)) == ['LSTM', 'Dense']


def test_layers_and_dropout_in_their_order(key):
    network = recurrent_net(3, 4, 2, key, 'gru', n_layers=2, dropout=0.5, last_only=True)
    assert kinds(network) == ['GRU', 'Dropout', 'GRU', 'Dropout', 'LastStep', 'Dense']
    assert [network.layers[0].n_in, network.layers[2].n_in] == [3, 4]
    assert kinds(transformer_encoder(3, 4, 2, 6, 2, 1, key, 9, dropout=0.5)) == [
        'Dense', 'AddPositions', 'Dropout', 'TransformerBlock', 'TransformerBlock',
        'MeanOverTime', 'Dense',
    ]  # fmt: skip
    assert kinds(causal_transformer(3, 4, 2, 6, 2, 1, key, 5)) == [
        'Dense', 'TransformerBlock', 'TransformerBlock', 'Dense',
    ]  # fmt: skip


def test_cell_options_reach_every_layer(key):
    network = recurrent_net(3, 4, 2, key, 'gru', 2, reset_after=True, layer_norm=True)
    assert [layer.reset_after and layer.layer_norm for layer in network.layers[:2]] == [True] * 2
    network = recurrent_net(3, 4, 2, key, 'lstm', peepholes=False, forget_bias=1)
    assert len(network.params()) == 14
    np.testing.assert_array_equal(network.layers[0].b_f.value, np.ones(4))


def test_block_options_reach_every_block(key):
    network = causal_transformer(3, 4, 2, 6, 2, 1, key, 5, activation='gelu', bias=True)
    for block in network.layers[1:3]:
        assert block.dense_1.activation == 'gelu'
        assert block.attention.window == 5
        assert len(block.attention.params()) == 8


@pytest.mark.parametrize('last_only', [False, True])
def test_two_recurrent_layers_equal_numpy(last_only, x64, rng, randomise, key):
    network = recurrent_net(3, 4, 2, key, 'rnn', n_layers=2, dropout=0.5, last_only=last_only)
    run = jax.jit(lambda network, seq: network.forward(seq))
    for _ in range(50):  # 100 random configurations
        randomise(network, rng)
        first, second, head = (network.layers[i] for i in (0, 2, -1))
        batch = rng.standard_normal((2, 6, 3))
        found = run(network, batch) if last_only else run(network, batch[0])[None]
        for seq, y in zip(batch, found):
            outputs = []
            h_1, h_2 = np.zeros(4), np.zeros(4)
            for x in seq:
                h_1 = np.tanh(first.W.value @ x + first.U.value @ h_1 + first.b.value)
                h_2 = np.tanh(second.W.value @ h_1 + second.U.value @ h_2 + second.b.value)
                outputs.append(head.W.value @ h_2 + head.b.value)
            expected = outputs[-1] if last_only else outputs
            np.testing.assert_allclose(y, expected, rtol=0, atol=1e-10)


def test_dropout_acts_only_with_a_key_and_never_on_the_recurrent_way(rng, key):
    network = recurrent_net(3, 4, 2, key, 'gru', dropout=1 - 1e-7)
    seq = rng.standard_normal((5, 3)).astype(np.float32)
    bias = np.asarray(network.layers[-1].b.value)
    dropped = network.forward(seq, jax.random.key(0))
    np.testing.assert_array_equal(dropped, np.tile(bias, (5, 1)))
    assert np.abs(network.forward(seq)).max() > 0.01
    states = network.layers[0].forward(seq)  # what the dropped network's GRU went through, too
    np.testing.assert_array_equal(network.layers[0].forward(seq, jax.random.key(0)), states)


@pytest.mark.parametrize(
    'make, n_splits',
    [
        (lambda k: recurrent_net(3, 4, 2, k, 'gru', n_layers=3, dropout=0.1), 4),
        (lambda k: transformer_encoder(3, 4, 2, 6, 2, 1, k, 9, dropout=0.1), 4),
        (lambda k: causal_transformer(3, 4, 2, 6, 3, 1, k, 5), 5),
    ],
)
def test_the_key_is_split_once_for_each_layer_with_weights(make, n_splits, key):
    network = make(key)
    layers = [layer for layer in network.layers if layer.params()]
    assert len(layers) == n_splits
    for layer in layers:
        key, layer_key = jax.random.split(key)
        if type(layer).__name__ == 'Dense':
            expected = nn.xavier_normal(layer_key, (layer.n_out, layer.n_in))
            np.testing.assert_array_equal(layer.W.value, expected)


def test_unknown_cells_list_the_choices(key):
    with pytest.raises(ValueError, match="unknown cell 'mamba'; choose one of rnn, gru, lstm"):
        recurrent_net(3, 4, 2, key, cell='mamba')


def test_public_names_are_these():
    assert sorted(nn.__all__) == sorted(
        'AddPositions Bidirectional Dense Dropout GRU LSTM LastStep LayerNorm MeanOverTime Module '
        'MultiHeadSelfAttention Param RNN Residual Sequential TransformerBlock WindowCache '
        'causal_transformer forward_padded forward_sequences get_initializer masked_softmax '
        'orthogonal pad_sequences recurrent_net rotate scaled_dot_product_attention '
        'scaled_identity sinusoids transformer_encoder unpad unroll_padded xavier_normal '
        'zeros'.split()
    )
    from seqmem_ros.nn import attention
    from seqmem_ros.nn import models
    from seqmem_ros.nn import module
    from seqmem_ros.nn import recurrent

    assert (recurrent.RNN, recurrent.GRU, recurrent.LSTM) == (nn.RNN, nn.GRU, nn.LSTM)
    assert attention.MultiHeadSelfAttention is nn.MultiHeadSelfAttention
    assert attention.scaled_dot_product_attention is nn.scaled_dot_product_attention
    assert models.recurrent_net is nn.recurrent_net
    assert models.transformer_encoder is nn.transformer_encoder
    assert models.causal_transformer is nn.causal_transformer
    assert (module.Module, module.Param) == (nn.Module, nn.Param)


def members():
    for name in nn.__all__:
        thing = getattr(nn, name)
        yield name, thing
        if inspect.isclass(thing):
            for method, function in inspect.getmembers(thing, inspect.isfunction):
                if not method.startswith('_'):
                    yield f'{name}.{method}', function


@pytest.mark.parametrize('name, thing', list(members()), ids=lambda v: v if type(v) is str else '')
def test_every_public_name_explains_itself_and_its_arguments(name, thing):
    doc = inspect.getdoc(thing)
    assert doc, name
    if hasattr(thing, '_fields') or thing is nn.Module:
        return
    first = {'self', 'cls'}
    for argument in inspect.signature(thing).parameters:
        if argument not in first:
            assert f':param {argument}:' in doc, f'{name} does not explain {argument}'
