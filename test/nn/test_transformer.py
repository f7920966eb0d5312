"""Transformer blocks and whole networks against their formulas in NumPy."""

import jax
import numpy as np
import pytest

from seqmem_ros.nn import causal_transformer
from seqmem_ros.nn import transformer_encoder
from seqmem_ros.nn import TransformerBlock

SHAPES = [(5, 4, 2, None), (3, 6, 3, 2), (7, 4, 1, None)]  # T, d_model, heads, batch

# Here compiling takes longer than running.
FAST = {'xla_backend_optimization_level': 0, 'xla_llvm_disable_expensive_passes': True}
forward = jax.jit(lambda module, seq: module.forward(seq), compiler_options=FAST)


def arrays(module):
    return {name: np.asarray(param.value) for name, param in module.named_params().items()}


def part(p, prefix):
    return {k[len(prefix) + 1 :]: v for k, v in p.items() if k.startswith(prefix + '.')}


def norm(x, g, b):
    mean = x.mean(-1, keepdims=True)
    return g * (x - mean) / np.sqrt(((x - mean) ** 2).mean(-1, keepdims=True) + 1e-5) + b


def turned(x, base_position):
    """Rotate the pairs of each row as complex numbers, row t by position base + t."""
    pairs = x[:, 0::2] + 1j * x[:, 1::2]
    frequencies = 10000.0 ** (-2 * np.arange(pairs.shape[1]) / x.shape[1])
    positions = base_position + np.arange(len(x))
    pairs = pairs * np.exp(1j * positions[:, None] * frequencies)
    out = np.empty_like(x)
    out[:, 0::2], out[:, 1::2] = pairs.real, pairs.imag
    return out


def attention(p, seq, n_heads, mask, rotary):
    q, k, v = (
        np.split(seq @ p[f'W_{n}'].T + p.get(f'b_{n}', 0.0), n_heads, axis=1) for n in 'qkv'
    )
    heads = []
    for q_h, k_h, v_h in zip(q, k, v):
        if rotary:
            q_h, k_h = turned(q_h, 5), turned(k_h, 5)  # any base: only differences count
        e = np.exp(q_h @ k_h.T / np.sqrt(q_h.shape[1])) * mask
        heads.append(e / e.sum(1, keepdims=True) @ v_h)
    return np.concatenate(heads, axis=1) @ p['W_o'].T + p.get('b_o', 0.0)


def block(p, seq, n_heads, mask, rotary=False):
    x = seq + attention(part(p, 'attention'), seq, n_heads, mask, rotary)
    x = norm(x, p['norm_1.g'], p['norm_1.b'])
    hidden = np.maximum(x @ p['dense_1.W'].T + p['dense_1.b'], 0)
    x = x + hidden @ p['dense_2.W'].T + p['dense_2.b']
    return norm(x, p['norm_2.g'], p['norm_2.b'])


def band(n_samples, window):
    index = np.arange(n_samples)
    ages = index[:, None] - index[None, :]
    return (ages >= 0) & (ages < window)


@pytest.mark.parametrize(
    'options, window, rotary',
    [
        ({}, None, False),
        ({'causal': True, 'bias': True}, 99, False),
        ({'causal': True, 'window': 3, 'positions': 'rotary'}, 3, True),
    ],
)
def test_block_equals_the_formula(options, window, rotary, x64, rng, randomise, key):
    for draw in range(34):  # 102 random configurations
        n_samples, d_model, n_heads, batch = SHAPES[draw % len(SHAPES)]
        if rotary and d_model // n_heads % 2:
            n_heads = 1
        layer = randomise(TransformerBlock(d_model, n_heads, 7, key, **options), rng)
        seqs = rng.standard_normal((batch or 1, n_samples, d_model))
        mask = np.ones((n_samples, n_samples)) if window is None else band(n_samples, window)
        expected = [block(arrays(layer), seq, n_heads, mask, rotary) for seq in seqs]
        found = forward(layer, seqs if batch else seqs[0])
        found = found if batch else found[None]
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-10)


def test_dropout_acts_on_each_sub_layer_before_the_addition(rng, randomise, key):
    layer = randomise(TransformerBlock(4, 2, 7, key, dropout=1 - 1e-7), rng)
    p = arrays(layer)
    seq = rng.standard_normal((5, 4)).astype(np.float32)
    # All that the sub-layers give is dropped, so that only the residuals are left.
    expected = norm(norm(seq, p['norm_1.g'], p['norm_1.b']), p['norm_2.g'], p['norm_2.b'])
    np.testing.assert_allclose(layer.forward(seq, jax.random.key(1)), expected, atol=1e-4)
    assert np.abs(forward(layer, seq) - expected).max() > 0.1


@pytest.mark.parametrize('depth', [1, 2])
def test_encoder_equals_the_formula(depth, x64, rng, randomise, key):
    network = transformer_encoder(3, 6, 2, 8, depth, 4, key, max_len=9, bias=depth == 1)
    for _ in range(50):  # 100 random configurations
        p = arrays(randomise(network, rng))
        seqs, expected = rng.standard_normal((depth, 5, 3)), []
        for seq in seqs:
            x = seq @ p['layers.0.W'].T + p['layers.0.b']
            for t in range(5):
                for i in range(3):
                    x[t, 2 * i] += np.sin(t / 10000 ** (2 * i / 6))
                    x[t, 2 * i + 1] += np.cos(t / 10000 ** (2 * i / 6))
            for index in range(depth):
                x = block(part(p, f'layers.{2 + index}'), x, 2, np.ones((5, 5)))
            head = part(p, f'layers.{3 + depth}')
            expected.append(head['W'] @ x.mean(0) + head['b'])
        # One sequence by itself, or a batch of two.
        found = forward(network, seqs if depth > 1 else seqs[0])
        np.testing.assert_allclose(
            found if depth > 1 else found[None], expected, rtol=0, atol=1e-10
        )


@pytest.mark.parametrize('depth', [1, 3])
def test_causal_network_equals_the_formula(depth, x64, rng, randomise, key):
    network = causal_transformer(3, 4, 2, 8, depth, 2, key, window=3)
    for _ in range(50):  # 100 random configurations
        p = arrays(randomise(network, rng))
        seqs, expected = rng.standard_normal((depth, 8, 3)), []
        for seq in seqs:
            x = seq @ p['layers.0.W'].T + p['layers.0.b']
            for index in range(depth):
                x = block(part(p, f'layers.{1 + index}'), x, 2, band(8, 3), rotary=True)
            head = part(p, f'layers.{1 + depth}')
            expected.append(x @ head['W'].T + head['b'])
        found = forward(network, seqs if depth > 1 else seqs[0])
        np.testing.assert_allclose(
            found if depth > 1 else found[None], expected, rtol=0, atol=1e-10
        )


@pytest.mark.parametrize('depth', [1, 3])
def test_causal_network_reaches_back_as_far_as_promised(depth, x64, rng, randomise, key):
    network = randomise(causal_transformer(2, 4, 2, 8, depth, 1, key, window=3), rng)
    seq = rng.standard_normal((12, 2))
    reach = depth * (3 - 1) + 1
    before = forward(network, seq)[-1]
    for age in range(12):
        changed = seq.copy()
        changed[11 - age] += 1
        difference = np.abs(forward(network, changed)[-1] - before).max()
        assert (difference > 1e-9) == (age < reach)


def test_encoder_on_ones(key):
    network = transformer_encoder(4, 8, 2, 16, 1, 3, key, 16)
    assert forward(network, np.ones((5, 4))).shape == (3,)
    assert forward(network, np.ones((2, 5, 4))).shape == (2, 3)


@pytest.mark.parametrize(
    'make, text',
    [
        (
            lambda k: transformer_encoder(4, 8, 3, 16, 1, 3, k, 16),
            'd_model=8 is not divisible by n_heads=3',
        ),
        (
            lambda k: causal_transformer(4, 8, 5, 16, 1, 3, k, window=4),
            'd_model=8 is not divisible by n_heads=5',
        ),
        (
            lambda k: TransformerBlock(8, 2, 16, k).init_state(),
            'TransformerBlock cannot stream: its attention is not causal, every output needs',
        ),
        (
            lambda k: TransformerBlock(8, 2, 16, k).step(np.ones(8), ()),
            'TransformerBlock cannot stream: its attention is not causal',
        ),
        (
            lambda k: transformer_encoder(4, 8, 2, 16, 1, 3, k, 16).init_state(),
            r'Sequential cannot stream: layer 2 \(TransformerBlock\): its attention is not causal',
        ),
        (
            lambda k: transformer_encoder(4, 8, 2, 16, 1, 3, k, 16).step(np.ones(4), ()),
            r'Sequential cannot stream: layer 2 \(TransformerBlock\): its attention is not causal',
        ),
        (
            lambda k: transformer_encoder(4, 8, 2, 16, 1, 3, k, 16).forward(np.ones((17, 4))),
            'sequence of 17 samples is longer than max_len=16; cut it, or build the network',
        ),
        (
            lambda k: TransformerBlock(8, 2, 16, k, activation='swish'),
            "unknown activation 'swish'; choose one of tanh, relu, gelu, sigmoid",
        ),
    ],
)
def test_errors_say_what_to_do(make, text, key):
    with pytest.raises(ValueError, match=text):
        make(key)
