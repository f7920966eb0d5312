"""How well predicted labels agree with the labels of the reference."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, eq=False)
class LabelScore:
    """
    Agreement of labels.

    :ivar samples: number of labels compared
    :ivar accuracy: share that agrees
    :ivar macro_f1: mean over the labels that occur of 2 TP / (2 TP + FP + FN)
    :ivar confusion: counts, row: reference, column: predicted, shape (L, L)
    """

    samples: int
    accuracy: float
    macro_f1: float
    confusion: np.ndarray


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
