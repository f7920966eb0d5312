"""What the node published against what the offline code computes from the same messages."""

from collections.abc import Iterable
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from seqmem_ros.core.estimator import Estimator
from seqmem_ros.core.joints import JointSample
from seqmem_ros.core.options import StreamOptions
from seqmem_ros.core.stream import Stream


class Said(NamedTuple):
    """
    One estimate, live or offline.

    :ivar key: the stamp in ns, or for labels, whose messages have none, the number of the message
    :ivar names: joints
    :ivar values: rad/s or probabilities, shape (n,)
    """

    key: int
    names: tuple[str, ...]
    values: np.ndarray


@dataclass(frozen=True)
class Agreement:
    """
    How far live and offline are the same.

    :ivar messages: estimates that came from both
    :ivar lost: estimates that only the offline code has
    :ivar unexpected: estimates that only the node has, or with other joints
    :ivar largest: largest difference of two values
    :ivar unit: of the values
    """

    messages: int
    lost: int
    unexpected: int
    largest: float
    unit: str

    @property
    def identical(self) -> bool:
        """Whether every estimate is there on both sides, equal to the bit."""
        return self.messages > 0 and not (self.lost or self.unexpected or self.largest)

    def __str__(self) -> str:
        verdict = (
            'identical to the bit' if self.identical else f'largest difference {self._difference}'
        )
        return (
            f'{self.messages} messages, {verdict}, {self.lost} lost, {self.unexpected} unexpected'
        )

    @property
    def _difference(self) -> str:
        return f'{self.largest:.3g} {self.unit}'.rstrip()


def said_offline(
    samples: Iterable[tuple[int, JointSample, str]],
    estimator: Estimator,
    options: StreamOptions | None = None,
) -> list[Said]:
    """
    Push messages through a stream.

    :param samples: record time in ns, sample and frame of each message
    :param estimator: the one that the node runs
    :param options: of the stream, as the parameters of the node
    :returns: the estimates in order
    """
    stream = Stream(estimator, options)
    said = []
    for record_ns, sample, _ in samples:
        estimate = stream.push(sample, record_ns)
        if estimate is None:
            continue
        if estimate.velocity is not None:
            said.append(Said(estimate.stamp_ns, estimate.names, estimate.velocity))
        else:
            names = estimate.names if estimator.per_joint else ()
            said.append(Said(len(said), names, estimate.scores.ravel()))
    return said


def compare(live: Sequence[Said], offline: Sequence[Said], unit: str = 'rad/s') -> Agreement:
    """
    Compare message by message.

    :param live: what the node published
    :param offline: what was expected
    :param unit: of the values
    :returns: how far they agree
    """
    expected: dict[int, list[Said]] = {}
    for one in offline:
        # A bag that starts over brings every stamp again.
        expected.setdefault(one.key, []).append(one)
    matched = unexpected = 0
    largest = 0.0
    for one in live:
        waiting = expected.get(one.key)
        if not waiting or waiting[0].names != one.names:
            unexpected += 1
            continue
        other = waiting.pop(0)
        matched += 1
        difference = np.abs(np.asarray(one.values) - np.asarray(other.values))
        largest = max(largest, float(difference.max(initial=0.0)))
    lost = sum(map(len, expected.values()))
    return Agreement(matched, lost, unexpected, largest, unit)
