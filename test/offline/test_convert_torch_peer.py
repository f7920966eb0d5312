"""PyTorch layouts against PyTorch, where it is installed."""

import numpy as np
import pytest
from safetensors.numpy import save_file
from torch_tensors import as_arrays
from torch_tensors import convert
from torch_tensors import GATES

from seqmem_ros.core.errors import SeqmemError
from seqmem_ros.nn import TransformerBlock
from seqmem_ros.offline.convert.to_torch import state_dict_of
from seqmem_ros.offline.convert.torch_file import read_state_dict
from seqmem_ros.offline.convert.torch_file import write_state_dict


@pytest.fixture
def torch():
    return pytest.importorskip('torch', reason='PyTorch is not installed')


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
