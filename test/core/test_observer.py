"""The steered filter against its equations, and what its form promises."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from seqmem_ros import nn
from seqmem_ros.core.observer import N_FEATURES
from seqmem_ros.core.observer import N_STEERING
from seqmem_ros.core.observer import SteeredObserver


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def softmax(x):
    weights = np.exp(x - x.max())
    return weights / weights.sum()


def reference(positions, times_s, weights, bias):
    """
    Run the filter in plain NumPy, one network layer ``W f + b``, from the module's equations.

    Returns velocities and the features of each sample.
    """
    offset, velocity, acceleration = 0.0, 0.0, 0.0
    innovation_before = moved = count = still = 0.0
    fast = slow = bend = persistence = persistence_slow = smooth = smoother = 0.0
    velocities, all_features = [], []

    def log_size(x, floor):
        return (np.log(abs(x) + floor) + 9) / 4

    def agreement(a, b, floor):
        return a * b / (a * a + b * b + floor * floor)

    for t, p in enumerate(positions):
        lag = [p - positions[max(t - k, 0)] for k in (1, 2, 3, 4)]
        took = [times_s[t] - times_s[max(t - k, 0)] for k in (1, 2, 3, 4)]
        dt = max(took[0], 1e-6)
        travel = velocity * dt + acceleration * dt**2 / 2
        predicted = velocity + acceleration * dt
        r = lag[0] - offset - travel
        ago, back = [0.0, *took], [0.0, *lag]
        h = [max((ago[k + 1] - ago[k]) / max(took[3] / 4, 1e-6), 0.5) for k in range(4)]
        floor = 1e-6 + 1e-4 * (abs(lag[0]) + abs(predicted * dt))
        f = [log_size(v, floor) for v in (
            r, lag[0], lag[1], lag[3], predicted * dt, acceleration * dt**2, fast, slow, bend,
            count,
        )]  # fmt: skip
        f += [agreement(a, b, floor) for a, b in (
            (r, predicted * dt), (r, acceleration * dt**2), (r, innovation_before),
            (lag[0], moved), (lag[3] / 4, predicted * dt), (predicted * dt, acceleration * dt**2),
        )]  # fmt: skip
        f += [np.log(dt) + 5, took[3] / dt / 4, persistence, persistence_slow, smooth, smoother]
        f += [np.log1p(still) / 3]
        all_features.append(f)
        u = weights @ np.array(f) + bias
        if took[0] > 0:
            b = sigmoid(u[0] - 1)
            k_1 = min((1 - (1 - b) ** 3) * np.exp(np.tanh(u[1])), 1)
            k_2 = min(1.5 * b**2 * (2 - b) * np.exp(1.5 * np.tanh(u[2])), 1.8)
            k_3 = min(b**3 * np.exp(2 * np.tanh(u[3])), 0.9 * k_1 * k_2)
            decay, pull = sigmoid(u[4] + 3), sigmoid(u[5] - 3)
            gain_dt = max(dt, took[3] / 8)
            mean = softmax(u[6:]) @ (np.array(lag) / np.maximum(took, took[3] / 8 + 1e-6))
            bend += (abs(acceleration * dt**2) - bend) / 30
            acceleration = (1 - pull) * (decay * acceleration + k_3 * r / gain_dt**2)
            velocity = (1 - pull) * (predicted + k_2 * r / gain_dt) + pull * mean
            velocity, acceleration = np.clip(velocity, -1e4, 1e4), np.clip(acceleration, -1e7, 1e7)
            offset = -(1 - k_1) * r
            persistence += (agreement(r, innovation_before, 1e-6) - persistence) / 10
            persistence_slow += (agreement(r, innovation_before, 1e-6) - persistence_slow) / 50
            ways = [(back[k + 1] - back[k]) / h[k] for k in range(4)]
            bends = [2 * (ways[k] - ways[k + 1]) / (h[k] + h[k + 1]) for k in range(3)]
            smooth += (agreement(bends[0], bends[1], 1e-6) - smooth) / 30
            changes = [3 * (bends[k] - bends[k + 1]) / sum(h[k : k + 3]) for k in range(2)]
            smoother += (agreement(changes[0], changes[1], 1e-6) - smoother) / 30
            innovation_before = r
            fast += (abs(r) - fast) / 5
            slow += (abs(r) - slow) / 30
            if abs(lag[0]) > 1e-7:
                count = abs(lag[0]) if count == 0 else min(1.002 * count, abs(lag[0]))
                moved, still = lag[0], 0.0
            else:
                still = min(still + 1, 500.0)
        mean_dt = max(took[3] / 4, 1e-6)
        speeds = [(abs(back[k + 1] - back[k]) + count) / (h[k] * mean_dt) for k in range(4)]
        velocities.append(np.clip(velocity, -4 / 3 * max(speeds), 4 / 3 * max(speeds)))
    return np.array(velocities), np.array(all_features)


def inputs(positions, times_s):
    """Differences and times of lags 1 to 4, (T, 8)."""
    rows = []
    for t in range(len(positions)):
        before = [max(t - k, 0) for k in (1, 2, 3, 4)]
        rows.append(
            [positions[t] - positions[i] for i in before]
            + [times_s[t] - times_s[i] for i in before]
        )
    return np.array(rows)


@pytest.fixture
def motion():
    rng = np.random.default_rng(3)
    times_s = 10 + np.cumsum(rng.uniform(0.0005, 0.012, 400))
    count = 2 * np.pi / 2**12
    positions = np.round(0.3 * np.sin(4 * times_s) / count) * count
    positions[150:260] = positions[150]  # stands still for a while
    return positions, times_s


def linear_network(weights, bias):
    dense = nn.Dense(N_FEATURES, N_STEERING, jax.random.key(0))
    dense.W.value = jnp.asarray(weights)
    dense.b.value = jnp.asarray(bias)
    return nn.Sequential(dense)


@pytest.mark.parametrize('seed', range(5))
def test_it_equals_its_equations(seed, x64, motion):
    rng = np.random.default_rng(seed)
    weights = 0.5 * rng.standard_normal((N_STEERING, N_FEATURES))
    bias = rng.standard_normal(N_STEERING)
    expected, _ = reference(*motion, weights, bias)
    observer = SteeredObserver(linear_network(weights, bias))
    got = observer.forward(jnp.asarray(inputs(*motion)))[:, 0]
    np.testing.assert_allclose(got, expected, rtol=1e-6, atol=1e-6)


def random_observer(seed=0):
    key = jax.random.key(seed)
    return SteeredObserver(nn.recurrent_net(N_FEATURES, 16, N_STEERING, key, cell='gru'))


def test_the_mirrored_motion_gives_the_mirrored_estimate(motion):
    positions, times_s = motion
    forward = jax.jit(random_observer().forward)
    there = forward(inputs(positions, times_s).astype(np.float32))
    back = forward(inputs(-positions, times_s).astype(np.float32))
    np.testing.assert_array_equal(there, -back)
    assert np.abs(there).max() > 0.5


@pytest.mark.parametrize('seed', range(3))
def test_no_estimate_is_beyond_what_the_last_positions_explain(seed):
    """Also where a sample shows the position of the one before, and the next goes twice as far."""
    rng = np.random.default_rng(seed)
    count = 1e-3
    positions = 0.5 * np.sin(0.06 * np.arange(400)) / count + rng.standard_normal(400)
    positions = np.round(positions) * count
    positions[100::50] = positions[99:-1:50]
    x = inputs(positions, 0.02 * np.arange(400)).astype(np.float32)
    # The highest gains, whatever the network sees.
    network = linear_network(np.zeros((N_STEERING, N_FEATURES)), [3, 1, 3, 3, 3, -9, 0, 0, 0, 0])
    velocity = np.asarray(SteeredObserver(network).forward(x))[:, 0]
    ways = np.abs(np.diff(positions, prepend=positions[0]))
    fastest = np.max([np.r_[np.zeros(k), ways[: len(ways) - k]] for k in range(4)], axis=0)
    counts = [0.0]
    for way in ways[1:]:
        counts.append(min(1.002 * counts[-1] or way, way) if way else counts[-1])
    most = 4 / 3 * (fastest + counts) / 0.02
    assert (np.abs(velocity) <= most * (1 + 1e-4)).all()
    # The filter itself goes on as it would: its next estimate is not held back by this one.
    free = np.asarray(SteeredObserver(network, bounded=False).forward(x))[:, 0]
    assert (np.abs(free) >= np.abs(velocity)).all() and (np.abs(free) > 1.1 * most).any()
    inside = np.abs(velocity) < 4 / 3 * fastest / 0.02
    np.testing.assert_allclose(velocity[inside], free[inside], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize('even', [True, False])
def test_smoothness_tells_motion_from_noise_whatever_the_steps(even):
    rng = np.random.default_rng(5)
    times_s = 0.01 * np.arange(300) if even else np.cumsum(rng.uniform(0.006, 0.014, 300))
    smooth, noise = np.sin(8 * times_s), 1e-3 * rng.standard_normal(300)
    step = jax.jit(random_observer().step)
    # Differences of a sine agree with those before, and those of white noise are opposite.
    for positions, sign in ((smooth, 1), (20 * noise, -1)):
        state = random_observer().init_state()
        for x in inputs(positions, times_s).astype(np.float32):
            _, state = step(x, state)
        for name in ('smoothness', 'smoothness_of_change'):
            assert sign * float(state[0][name]) > (0.25 if sign > 0 else 0.1), (name, sign)


def test_a_joint_that_never_moves_reads_exactly_zero(motion):
    _, times_s = motion
    still = inputs(np.full(len(times_s), 1.234), times_s).astype(np.float32)
    np.testing.assert_array_equal(jax.jit(random_observer().forward)(still), 0.0)


@pytest.mark.parametrize('bandwidth', [-50.0, -3.0, 0.0, 3.0, 50.0])
@pytest.mark.parametrize('factors', list(np.ndindex(3, 3, 3)))
def test_every_set_of_gains_alone_is_stable(bandwidth, factors):
    """The error of a resting filter decays: no eigenvalue of its update beyond 1."""
    u = np.zeros(N_STEERING)
    u[0] = bandwidth
    u[1:4] = 50.0 * (np.array(factors) - 1)
    u[4], u[5] = 50.0, -50.0  # no decay of the acceleration, no pull: the least damping
    observer = SteeredObserver(linear_network(np.zeros((N_STEERING, N_FEATURES)), u))
    at_rest = jnp.array([0.0] * 4 + [0.01, 0.02, 0.03, 0.04])
    update = np.zeros((3, 3))
    for column, name in enumerate(('offset', 'velocity', 'acceleration')):
        memory, network_state = observer.init_state()
        memory = {**memory, name: jnp.ones(()) * 100.0**column}
        _, (after, _) = observer.step(at_rest, (memory, network_state))
        update[:, column] = [
            after['offset'], after['velocity'] / 100, after['acceleration'] / 1e4
        ]  # fmt: skip
    assert np.abs(np.linalg.eigvals(update)).max() < 1 + 1e-5


def test_gradients_are_finite(motion):
    x = inputs(*motion).astype(np.float32)
    gradient_of = jax.jit(jax.grad(lambda observer: jnp.mean(observer.forward(x) ** 2)))
    for seed in range(3):
        leaves = jax.tree.leaves(gradient_of(random_observer(seed)))
        assert all(np.isfinite(leaf).all() for leaf in leaves)
        assert max(float(jnp.abs(leaf).max()) for leaf in leaves) > 0


def test_a_batch_equals_one_by_one(x64, motion):
    positions, times_s = motion
    batch = np.stack([inputs(scale * positions, times_s) for scale in (1.0, -0.3, 2.0)])
    observer = random_observer()
    together = observer.forward(batch)
    alone = [observer.forward(one) for one in batch]
    np.testing.assert_allclose(together, np.stack(alone), rtol=1e-6, atol=1e-6)


def test_a_label_has_a_part_that_turns_with_the_direction(x64, motion):
    """Logits are e + o v / (|v| + 0.001), with e and o from the network, one pair a label."""
    rng = np.random.default_rng(7)
    n_labels = 3
    dense = nn.Dense(N_FEATURES, N_STEERING + 2 * n_labels, jax.random.key(0))
    weights = 0.2 * rng.standard_normal((N_STEERING + 2 * n_labels, N_FEATURES))
    bias = rng.standard_normal(N_STEERING + 2 * n_labels)
    dense.W.value, dense.b.value = jnp.asarray(weights), jnp.asarray(bias)
    observer = SteeredObserver(nn.Sequential(dense), n_labels)
    velocity, features = reference(*motion, weights[:N_STEERING], bias[:N_STEERING])
    parts = features @ weights[N_STEERING:].T + bias[N_STEERING:]
    direction = (velocity / (np.abs(velocity) + 1e-3))[:, None]
    got = observer.forward(jnp.asarray(inputs(*motion)))
    np.testing.assert_allclose(got[:, 0], velocity, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(
        got[:, 1:], parts[:, :3] + parts[:, 3:] * direction, rtol=1e-6, atol=1e-6
    )
