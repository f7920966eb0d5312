"""Attention against its formulas in NumPy, head by head and query by query, and its memory."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from seqmem_ros.nn import masked_softmax
from seqmem_ros.nn import MultiHeadSelfAttention
from seqmem_ros.nn import scaled_dot_product_attention
from seqmem_ros.nn import WindowCache

SHAPES = [(5, 4, 2, None), (7, 6, 3, 2), (1, 4, 1, 3), (6, 8, 2, None)]  # T, d_model, heads, batch
DRAWS = 17  # for each of the 6 variants: 102 random configurations

# Here compiling takes longer than running.
FAST = {'xla_backend_optimization_level': 0, 'xla_llvm_disable_expensive_passes': True}
forward = jax.jit(lambda module, seq: module.forward(seq), compiler_options=FAST)


def softmax(scores):
    e = np.exp(scores - np.max(scores))
    return e / e.sum()


def turn(x, position):
    """Multiply with the block-diagonal rotation matrix of RoFormer's Eq. 15."""
    R = np.zeros((len(x), len(x)))
    for i in range(len(x) // 2):
        angle = position * 10000 ** (-2 * i / len(x))
        R[2 * i : 2 * i + 2, 2 * i : 2 * i + 2] = [
            [np.cos(angle), -np.sin(angle)],
            [np.sin(angle), np.cos(angle)],
        ]
    return R @ x


def self_attention(p, seq, n_heads, may_attend, rotary):
    """Run one sequence; ``may_attend(i, j)`` says whether sample i attends to sample j."""
    d_head = seq.shape[1] // n_heads
    outputs = []
    for i in range(len(seq)):
        places = [j for j in range(len(seq)) if may_attend(i, j)]
        heads = []
        for h in range(n_heads):
            rows = slice(h * d_head, (h + 1) * d_head)
            q, k, v = (
                {
                    j: p[f'W_{n}'][rows] @ seq[j] + p.get(f'b_{n}', np.zeros(len(seq[0])))[rows]
                    for j in [*places, i]
                }
                for n in 'qkv'
            )
            if rotary:
                q, k = ({j: turn(x, j) for j, x in a.items()} for a in (q, k))
            weights = softmax(np.array([q[i] @ k[j] / np.sqrt(d_head) for j in places]))
            heads.append(sum(w * v[j] for w, j in zip(weights, places)))
        outputs.append(p['W_o'] @ np.concatenate(heads) + p.get('b_o', 0.0))
    return np.array(outputs)


@pytest.mark.parametrize(
    'options, may_attend',
    [
        ({}, lambda i, j: True),
        ({'positions': 'rotary'}, lambda i, j: True),
        ({'causal': True, 'bias': True}, lambda i, j: j <= i),
        ({'causal': True, 'positions': 'rotary'}, lambda i, j: j <= i),
        ({'causal': True, 'window': 3}, lambda i, j: i - 3 < j <= i),
        (
            {'causal': True, 'window': 3, 'positions': 'rotary', 'bias': True},
            lambda i, j: i - 3 < j <= i,
        ),
    ],
)
def test_self_attention_equals_the_formula(options, may_attend, x64, rng, randomise, key):
    for draw in range(DRAWS):
        n_samples, d_model, n_heads, batch = SHAPES[draw % len(SHAPES)]
        layer = randomise(MultiHeadSelfAttention(d_model, n_heads, key, **options), rng)
        p = {name: np.asarray(param.value) for name, param in layer.named_params().items()}
        seqs = rng.standard_normal((batch or 1, n_samples, d_model))
        rotary = 'positions' in options
        expected = [self_attention(p, seq, n_heads, may_attend, rotary) for seq in seqs]
        found = forward(layer, seqs if batch else seqs[0])
        found = found if batch else found[None]
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-10)


def test_the_number_worked_out_by_hand():
    # softmax([1 / sqrt(2), 0]) = [0.669762, 0.330238]
    y = scaled_dot_product_attention([1, 0], [[1, 0], [0, 1]], [10, 20])
    assert y.shape == ()
    assert round(float(y), 4) == 13.3024
    y = scaled_dot_product_attention([[1.0, 0.0]], np.eye(2), [[10.0], [20.0]])
    assert y.shape == (1, 1)
    assert round(float(y[0, 0]), 4) == 13.3024


def test_attention_equals_the_formula_under_any_mask(x64, rng):
    for draw in range(100):
        n_q, n_k, d_k, d_v = [(1, 1, 1, 1), (2, 3, 4, 1), (3, 2, 1, 2), (3, 3, 2, 3)][draw % 4]
        q, k, v = (rng.standard_normal(s) for s in ((n_q, d_k), (n_k, d_k), (n_k, d_v)))
        mask = rng.random((n_q, n_k)) < 0.6
        expected = np.zeros((n_q, d_v))
        for i in range(n_q):
            if mask[i].any():
                weights = softmax((k @ q[i] / np.sqrt(d_k))[mask[i]])
                expected[i] = weights @ v[mask[i]]
        found = scaled_dot_product_attention(q, k, v, mask)
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)


def test_a_row_that_may_attend_to_nothing_gives_zeros_and_finite_gradients(x64, rng):
    q, k, v = (jnp.asarray(rng.standard_normal((3, 2))) for _ in range(3))
    mask = np.array([[True, True, False], [False, False, False], [False, True, False]])

    def total(q, k, v):
        return (scaled_dot_product_attention(q, k, v, mask) ** 2).sum()

    y = scaled_dot_product_attention(q, k, v, mask)
    np.testing.assert_array_equal(y[1], np.zeros(2))
    np.testing.assert_allclose(y[2], v[1], rtol=0, atol=1e-12)
    gradients = jax.grad(total, argnums=(0, 1, 2))(q, k, v)
    assert all(np.isfinite(g).all() for g in gradients)
    np.testing.assert_array_equal(gradients[0][1], np.zeros(2))
    np.testing.assert_array_equal(gradients[2][2], np.zeros(2))


def test_masked_gradients_equal_finite_differences(x64, rng):
    scores = rng.standard_normal((2, 4))
    mask = np.array([[True, False, True, True], [False, True, False, False]])
    weights = rng.standard_normal((2, 4))

    def total(scores):
        return (masked_softmax(scores, mask) * weights).sum()

    found = jax.grad(total)(jnp.asarray(scores))
    for index in np.ndindex(2, 4):
        up, down = scores.copy(), scores.copy()
        up[index] += 1e-6
        down[index] -= 1e-6
        expected = (float(total(up)) - float(total(down))) / 2e-6
        assert float(found[index]) == pytest.approx(expected, abs=1e-8)


def test_softmax_survives_scores_of_any_size():
    scores = np.array([[1e30, -1e30, 3e38], [-3e38, -3e38, -3e38]], np.float32)
    mask = np.array([[True, True, False], [True, True, False]])
    np.testing.assert_array_equal(masked_softmax(scores, mask), [[1, 0, 0], [0.5, 0.5, 0]])


def test_a_given_mask_comes_on_top_of_the_layers_own(x64, rng, randomise, key):
    seq = rng.standard_normal((9, 4))
    band = np.array([[i - 3 < j <= i for j in range(9)] for i in range(9)])
    windowed = MultiHeadSelfAttention(4, 2, key, causal=True, window=3, positions='rotary')
    randomise(windowed, rng)
    for options in ({}, {'causal': True}, {'causal': True, 'window': 5}):
        other = MultiHeadSelfAttention(4, 2, key, positions='rotary', **options)
        other.load_params({n: p.value for n, p in windowed.named_params().items()})
        np.testing.assert_allclose(
            other.forward(seq, mask=band), windowed.forward(seq), rtol=0, atol=1e-12
        )
    batch = np.stack([seq, seq])
    masks = np.stack([band, np.eye(9, dtype=bool)])
    found = windowed.forward(batch, mask=masks)
    np.testing.assert_allclose(found[0], windowed.forward(seq), rtol=0, atol=1e-12)
    values = seq @ np.asarray(windowed.W_v.value).T @ np.asarray(windowed.W_o.value).T
    np.testing.assert_allclose(found[1], values, rtol=0, atol=1e-12)


@pytest.mark.parametrize('positions', [None, 'rotary'])
@pytest.mark.parametrize('n_samples', [1, 2, 3, 4, 9])
def test_steps_through_a_window_equal_forward_under_the_banded_mask(
    n_samples, positions, x64, rng, randomise, key
):
    layer = randomise(MultiHeadSelfAttention(4, 2, key, causal=True, positions=positions), rng)
    seq = rng.standard_normal((n_samples, 4))
    index = np.arange(n_samples)
    band = index[:, None] - index[None, :] < 3
    cache = layer.init_cache(window=3)
    outputs = []
    for x in seq:
        y, cache = layer.step(x, cache)
        outputs.append(y)
    np.testing.assert_allclose(outputs, layer.forward(seq, mask=band), rtol=0, atol=1e-12)
    assert isinstance(cache, WindowCache)
    assert cache.keys.shape == cache.values.shape == (3, 4)
    assert int(cache.count) == min(n_samples, 3)


@pytest.mark.parametrize('positions', [None, 'rotary'])
def test_steps_through_a_growing_cache_equal_forward(positions, x64, rng, randomise, key):
    layer = randomise(MultiHeadSelfAttention(4, 2, key, causal=True, positions=positions), rng)
    seq = rng.standard_normal((6, 4))
    cache = layer.init_cache()
    assert [part.shape for part in cache] == [(0, 4), (0, 4)]
    outputs = []
    for n_before, x in enumerate(seq):
        assert cache[0].shape == (n_before, 4)
        y, cache = layer.step(x, cache)
        outputs.append(y)
    np.testing.assert_allclose(outputs, layer.forward(seq), rtol=0, atol=1e-12)
    np.testing.assert_allclose(cache[1], seq @ np.asarray(layer.W_v.value).T, atol=1e-12)


def test_a_growing_cache_of_a_batch_equals_that_of_each_stream(x64, rng, randomise, key):
    layer = randomise(MultiHeadSelfAttention(4, 2, key, causal=True, positions='rotary'), rng)
    batch = rng.standard_normal((2, 3, 4))
    together, alone = layer.init_cache(batch=2), [layer.init_cache() for _ in batch]
    assert [part.shape for part in together] == [(2, 0, 4), (2, 0, 4)]
    for t in range(3):
        y, together = layer.step(batch[:, t], together)
        for i in range(2):
            expected, alone[i] = layer.step(batch[i, t], alone[i])
            np.testing.assert_allclose(y[i], expected, rtol=0, atol=1e-12)


def test_a_growing_cache_stops_at_the_layers_window(x64, rng, randomise, key):
    layer = randomise(MultiHeadSelfAttention(4, 2, key, causal=True, window=3), rng)
    seq = rng.standard_normal((8, 4))
    growing, fixed, wide = layer.init_cache(), layer.init_state(), layer.init_cache(window=6)
    assert isinstance(fixed, WindowCache)
    expected = layer.forward(seq)
    for t, x in enumerate(seq):
        y, growing = layer.step(x, growing)
        np.testing.assert_allclose(y, expected[t], rtol=0, atol=1e-12)
        y, fixed = layer.step(x, fixed)
        np.testing.assert_allclose(y, expected[t], rtol=0, atol=1e-12)
        y, wide = layer.step(x, wide)
        np.testing.assert_allclose(y, expected[t], rtol=0, atol=1e-12)
        assert growing[0].shape[0] == min(t + 1, 3)


def test_a_window_of_one_attends_to_the_sample_itself(x64, rng, randomise, key):
    layer = randomise(MultiHeadSelfAttention(4, 2, key, causal=True, window=1), rng)
    seq = rng.standard_normal((5, 4))
    expected = seq @ np.asarray(layer.W_v.value).T @ np.asarray(layer.W_o.value).T
    np.testing.assert_allclose(layer.forward(seq), expected, rtol=0, atol=1e-12)


def test_rotary_attention_depends_on_ages_not_on_when_the_stream_began(x64, rng, randomise, key):
    layer = MultiHeadSelfAttention(4, 2, key, causal=True, positions='rotary')
    randomise(layer, rng)
    seq = rng.standard_normal((4, 4))
    later = np.concatenate([rng.standard_normal((7, 4)), seq])
    hide_the_first = np.arange(11) >= 7
    np.testing.assert_allclose(
        layer.forward(later, mask=hide_the_first[None, :])[7:],
        layer.forward(seq),
        rtol=0,
        atol=1e-12,
    )
    swapped = seq[[1, 0, 2, 3]]
    assert np.abs(layer.forward(swapped)[3] - layer.forward(seq)[3]).max() > 1e-3


def test_the_window_cache_compiles_once(key):
    layer = MultiHeadSelfAttention(4, 2, key, causal=True)
    traces = []

    @jax.jit
    def step(x, cache):
        traces.append(1)
        return layer.step(x, cache)

    cache = layer.init_cache(window=3)
    for _ in range(10):
        _, cache = step(np.ones(4, np.float32), cache)
    assert len(traces) == 1


def test_parameter_count(key):
    assert len(MultiHeadSelfAttention(8, 2, key).params()) == 4
    assert list(MultiHeadSelfAttention(8, 2, key).named_params()) == ['W_q', 'W_k', 'W_v', 'W_o']
    assert len(MultiHeadSelfAttention(8, 2, key, bias=True).params()) == 8


@pytest.mark.parametrize(
    'make, text',
    [
        (lambda k: MultiHeadSelfAttention(8, 3, k), 'd_model=8 is not divisible by n_heads=3'),
        (lambda k: MultiHeadSelfAttention(8, 2, k, window=4), 'window=4 needs causal=True'),
        (
            lambda k: MultiHeadSelfAttention(8, 2, k, causal=True, window=0),
            'window must be at least 1 sample, got 0',
        ),
        (
            lambda k: MultiHeadSelfAttention(8, 2, k, positions='sinusoidal'),
            "unknown positions 'sinusoidal'; choose None or 'rotary'",
        ),
        (
            lambda k: MultiHeadSelfAttention(6, 2, k, positions='rotary'),
            r'd_model / n_heads = 3 must be even',
        ),
        (
            lambda k: MultiHeadSelfAttention(8, 2, k).init_cache(),
            'MultiHeadSelfAttention cannot stream: its attention is not causal',
        ),
        (
            lambda k: MultiHeadSelfAttention(8, 2, k, causal=True).init_cache(window=0),
            'window must be at least 1 sample, got 0',
        ),
        (
            lambda k: MultiHeadSelfAttention(8, 2, k).step(np.ones(8), ()),
            'MultiHeadSelfAttention cannot stream: its attention is not causal',
        ),
        (
            lambda k: scaled_dot_product_attention(np.ones((2, 3)), np.ones((2, 4)), np.ones(2)),
            r'attention expected q .* got \(2, 3\), \(2, 4\), \(2,\)',
        ),
        (
            lambda k: scaled_dot_product_attention(np.ones((2, 3)), np.ones((2, 3)), np.ones(5)),
            r'attention expected q .* got \(2, 3\), \(2, 3\), \(5,\)',
        ),
    ],
)
def test_errors_say_what_to_do(make, text, key):
    with pytest.raises(ValueError, match=text):
        make(key)
