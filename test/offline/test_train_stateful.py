"""Learning steps a network as a robot does, and its loss is what it says."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from seqmem_ros.core.model import build_network
from seqmem_ros.core.model import SequenceModel
from seqmem_ros.core.observer import N_FEATURES
from seqmem_ros.core.observer import N_STEERING
from seqmem_ros.core.spec import ModelSpec
from seqmem_ros.offline import stateful
from seqmem_ros.offline.stateful import chunk_loss
from seqmem_ros.offline.stateful import empty_memory
from seqmem_ros.offline.stateful import Learned
from seqmem_ros.offline.stateful import make_chunk_step
from seqmem_ros.offline.stateful import run_rows
from seqmem_ros.offline.training import make_optimizer

SIZES = {'n_in': N_FEATURES, 'n_hidden': 4, 'n_out': N_STEERING}
VELOCITY = ModelSpec('velocity', {'builder': 'recurrent_net', 'cell': 'gru', **SIZES})
LABEL = ModelSpec(
    'label',
    {'builder': 'recurrent_net', 'cell': 'gru', 'n_in': 2, 'n_hidden': 4, 'n_out': 3},
    'direct',
    ('position', 'difference'),
    ('a',),
    labels=('x', 'y', 'z'),
)


def raw_of(rng, batch, length):
    """Make inputs of one joint that moves by about a hundredth a sample."""
    raw = np.zeros((batch, length, 11), np.float32)
    raw[..., 3:7] = np.cumsum(0.01 * rng.standard_normal((batch, length, 4)), axis=-1)
    raw[..., 7:] = 0.01 * np.arange(1, 5)
    return raw


def test_a_row_in_chunks_equals_each_sequence_by_itself():
    rng = np.random.default_rng(0)
    network = build_network(VELOCITY.network, jax.random.key(1))
    raw, fresh = raw_of(rng, 2, 12), np.zeros((2, 12), bool)
    fresh[:, 0] = fresh[0, 5] = True
    memory, parts = empty_memory(VELOCITY, network, 2), []
    for begin in (0, 4, 8):
        cells = slice(begin, begin + 4)
        outputs, memory = run_rows(VELOCITY, network, memory, raw[:, cells], fresh[:, cells])
        parts.append(outputs)
    got = np.concatenate(parts, axis=1)
    forward = SequenceModel(VELOCITY, network).forward
    expected = np.concatenate([forward(raw[0, :5]), forward(raw[0, 5:])])
    np.testing.assert_allclose(got[0], expected, rtol=2e-5, atol=1e-7)
    np.testing.assert_allclose(got[1], forward(raw[1]), rtol=2e-5, atol=1e-7)


def test_the_loss_of_velocities_counts_slow_and_fast_alike():
    rng = np.random.default_rng(2)
    outputs, target = rng.standard_normal((2, 3, 6))
    outputs[2], target[2] = 100 * outputs[2], 100 * target[2]
    counts = rng.random((3, 6)) < 0.7
    counts[1] = False
    floor = np.array([0.1, 0.2, 0.3])[:, None] * np.ones(6)
    logs = [
        0.5 * np.log(np.mean((outputs[b] - target[b])[counts[b]] ** 2) + floor[b, 0] ** 2)
        for b in (0, 2)
    ]
    target[~counts] = np.nan
    got = chunk_loss(VELOCITY, jnp.array(outputs), jnp.array(target), counts, jnp.array(floor))
    assert float(got) == pytest.approx(np.mean(logs), rel=1e-5)


def test_the_loss_of_velocities_together_is_the_mean_over_joints():
    rng = np.random.default_rng(3)
    outputs, target = rng.standard_normal((2, 1, 5, 2))
    error = np.mean((outputs - target)[0] ** 2, axis=0)
    got = chunk_loss(VELOCITY, outputs, target, np.ones((1, 5), bool), np.zeros((1, 5)))
    assert float(got) == pytest.approx(np.mean(0.5 * np.log(error)), rel=1e-4)


def test_the_loss_of_labels_is_the_cross_entropy_of_what_counts():
    rng = np.random.default_rng(4)
    logits, target = rng.standard_normal((2, 4, 3)), rng.integers(0, 3, (2, 4))
    counts = np.array([[True, False, True, True], [False, False, True, False]])
    p = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
    expected = -np.mean([np.log(p[b, t, target[b, t]]) for b, t in zip(*np.nonzero(counts))])
    assert float(chunk_loss(LABEL, logits, target, counts, 0 * logits[..., 0])) == pytest.approx(
        expected, rel=1e-5
    )


def test_a_stream_that_ran_away_begins_anew():
    network = build_network(LABEL.network, jax.random.key(0))
    optimizer = make_optimizer('sgd', 0.0)
    memory = [
        jnp.full_like(leaf, 0.5) for leaf in jax.tree.leaves(empty_memory(LABEL, network, 2))
    ]
    memory = jax.tree.unflatten(jax.tree.structure(empty_memory(LABEL, network, 2)), memory)
    raw = np.zeros((2, 3, 1, 11), np.float32)
    raw[1, 1] = np.nan
    chunk = (raw, np.zeros((2, 3), bool), np.zeros((2, 3), np.int32), np.ones((2, 3), bool))
    step = make_chunk_step(LABEL, optimizer)
    learned, _ = step(Learned(network, optimizer.init(network), memory), *chunk, np.ones((2, 3)))
    state = np.asarray(jax.tree.leaves(learned.memory)[0])
    assert np.abs(state[0]).min() > 0 and (state[1] == 0).all()


def test_memory_is_that_of_the_spec():
    two = replace(VELOCITY, network={**VELOCITY.network, 'n_layers': 2})
    network = build_network(two.network, jax.random.key(0))
    shapes = [leaf.shape for leaf in jax.tree.leaves(empty_memory(two, network, 7))]
    assert all(shape[0] == 7 for shape in shapes) and shapes.count((7, 4)) == 2


def longest_step(spec, bound, counts, monkeypatch):
    """Take one step down the plain gradient; return how far the last bias goes."""
    monkeypatch.setattr(stateful, 'LARGEST_GRADIENT', bound)
    rng = np.random.default_rng(6)
    network = build_network(spec.network, jax.random.key(1))
    raw, fresh = raw_of(rng, *counts.shape), np.zeros(counts.shape, bool)
    raw = raw if spec is VELOCITY else raw[:, :, None]
    target = np.zeros(counts.shape, np.int32 if spec.labels else np.float32)
    optimizer = make_optimizer('sgd', 1.0, max_grad_norm=None)
    memory = empty_memory(spec, network, len(counts))
    learned = Learned(network, optimizer.init(network), memory)
    step = make_chunk_step(spec, optimizer)
    learned, _ = step(learned, raw, fresh, target, counts, np.full(counts.shape, 1e-3, np.float32))
    moved = learned.network.layers[-1].b.value - network.layers[-1].b.value
    return float(jnp.linalg.norm(moved))


@pytest.mark.parametrize('n_counting', [1, 4])
def test_a_filter_learns_no_more_of_a_sample_than_the_bound(n_counting, monkeypatch):
    counts = np.zeros((4, 6), bool)
    counts[:n_counting, 2:] = True
    free = longest_step(VELOCITY, 1e9, counts, monkeypatch)
    assert longest_step(VELOCITY, 1e6, counts, monkeypatch) == pytest.approx(free, rel=1e-6)
    # The loss is a mean over the rows that count, in each of which six samples teach.
    assert longest_step(VELOCITY, 1e-4 * free, counts, monkeypatch) <= 6.001 * 1e-4 * free
    assert longest_step(VELOCITY, 1e-4 * free, counts, monkeypatch) > 1e-4 * free / 4


def test_what_steers_no_filter_is_not_bounded(monkeypatch):
    counts = np.ones((4, 6), bool)
    free = longest_step(LABEL, 1e9, counts, monkeypatch)
    assert longest_step(LABEL, 1e-4 * free, counts, monkeypatch) == free > 0
