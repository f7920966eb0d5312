"""
PyTorch layouts: against their formulas in NumPy, against PyTorch where it is installed, and back.

The NumPy cells below compute with PyTorch's own tensors as its documentation says.
"""

import jax
import numpy as np
import pytest
from safetensors.numpy import save_file

from seqmem_ros.core.errors import SeqmemError
from seqmem_ros.nn import Bidirectional
from seqmem_ros.nn import Dense
from seqmem_ros.nn import GRU
from seqmem_ros.nn import LayerNorm
from seqmem_ros.nn import LSTM
from seqmem_ros.nn import MultiHeadSelfAttention
from seqmem_ros.nn import RNN
from seqmem_ros.nn import TransformerBlock
from seqmem_ros.offline.convert import torch_layout
from seqmem_ros.offline.convert.pieces import network_of
from seqmem_ros.offline.convert.plan import carry_out
from seqmem_ros.offline.convert.plan import default_plan
from seqmem_ros.offline.convert.plan import Format
from seqmem_ros.offline.convert.plan import parse_plan
from seqmem_ros.offline.convert.to_torch import state_dict_of
from seqmem_ros.offline.convert.torch_file import modules_of
from seqmem_ros.offline.convert.torch_file import read_state_dict
from seqmem_ros.offline.convert.torch_file import write_state_dict

TORCH = Format(torch_layout.CONVERTERS, torch_layout.OPTIONS)
GATES = {'RNN': 1, 'GRU': 3, 'LSTM': 4}
KEY = jax.random.key(0)


def sigmoid(a):
    return 1 / (1 + np.exp(-a))


def convert(state_dict, n_in, n_out, plan=None):
    modules = modules_of(state_dict)
    steps, left_out = parse_plan(plan) if plan else (default_plan(modules), [])
    converted = carry_out(steps, left_out, modules, TORCH)
    return network_of(converted.pieces, n_in, n_out)[1], converted


def recurrent_state_dict(
    kind, n_in=3, n_hidden=4, n_layers=1, bias=True, reverse=False, prefix='', seed=0
):
    rng = np.random.default_rng(seed)
    out = {}
    for layer in range(n_layers):
        width = n_hidden * (1 + reverse) if layer else n_in
        for suffix in ('', '_reverse')[: 1 + reverse]:
            shapes = {'weight_ih': width, 'weight_hh': n_hidden}
            for name, columns in shapes.items():
                shape = (GATES[kind] * n_hidden, columns)
                out[f'{prefix}{name}_l{layer}{suffix}'] = rng.normal(size=shape) * 0.6
            for name in ('bias_ih', 'bias_hh')[: 2 * bias]:
                shape = GATES[kind] * n_hidden
                out[f'{prefix}{name}_l{layer}{suffix}'] = rng.normal(size=shape)
    return {name: value.astype(np.float32) for name, value in out.items()}


def torch_cell(kind, p, suffix, x, h, c):
    b_ih, b_hh = p.get(f'bias_ih_{suffix}', 0), p.get(f'bias_hh_{suffix}', 0)
    a = p[f'weight_ih_{suffix}'] @ x + b_ih
    u = p[f'weight_hh_{suffix}'] @ h + b_hh
    n = len(h)
    if kind == 'RNN':
        return np.tanh(a + u), c
    if kind == 'GRU':
        r, z = sigmoid(a + u)[:n], sigmoid(a + u)[n : 2 * n]
        candidate = np.tanh(a[2 * n :] + r * u[2 * n :])
        return (1 - z) * candidate + z * h, c
    i, f, o = (sigmoid(a + u)[k * n : (k + 1) * n] for k in (0, 1, 3))
    c = f * c + i * np.tanh(a + u)[2 * n : 3 * n]
    return o * np.tanh(c), c


def torch_forward(kind, p, xs, n_hidden, n_layers=1, reverse=False):
    p = {name: value.astype(np.float64) for name, value in p.items()}
    for layer in range(n_layers):
        directions = []
        for suffix in (f'l{layer}', f'l{layer}_reverse')[: 1 + reverse]:
            h = c = np.zeros(n_hidden)
            outputs = []
            for x in xs[::-1] if 'reverse' in suffix else xs:
                h, c = torch_cell(kind, p, suffix, x, h, c)
                outputs.append(h)
            directions.append(outputs[::-1] if 'reverse' in suffix else outputs)
        xs = np.concatenate(directions, axis=1)
    return xs


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


def linear_state_dict(name, n_out, n_in, seed=2, bias=True):
    rng = np.random.default_rng(seed)
    out = {f'{name}.weight': rng.normal(size=(n_out, n_in)).astype(np.float32)}
    if bias:
        out[f'{name}.bias'] = rng.normal(size=n_out).astype(np.float32)
    return out


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


def attention_state_dict(d=8, prefix='', seed=4):
    rng = np.random.default_rng(seed)
    shapes = {
        'in_proj_weight': (3 * d, d),
        'in_proj_bias': (3 * d,),
        'out_proj.weight': (d, d),
        'out_proj.bias': (d,),
    }
    return {
        prefix + name: rng.normal(size=shape).astype(np.float32) * 0.5
        for name, shape in shapes.items()
    }


def torch_attention(p, xs, n_heads, allowed):
    q, k, v = np.split(xs @ p['in_proj_weight'].T + p['in_proj_bias'], 3, axis=1)
    d = xs.shape[1] // n_heads
    heads = []
    for h in range(n_heads):
        part = slice(h * d, (h + 1) * d)
        scores = np.where(allowed, q[:, part] @ k[:, part].T / np.sqrt(d), -np.inf)
        e = np.exp(scores - scores.max(1, keepdims=True))
        heads.append(e / e.sum(1, keepdims=True) @ v[:, part])
    return np.concatenate(heads, 1) @ p['out_proj.weight'].T + p['out_proj.bias']


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


def block_state_dict(prefix='encoder.layers.0.'):
    p = attention_state_dict(prefix=f'{prefix}self_attn.')
    p |= linear_state_dict(f'{prefix}linear1', 16, 8, 5) | linear_state_dict(
        f'{prefix}linear2', 8, 16, 6
    )
    rng = np.random.default_rng(7)
    for name in ('norm1', 'norm2'):
        p[f'{prefix}{name}.weight'] = rng.normal(size=8).astype(np.float32)
        p[f'{prefix}{name}.bias'] = rng.normal(size=8).astype(np.float32)
    return p


def normalised(x, p, name):
    centred = x - x.mean(1, keepdims=True)
    scaled = centred / np.sqrt((centred**2).mean(1, keepdims=True) + 1e-5)
    return scaled * p[f'{name}.weight'] + p[f'{name}.bias']


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


# --- the way back -------------------------------------------------------------------------------


def whole_state_dict():
    return (
        linear_state_dict('embed', 8, 3)
        | recurrent_state_dict('GRU', 8, 4, 2, prefix='gru.')
        | recurrent_state_dict('LSTM', 4, 4, 1, reverse=True, prefix='lstm.')
        | block_state_dict()
        | recurrent_state_dict('RNN', 8, 5, 1, bias=False, prefix='rnn.')
        | {'norm.weight': np.full(5, 2, np.float32), 'norm.bias': np.ones(5, np.float32)}
        | linear_state_dict('head', 2, 5)
    )


WHOLE_PLAN = 'embed,gru,lstm,encoder.layers.0:n_heads=2:window=5,rnn,norm,head'


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


# --- files and errors ---------------------------------------------------------------------------


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


# --- PyTorch itself -----------------------------------------------------------------------------


@pytest.fixture
def torch():
    return pytest.importorskip('torch', reason='PyTorch is not installed')


def as_arrays(module):
    return {name: value.numpy() for name, value in module.state_dict().items()}


@pytest.mark.parametrize('kind', GATES)
@pytest.mark.parametrize('reverse', [False, True])
def test_recurrent_modules_against_pytorch(torch, kind, reverse):
    torch.manual_seed(0)
    module = getattr(torch.nn, kind)(3, 8, num_layers=2, bidirectional=reverse, batch_first=True)
    xs = torch.randn(2, 9, 3)
    expected = module(xs)[0].detach().numpy()
    network, _ = convert(as_arrays(module), 3, 16 if reverse else 8)
    np.testing.assert_allclose(network.forward(xs.numpy()), expected, atol=2e-6)


def test_attention_against_pytorch(torch):
    torch.manual_seed(0)
    module = torch.nn.MultiheadAttention(8, 2, batch_first=True)
    torch.nn.init.normal_(module.in_proj_bias)
    xs = torch.randn(2, 6, 8)
    ages = torch.arange(6)[:, None] - torch.arange(6)
    forbidden = (ages < 0) | (ages >= 4)
    expected = module(xs, xs, xs, attn_mask=forbidden)[0].detach().numpy()
    network, _ = convert(as_arrays(module), 8, 8, '.:n_heads=2:window=4')
    np.testing.assert_allclose(network.forward(xs.numpy()), expected, atol=2e-6)


@pytest.mark.parametrize('activation', ['relu', 'gelu'])
def test_encoder_layer_against_pytorch(torch, activation):
    torch.manual_seed(0)
    module = torch.nn.TransformerEncoderLayer(
        8, 2, 16, dropout=0.1, activation=activation, batch_first=True
    ).eval()
    xs = torch.randn(2, 6, 8)
    mask = torch.nn.Transformer.generate_square_subsequent_mask(6)
    expected = module(xs, src_mask=mask, is_causal=True).detach().numpy()
    plan = f'.:n_heads=2:causal:activation={activation}'
    network, _ = convert(as_arrays(module), 8, 8, plan)
    assert isinstance(network.layers[0], TransformerBlock)
    np.testing.assert_allclose(network.forward(xs.numpy()), expected, atol=5e-6)


@pytest.mark.parametrize(
    ('make', 'widths', 'plan'),
    [
        (lambda of: of.RNN(3, 8, num_layers=2, bidirectional=True), (3, 16), '.'),
        (lambda of: of.GRU(3, 8, num_layers=2, bidirectional=True), (3, 16), '.'),
        (lambda of: of.LSTM(3, 8, num_layers=2, bidirectional=True), (3, 16), '.'),
        (lambda of: of.LSTM(3, 8, bias=False), (3, 8), '.'),
        (lambda of: of.MultiheadAttention(8, 2), (8, 8), '.:n_heads=2:causal'),
        (lambda of: of.TransformerEncoderLayer(8, 2, 16), (8, 8), '.:n_heads=2:causal'),
        (lambda of: of.Sequential(of.GRU(3, 4), of.Linear(4, 2)), (3, 2), '0,1'),
    ],
)
def test_from_pytorch_and_back_is_exact(torch, tmp_path, make, widths, plan):
    torch.manual_seed(0)
    module, again = make(torch.nn), make(torch.nn)
    for param in module.parameters():
        torch.nn.init.normal_(param)
    network, converted = convert(as_arrays(module), *widths, plan)
    back = state_dict_of(network.layers, converted.origins, like=as_arrays(module))
    write_state_dict(tmp_path / 'back.pt', back)
    again.load_state_dict(torch.load(tmp_path / 'back.pt', weights_only=True))
    for name, value in module.state_dict().items():
        assert torch.equal(again.state_dict()[name], value), name


def test_pytorch_computes_the_same_with_biases_that_were_added(torch):
    torch.manual_seed(0)
    module, again = (torch.nn.LSTM(3, 8, num_layers=2) for _ in range(2))
    network, converted = convert(as_arrays(module), 3, 8)
    back = state_dict_of(network.layers, converted.origins)
    again.load_state_dict({name: torch.tensor(value) for name, value in back.items()})
    xs = torch.randn(7, 3)
    torch.testing.assert_close(again(xs)[0], module(xs)[0], atol=1e-6, rtol=0)


@pytest.mark.parametrize('key', [None, 'state_dict', 'model_state_dict'])
def test_checkpoints_of_pytorch(torch, tmp_path, key):
    module = torch.nn.GRU(3, 4)
    content = module.state_dict() if key is None else {'epoch': 3, key: module.state_dict()}
    torch.save(content, tmp_path / 'a.pt')
    read = read_state_dict(tmp_path / 'a.pt')
    for name, value in as_arrays(module).items():
        np.testing.assert_array_equal(read[name], value)


def test_pickled_models_are_never_loaded(torch, tmp_path):
    torch.save(torch.nn.GRU(3, 4), tmp_path / 'model.pt')
    with pytest.raises(
        SeqmemError, match=r'save torch.save\(model.state_dict\(\), ...\), not the'
    ):
        read_state_dict(tmp_path / 'model.pt')
    torch.save({'epoch': 3}, tmp_path / 'empty.pt')
    with pytest.raises(SeqmemError, match=r'expected tensors by name, .*; found epoch'):
        read_state_dict(tmp_path / 'empty.pt')


def test_pt_without_pytorch_says_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__('sys').modules, 'torch', None)
    save_file({'weight': np.zeros((2, 2), np.float32)}, tmp_path / 'a.pt')
    with pytest.raises(SeqmemError, match=r'.pt files need PyTorch, which is not installed here'):
        read_state_dict(tmp_path / 'a.pt')
