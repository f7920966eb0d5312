"""The filter under constant gains: stable whatever is asked for, a classic where unsteered."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from seqmem_ros.core.observer import N_FEATURES
from seqmem_ros.core.observer import N_STEERING
from seqmem_ros.core.observer import SteeredObserver
from seqmem_ros.nn import Dense
from seqmem_ros.nn import Module

STEP_S = 0.01


class Constant(Module):
    """A network that always gives the same outputs."""

    def __init__(self, outputs):
        self._outputs = tuple(float(u) for u in outputs)

    def init_state(self, batch=None, n_in=None):
        return ()

    def step(self, x, state):
        return jnp.asarray(self._outputs, x.dtype), state


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def update_matrix(u, ratio=1.0):
    """
    Write down how offset, velocity T and acceleration T^2 go on where the position rests.

    ratio: how much longer than the step the time is that the gains are divided by.
    """
    b = sigmoid(u[..., 0] - 1)
    k_1 = np.minimum((1 - (1 - b) ** 3) * np.exp(np.tanh(u[..., 1])), 1)
    k_2 = np.minimum(1.5 * b**2 * (2 - b) * np.exp(1.5 * np.tanh(u[..., 2])), 1.8)
    k_3 = np.minimum(b**3 * np.exp(2 * np.tanh(u[..., 3])), 0.9 * k_1 * k_2)
    decay, keep = sigmoid(u[..., 4] + 3), 1 - sigmoid(u[..., 5] - 3)
    innovation = np.array([-1.0, -1.0, -0.5])
    predicted, old = np.array([0.0, 1.0, 1.0]), np.array([0.0, 0.0, 1.0])
    return np.stack(
        [
            -(1 - k_1)[..., None] * innovation,
            keep[..., None] * (predicted + (k_2 / ratio)[..., None] * innovation),
            keep[..., None] * (decay[..., None] * old + (k_3 / ratio**2)[..., None] * innovation),
        ],
        axis=-2,
    )


@pytest.mark.parametrize('ratio', [1.0, 3.0])
@pytest.mark.parametrize('size', [1.0, 5.0, 50.0])
def test_every_set_of_gains_alone_is_stable(size, ratio):
    u = size * np.random.default_rng(0).uniform(-1, 1, (20_000, 6))
    radius = np.abs(np.linalg.eigvals(update_matrix(u, ratio))).max(axis=1)
    # With next to no bandwidth all three are next to 1, and a triple one is only so exact.
    assert radius.max() <= 1 + 1e-5
    assert radius[u[:, 0] > -4].max() < 1


@pytest.mark.parametrize('elapsed', [(1, 2, 3, 4), (1, 11, 21, 31)])
def test_the_filter_has_that_matrix(elapsed, x64):
    rng = np.random.default_rng(1)
    elapsed_s = STEP_S * np.array(elapsed)
    ratio = max(elapsed[3] / 8, 1.0)
    for u in [*rng.uniform(-3, 3, (6, N_STEERING)), *rng.uniform(-50, 50, (6, N_STEERING))]:
        observer = SteeredObserver(Constant(u))
        empty, network_state = observer.init_state()
        x = jnp.concatenate([jnp.zeros(4), jnp.asarray(elapsed_s)])
        names, units = ('offset', 'velocity', 'acceleration'), STEP_S ** np.arange(3.0)

        def go_on(values, observer=observer, x=x, empty=empty, state=network_state, names=names):
            _, (after, _) = observer.step(x, ({**empty, **dict(zip(names, values))}, state))
            return jnp.stack([after[name] for name in names])

        matrix = np.stack(jax.jacobian(go_on)([jnp.ones(()) * 0.1] * 3), axis=1)
        expected = update_matrix(u[:6], ratio)
        np.testing.assert_allclose(matrix * units[:, None] / units, expected, atol=1e-12)


@pytest.mark.parametrize('bandwidth', [0.1, 0.3, 0.6])
def test_unsteered_it_fits_a_parabola_with_fading_memory(bandwidth, x64):
    """Without factors, decay and pull: least squares with weights (1 - b)^k over all the past."""
    u = np.array([1 + np.log(bandwidth / (1 - bandwidth)), 0, 0, 0, 50, -50, 0, 0, 0, 0])
    n = 400
    rng = np.random.default_rng(2)
    positions = np.cumsum(rng.standard_normal(n)) * 0.01
    index = np.arange(n)
    before = np.maximum(index[:, None] - np.arange(1, 5), 0)
    x = np.concatenate(
        [positions[:, None] - positions[before], (index[:, None] - before) * STEP_S], axis=1
    )
    velocity = SteeredObserver(Constant(u)).forward(jnp.asarray(x))[:, 0]
    ages = index[-1] - index
    # polyfit squares its weights.
    slope = np.polyfit(-ages * STEP_S, positions, 2, w=(1 - bandwidth) ** (ages / 2))[1]
    assert float(velocity[-1]) == pytest.approx(slope, rel=1e-6, abs=1e-6)


def test_a_ramp_is_followed_without_error_and_a_step_is_forgotten(x64):
    u = np.array([1.0, 0, 0, 0, 50, -50, 0, 0, 0, 0])  # b = 0.5
    n = 120
    ramp = 0.3 * STEP_S * np.arange(n)
    step = np.where(np.arange(n) < 40, 0.0, 0.2)
    for positions, final in ((ramp, 0.3), (step, 0.0)):
        before = np.maximum(np.arange(n)[:, None] - np.arange(1, 5), 0)
        x = np.concatenate(
            [positions[:, None] - positions[before], (np.arange(n)[:, None] - before) * STEP_S],
            axis=1,
        )
        velocity = np.asarray(SteeredObserver(Constant(u)).forward(jnp.asarray(x))[:, 0])
        assert velocity[-1] == pytest.approx(final, abs=1e-6)
    # The innovation of the step is its height: k_2 r / T with k_2 = 1.5 b^2 (2 - b) = 0.5625.
    np.testing.assert_array_equal(velocity[:40], 0.0)
    assert velocity[40] == pytest.approx(0.5625 * 0.2 / STEP_S, rel=1e-9)


def test_a_badly_steered_filter_stays_finite_and_so_do_its_gradients():
    rng = np.random.default_rng(3)
    n = 300
    stamps_s = np.cumsum(rng.choice([1e-9, 1e-6, 1e-3, 0.2], n))
    positions = np.cumsum(rng.standard_normal(n) * 10.0 ** rng.integers(-9, 9, n))
    before = np.maximum(np.arange(n)[:, None] - np.arange(1, 5), 0)
    x = np.concatenate(
        [positions[:, None] - positions[before], stamps_s[:, None] - stamps_s[before]], axis=1
    ).astype(np.float32)

    class Free(Module):
        """A network whose outputs are its parameters."""

        def __init__(self, outputs):
            self.dense = Dense(N_FEATURES, N_STEERING, jax.random.key(0))
            self.dense.W.value = 0.0
            self.dense.b.value = outputs

        def init_state(self, batch=None, n_in=None):
            return ()

        def step(self, x, state):
            return self.dense.forward(x), state

    loss = jax.jit(jax.value_and_grad(lambda observer: observer.forward(x).mean()))
    for _ in range(20):
        value, gradient = loss(SteeredObserver(Free(rng.uniform(-8, 8, N_STEERING))))
        assert np.isfinite(value)
        assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(gradient))
