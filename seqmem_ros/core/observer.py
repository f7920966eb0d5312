r"""
A tracking filter whose gains are chosen, sample by sample, by a network with memory.

The filter keeps position, velocity and acceleration of one joint and corrects them with the
innovation r, what the new position has that was not predicted:

.. math::

    v^- &= v + a T, \quad r = p_t - (p + v T + a T^2 / 2) \\
    p &\leftarrow p_t - (1 - k_1) r, \quad v \leftarrow v^- + k_2 r / T, \quad
    a \leftarrow \rho a + k_3 r / T^2

With :math:`k_1 = 1 - (1-b)^3`, :math:`k_2 = \tfrac32 b^2 (2 - b)`, :math:`k_3 = b^3` this is the
fading-memory filter of order two with bandwidth b (Zarchan and Musoff, *Fundamentals of Kalman
Filtering*, 3rd ed. 2009, Table 3.3, with :math:`\beta = 1 - b`). The network steers b, a factor
on each gain, the decay :math:`\rho`, and how far the velocity is pulled to a mean, with weights
that it chooses, of the differences over lags 1 to 4. To let a network choose the gain of a
filter from its innovations is the idea of KalmanNet (Revach et al., *IEEE Trans. Signal
Processing* 70, 2022, Section III).

Among what it sees are tests of the filter and of the recording, kept as running means: whether
the innovations persist, which are white if the gains are right (Mehra, *IEEE Trans. Automatic
Control* 15(2), 1970, 175-184), and whether the second and third divided differences of the
positions do, which turn round at each sample where they are noise.

All that the network sees is even: it does not change when every position changes its sign, so
neither do the gains, and the estimate of the mirrored motion is exactly the mirrored estimate. A
joint that stands still from its first sample reads exactly zero.

A label may depend on the direction. As every function is the sum of an even and an odd one, the
network gives two numbers e and o for each label, both even, and the logit is

.. math:: e + o \, v / (|v| + v_0), \quad v_0 = 0.001 \text{ rad/s}.
"""

from typing import Any

import jax
import jax.numpy as jnp

from seqmem_ros.nn import Module

N_LAGS = 4
N_FEATURES = 23
N_STEERING = 6 + N_LAGS
# An even and an odd part of each logit.
PARTS_OF_LABEL = 2
# Slower than this, the direction begins not to count.
DIRECTION_RAD_S = 1e-3

# Below one count of any encoder: a position that differs by less has not moved.
STILL_RAD = 1e-7
# What is smaller looks like this to the network: a part of one count of 20 bits, and of the way
# since the last sample. Logarithms would else blow up the last digit of single precision.
FLOOR_RAD = 1e-6
FLOOR_SHARE = 1e-4
# No joint goes beyond; a filter that is badly steered stays finite, and so do its gradients.
MOST_RAD_S = 1e4
MOST_RAD_S2 = 1e7
SHORTEST_STEP_S = 1e-6
# A step counts as at least this part of the time that the four lags took.
LEAST_STEP_RATIO = 8.0
# Memory of the running means, in samples.
FAST_SAMPLES = 5
MEDIUM_SAMPLES = 10
SLOW_SAMPLES = 30
SLOWEST_SAMPLES = 50
# The smallest movement seen stands for one count; it is forgotten over about 500 movements.
COUNT_GROWTH = 1.002
# A joint that stands still for an hour looks like one that stands still for so many samples.
MOST_STILL_SAMPLES = 500.0
# Bounds of stability are k_2 < 4 - 2 k_1 and k_3 < 2 k_1 k_2 / (2 - k_1), at least k_1 k_2.
# Without noise, the best gains for white jerk are 1, 1.73 and 1.49: leave room for them where an
# encoder is fine and the motion fast.
HIGHEST_K_2 = 1.8
STABLE_SHARE = 0.9

State = dict[str, jax.Array]


class SteeredObserver(Module):
    """
    The filter and its network, as one streaming layer.

    A sample is the vector ``(d_1 .. d_4, T_1 .. T_4)``: differences of the position over lags 1
    to 4 in rad, and the times that they took in s (see
    :meth:`seqmem_ros.core.window.JointWindows.differences`).

    :param network: streaming network of ``N_FEATURES`` inputs and
        ``N_STEERING + PARTS_OF_LABEL * n_labels`` outputs
    :param n_labels: number of classes
    :param bounded: give no velocity that the last five positions cannot explain; off while fresh
        weights are trained, since what is cut off teaches nothing
    """

    def __init__(self, network: Module, n_labels: int = 0, bounded: bool = True):
        self.network = network
        self.n_labels = n_labels
        self.bounded = bounded

    def init_state(self, batch: int | None = None, n_in: int | None = None) -> tuple[State, Any]:
        """
        Make the empty memory.

        :param batch: number of independent joints, None for a single one
        :param n_in: not used
        :returns: state of the filter, and of the network
        """
        zero = jnp.zeros(() if batch is None else (batch,))
        names = (
            'offset', 'velocity', 'acceleration', 'innovation', 'moved', 'count', 'still',
            'noise_fast', 'noise_slow', 'bend_slow', 'persistence_fast', 'persistence_slow',
            'smoothness', 'smoothness_of_change',
        )  # fmt: skip
        return dict.fromkeys(names, zero), self.network.init_state(batch)

    def step(self, x: jax.Array, state: tuple[State, Any]) -> tuple[jax.Array, tuple[State, Any]]:
        """
        Advance by one sample.

        :param x: differences and times, shape (8,) or (batch, 8)
        :param state: from :meth:`init_state` or the step before
        :returns: the velocity in rad/s, followed by the logits, shape (1 + n_labels,) or
            (batch, 1 + n_labels); and the new state
        """
        memory, network_state = state
        difference, elapsed_s = x[..., :N_LAGS], x[..., N_LAGS:]
        predicted = _predict(difference, elapsed_s, memory)
        features = _features(difference, elapsed_s, memory, predicted)
        outputs, network_state = self.network.step(features, network_state)
        memory = _correct(difference, elapsed_s, memory, predicted, outputs[..., :N_STEERING])
        velocity = memory['velocity'][..., None]
        if self.bounded:
            most = _fastest(difference, elapsed_s, memory['count'])[..., None]
            velocity = jnp.clip(velocity, -most, most)
        even, odd = jnp.split(outputs[..., N_STEERING:], PARTS_OF_LABEL, axis=-1)
        logits = even + odd * velocity / (jnp.abs(velocity) + DIRECTION_RAD_S)
        return jnp.concatenate([velocity, logits], axis=-1), (memory, network_state)

    def forward(self, seq: jax.Array, rng_key: jax.Array | None = None) -> jax.Array:
        """
        Run over a whole sequence from the empty memory.

        :param seq: shape (T, 8) or (batch, T, 8)
        :param rng_key: not used
        :returns: shape (T, 1 + n_labels) or (batch, T, 1 + n_labels)
        """
        batch = None if seq.ndim == 2 else seq.shape[0]
        # The gains depend on the innovations, these on earlier gains: there is no other order.
        _, outputs = jax.lax.scan(
            lambda state, x: self.step(x, state)[::-1],
            self.init_state(batch),
            jnp.moveaxis(seq, -2, 0),
        )
        return jnp.moveaxis(outputs, 0, -2)


def _predict(difference: jax.Array, elapsed_s: jax.Array, memory: State) -> State:
    step_s = jnp.maximum(elapsed_s[..., 0], SHORTEST_STEP_S)
    velocity = memory['velocity'] + memory['acceleration'] * step_s
    # The position is kept as its offset from the last measured one, so that single precision
    # serves at any distance from zero.
    travel = memory['velocity'] * step_s + memory['acceleration'] * step_s**2 / 2
    innovation = difference[..., 0] - memory['offset'] - travel
    return {'step_s': step_s, 'velocity': velocity, 'innovation': innovation}


def _features(
    difference: jax.Array, elapsed_s: jax.Array, memory: State, predicted: State
) -> jax.Array:
    """Even functions of everything the filter knows, each of order one; (..., N_FEATURES)."""
    step_s, innovation = predicted['step_s'], predicted['innovation']
    travel = predicted['velocity'] * step_s
    bend = memory['acceleration'] * step_s**2
    newest, oldest = difference[..., 0], difference[..., -1]
    floor = FLOOR_RAD + FLOOR_SHARE * (jnp.abs(newest) + jnp.abs(travel))
    sizes = (
        innovation, newest, difference[..., 1], oldest, travel, bend,
        memory['noise_fast'], memory['noise_slow'], memory['bend_slow'], memory['count'],
    )  # fmt: skip
    agreements = (
        (innovation, travel), (innovation, bend), (innovation, memory['innovation']),
        (newest, memory['moved']), (oldest / N_LAGS, travel), (travel, bend),
    )  # fmt: skip
    return jnp.stack(
        [_size(value, floor) for value in sizes]
        + [_agreement(a, b, floor) for a, b in agreements]
        + [
            jnp.log(step_s) + 5,
            elapsed_s[..., -1] / step_s / N_LAGS,
            memory['persistence_fast'],
            memory['persistence_slow'],
            memory['smoothness'],
            memory['smoothness_of_change'],
            jnp.log1p(memory['still']) / 3,
        ],
        axis=-1,
    )


def _correct(
    difference: jax.Array, elapsed_s: jax.Array, memory: State, predicted: State, steering: Any
) -> State:
    step_s, innovation = predicted['step_s'], predicted['innovation']
    bandwidth = jax.nn.sigmoid(steering[..., 0] - 1)
    k_1 = jnp.minimum((1 - (1 - bandwidth) ** 3) * jnp.exp(jnp.tanh(steering[..., 1])), 1)
    k_2 = 1.5 * bandwidth**2 * (2 - bandwidth) * jnp.exp(1.5 * jnp.tanh(steering[..., 2]))
    k_3 = bandwidth**3 * jnp.exp(2 * jnp.tanh(steering[..., 3]))
    # Whatever the network asks for, each set of gains alone is that of a stable filter: Tenne and
    # Singh, Characterizing performance of alpha-beta-gamma filters, IEEE TAES 38(3), 2002, Eq. 9.
    k_2 = jnp.minimum(k_2, HIGHEST_K_2)
    k_3 = jnp.minimum(k_3, STABLE_SHARE * k_1 * k_2)
    decay = jax.nn.sigmoid(steering[..., 4] + 3)
    pull = jax.nn.sigmoid(steering[..., 5] - 3)
    # Two stamps that nearly coincide say little of the velocity and less of the acceleration.
    shortest_s = elapsed_s[..., -1] / LEAST_STEP_RATIO
    lag_velocity = difference / jnp.maximum(elapsed_s, shortest_s[..., None] + SHORTEST_STEP_S)
    gain_s = jnp.maximum(step_s, shortest_s)
    mean_velocity = jnp.sum(jax.nn.softmax(steering[..., 6:]) * lag_velocity, axis=-1)
    velocity = predicted['velocity'] + k_2 * innovation / gain_s
    acceleration = decay * memory['acceleration'] + k_3 * innovation / gain_s**2
    new = {
        'offset': -(1 - k_1) * innovation,
        'velocity': _clip((1 - pull) * velocity + pull * mean_velocity, MOST_RAD_S),
        'acceleration': _clip((1 - pull) * acceleration, MOST_RAD_S2),
        **_noise(innovation, memory['acceleration'] * step_s**2, memory),
        **_smoothness(difference, elapsed_s, memory),
        **_counts(difference[..., 0], memory),
    }
    # Without a time step there is no velocity: the first sample only sets the position.
    started = elapsed_s[..., 0] > 0
    return {name: jnp.where(started, new[name], memory[name]) for name in memory}


def _fastest(difference: jax.Array, elapsed_s: jax.Array, count: jax.Array) -> jax.Array:
    """
    Say how fast a joint can be, in rad/s.

    Over one of the last four steps it went at least that fast in the mean, up to one count. If it
    has sped up evenly from rest since two samples ago, it is now faster than that by a third.
    """
    way, steps, mean_step_s = _steps(difference, elapsed_s)
    speeds = (jnp.abs(way) + count[..., None]) / (steps * mean_step_s)
    return 4 / 3 * jnp.max(speeds, axis=-1)


def _steps(difference: jax.Array, elapsed_s: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Ways of the last four steps, newest first, their times in mean steps, and the mean in s."""
    mean_step_s = jnp.maximum(elapsed_s[..., -1:] / N_LAGS, SHORTEST_STEP_S)
    steps = jnp.maximum(jnp.diff(elapsed_s, prepend=0) / mean_step_s, N_LAGS / LEAST_STEP_RATIO)
    return jnp.diff(difference, prepend=0), steps, mean_step_s


def _noise(innovation: jax.Array, bend: jax.Array, memory: State) -> State:
    """Keep what tells whether the filter follows: innovations that persist ask for more gain."""
    agreement = _agreement(innovation, memory['innovation'], FLOOR_RAD)
    size = jnp.abs(innovation)
    return {
        'innovation': innovation,
        'noise_fast': _leak(memory['noise_fast'], size, FAST_SAMPLES),
        'noise_slow': _leak(memory['noise_slow'], size, SLOW_SAMPLES),
        'bend_slow': _leak(memory['bend_slow'], jnp.abs(bend), SLOW_SAMPLES),
        'persistence_fast': _leak(memory['persistence_fast'], agreement, MEDIUM_SAMPLES),
        'persistence_slow': _leak(memory['persistence_slow'], agreement, SLOWEST_SAMPLES),
    }


def _smoothness(difference: jax.Array, elapsed_s: jax.Array, memory: State) -> State:
    """Keep what tells motion from noise whatever the gains: noise turns round at each sample."""
    way, steps, _ = _steps(difference, elapsed_s)
    # Divided differences of the last five positions, per mean step and newest first.
    change, span = way / steps, steps
    kept = {}
    for order, name in enumerate(('smoothness', 'smoothness_of_change'), start=2):
        span = span[..., :-1] + steps[..., order - 1 :]
        change = jnp.diff(change) / (span / order)
        agreement = _agreement(change[..., 0], change[..., 1], FLOOR_RAD)
        kept[name] = _leak(memory[name], agreement, SLOW_SAMPLES)
    return kept


def _counts(newest: jax.Array, memory: State) -> State:
    """Keep what tells about the encoder: its count, its repeats."""
    moves = jnp.abs(newest) > STILL_RAD
    count = jnp.minimum(memory['count'] * COUNT_GROWTH, jnp.abs(newest))
    count = jnp.where(memory['count'] == 0, jnp.abs(newest), count)
    return {
        'moved': jnp.where(moves, newest, memory['moved']),
        'count': jnp.where(moves, count, memory['count']),
        'still': jnp.where(moves, 0.0, jnp.minimum(memory['still'] + 1, MOST_STILL_SAMPLES)),
    }


def _leak(mean: jax.Array, value: jax.Array, samples: int) -> jax.Array:
    return mean + (value - mean) / samples


def _clip(value: jax.Array, most: float) -> jax.Array:
    return jnp.clip(value, -most, most)


def _size(value: jax.Array, floor: jax.Array) -> jax.Array:
    """Logarithm of a magnitude, about -1.2 to 2.2 between nothing and a radian."""
    return (jnp.log(jnp.abs(value) + floor) + 9) / 4


def _agreement(a: jax.Array, b: jax.Array, floor: jax.Array | float) -> jax.Array:
    """0.5 where two values agree, -0.5 where they are opposite, 0 where one is far smaller."""
    return a * b / (a**2 + b**2 + floor**2)
