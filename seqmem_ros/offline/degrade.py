"""
What a real encoder and a real network do to clean positions.

Applied to samples before they reach a :class:`~seqmem_ros.core.stream.Stream`, so a live
player that calls the same :class:`Degrader` publishes to the bit what was scored offline.
"""

from collections.abc import Iterable
from collections.abc import Iterator
from dataclasses import dataclass
from dataclasses import replace

import numpy as np

from seqmem_ros.core.errors import SeqmemError
from seqmem_ros.core.joints import JointSample
from seqmem_ros.core.joints import NANOSECONDS_PER_SECOND
from seqmem_ros.offline.joint_layout import JointBlock

TURN_RAD = 2 * np.pi
_LARGEST_BITS = 32


@dataclass(frozen=True)
class Degradation:
    """
    How much worse than the recording the estimators' input is.

    The default is a common magnetic encoder at the joint (14 bits) on a network that loses
    one message in a hundred.

    :param bits: resolution in bits per revolution; 0: as recorded
    :param noise_rad: standard deviation of Gaussian noise before quantisation, in rad
    :param drop: probability that a message is lost
    :param jitter_s: standard deviation of Gaussian noise on the stamps, in s; well below the
        period, or messages overtake each other and the stream refuses the late ones
    :param seed: the same seed gives the same input
    :raises SeqmemError: if a value is out of its range
    """

    bits: int = 14
    noise_rad: float = 0.0
    drop: float = 0.01
    jitter_s: float = 0.0
    seed: int = 0

    def __post_init__(self) -> None:
        if not 0 <= self.bits <= _LARGEST_BITS:
            raise SeqmemError(f'bits: expected 0 to {_LARGEST_BITS}, got {self.bits}')
        if not 0.0 <= self.drop < 1.0:
            raise SeqmemError(f'drop: expected a probability below 1, got {self.drop}')
        for name in ('noise_rad', 'jitter_s', 'seed'):
            value = getattr(self, name)
            if not 0 <= value < float('inf'):
                raise SeqmemError(f'{name}: expected a number from 0 up, got {value}')

    @property
    def step_rad(self) -> float:
        """Smallest difference of two positions in rad; 0 if they are as recorded."""
        return TURN_RAD / 2**self.bits if self.bits else 0.0

    def __str__(self) -> str:
        parts = []
        if self.bits:
            parts.append(f'{self.bits} bits per revolution')
        if self.noise_rad:
            parts.append(f'noise {self.noise_rad:g} rad')
        if self.drop:
            parts.append(f'{100 * self.drop:g} % of messages dropped')
        if self.jitter_s:
            parts.append(f'stamps jitter by {1000 * self.jitter_s:g} ms')
        return ', '.join([*parts, f'seed {self.seed}']) if parts else 'none'


AS_RECORDED = Degradation(bits=0, drop=0.0)


class Degrader:
    """
    Degrade one sample after the other.

    Noise, drops and jitter draw from random streams of their own: changing one setting leaves
    what the others do as it was.

    :param degradation: how much
    """

    def __init__(self, degradation: Degradation) -> None:
        self.degradation = degradation
        seeds = np.random.SeedSequence(degradation.seed).spawn(3)
        self._noise, self._drop, self._jitter = (np.random.default_rng(seed) for seed in seeds)

    def __call__(self, sample: JointSample) -> JointSample | None:
        """
        Degrade the next sample.

        :param sample: as recorded
        :returns: the same joints, positions and stamp degraded, velocity and effort as
            recorded; None if the message is lost
        """
        noise = self._noise.standard_normal(len(sample.position))
        lost = self._drop.random() < self.degradation.drop
        jitter_ns = round(self._jitter.standard_normal() * self._jitter_ns)
        if lost:
            return None
        # A stamp of 0 means that there is none.
        stamp_ns = sample.stamp_ns + jitter_ns if sample.stamp_ns else 0
        return sample._replace(stamp_ns=stamp_ns, position=self._sensed(sample.position, noise))

    def block(self, block: JointBlock) -> tuple[np.ndarray, JointBlock]:
        """
        Degrade the next samples, exactly as one after the other.

        :param block: as recorded
        :returns: indices of those that are not lost, and those, degraded
        """
        noise = self._noise.standard_normal(block.position.shape)
        kept = np.flatnonzero(self._drop.random(len(block)) >= self.degradation.drop)
        jitter_ns = np.rint(self._jitter.standard_normal(len(block)) * self._jitter_ns)
        stamp_ns = np.where(block.stamp_ns == 0, 0, block.stamp_ns + jitter_ns.astype(np.int64))
        position = self._sensed(block.position, noise)
        return kept, replace(block, stamp_ns=stamp_ns, position=position).rows(kept)

    @property
    def _jitter_ns(self) -> float:
        return self.degradation.jitter_s * NANOSECONDS_PER_SECOND

    def _sensed(self, position: np.ndarray, noise: np.ndarray) -> np.ndarray:
        setting = self.degradation
        position = position + setting.noise_rad * noise
        if setting.bits:
            position = np.round(position / setting.step_rad) * setting.step_rad
        return position


def degrade(samples: Iterable[JointSample], degradation: Degradation) -> Iterator[JointSample]:
    """
    Degrade a recording.

    :param samples: as recorded
    :param degradation: how much
    :returns: what is not lost, in the same order
    """
    degrader = Degrader(degradation)
    return (worse for sample in samples if (worse := degrader(sample)) is not None)
