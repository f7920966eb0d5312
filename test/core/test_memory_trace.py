"""Attention weights and hidden norms against NumPy."""

import jax
import numpy as np
import pytest

from seqmem_ros.core.memory_trace import attention_reach
from seqmem_ros.core.memory_trace import attention_weights
from seqmem_ros.core.memory_trace import by_age
from seqmem_ros.core.memory_trace import mean_by_age
from seqmem_ros.core.memory_trace import trace
from seqmem_ros.nn import causal_transformer
from seqmem_ros.nn import Dense
from seqmem_ros.nn import GRU
from seqmem_ros.nn import MultiHeadSelfAttention
from seqmem_ros.nn import recurrent_net

KEY = jax.random.key(0)


def turned(x, t):
    """Rotary positions, pair by pair as complex numbers."""
    d = len(x)
    z = x[0::2] + 1j * x[1::2]
    z = z * np.exp(1j * t * 10000.0 ** (-np.arange(0, d, 2) / d))
    return np.stack([z.real, z.imag], axis=1).ravel()


def expected_weights(layer, xs, may_attend, rotary=False):
    W_q, W_k = (np.asarray(p.value, np.float64) for p in (layer.W_q, layer.W_k))
    b_q, b_k = (0 if b is None else np.asarray(b.value) for b in (layer.b_q, layer.b_k))
    n, d = len(xs), layer.n_in // layer.n_heads
    mean = np.zeros((n, n))
    for h in range(layer.n_heads):
        part = slice(h * d, (h + 1) * d)
        for t in range(n):
            scores = np.full(n, -np.inf)
            for u in range(n):
                q, k = (W_q @ xs[t] + b_q)[part], (W_k @ xs[u] + b_k)[part]
                if rotary:
                    q, k = turned(q, t), turned(k, u)
                if may_attend(t, u):
                    scores[u] = q @ k / np.sqrt(d)
            e = np.exp(scores - scores.max())
            mean[t] += e / e.sum() / layer.n_heads
    return mean


@pytest.mark.parametrize(
    ('options', 'may_attend'),
    [
        ({}, lambda t, u: True),
        ({'causal': True}, lambda t, u: u <= t),
        ({'causal': True, 'window': 3, 'bias': True}, lambda t, u: t - 3 < u <= t),
        ({'causal': True, 'window': 4, 'positions': 'rotary'}, lambda t, u: t - 4 < u <= t),
    ],
)
def test_attention_weights_against_numpy(options, may_attend):
    rng = np.random.default_rng(0)
    layer = MultiHeadSelfAttention(8, 2, KEY, **options)
    for param in layer.params():
        param.value = rng.normal(size=param.shape) * 0.6
    xs = rng.normal(size=(7, 8))
    expected = expected_weights(layer, xs, may_attend, options.get('positions') == 'rotary')
    np.testing.assert_allclose(attention_weights(layer, xs), expected, atol=1e-5)


def test_one_head_of_weights_explains_the_output():
    layer = MultiHeadSelfAttention(4, 1, KEY, causal=True, window=3, positions='rotary')
    xs = np.random.default_rng(1).normal(size=(6, 4))
    mixed = attention_weights(layer, xs) @ (xs @ np.asarray(layer.W_v.value).T)
    np.testing.assert_allclose(layer.forward(xs), mixed @ np.asarray(layer.W_o.value).T, atol=1e-5)


def test_trace_of_a_recurrent_stack():
    network = recurrent_net(2, 3, 1, KEY, cell='gru', n_layers=2)
    xs = np.random.default_rng(2).normal(size=(5, 2))
    first, second = trace(network, xs)
    h = np.asarray(network.layers[0].forward(xs))
    assert (first.path, first.kind, first.attention) == ('layers.0', 'GRU', None)
    np.testing.assert_allclose(first.norms, np.sqrt((h**2).sum(1)), rtol=1e-5)
    h = np.asarray(network.layers[1].forward(h))
    assert (second.path, second.kind) == ('layers.1', 'GRU')
    np.testing.assert_allclose(second.norms, np.sqrt((h**2).sum(1)), rtol=1e-5)


def test_trace_of_a_transformer_feeds_each_block_what_it_gets():
    network = causal_transformer(3, 8, 2, 16, 2, 1, KEY, window=5)
    xs = np.random.default_rng(3).normal(size=(9, 3))
    blocks = trace(network, xs)
    assert [block.path for block in blocks] == ['layers.1', 'layers.2']
    below = np.asarray(network.layers[1].forward(network.layers[0].forward(xs)), np.float64)
    expected = expected_weights(
        network.layers[2].attention, below, lambda t, u: t - 5 < u <= t, rotary=True
    )
    np.testing.assert_allclose(blocks[1].attention, expected, atol=1e-5)


def test_trace_leaves_out_what_holds_nothing():
    assert trace(Dense(2, 1, KEY), np.zeros((3, 2))) == []
    (only,) = trace(GRU(2, 3, KEY), np.ones((4, 2)))
    assert (only.path, only.norms.shape) == ('', (4,))


def test_norms_of_a_block_are_those_of_what_its_attention_adds():
    network = causal_transformer(3, 8, 2, 16, 1, 1, KEY, window=5)
    xs = np.random.default_rng(4).normal(size=(6, 3))
    (block,) = trace(network, xs)
    added = np.asarray(network.layers[1].attention.forward(network.layers[0].forward(xs)))
    np.testing.assert_allclose(block.norms, np.sqrt((added**2).sum(1)), rtol=1e-5)
    # The block's own output is normalised: its size says nothing.
    assert np.ptp(block.norms) > 0.1


def test_weights_by_age():
    weights = np.array([[1.0, 0, 0, 0], [0.25, 0.75, 0, 0], [0, 0.5, 0.5, 0], [0, 0, 0.1, 0.9]])
    expected = [[1.0, 0], [0.75, 0.25], [0.5, 0.5], [0.9, 0.1]]
    np.testing.assert_array_equal(by_age(weights), expected)
    # The first sample has nothing before it and does not count.
    np.testing.assert_allclose(mean_by_age(weights), [2.15 / 3, 0.85 / 3])
    assert mean_by_age(np.full((3, 3), 1 / 3)) is None


@pytest.mark.parametrize(('depth', 'window', 'reach'), [(1, 5, 5), (2, 5, 9), (3, 4, 10)])
def test_reach_of_attention_is_as_far_as_a_changed_sample_is_felt(depth, window, reach):
    network = causal_transformer(2, 4, 1, 4, depth, 1, KEY, window=window)
    assert attention_reach(network) == reach
    xs = np.random.default_rng(5).normal(size=(20, 2))
    last = np.asarray(network.forward(xs))[-1]
    felt = []
    for age in range(20):
        changed = xs.copy()
        changed[19 - age] += 1.0
        felt.append(not np.array_equal(np.asarray(network.forward(changed))[-1], last))
    assert felt == [True] * reach + [False] * (20 - reach)


def test_reach_without_a_window_and_without_attention():
    assert attention_reach(MultiHeadSelfAttention(4, 1, KEY, causal=True)) == np.inf
    assert attention_reach(GRU(2, 3, KEY)) is None
