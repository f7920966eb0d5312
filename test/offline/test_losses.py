"""Losses against NumPy, and what padding may do to them: nothing."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from seqmem_ros.offline.losses import cross_entropy
from seqmem_ros.offline.losses import huber
from seqmem_ros.offline.losses import log_cosh
from seqmem_ros.offline.losses import masked_mean
from seqmem_ros.offline.losses import mse

REGRESSION_LOSSES = [mse, huber, log_cosh]


def _data(seed=0):
    rng = np.random.default_rng(seed)
    prediction = rng.normal(size=(2, 4, 3)) * 2
    target = rng.normal(size=(2, 4, 3))
    mask = np.array([[1, 1, 1, 0], [1, 0, 0, 0]], bool)
    return prediction, target, mask


def test_mse_against_numpy():
    prediction, target, mask = _data()
    errors = (prediction - target)[mask]  # (4, 3): the samples that count
    assert mse(prediction, target) == pytest.approx(np.mean((prediction - target) ** 2), rel=1e-6)
    assert mse(prediction, target, mask) == pytest.approx(np.mean(errors**2), rel=1e-6)


@pytest.mark.parametrize('delta', [0.3, 1.0, 10.0])
def test_huber_against_its_two_branches(delta):
    prediction, target, mask = _data()
    errors = (prediction - target)[mask]
    expected = [
        e * e / 2 if abs(e) <= delta else delta * (abs(e) - delta / 2) for e in errors.ravel()
    ]
    got = huber(prediction, target, mask, delta=delta)
    assert got == pytest.approx(np.mean(expected), rel=1e-6)


def test_huber_gradient_is_the_clipped_error():
    errors = jnp.array([-3.0, -0.5, 0.0, 0.2, 4.0])
    gradient = jax.grad(lambda e: 5 * huber(e, jnp.zeros(5), delta=1.0))(errors)
    np.testing.assert_allclose(gradient, [-1, -0.5, 0, 0.2, 1], atol=1e-6)


def test_log_cosh_against_numpy_and_without_overflow():
    prediction, target, mask = _data()
    errors = (prediction - target)[mask]
    assert log_cosh(prediction, target, mask) == pytest.approx(
        np.mean(np.log(np.cosh(errors))), rel=1e-5
    )
    # cosh(1000) overflows; ln cosh e = |e| - ln 2 there.
    far = log_cosh(jnp.array([1000.0]), jnp.array([0.0]))
    assert far == pytest.approx(1000 - np.log(2), rel=1e-6)


def test_cross_entropy_against_numpy():
    rng = np.random.default_rng(1)
    logits = rng.normal(size=(2, 4, 5))
    labels = rng.integers(0, 5, size=(2, 4))
    mask = np.array([[1, 1, 1, 0], [1, 0, 0, 0]], bool)
    p = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
    nats = -np.log([[p[b, t, labels[b, t]] for t in range(4)] for b in range(2)])
    assert cross_entropy(logits, labels) == pytest.approx(nats.mean(), rel=1e-6)
    assert cross_entropy(logits, labels, mask) == pytest.approx(nats[mask].mean(), rel=1e-6)


def test_cross_entropy_by_hand():
    # Equal logits of 8 classes: ln 8 nats whichever is true.
    assert cross_entropy(jnp.zeros((1, 8)), jnp.array([3])) == pytest.approx(2.0794, abs=1e-4)


@pytest.mark.parametrize('loss', REGRESSION_LOSSES)
def test_padding_with_nan_changes_neither_value_nor_gradient(loss):
    prediction, target, mask = _data()
    dirty_prediction = np.where(mask[..., None], prediction, np.nan)
    dirty_target = np.where(mask[..., None], target, np.inf)
    value, gradient = jax.value_and_grad(loss)(jnp.array(prediction), target, mask)
    dirty_value, dirty_gradient = jax.value_and_grad(loss)(
        jnp.array(dirty_prediction), dirty_target, mask
    )
    assert value == dirty_value > 0
    np.testing.assert_array_equal(gradient, dirty_gradient)
    assert not gradient[~mask].any()


def test_cross_entropy_padding_with_nan_and_impossible_labels():
    logits = np.random.default_rng(2).normal(size=(3, 4))
    mask = np.array([True, True, False])
    value, gradient = jax.value_and_grad(cross_entropy)(
        jnp.array(logits), np.array([0, 3, 1]), mask
    )
    logits[2] = np.nan
    dirty_value, dirty_gradient = jax.value_and_grad(cross_entropy)(
        jnp.array(logits), np.array([0, 3, -7]), mask
    )
    assert value == dirty_value
    np.testing.assert_array_equal(gradient, dirty_gradient)


def test_nothing_counts_gives_zero():
    assert masked_mean(jnp.ones((2, 3)), np.zeros((2, 3), bool)) == 0


def test_errors_name_both_shapes():
    with pytest.raises(ValueError, match=r'shape of the prediction, \(2, 3\), got \(3, 2\)'):
        mse(jnp.zeros((2, 3)), jnp.zeros((3, 2)))
    with pytest.raises(ValueError, match=r'leading axes of the prediction, \(2, 3\), got \(3,\)'):
        mse(jnp.zeros((2, 3)), jnp.zeros((2, 3)), np.ones(3, bool))
    with pytest.raises(ValueError, match=r'each row of logits, shape \(2,\), got \(2, 1\)'):
        cross_entropy(jnp.zeros((2, 3)), np.zeros((2, 1), int))
    with pytest.raises(ValueError, match='delta: expected a number above 0, got 0'):
        huber(jnp.zeros(2), jnp.zeros(2), delta=0)
