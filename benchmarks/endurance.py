"""
Two things that no table of short recordings shows: ``python benchmarks/endurance.py --help``.

An hour without a restart, 1.8 million samples at 500 Hz: is the last minute as good as the first?
And inputs that no arm makes, within the joint's limits: does an estimate ever leave what the joint
could have done?
"""

import argparse
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Sequence
from dataclasses import dataclass
import time
from typing import Any

import jax
import numpy as np

from seqmem_ros.core.estimators import SHIPPED
from seqmem_ros.core.inputs import N_LAGS
from seqmem_ros.core.joints import NANOSECONDS_PER_SECOND
from seqmem_ros.core.model import SequenceModel
from seqmem_ros.core.weights import load_model
from seqmem_ros.offline.sequences import forward_together
from seqmem_ros.offline.sequences import raw_sequence
from seqmem_ros.offline.simulate import Encoder
from seqmem_ros.offline.simulate import Recording

SEED = (20_261_129, 1)
VELOCITY_MODELS = ('gru', 'lstm', 'attention')
RATE_HZ = 500
MINUTES = 60
MINUTE_S = 60
BITS = 14
NOISE_COUNTS = 0.5
# The first seconds of a stream are no measure of what follows.
WARM_UP_S = 2
MOST_SIGMAS = 4.0
LIMIT_RAD = 3.0
MOST_RATIO = 3.0
JOINTS = ('at work', 'turning on', 'still')


@dataclass(frozen=True)
class Drift:
    """
    Squared errors of one joint over the minutes of an endless stream.

    :ivar squares: mean of each second, rad^2/s^2, shape (M, S)
    """

    squares: np.ndarray

    @property
    def rmse(self) -> np.ndarray:
        """Root mean squared error of each minute but its first seconds, rad/s, shape (M,)."""
        return np.sqrt(self.squares[:, WARM_UP_S:].mean(axis=1))

    @property
    def sigmas(self) -> float:
        """
        How many standard errors the last minute is worse than the first.

        Second is compared with second, which had the same motion and other noise.
        """
        difference = (self.squares[-1] - self.squares[0])[WARM_UP_S:]
        error = np.std(difference, ddof=1) / np.sqrt(len(difference))
        return float(difference.mean() / error) if error > 0 else 0.0

    @property
    def holds(self) -> bool:
        """Whether the last minute is as good as the first, but for noise."""
        return self.sigmas <= MOST_SIGMAS


def drift(model: SequenceModel, minutes: int = MINUTES, minute_s: int = MINUTE_S) -> list[Drift]:
    """
    Run a model over a stream without a break; each minute has the same motion and fresh noise.

    :param model: a velocity model shared by all joints
    :param minutes: how many, M
    :param minute_s: how long each is, S seconds
    :returns: one for each of :data:`JOINTS`
    """
    state: Any = jax.vmap(lambda _: model.init_state())(np.arange(len(JOINTS)))
    advance = _advance_of(model)
    squares = []
    for raw, velocity in _minutes(minutes, minute_s):
        state, estimates = advance(state, raw)
        errors = np.asarray(estimates, dtype=np.float64) - velocity
        # (T, joints) -> (S, samples of a second, joints)
        seconds = errors.reshape(minute_s, RATE_HZ, len(JOINTS))
        squares.append(np.mean(seconds**2, axis=1))
    return [Drift(of_joint) for of_joint in np.stack(squares).transpose(2, 0, 1)]


def _advance_of(model: SequenceModel) -> Callable:
    """Compile a minute: (state, (T, joints, N_RAW)) -> state, (T, joints)."""

    def step(state: Any, raw: jax.Array) -> tuple[Any, jax.Array]:
        estimates, state = jax.vmap(model.step)(raw, state)
        return state, estimates

    return jax.jit(lambda state, raw: jax.lax.scan(step, state, raw))


def _minutes(minutes: int, minute_s: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Sense three joints minute by minute: raw inputs (T, 3, N_RAW) and velocities (T, 3)."""
    rng = np.random.default_rng(SEED)
    n_samples = minute_s * RATE_HZ
    count_rad = 2 * np.pi / 2**BITS
    tail = None
    for minute in range(minutes):
        # Times in whole samples: an hour later they are as exact as now.
        index = np.arange(n_samples)
        position, velocity = _joints(index / RATE_HZ, minute_s, minute)
        noise = NOISE_COUNTS * rng.standard_normal(position.shape)
        position = np.round(position / count_rad + noise) * count_rad
        # The lags of the first samples reach back into the minute before.
        before = N_LAGS if tail is not None else 0
        joined = position if tail is None else np.concatenate([tail, position])
        stamp_ns = (minute * n_samples + np.arange(-before, n_samples)) * (
            NANOSECONDS_PER_SECOND // RATE_HZ
        )
        raw = np.stack([raw_sequence(stamp_ns, column) for column in joined.T], axis=1)
        tail = position[-N_LAGS:]
        yield raw[before:], velocity


def _joints(time_s: np.ndarray, minute_s: int, minute: int) -> tuple[np.ndarray, np.ndarray]:
    """Move as in every minute: sines with whole turns a minute; the second joint turns on."""
    cycles, amplitude_rad = np.array([2, 5, 17, 43]), np.array([0.8, 0.3, 0.1, 0.03])
    omega = 2 * np.pi * cycles / minute_s
    angle = time_s[:, None] * omega
    work, work_rate = np.sin(angle) @ amplitude_rad, np.cos(angle) @ (amplitude_rad * omega)
    still = np.full_like(work, 0.3)
    turning = 1.0 * (minute * minute_s + time_s)
    position = np.stack([work, turning + work, still], axis=1)
    return position, np.stack([work_rate, 1.0 + work_rate, 0 * work], axis=1)


def stress_recordings(n_samples: int = 20_000) -> dict[str, Recording]:
    """
    Make what a joint within its limits can be asked to do at worst.

    :param n_samples: length of each
    :returns: by name; velocities are the differences that each sample can show
    """
    rng = np.random.default_rng(SEED)
    index = np.arange(n_samples)
    holds = rng.geometric(0.01, n_samples)
    jumps = np.repeat(rng.choice([-1.0, 1.0], n_samples), holds)[:n_samples]
    positions = {
        'white noise': rng.uniform(-1, 1, n_samples),
        'jumps from limit to limit': jumps,
        'every sample the other limit': (-1.0) ** index,
        'fastest of sines': np.sin(2 * np.pi * 0.23 * index),
        'chirp': np.sin(np.pi * 0.5 * index**2 / n_samples),
        'noise in bursts': rng.uniform(-1, 1, n_samples) * (index // 500 % 2),
        'one count': np.round(rng.random(n_samples)) * 2**-BITS,
        'sawtooth': 2 * (index % 250) / 250 - 1,
    }
    return {name: _sensed(rng, LIMIT_RAD * values) for name, values in positions.items()}


def _sensed(rng: np.random.Generator, position: np.ndarray) -> Recording:
    kept = np.flatnonzero(rng.random(len(position)) >= 0.02)
    stamp_ns = (1 + kept) * (NANOSECONDS_PER_SECOND // RATE_HZ)
    position = position[kept]
    velocity = np.gradient(position, stamp_ns / NANOSECONDS_PER_SECOND)
    return Recording(stamp_ns, position, velocity, 0 * velocity, Encoder(RATE_HZ, BITS), 'stress')


def largest_ratios(model: SequenceModel, recordings: Iterable[Recording]) -> np.ndarray:
    """
    Hold estimates against the fastest that a recording shows.

    :param model: a velocity model shared by all joints
    :param recordings: B recordings
    :returns: largest estimate over largest difference quotient of two samples, shape (B,)
    """
    recordings = list(recordings)
    ratios = []
    for recording, estimate in zip(recordings, forward_together(model, recordings)):
        step_s = np.diff(recording.stamp_ns) / NANOSECONDS_PER_SECOND
        fastest = np.max(np.abs(np.diff(recording.position)) / step_s)
        ratios.append(np.max(np.abs(estimate[: len(recording.position)])) / fastest)
    return np.array(ratios)


def drift_report(model: SequenceModel, minutes: int, minute_s: int = MINUTE_S) -> list[str]:
    """
    Say what an hour does.

    :param model: a velocity model shared by all joints
    :param minutes: how many
    :param minute_s: how long each is in s
    :returns: a line for each joint
    """
    lines = []
    for name, each in zip(JOINTS, drift(model, minutes, minute_s)):
        first, last, worst = *each.rmse[[0, -1]], each.rmse[1:].max()
        lines.append(
            f'{name:<11} RMSE in minute 1: {first:.6f}, in minute {minutes}: {last:.6f} '
            f'({each.sigmas:+.1f} sigma), the worst from minute 2 on: {worst:.6f} rad/s: '
            f'{"no drift" if each.holds else "DRIFTS"}'
        )
    return lines


def stress_report(model: SequenceModel, n_samples: int = 20_000) -> list[str]:
    """
    Say what bad inputs do.

    :param model: a velocity model shared by all joints
    :param n_samples: length of each recording
    :returns: a line for each kind of input
    """
    recordings = stress_recordings(n_samples)
    return [
        f'{name:<29} largest estimate / fastest input {ratio:6.3f}: '
        f'{"within" if ratio <= MOST_RATIO else "BEYOND"} {MOST_RATIO:g}'
        for name, ratio in zip(recordings, largest_ratios(model, recordings.values()))
    ]


def main(argv: Sequence[str] | None = None) -> None:
    """
    Print both checks for the shipped models.

    :param argv: arguments without the program's name; None: those of the process
    """
    parser = argparse.ArgumentParser(description='An hour without a break, and bad inputs.')
    parser.add_argument(
        '--models', nargs='+', default=VELOCITY_MODELS, choices=VELOCITY_MODELS, help='(all)'
    )
    parser.add_argument('--minutes', type=int, default=MINUTES, help='(%(default)s)')
    args = parser.parse_args(argv)
    print(f'{args.minutes} minutes at {RATE_HZ} Hz, {BITS} bits, {NOISE_COUNTS} counts of noise')
    for name in args.models:
        start_s = time.monotonic()
        model = load_model(SHIPPED[name])
        for line in [*drift_report(model, args.minutes), *stress_report(model)]:
            print(f'{name:<10} {line}')
        print(f'{name:<10} {time.monotonic() - start_s:.0f} s', flush=True)


if __name__ == '__main__':
    main()
