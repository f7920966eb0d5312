"""PyTorch layouts there and back, and what is refused."""

import numpy as np
import pytest
from torch_tensors import attention_state_dict
from torch_tensors import convert
from torch_tensors import KEY
from torch_tensors import recurrent_state_dict
from torch_tensors import WHOLE_PLAN
from torch_tensors import whole_state_dict

from seqmem_ros.core.errors import SeqmemError
from seqmem_ros.nn import Bidirectional
from seqmem_ros.nn import Dense
from seqmem_ros.nn import GRU
from seqmem_ros.nn import LayerNorm
from seqmem_ros.nn import LSTM
from seqmem_ros.nn import MultiHeadSelfAttention
from seqmem_ros.nn import RNN
from seqmem_ros.offline.convert.to_torch import state_dict_of
from seqmem_ros.offline.convert.torch_file import read_state_dict
from seqmem_ros.offline.convert.torch_file import write_state_dict


def test_there_and_back_is_exact():
    p = whole_state_dict()
    network, converted = convert(p, 3, 2, WHOLE_PLAN)
    back = state_dict_of(network.layers, converted.origins, like=p)
    assert list(back) == list(p)
    for name, value in p.items():
        np.testing.assert_array_equal(back[name], value, err_msg=name)
        assert back[name].dtype == np.float32


def test_back_without_a_state_dict_to_follow_sums_the_biases():
    p = whole_state_dict()
    network, converted = convert(p, 3, 2, WHOLE_PLAN)
    back = state_dict_of(network.layers, converted.origins)
    assert set(back) == set(p)
    for name, value in p.items():
        if 'bias_ih' not in name and 'bias_hh' not in name:
            np.testing.assert_array_equal(back[name], value, err_msg=name)
    both = p['lstm.bias_ih_l0'] + p['lstm.bias_hh_l0']
    np.testing.assert_array_equal(back['lstm.bias_ih_l0'], both)
    assert not back['lstm.bias_hh_l0'].any()
    # The GRU's candidate keeps its two biases: they do different things.
    np.testing.assert_array_equal(back['gru.bias_ih_l1'][8:], p['gru.bias_ih_l1'][8:])
    np.testing.assert_array_equal(back['gru.bias_hh_l1'][8:], p['gru.bias_hh_l1'][8:])
    # And what comes back means the same: there once more, and the network is the same.
    again, _ = convert(back, 3, 2, WHOLE_PLAN)
    for name, param in network.named_params().items():
        np.testing.assert_array_equal(again.named_params()[name].value, param.value)


def test_trained_biases_are_written_whole():
    p = recurrent_state_dict('GRU', prefix='gru.')
    network, converted = convert(p, 3, 4)
    layer = network.layers[0]
    layer.b_r.value = layer.b_r.value + 0.5
    layer.b.value, layer.b_U.value = p['gru.bias_ih_l0'][8:] + p['gru.bias_hh_l0'][8:], 0.0
    back = state_dict_of(network.layers, converted.origins, like=p)
    again, _ = convert(back, 3, 4)
    for name, param in network.named_params().items():
        np.testing.assert_array_equal(again.named_params()[name].value, param.value)
    # The update gate was not touched and keeps its split.
    np.testing.assert_array_equal(back['gru.bias_hh_l0'][4:8], p['gru.bias_hh_l0'][4:8])


def test_names_are_made_up_where_none_are_known():
    layers = [
        Dense(3, 4, KEY),
        GRU(4, 4, KEY, reset_after=True),
        GRU(4, 4, KEY, reset_after=True),
        GRU(4, 2, KEY, reset_after=True),
        LayerNorm(2),
        Dense(2, 1, KEY),
    ]
    assert list(state_dict_of(layers)) == [
        'dense.weight', 'dense.bias',
        'gru.weight_ih_l0', 'gru.weight_hh_l0', 'gru.bias_ih_l0', 'gru.bias_hh_l0',
        'gru.weight_ih_l1', 'gru.weight_hh_l1', 'gru.bias_ih_l1', 'gru.bias_hh_l1',
        'gru_1.weight_ih_l0', 'gru_1.weight_hh_l0', 'gru_1.bias_ih_l0', 'gru_1.bias_hh_l0',
        'layernorm.weight', 'layernorm.bias', 'dense_1.weight', 'dense_1.bias',
    ]  # fmt: skip


@pytest.mark.parametrize(
    ('layer', 'text'),
    [
        (LSTM(2, 2, KEY), "PyTorch's LSTM has no peepholes, this one has; train without them"),
        (GRU(2, 2, KEY), 'reset gate after the recurrent product, this one before; train with'),
        (RNN(2, 2, KEY, layer_norm=True), 'RNN has no layer normalisation inside, this one has'),
        (
            MultiHeadSelfAttention(4, 2, KEY, causal=True, window=3, positions='rotary'),
            'MultiheadAttention has no rotary positions, this one has',
        ),
        (
            Bidirectional(Dense(2, 2, KEY), Dense(2, 2, KEY)),
            'Bidirectional over Dense has no counterpart in PyTorch',
        ),
    ],
)
def test_what_pytorch_does_not_have_is_refused(layer, text):
    with pytest.raises(SeqmemError, match=text):
        state_dict_of([layer])


def test_state_dict_to_follow_must_fit():
    p = recurrent_state_dict('GRU', prefix='gru.')
    network, converted = convert(p, 3, 4)
    other = recurrent_state_dict('GRU', n_in=5, prefix='gru.')
    with pytest.raises(
        SeqmemError,
        match=r'expected gru.weight_ih_l0 \(12, 5\), found gru.weight_ih_l0 \(12, 3\)',
    ):
        state_dict_of(network.layers, converted.origins, like=other)


def test_safetensors_there_and_back(tmp_path):
    p = recurrent_state_dict('LSTM', prefix='lstm.')
    write_state_dict(tmp_path / 'a.safetensors', p)
    read = read_state_dict(tmp_path / 'a.safetensors')
    assert set(read) == set(p)
    for name, value in p.items():
        np.testing.assert_array_equal(read[name], value)


def test_missing_and_unknown_tensors_are_listed():
    p = recurrent_state_dict('LSTM', prefix='lstm.')
    del p['lstm.bias_hh_l0']
    with pytest.raises(
        SeqmemError,
        match=r"LSTM 'lstm': expected the tensors weight_ih_l0, weight_hh_l0 \(and all or none of "
        r'bias_ih_l0, bias_hh_l0\), found bias_ih_l0, weight_hh_l0, weight_ih_l0',
    ):
        convert(p, 3, 4)


def test_missing_layer_is_named():
    p = recurrent_state_dict('GRU', n_layers=3, prefix='gru.')
    p = {name: value for name, value in p.items() if '_l1' not in name}
    with pytest.raises(SeqmemError, match=r"GRU 'gru': expected layers l0, l1, .*found l0, l2"):
        convert(p, 3, 4)


def test_wrong_number_of_rows_is_named():
    p = recurrent_state_dict('LSTM', prefix='lstm.')
    p['lstm.weight_ih_l0'] = p['lstm.weight_ih_l0'][:-1]
    with pytest.raises(
        SeqmemError, match="LSTM 'lstm' weight_ih_l0: expected 4 gates of 4 rows each, got 15 rows"
    ):
        convert(p, 3, 4)


def test_projection_is_refused():
    p = recurrent_state_dict('LSTM', prefix='lstm.')
    p['lstm.weight_hh_l0'] = p['lstm.weight_hh_l0'][:, :2]
    p['lstm.weight_hr_l0'] = np.zeros((2, 4), np.float32)
    with pytest.raises(SeqmemError, match='found weight_hr_l0; proj_size has no counterpart'):
        convert(p, 3, 4)


def test_heads_must_be_told():
    with pytest.raises(SeqmemError, match="MultiheadAttention '': expected n_heads, which the"):
        convert(attention_state_dict(), 8, 8, '.')


def test_unreadable_files(tmp_path):
    path = tmp_path / 'broken.safetensors'
    path.write_bytes(b'not weights')
    with pytest.raises(SeqmemError, match=r'broken.safetensors: expected a .safetensors file'):
        read_state_dict(path)
