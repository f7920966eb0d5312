"""PyTorch layouts against their formulas in NumPy."""

import numpy as np
import pytest
from torch_tensors import attention_state_dict
from torch_tensors import block_state_dict
from torch_tensors import convert
from torch_tensors import GATES
from torch_tensors import linear_state_dict
from torch_tensors import normalised
from torch_tensors import recurrent_state_dict
from torch_tensors import torch_attention
from torch_tensors import torch_forward

from seqmem_ros.nn import Bidirectional
from seqmem_ros.offline.convert.torch_file import modules_of


@pytest.mark.parametrize('kind', GATES)
@pytest.mark.parametrize('bias', [True, False])
@pytest.mark.parametrize('reverse', [False, True])
def test_recurrent_modules_against_numpy(kind, bias, reverse):
    p = recurrent_state_dict(kind, n_layers=2, bias=bias, reverse=reverse)
    xs = np.random.default_rng(1).normal(size=(6, 3))
    network, _ = convert(p, 3, 8 if reverse else 4)
    assert isinstance(network.layers[0], Bidirectional) == reverse
    expected = torch_forward(kind, p, xs, 4, 2, reverse)
    np.testing.assert_allclose(network.forward(xs), expected, atol=2e-6)


def test_gate_order_of_the_lstm_by_hand():
    p = {name: np.zeros_like(v) for name, v in recurrent_state_dict('LSTM', 1, 1).items()}
    # i, f, g, o: only g sees the input, all gates are half open.
    p['weight_ih_l0'][2] = 1.0
    network, _ = convert(p, 1, 1)
    c = 0.5 * np.tanh(0.8)
    assert network.forward(np.array([[0.8]])).item() == pytest.approx(0.5 * np.tanh(c), rel=1e-6)


def test_relu_of_an_rnn_comes_from_the_user():
    p = recurrent_state_dict('RNN', prefix='memory.')
    network, _ = convert(p, 3, 4, 'memory:activation=relu')
    xs = np.random.default_rng(1).normal(size=(5, 3))
    h = np.zeros(4)
    for x in xs:
        a = p['memory.weight_ih_l0'] @ x + p['memory.bias_ih_l0']
        h = np.maximum(a + p['memory.weight_hh_l0'] @ h + p['memory.bias_hh_l0'], 0)
    np.testing.assert_allclose(network.forward(xs)[-1], h, atol=1e-5)


def test_network_with_functions_between_its_modules():
    p = (
        linear_state_dict('embed', 5, 3)
        | recurrent_state_dict('GRU', 5, 4, prefix='memory.')
        | linear_state_dict('head', 2, 4, seed=3, bias=False)
        | linear_state_dict('auxiliary', 9, 4)
    )
    network, converted = convert(p, 3, 2, 'embed,relu,memory,tanh,head,-auxiliary')
    xs = np.random.default_rng(1).normal(size=(6, 3))
    embedded = np.maximum(xs @ p['embed.weight'].T + p['embed.bias'], 0)
    own = {name.removeprefix('memory.'): v for name, v in p.items() if 'memory' in name}
    expected = np.tanh(torch_forward('GRU', own, embedded, 4)) @ p['head.weight'].T
    np.testing.assert_allclose(network.forward(xs), expected, atol=1e-5)
    assert converted.origins == ['embed', 'memory', None, 'head']


def test_linear_module_named_like_a_part_of_attention():
    p = recurrent_state_dict('GRU', prefix='memory.') | linear_state_dict('out_proj', 2, 4)
    modules = modules_of(p)
    assert {name: m.kind for name, m in modules.items()} == {'memory': 'GRU', 'out_proj': 'Linear'}
    xs = np.random.default_rng(1).normal(size=(6, 3))
    own = {name.removeprefix('memory.'): v for name, v in p.items()}
    expected = torch_forward('GRU', own, xs, 4) @ p['out_proj.weight'].T + p['out_proj.bias']
    np.testing.assert_allclose(convert(p, 3, 2)[0].forward(xs), expected, atol=5e-6)


@pytest.mark.parametrize(
    ('plan', 'reach'),
    [('.:n_heads=2', None), ('.:n_heads=2:causal', 99), ('.:n_heads=4:window=3', 3)],
)
def test_attention_against_numpy(plan, reach):
    p = attention_state_dict()
    xs = np.random.default_rng(1).normal(size=(7, 8))
    network, _ = convert(p, 8, 8, plan)
    ages = np.arange(7)[:, None] - np.arange(7)
    allowed = np.full((7, 7), True) if reach is None else (ages >= 0) & (ages < reach)
    expected = torch_attention(p, xs, 4 if 'n_heads=4' in plan else 2, allowed)
    np.testing.assert_allclose(network.forward(xs), expected, atol=1e-5)


def test_encoder_layer_against_numpy():
    p = block_state_dict('')
    xs = np.random.default_rng(1).normal(size=(7, 8))
    network, _ = convert(p, 8, 8, '.:n_heads=2:window=5')
    own = {n.removeprefix('self_attn.'): v for n, v in p.items()}
    ages = np.arange(7)[:, None] - np.arange(7)
    x = normalised(xs + torch_attention(own, xs, 2, (ages >= 0) & (ages < 5)), p, 'norm1')
    y = np.maximum(x @ p['linear1.weight'].T + p['linear1.bias'], 0)
    expected = normalised(x + y @ p['linear2.weight'].T + p['linear2.bias'], p, 'norm2')
    np.testing.assert_allclose(network.forward(xs), expected, atol=2e-5)
