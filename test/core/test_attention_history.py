"""Streaming networks against the whole history at every sample, the filter in plain NumPy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from seqmem_ros.core.joints import JointSample
from seqmem_ros.core.network_estimator import NetworkEstimator
from seqmem_ros.core.stream import Stream

N_SAMPLES = 60


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


class NumpyObserver:
    """The equations of the steered filter with its position kept as it is, float64."""

    def __init__(self):
        self.history = []
        self.position = self.velocity = self.acceleration = 0.0
        self.last_innovation = self.moved = self.count = self.still = 0.0
        self.fast = self.slow = self.bend = 0.0
        self.persistence = self.persistence_slow = self.smooth = self.smoother = 0.0

    def features(self, time_s, position):
        """Take a sample in and say what the network sees."""
        self.history.append((time_s, position))
        if len(self.history) == 1:
            self.position = position
        before = [self.history[max(len(self.history) - 1 - lag, 0)] for lag in (1, 2, 3, 4)]
        self.elapsed = np.array([time_s - t for t, _ in before])
        self.lags = np.array([position - p for _, p in before])
        self.step = max(self.elapsed[0], 1e-6)
        self.predicted = self.velocity + self.acceleration * self.step
        expected = self.velocity * self.step + self.acceleration * self.step**2 / 2
        self.innovation = position - (self.position + expected)
        way, bend = self.predicted * self.step, self.acceleration * self.step**2
        r, newest, oldest = self.innovation, self.lags[0], self.lags[3]
        floor = 1e-6 + 1e-4 * (abs(newest) + abs(way))
        sizes = [r, newest, self.lags[1], oldest, way, bend, self.fast, self.slow]
        sizes += [self.bend, self.count]
        pairs = [
            (r, way), (r, bend), (r, self.last_innovation), (newest, self.moved),
            (oldest / 4, way), (way, bend),
        ]  # fmt: skip
        return np.array(
            [(np.log(abs(size) + floor) + 9) / 4 for size in sizes]
            + [a * b / (a**2 + b**2 + floor**2) for a, b in pairs]
            + [
                np.log(self.step) + 5,
                self.elapsed[3] / self.step / 4,
                self.persistence,
                self.persistence_slow,
                self.smooth,
                self.smoother,
                np.log(1 + self.still) / 3,
            ]
        )

    def correct(self, u):
        """Follow the network's outputs; returns the velocity."""
        if self.elapsed[0] == 0:
            return self.velocity
        b, r = sigmoid(u[0] - 1), self.innovation
        k_1 = min((1 - (1 - b) ** 3) * np.exp(np.tanh(u[1])), 1)
        k_2 = min(1.5 * b**2 * (2 - b) * np.exp(1.5 * np.tanh(u[2])), 1.5)
        k_3 = min(b**3 * np.exp(2 * np.tanh(u[3])), 0.9 * k_1 * k_2)
        pull = sigmoid(u[5] - 3)
        weights = np.exp(u[6:] - max(u[6:]))
        slopes = self.lags / np.maximum(self.elapsed, self.elapsed[3] / 8 + 1e-6)
        mean = weights @ slopes / weights.sum()
        time_s = max(self.step, self.elapsed[3] / 8)
        self.position = self.history[-1][1] - (1 - k_1) * r
        self.velocity = (1 - pull) * (self.predicted + k_2 * r / time_s) + pull * mean
        self.bend += (abs(self.acceleration) * self.step**2 - self.bend) / 30
        self.acceleration *= sigmoid(u[4] + 3)
        self.acceleration = (1 - pull) * (self.acceleration + k_3 * r / time_s**2)
        self._remember(r, self.lags[0])
        mean_s = self.elapsed[3] / 4
        steps = np.maximum(np.diff(self.elapsed, prepend=0), mean_s / 2)
        ways = np.diff(self.lags, prepend=0)
        self._look_back(ways * mean_s / steps, steps / mean_s)
        most = 4 / 3 * np.max((np.abs(ways) + self.count) / steps)
        return np.clip(self.velocity, -most, most)

    def _look_back(self, slopes, steps):
        bends = np.diff(slopes) / ((steps[1:] + steps[:-1]) / 2)
        changes = np.diff(bends) / ((steps[2:] + steps[1:-1] + steps[:-2]) / 3)
        a, b, c, d = bends[0], bends[1], changes[0], changes[1]
        self.smooth += (a * b / (a**2 + b**2 + 1e-12) - self.smooth) / 30
        self.smoother += (c * d / (c**2 + d**2 + 1e-12) - self.smoother) / 30

    def _remember(self, r, newest):
        agreement = r * self.last_innovation / (r**2 + self.last_innovation**2 + 1e-12)
        self.persistence += (agreement - self.persistence) / 10
        self.persistence_slow += (agreement - self.persistence_slow) / 50
        self.fast += (abs(r) - self.fast) / 5
        self.slow += (abs(r) - self.slow) / 30
        self.last_innovation = r
        if abs(newest) <= 1e-7:
            self.still = min(self.still + 1, 500)
            return
        self.still, self.moved = 0, newest
        self.count = min(1.002 * self.count, abs(newest)) if self.count else abs(newest)


@pytest.fixture
def recording(quantised_motion):
    rng = np.random.default_rng(4)
    stamps_ns = 10**9 + np.cumsum(rng.integers(8 * 10**6, 12 * 10**6, N_SAMPLES))
    return stamps_ns, np.stack([quantised_motion(stamp / 1e9) for stamp in stamps_ns])


@pytest.mark.parametrize('name', ['attention', 'gru', 'label'])
def test_a_stream_equals_the_whole_history_at_every_sample(name, x64, make_model, recording):
    """
    At each sample all features so far go through the network at once, from nothing.

    For attention that is the banded mask over all of them: two layers that see five samples each
    reach back over nine, further than any window holds.
    """
    model = make_model(name)
    for param in model.network.params():
        param.value = jnp.asarray(param.value, jnp.float64)
    whole = jax.jit(model.network.forward)
    stamps_ns, positions = recording
    stream, joints = Stream(NetworkEstimator(model)), ('a', 'b', 'c')
    observers, features = [NumpyObserver() for _ in joints], []
    n_compared = 0
    for t, (stamp_ns, position) in enumerate(zip(stamps_ns, positions)):
        estimate = stream.push(JointSample(int(stamp_ns), joints, position))
        seen = [o.features(stamp_ns / 1e9, p) for o, p in zip(observers, position)]
        # A later sample must not matter, so that one length serves all: one compilation.
        features.append(seen)
        padded = np.zeros((3, N_SAMPLES, 23))
        padded[:, : t + 1] = np.swapaxes(features, 0, 1)
        outputs = np.asarray(whole(padded))[:, t]
        velocity = [o.correct(u[:10]) for o, u in zip(observers, outputs)]
        if estimate is None:
            continue
        n_compared += 1
        if name != 'label':
            # The stream's inputs are in single precision, whatever computes with them.
            np.testing.assert_allclose(estimate.velocity, velocity, rtol=2e-5, atol=2e-5)
            continue
        even, odd, speed = outputs[:, 10:12], outputs[:, 12:], np.abs(velocity)[:, None] + 1e-3
        odds = np.exp(even + odd * np.array(velocity)[:, None] / speed)
        expected = odds / odds.sum(axis=1, keepdims=True)
        # Where a joint hardly moves, the direction turns with the last digit of the velocity.
        tolerance = 2e-5 * (1 + np.abs(odd).max() * 1e-3 / speed**2)
        assert (np.abs(estimate.scores - expected) <= tolerance).all()
    assert n_compared == N_SAMPLES - 4


def test_attention_reaches_back_over_nine_samples_and_no_further(x64, make_model):
    """What makes the reference above one of more than the last five samples."""
    network = make_model('attention').network
    features = np.random.default_rng(0).standard_normal((20, 23))
    last = np.asarray(network.forward(features))[-1]
    for age in range(20):
        changed = features.copy()
        changed[19 - age] += 1.0
        moved = np.abs(np.asarray(network.forward(changed))[-1] - last).max()
        assert (moved > 1e-6) == (age < 9), age
