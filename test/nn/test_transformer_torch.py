"""Attention, transformer blocks and the layers around them against PyTorch."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from seqmem_ros.nn import Dense
from seqmem_ros.nn import LayerNorm
from seqmem_ros.nn import MultiHeadSelfAttention
from seqmem_ros.nn import scaled_dot_product_attention
from seqmem_ros.nn import transformer_encoder
from seqmem_ros.nn import TransformerBlock

torch = pytest.importorskip('torch', reason='PyTorch, the reference here, is not installed')
torch.set_num_threads(1)  # on arrays this small, threads only wait for one another

SHAPES = [(5, 4, 2, None), (3, 6, 3, 2), (1, 4, 1, 3), (6, 8, 4, 2)]  # T, d_model, heads, batch
DRAWS = 50  # for each of the 2 variants: 100 random configurations

# Here compiling takes longer than running.
FAST = {'xla_backend_optimization_level': 0, 'xla_llvm_disable_expensive_passes': True}


@functools.partial(jax.jit, compiler_options=FAST)
def value_and_gradients(layer, seq, weights):
    def loss(layer, seq):
        y = layer.forward(seq)
        return (y * weights).sum(), y

    (_, y), gradients = jax.value_and_grad(loss, argnums=(0, 1), has_aux=True)(layer, seq)
    return y, gradients


def randomise_torch(layer):
    for param in layer.parameters():
        torch.nn.init.normal_(param, std=0.6)
    return layer.double()


def attention_arrays(theirs, pick=lambda t: t.detach()):
    """Give the weights of PyTorch's attention, or their gradients, by our names."""
    named = dict(
        zip(
            ('W_q', 'W_k', 'W_v'),
            pick(theirs.in_proj_weight).numpy().reshape(3, theirs.embed_dim, theirs.embed_dim),
        )
    )
    named['W_o'] = pick(theirs.out_proj.weight).numpy()
    named.update(zip(('b_q', 'b_k', 'b_v'), pick(theirs.in_proj_bias).numpy().reshape(3, -1)))
    named['b_o'] = pick(theirs.out_proj.bias).numpy()
    return named


def block_arrays(theirs, pick=lambda t: t.detach()):
    named = {f'attention.{k}': v for k, v in attention_arrays(theirs.self_attn, pick).items()}
    for ours, part, names in (
        ('norm_1', theirs.norm1, 'gb'),
        ('norm_2', theirs.norm2, 'gb'),
        ('dense_1', theirs.linear1, 'Wb'),
        ('dense_2', theirs.linear2, 'Wb'),
    ):
        named[f'{ours}.{names[0]}'] = pick(part.weight).numpy()
        named[f'{ours}.{names[1]}'] = pick(part.bias).numpy()
    return named


def causal_mask(n_samples):
    return torch.ones(n_samples, n_samples).triu(1).bool()  # True = forbidden, there


def assert_gradients(found, expected):
    assert set(found) == set(expected)
    for name, gradient in expected.items():
        # The softmax does not feel a key's bias: PyTorch's gradient there is rounding.
        np.testing.assert_allclose(
            found[name].value, gradient, rtol=1e-5, atol=1e-10, err_msg=name
        )


def random_case(draw, rng):
    n_samples, d_model, n_heads, batch = SHAPES[draw % len(SHAPES)]
    axes = () if batch is None else (batch,)
    seq, weights = rng.standard_normal((2, *axes, n_samples, d_model))
    return n_samples, d_model, n_heads, seq, weights


@pytest.mark.parametrize('causal', [False, True])
def test_self_attention_equals_pytorch(causal, x64, rng, key):
    torch.manual_seed(1)
    for draw in range(DRAWS):
        n_samples, d_model, n_heads, seq, weights = random_case(draw, rng)
        theirs = randomise_torch(torch.nn.MultiheadAttention(d_model, n_heads, batch_first=True))
        ours = MultiHeadSelfAttention(d_model, n_heads, key, causal, bias=True)
        ours.load_params(attention_arrays(theirs))
        torch_seq = torch.tensor(seq, requires_grad=True)
        mask = causal_mask(n_samples) if causal else None
        expected = theirs(torch_seq, torch_seq, torch_seq, attn_mask=mask)[0]
        (expected * torch.tensor(weights)).sum().backward()
        y, (gradients, seq_gradient) = value_and_gradients(
            ours, jnp.asarray(seq), jnp.asarray(weights)
        )
        np.testing.assert_allclose(y, expected.detach(), rtol=0, atol=1e-10)
        np.testing.assert_allclose(seq_gradient, torch_seq.grad, rtol=1e-5, atol=1e-10)
        assert_gradients(gradients.named_params(), attention_arrays(theirs, lambda t: t.grad))


@pytest.mark.parametrize('causal, activation', [(False, 'relu'), (True, 'gelu')])
def test_block_equals_pytorch(causal, activation, x64, rng, key):
    torch.manual_seed(2)
    for draw in range(DRAWS):
        n_samples, d_model, n_heads, seq, weights = random_case(draw, rng)
        theirs = randomise_torch(
            torch.nn.TransformerEncoderLayer(
                d_model, n_heads, 7, dropout=0.0, activation=activation, batch_first=True
            )
        )
        ours = TransformerBlock(
            d_model, n_heads, 7, key, activation=activation, causal=causal, bias=True
        )
        ours.load_params(block_arrays(theirs))
        torch_seq = torch.tensor(seq, requires_grad=True)
        expected = theirs(torch_seq, src_mask=causal_mask(n_samples) if causal else None)
        (expected * torch.tensor(weights)).sum().backward()
        y, (gradients, seq_gradient) = value_and_gradients(
            ours, jnp.asarray(seq), jnp.asarray(weights)
        )
        np.testing.assert_allclose(y, expected.detach(), rtol=0, atol=1e-10)
        np.testing.assert_allclose(seq_gradient, torch_seq.grad, rtol=1e-5, atol=1e-10)
        assert_gradients(gradients.named_params(), block_arrays(theirs, lambda t: t.grad))


@functools.partial(jax.jit, compiler_options=FAST)
def attention_and_gradients(q, k, v, mask, weights):
    def loss(q, k, v):
        y = scaled_dot_product_attention(q, k, v, mask)
        return (y * weights).sum(), y

    (_, y), gradients = jax.value_and_grad(loss, argnums=(0, 1, 2), has_aux=True)(q, k, v)
    return y, gradients


def test_attention_formula_equals_pytorch(x64, rng):
    for draw in range(100):
        n_q, n_k, d_k, d_v = [(1, 1, 1, 1), (2, 3, 4, 1), (3, 2, 1, 2), (3, 3, 2, 3)][draw % 4]
        q, k, v = (rng.standard_normal((2, n, d)) for n, d in ((n_q, d_k), (n_k, d_k), (n_k, d_v)))
        weights = rng.standard_normal((2, n_q, d_v))
        mask = rng.random((2, n_q, n_k)) < 0.7
        mask[..., 0] = True  # PyTorch gives NaN for a row that may attend to nothing
        mask = mask if draw % 8 < 4 else None
        theirs = [torch.tensor(a, requires_grad=True) for a in (q, k, v)]
        expected = torch.nn.functional.scaled_dot_product_attention(
            *theirs, attn_mask=None if mask is None else torch.tensor(mask)
        )
        (expected * torch.tensor(weights)).sum().backward()
        found, gradients = attention_and_gradients(q, k, v, mask, weights)
        np.testing.assert_allclose(found, expected.detach(), rtol=0, atol=1e-12)
        for gradient, their in zip(gradients, theirs):
            np.testing.assert_allclose(gradient, their.grad, rtol=1e-5, atol=1e-12)


def leaves_of(layer):
    """Give a layer's weights as tensors that gather gradients."""
    return {
        name: torch.tensor(np.array(param.value), requires_grad=True)
        for name, param in layer.named_params().items()
    }


@pytest.mark.parametrize('activation', [None, 'tanh', 'relu', 'gelu', 'sigmoid'])
def test_dense_equals_pytorch(activation, x64, rng, randomise, key):
    f = {
        None: lambda a: a,
        'tanh': torch.tanh,
        'relu': torch.relu,
        'gelu': torch.nn.functional.gelu,
        'sigmoid': torch.sigmoid,
    }[activation]
    for draw in range(20):  # 100 random configurations in all
        ours = randomise(Dense(3, 2, key, activation=activation, bias=draw % 2 == 0), rng)
        x, weights = rng.standard_normal((4, 3)), rng.standard_normal((4, 2))
        p = leaves_of(ours)
        expected = f(torch.nn.functional.linear(torch.tensor(x), p['W'], p.get('b')))
        (expected * torch.tensor(weights)).sum().backward()
        y, (gradients, _) = value_and_gradients(ours, x, weights)
        np.testing.assert_allclose(y, expected.detach(), rtol=0, atol=1e-12)
        assert_gradients(gradients.named_params(), {n: t.grad.numpy() for n, t in p.items()})


def test_layer_norm_equals_pytorch(x64, rng, randomise):
    for _ in range(100):
        ours = randomise(LayerNorm(5), rng)
        x = rng.standard_normal((3, 4, 5)) * 10 ** rng.uniform(-3, 3)
        weights = rng.standard_normal((3, 4, 5))
        p = leaves_of(ours)
        torch_x = torch.tensor(x, requires_grad=True)
        expected = torch.nn.functional.layer_norm(torch_x, (5,), p['g'], p['b'])
        (expected * torch.tensor(weights)).sum().backward()
        y, (gradients, x_gradient) = value_and_gradients(ours, x, weights)
        np.testing.assert_allclose(y, expected.detach(), rtol=0, atol=1e-10)
        np.testing.assert_allclose(x_gradient, torch_x.grad, rtol=1e-5, atol=1e-10)
        assert_gradients(gradients.named_params(), {n: t.grad.numpy() for n, t in p.items()})


@pytest.mark.parametrize('depth', [1, 2])
def test_encoder_equals_pytorch(depth, x64, rng, randomise, key):
    torch.manual_seed(3)
    ours = randomise(transformer_encoder(3, 6, 2, 8, depth, 4, key, max_len=9, bias=True), rng)
    angles = np.arange(5)[:, None] / 10000 ** (np.arange(3) / 3)
    positions = np.stack([np.sin(angles), np.cos(angles)], axis=-1).reshape(5, 6)
    for _ in range(50):  # 100 random configurations
        first, last = (randomise_torch(torch.nn.Linear(*n)) for n in ((3, 6), (6, 4)))
        blocks = [
            randomise_torch(torch.nn.TransformerEncoderLayer(6, 2, 8, 0.0, batch_first=True))
            for _ in range(depth)
        ]
        axes = () if depth == 1 else (2,)
        seq, weights = rng.standard_normal((*axes, 5, 3)), rng.standard_normal((*axes, 4))
        hidden = first(torch.tensor(seq)) + torch.tensor(positions)
        for layer in blocks:
            hidden = layer(hidden)
        expected = last(hidden.mean(-2))
        (expected * torch.tensor(weights)).sum().backward()

        def named(pick, first=first, last=last, blocks=blocks):
            p = {'layers.0.W': first.weight, 'layers.0.b': first.bias}
            p.update({f'layers.{3 + depth}.W': last.weight, f'layers.{3 + depth}.b': last.bias})
            arrays = {name: pick(param).numpy() for name, param in p.items()}
            for index, layer in enumerate(blocks, start=2):
                arrays |= {f'layers.{index}.{k}': v for k, v in block_arrays(layer, pick).items()}
            return arrays

        ours.load_params(named(lambda t: t.detach()))
        y, (gradients, _) = value_and_gradients(ours, seq, weights)
        np.testing.assert_allclose(y, expected.detach(), rtol=0, atol=1e-10)
        assert_gradients(gradients.named_params(), named(lambda t: t.grad))
