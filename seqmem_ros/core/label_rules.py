"""Which label is told: not one that is hardly believed, nor one that is there for an instant."""

import numpy as np

from seqmem_ros.core.options import StreamOptions
from seqmem_ros.core.timing import nanoseconds
from seqmem_ros.core.window import with_rows

UNKNOWN = 'unknown'


class LabelRules:
    """
    Chooses the label of each row.

    The winner is the most probable label, or ``unknown`` where its probability is below
    ``min_label_score``. It replaces the label that is told once it has won without a break for
    ``min_label_duration_s``; the first one after a start or restart is told at once.

    :param labels: names of the classes
    :param options: uses ``min_label_duration_s`` and ``min_label_score``
    :param capacity: number of rows
    """

    def __init__(self, labels: tuple[str, ...], options: StreamOptions, capacity: int) -> None:
        self._labels = (*labels, UNKNOWN)
        self._told = np.zeros(capacity, dtype=np.int64)
        self._winner = np.zeros(capacity, dtype=np.int64)
        self._since_ns = np.zeros(capacity, dtype=np.int64)
        self.use(options)

    def use(self, options: StreamOptions) -> None:
        """
        Take other limits; what is told stays until they let something else win.

        :param options: see the class
        """
        self._min_duration_ns = nanoseconds(options.min_label_duration_s)
        self._min_score = options.min_label_score

    def resize(self, capacity: int) -> None:
        """
        Make room for more joints, or for fewer.

        :param capacity: new number of rows
        """
        self._told = with_rows(self._told, capacity)
        self._winner = with_rows(self._winner, capacity)
        self._since_ns = with_rows(self._since_ns, capacity)

    def choose(
        self, rows: np.ndarray, started: np.ndarray, stamp_ns: int, scores: np.ndarray
    ) -> tuple[str, ...]:
        """
        Choose the labels to tell for one sample.

        :param rows: rows of the scores, shape (n,)
        :param started: rows that have just started, bool, shape (n,)
        :param stamp_ns: time of the sample in ns
        :param scores: probabilities, shape (n, L)
        :returns: a label for each row
        """
        winner = scores.argmax(axis=1)
        winner[scores.max(axis=1) < self._min_score] = len(self._labels) - 1
        goes_on = ~started & (winner == self._winner[rows])
        since_ns = np.where(goes_on, self._since_ns[rows], stamp_ns)
        long_enough = stamp_ns - since_ns >= self._min_duration_ns
        told = np.where(started | long_enough, winner, self._told[rows])
        self._told[rows], self._winner[rows], self._since_ns[rows] = told, winner, since_ns
        return tuple(self._labels[k] for k in told)
