"""Layers that PyTorch has not: their formulas in its operations, differentiated by it."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from seqmem_ros.nn import causal_transformer
from seqmem_ros.nn import GRU
from seqmem_ros.nn import LastStep
from seqmem_ros.nn import LSTM
from seqmem_ros.nn import MeanOverTime
from seqmem_ros.nn import MultiHeadSelfAttention
from seqmem_ros.nn import Residual
from seqmem_ros.nn import RNN
from seqmem_ros.nn import Sequential

torch = pytest.importorskip('torch', reason='PyTorch, the reference here, is not installed')
torch.set_num_threads(1)  # on arrays this small, threads only wait for one another
F = torch.nn.functional

CELLS = [  # class, options, number of draws
    (RNN, {'layer_norm': True}, 50),
    (RNN, {'layer_norm': True, 'activation': 'relu', 'bias': False}, 50),
    (GRU, {}, 34),
    (GRU, {'layer_norm': True}, 33),
    (GRU, {'layer_norm': True, 'reset_after': True}, 33),
    (LSTM, {}, 34),
    (LSTM, {'layer_norm': True}, 33),
    (LSTM, {'layer_norm': True, 'peepholes': False}, 33),
]
ATTENTIONS = [
    {'positions': 'rotary', 'bias': True},
    {'causal': True, 'window': 3},
    {'causal': True, 'window': 3, 'positions': 'rotary', 'bias': True},
]

# Here compiling takes longer than running.
FAST = {'xla_backend_optimization_level': 0, 'xla_llvm_disable_expensive_passes': True}


@functools.partial(jax.jit, compiler_options=FAST)
def value_and_gradients(layer, seq, weights):
    def loss(layer, seq):
        y = layer.forward(seq)
        return (y * weights).sum(), y

    (_, y), gradients = jax.value_and_grad(loss, argnums=(0, 1), has_aux=True)(layer, seq)
    return y, gradients


def assert_equal(layer, in_torch, seq, rng):
    """Compare outputs, and gradients for all parameters and the input, under random weights."""
    p = {
        name: torch.tensor(np.array(param.value), requires_grad=True)
        for name, param in layer.named_params().items()
    }
    torch_seq = torch.tensor(seq, requires_grad=True)
    expected = in_torch(p, torch_seq)
    weights = rng.standard_normal(expected.shape)
    (expected * torch.tensor(weights)).sum().backward()
    y, (gradients, seq_gradient) = value_and_gradients(
        layer, jnp.asarray(seq), jnp.asarray(weights)
    )
    np.testing.assert_allclose(y, expected.detach(), rtol=0, atol=1e-10)
    pairs = {name: (param.value, p[name].grad) for name, param in gradients.named_params().items()}
    for name, (found, gradient) in {**pairs, 'input': (seq_gradient, torch_seq.grad)}.items():
        # The softmax does not feel a key's bias: the gradient there is rounding.
        np.testing.assert_allclose(found, gradient, rtol=1e-5, atol=1e-10, err_msg=name)


def gate(p, name, a, f):
    suffix = f'_{name}' if name else ''
    if 'g' + suffix in p:
        variance, mean = torch.var_mean(a, -1, correction=0, keepdim=True)
        a = p['g' + suffix] * (a - mean) / torch.sqrt(variance + 1e-5)
    return f(a + p.get('b' + suffix, 0.0))


def rnn_sample(p, x, h, activation='tanh'):
    h = gate(p, '', x @ p['W'].T + h @ p['U'].T, getattr(torch, activation))
    return h, h


def gru_sample(p, x, h, reset_after=False):
    r = gate(p, 'r', x @ p['W_r'].T + h @ p['U_r'].T, torch.sigmoid)
    z = gate(p, 'z', x @ p['W_z'].T + h @ p['U_z'].T, torch.sigmoid)
    recurrent = r * (h @ p['U'].T + p['b_U']) if reset_after else (r * h) @ p['U'].T
    h = z * h + (1 - z) * gate(p, '', x @ p['W'].T + recurrent, torch.tanh)
    return h, h


def lstm_sample(p, x, state, peepholes=True):
    y, c = state
    p_i, p_f, p_o = (p[n] if peepholes else 0.0 for n in ('p_i', 'p_f', 'p_o'))
    a = {n: x @ p[f'W_{n}'].T + y @ p[f'R_{n}'].T for n in 'zifo'}
    z = gate(p, 'z', a['z'], torch.tanh)
    i = gate(p, 'i', a['i'] + p_i * c, torch.sigmoid)
    f = gate(p, 'f', a['f'] + p_f * c, torch.sigmoid)
    c = z * i + f * c
    y = torch.tanh(c) * gate(p, 'o', a['o'] + p_o * c, torch.sigmoid)
    return y, (y, c)


def unroll(sample, n_hidden, options, p, seq):
    state = torch.zeros(*seq.shape[:-2], n_hidden, dtype=seq.dtype)
    state = (state, state) if sample is lstm_sample else state
    outputs = []
    for x in seq.unbind(-2):
        y, state = sample(p, x, state, **options)
        outputs.append(y)
    return torch.stack(outputs, -2)


@pytest.mark.parametrize('layer_class, options, draws', CELLS)
def test_cells_equal_their_formulas(layer_class, options, draws, x64, rng, randomise, key):
    sample = {RNN: rnn_sample, GRU: gru_sample, LSTM: lstm_sample}[layer_class]
    ours_only = {'layer_norm', 'bias'}
    in_torch = functools.partial(
        unroll, sample, 4, {k: v for k, v in options.items() if k not in ours_only}
    )
    for draw in range(draws):
        layer = randomise(layer_class(3, 4, key, **options), rng)
        assert_equal(layer, in_torch, rng.standard_normal([(6, 3), (2, 5, 3)][draw % 2]), rng)


def turned(x):
    """Rotate pairs of features as complex numbers, by position times frequency."""
    pairs = torch.view_as_complex(x.unflatten(-1, (-1, 2)).contiguous())
    frequencies = 10000.0 ** (-2 * torch.arange(pairs.shape[-1], dtype=x.dtype) / x.shape[-1])
    angles = torch.arange(x.shape[-2], dtype=x.dtype)[:, None] * frequencies
    return torch.view_as_real(pairs * torch.polar(torch.ones_like(angles), angles)).flatten(-2)


def attention(p, seq, n_heads, causal=False, window=99, positions=None, bias=False):
    def heads(name):
        y = F.linear(seq, p[f'W_{name}'], p.get(f'b_{name}'))
        return y.unflatten(-1, (n_heads, -1)).transpose(-2, -3)

    q, k, v = heads('q'), heads('k'), heads('v')
    if positions == 'rotary':
        q, k = turned(q), turned(k)
    index = torch.arange(seq.shape[-2])
    ages = index[:, None] - index[None, :]
    mask = (ages >= 0) & (ages < window) if causal else None
    y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
    return F.linear(y.transpose(-2, -3).flatten(-2), p['W_o'], p.get('b_o'))


@pytest.mark.parametrize('options', ATTENTIONS)
def test_attention_equals_its_formula(options, x64, rng, randomise, key):
    in_torch = functools.partial(attention, n_heads=2, **options)
    for draw in range(34):  # 102 random configurations
        layer = randomise(MultiHeadSelfAttention(8, 2, key, **options), rng)
        assert_equal(layer, in_torch, rng.standard_normal([(7, 8), (2, 4, 8)][draw % 2]), rng)


def part(p, prefix):
    return {k[len(prefix) + 1 :]: v for k, v in p.items() if k.startswith(prefix + '.')}


def block(p, x, n_heads, **options):
    x = x + attention(part(p, 'attention'), x, n_heads, **options)
    x = F.layer_norm(x, x.shape[-1:], p['norm_1.g'], p['norm_1.b'])
    hidden = F.gelu(F.linear(x, p['dense_1.W'], p['dense_1.b']))
    x = x + F.linear(hidden, p['dense_2.W'], p['dense_2.b'])
    return F.layer_norm(x, x.shape[-1:], p['norm_2.g'], p['norm_2.b'])


@pytest.mark.parametrize('depth', [1, 2])
def test_causal_network_equals_its_formula(depth, x64, rng, randomise, key):
    def in_torch(p, seq):
        x = F.linear(seq, p['layers.0.W'], p['layers.0.b'])
        for index in range(1, depth + 1):
            options = {'causal': True, 'window': 3, 'positions': 'rotary'}
            x = block(part(p, f'layers.{index}'), x, 2, **options)
        return F.linear(x, p[f'layers.{depth + 1}.W'], p[f'layers.{depth + 1}.b'])

    network = causal_transformer(3, 4, 2, 6, depth, 2, key, window=3, activation='gelu')
    for _ in range(50):  # 100 random configurations
        seq = rng.standard_normal((7, 3) if depth == 1 else (2, 7, 3))
        assert_equal(randomise(network, rng), in_torch, seq, rng)


@pytest.mark.parametrize(
    'pooling, in_torch',
    [
        (LastStep(), lambda h: h[..., -1, :]),
        (MeanOverTime(), lambda h: h.mean(-2)),
        (MeanOverTime(2), lambda h: h[..., -2:, :].mean(-2)),
    ],
)
def test_pooling_after_a_residual_equals_its_formula(pooling, in_torch, x64, rng, randomise, key):
    network = Sequential(Residual(RNN(3, 3, key)), pooling)

    def formula(p, seq):
        return in_torch(seq + unroll(rnn_sample, 3, {}, part(p, 'layers.0.layer'), seq))

    for draw in range(34):  # 102 random configurations
        seq = rng.standard_normal([(5, 3), (2, 4, 3)][draw % 2])
        assert_equal(randomise(network, rng), formula, seq, rng)
