"""How well predicted labels agree with the true ones, and how late they come."""

from dataclasses import dataclass
from dataclasses import field

import numpy as np

from seqmem_ros.core.joints import NANOSECONDS_PER_SECOND

LEAST_HOLD_S = 0.1


@dataclass(frozen=True, eq=False)
class LabelScore:
    """
    Agreement of labels.

    :ivar samples: number of labels compared
    :ivar accuracy: share that agrees
    :ivar macro_f1: mean over the labels that occur of 2 TP / (2 TP + FP + FN)
    :ivar confusion: counts, row: reference, column: predicted, shape (L, L)
    :ivar delays_s: see :func:`label_delays`, shape (n,)
    :ivar missed: changes that were not told before the next one
    """

    samples: int
    accuracy: float
    macro_f1: float
    confusion: np.ndarray
    delays_s: np.ndarray = field(default_factory=lambda: np.empty(0))
    missed: int = 0

    @property
    def median_delay_s(self) -> float:
        """Median of the delays of the changes that were told, s; NaN without any."""
        return float(np.median(self.delays_s)) if len(self.delays_s) else float('nan')


def score_labels(expected: np.ndarray, predicted: np.ndarray, n_labels: int) -> LabelScore:
    """
    Compare labels.

    :param expected: indices of labels, shape (n,)
    :param predicted: indices of labels, shape (n,)
    :param n_labels: L
    :returns: the score; NaN without samples
    """
    confusion = np.zeros((n_labels, n_labels), dtype=np.int64)
    np.add.at(confusion, (expected, predicted), 1)
    hits = np.diag(confusion)
    # 2 TP + FP + FN is the number of times that a label is expected plus predicted.
    named = confusion.sum(axis=0) + confusion.sum(axis=1)
    occurs = named > 0
    if not occurs.any():
        return LabelScore(0, float('nan'), float('nan'), confusion)
    f1 = 2.0 * hits[occurs] / named[occurs]
    accuracy = float(hits.sum() / confusion.sum())
    return LabelScore(len(expected), accuracy, float(f1.mean()), confusion)


def label_delays(
    time_ns: np.ndarray, expected: np.ndarray, predicted: np.ndarray
) -> tuple[np.ndarray, int]:
    """
    Measure how long after a change of the true label the new one is told.

    Only changes to a label that then holds for ``LEAST_HOLD_S`` count: a true label that
    flickers at its limit says nothing about delay.

    :param time_ns: ns, increasing, shape (n,)
    :param expected: indices of labels, -1 where unknown, shape (n,)
    :param predicted: indices of labels, -1 where none is told, shape (n,)
    :returns: delays in s, 0 where the new label is told at once, and the number of changes that
        are not told before the next
    """
    changes = np.flatnonzero(np.diff(expected)) + 1
    ends = np.append(changes[1:], len(expected))
    delays_s, missed = [], 0
    for begin, end in zip(changes, ends):
        held_s = (time_ns[end - 1] - time_ns[begin]) / NANOSECONDS_PER_SECOND
        if expected[begin] < 0 or expected[begin - 1] < 0 or held_s < LEAST_HOLD_S:
            continue
        told = np.flatnonzero(predicted[begin:end] == expected[begin])
        if len(told):
            delays_s.append((time_ns[begin + told[0]] - time_ns[begin]) / NANOSECONDS_PER_SECOND)
        else:
            missed += 1
    return np.array(delays_s), missed
