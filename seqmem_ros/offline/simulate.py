"""
Simulated recordings: random motions of a joint, seen through a random encoder.

The truth is exact, every rate and resolution that is met in practice is covered, and a seed
says all: this is what the shipped weights learn from.
"""

from dataclasses import dataclass

import numpy as np

from seqmem_ros.offline.motions import chain
from seqmem_ros.offline.motions import FASTEST_RAD_S
from seqmem_ros.offline.motions import hold
from seqmem_ros.offline.motions import jerk_limited_trapezoid
from seqmem_ros.offline.motions import minimum_jerk
from seqmem_ros.offline.motions import Motion
from seqmem_ros.offline.motions import rippled
from seqmem_ros.offline.motions import Segment
from seqmem_ros.offline.motions import sines
from seqmem_ros.offline.motions import SLOWEST_RAD_S
from seqmem_ros.offline.motions import sudden_stop
from seqmem_ros.offline.motions import together

KINDS = ('moves', 'trapezoids', 'contacts', 'sines', 'wander', 'cruise', 'scan', 'still')
TURN_RAD = 2 * np.pi
# No arm moves as smoothly as its path was planned.
RIPPLED_SHARE = 0.5
LARGEST_RIPPLE = 0.08
# Nor does one move without its structure and its controller swinging. Only motions that never
# rest have it here, because a joint at rest has to read still.
VIBRATING = ('sines', 'wander', 'cruise', 'scan')
VIBRATING_SHARE = 0.85
LARGEST_VIBRATION = 0.03
# How often each of the kinds is drawn.
SHARES = (0.2, 0.18, 0.14, 0.14, 0.14, 0.06, 0.08, 0.06)
HARDER_SHARES = (0.18, 0.165, 0.13, 0.13, 0.13, 0.08, 0.13, 0.055)


@dataclass(frozen=True)
class Encoder:
    """
    How a joint is sensed.

    :param rate_hz: nominal rate of the samples
    :param bits: resolution, counts per turn as a power of two
    :param noise_counts: standard deviation of the noise before quantisation, in counts
    :param sampling_jitter: standard deviation of the sampling instant, in sampling intervals;
        the stamp knows of it
    :param stamp_jitter: the same for the stamp alone
    :param drop: probability that a sample is lost
    :param repeat: probability that a sample shows the position of the one before
    :param wraps: the position starts over at half a turn; else it counts turns without end
    """

    rate_hz: float
    bits: int
    noise_counts: float = 0.0
    sampling_jitter: float = 0.0
    stamp_jitter: float = 0.0
    drop: float = 0.0
    repeat: float = 0.0
    wraps: bool = False

    @property
    def count_rad(self) -> float:
        """Size of one count in rad."""
        return TURN_RAD / 2**self.bits


@dataclass(frozen=True, eq=False)
class Recording:
    """
    What came out, and what was true at each stamp.

    :param stamp_ns: ns, shape (T,), int64, increasing
    :param position: as sensed, rad, shape (T,)
    :param velocity: true, rad/s, shape (T,)
    :param acceleration: true, rad/s^2, shape (T,)
    :param encoder: how it was sensed
    :param kind: which of :data:`KINDS` the motion is
    """

    stamp_ns: np.ndarray
    position: np.ndarray
    velocity: np.ndarray
    acceleration: np.ndarray
    encoder: Encoder
    kind: str


def random_encoder(rng: np.random.Generator) -> Encoder:
    """
    Draw an encoder: 50 to 1000 Hz, 10 to 20 bits, half of them with each defect.

    :param rng: source of randomness
    :returns: the encoder
    """
    return Encoder(
        rate_hz=float(np.exp(rng.uniform(np.log(50), np.log(1000)))),
        bits=int(rng.integers(10, 21)),
        noise_counts=float(rng.choice([0.0, rng.uniform(0, 1.5)])),
        sampling_jitter=float(rng.choice([0.0, rng.uniform(0, 0.1)])),
        stamp_jitter=float(rng.choice([0.0, 0.0, rng.uniform(0, 0.05)])),
        drop=float(rng.choice([0.0, rng.uniform(0, 0.05)])),
        repeat=float(rng.choice([0.0, 0.0, 0.0, rng.uniform(0, 0.03)])),
    )


def random_motion(rng: np.random.Generator, kind: str, duration_s: float) -> Motion:
    """
    Draw a motion that fills a recording.

    :param rng: source of randomness
    :param kind: one of :data:`KINDS`
    :param duration_s: length of the recording in s
    :returns: the motion
    :raises ValueError: if there is no such kind
    """
    if kind not in KINDS:
        raise ValueError(f"kind: expected one of {', '.join(KINDS)}, got '{kind}'")
    # Slow motions are the harder half, but an arm at work is rarely below a degree a second.
    slowest_rad_s = float(rng.choice([SLOWEST_RAD_S, 0.05, 0.05]))
    fastest_rad_s = FASTEST_RAD_S / (1 + LARGEST_RIPPLE)
    peak_rad_s = float(np.exp(rng.uniform(np.log(slowest_rad_s), np.log(fastest_rad_s))))
    if kind == 'scan':
        peak_rad_s = float(rng.uniform(0.3, fastest_rad_s))
    motion = _smooth_motion(rng, kind, duration_s, peak_rad_s)
    return _rippled_at_random(rng, motion, peak_rad_s) if rng.random() < RIPPLED_SHARE else motion


def record(
    rng: np.random.Generator, motion: Motion, encoder: Encoder, n_samples: int, kind: str = ''
) -> Recording:
    """
    Sense a motion.

    :param rng: source of randomness
    :param motion: what the joint does
    :param encoder: how it is seen
    :param n_samples: samples in the recording
    :param kind: name of the motion
    :returns: the recording
    :raises ValueError: if the encoder loses so many samples that too few are left
    """
    instants = np.flatnonzero(rng.random(2 * n_samples + 8) >= encoder.drop)[:n_samples]
    if len(instants) < n_samples:
        raise ValueError(f'drop: expected at most about 0.4, got {encoder.drop}')
    jitter = encoder.sampling_jitter * rng.standard_normal(n_samples).clip(-3, 3)
    sampled_s = (instants + jitter) / encoder.rate_hz
    late = encoder.stamp_jitter * rng.standard_normal(n_samples).clip(-3, 3) / encoder.rate_hz
    stamp_ns = np.round((sampled_s + late) * 1e9).astype(np.int64) + 1_000_000_000
    stamp_ns = np.maximum.accumulate(stamp_ns) + np.arange(n_samples)
    position, velocity, acceleration = motion(sampled_s)
    # An encoder's zero is nowhere in particular.
    counts = (position + rng.uniform(-3, 3)) / encoder.count_rad
    counts = np.round(counts + encoder.noise_counts * rng.standard_normal(n_samples))
    fresh = rng.random(n_samples) >= encoder.repeat
    fresh[0] = True
    counts = counts[np.maximum.accumulate(np.where(fresh, np.arange(n_samples), 0))]
    if encoder.wraps:
        half_turn = 2 ** (encoder.bits - 1)
        counts = (counts + half_turn) % (2 * half_turn) - half_turn
    return Recording(stamp_ns, counts * encoder.count_rad, velocity, acceleration, encoder, kind)


def simulate(
    rng: np.random.Generator, n_samples: int, kind: str | None = None, harder: bool = False
) -> Recording:
    """
    Draw a recording.

    :param rng: source of randomness
    :param n_samples: its length in samples
    :param kind: one of :data:`KINDS`; None draws one, standing still less often
    :param harder: as networks learn from it: more go to and fro, and most motions that never
        rest vibrate; filters are tuned without
    :returns: the recording
    """
    if kind is None:
        kind = str(rng.choice(KINDS, p=HARDER_SHARES if harder else SHARES))
    encoder = random_encoder(rng)
    duration_s = n_samples / encoder.rate_hz
    motion = random_motion(rng, kind, duration_s)
    if harder and kind in VIBRATING and rng.random() < VIBRATING_SHARE:
        motion = _vibrating_at_random(rng, motion, duration_s)
    return record(rng, motion, encoder, n_samples, kind)


def _smooth_motion(
    rng: np.random.Generator, kind: str, duration_s: float, peak_rad_s: float
) -> Motion:
    if kind == 'still':
        return chain([hold(duration_s)])
    if kind == 'cruise':
        return chain([jerk_limited_trapezoid(_signed(rng, peak_rad_s), 0.1, duration_s)])
    if kind == 'scan':
        return _random_scan(rng, duration_s, peak_rad_s)
    if kind in ('sines', 'wander'):
        return _random_sines(rng, kind, peak_rad_s)
    segments: list[Segment] = []
    while sum(segment.duration_s for segment in segments) < duration_s:
        if rng.random() < 0.4:
            segments.append(hold(rng.uniform(0.05, 0.8)))
        segments.append(_random_move(rng, kind, _signed(rng, peak_rad_s * rng.uniform(0.1, 1))))
    return chain(segments)


def _rippled_at_random(rng: np.random.Generator, motion: Motion, peak_rad_s: float) -> Motion:
    fastest_hz = np.exp(rng.uniform(np.log(2), np.log(20)))
    waves_per_rad = TURN_RAD * fastest_hz / peak_rad_s
    share = np.exp(rng.uniform(np.log(0.002), np.log(LARGEST_RIPPLE)))
    return rippled(motion, waves_per_rad, share, rng.uniform(0, TURN_RAD))


def _vibrating_at_random(rng: np.random.Generator, motion: Motion, duration_s: float) -> Motion:
    """Let one or two frequencies swing on top, whatever the speed of the moment."""
    n = int(rng.integers(1, 3))
    frequency_hz = np.exp(rng.uniform(np.log(4), np.log(20), n))
    share = np.exp(rng.uniform(np.log(0.001), np.log(LARGEST_VIBRATION), n))
    fastest_rad_s = np.abs(motion(np.linspace(0, duration_s, 200))[1]).max()
    amplitude_rad = share * fastest_rad_s / (TURN_RAD * frequency_hz)
    return together(motion, sines(amplitude_rad, frequency_hz, rng.uniform(0, TURN_RAD, n)))


def _signed(rng: np.random.Generator, value: float) -> float:
    return value if rng.random() < 0.5 else -value


def _random_sines(rng: np.random.Generator, kind: str, peak_rad_s: float) -> Motion:
    if kind == 'sines':
        n, lowest_hz, highest_hz = int(rng.integers(1, 4)), 0.05, 5.0
    else:
        # A hand guides with power at all frequencies up to a few hertz.
        n, lowest_hz, highest_hz = 12, 0.1, 4.0
    frequency_hz = np.exp(rng.uniform(np.log(lowest_hz), np.log(highest_hz), n))
    speed_rad_s = rng.uniform(0.2, 1, n)
    speed_rad_s *= peak_rad_s / speed_rad_s.sum()
    phase_rad = rng.uniform(0, TURN_RAD, n)
    return sines(speed_rad_s / (TURN_RAD * frequency_hz), frequency_hz, phase_rad)


def _random_scan(rng: np.random.Generator, duration_s: float, peak_rad_s: float) -> Motion:
    """Go to and fro fast, as a joint does that carries a laser scanner."""
    ramp_s = np.exp(rng.uniform(np.log(0.02), np.log(0.4)))
    there = jerk_limited_trapezoid(peak_rad_s, ramp_s, rng.uniform(0, 0.8))
    back = jerk_limited_trapezoid(-peak_rad_s * rng.uniform(0.4, 1), ramp_s, rng.uniform(0, 0.8))
    return chain([there, back] * int(np.ceil(duration_s / (there.duration_s + back.duration_s))))


def _random_move(rng: np.random.Generator, kind: str, speed_rad_s: float) -> Segment:
    if kind == 'trapezoids':
        return jerk_limited_trapezoid(speed_rad_s, rng.uniform(0.03, 0.4), rng.uniform(0, 1.0))
    duration_s = rng.uniform(0.2, 2.0)
    # The peak velocity of a minimum-jerk move is 15/8 of its mean.
    move = minimum_jerk(speed_rad_s * duration_s * 8 / 15, duration_s)
    if kind == 'contacts' and rng.random() < 0.7:
        return sudden_stop(move, duration_s * rng.uniform(0.2, 0.8), rng.uniform(0.001, 0.01))
    return move
