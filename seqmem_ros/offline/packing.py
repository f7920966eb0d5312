"""
Sequences of any length side by side in rows, to be learned from chunk by chunk.

A row holds one sequence after the other. Memory is carried from chunk to chunk along a row and
begins anew where a sequence does, so what is learned is what runs on a robot: a stream that has
gone on for long.
"""

from collections.abc import Iterator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np


class Training(NamedTuple):
    """
    One sequence to learn from.

    :ivar raw: inputs, float32, shape (T, ...); see :func:`seqmem_ros.core.inputs.raw_inputs`
    :ivar target: velocities in rad/s, shape (T,) or (T, J), or indices of labels, shape (T,)
    :ivar counts: samples whose output is compared with the target, bool, shape (T,)
    :ivar floor: error that does not matter, rad/s; 0 for labels
    """

    raw: np.ndarray
    target: np.ndarray
    counts: np.ndarray
    floor: float = 0.0


@dataclass(frozen=True, eq=False)
class Packed:
    """
    Rows of sequences; all arrays have shape (B, T, ...).

    :ivar raw: inputs
    :ivar fresh: True at the first sample of a sequence
    :ivar target: 0 where there is none
    :ivar counts: False where nothing is compared, as behind the end of a row
    :ivar floor: rad/s
    """

    raw: np.ndarray
    fresh: np.ndarray
    target: np.ndarray
    counts: np.ndarray
    floor: np.ndarray

    def chunks(self, length: int) -> Iterator[tuple[np.ndarray, ...]]:
        """
        Cut along time.

        :param length: of a chunk, a divisor of T
        :returns: iterator over (raw, fresh, target, counts, floor), each (B, length, ...)
        """
        for begin in range(0, self.fresh.shape[1], length):
            chunk = slice(begin, begin + length)
            arrays = (self.raw, self.fresh, self.target, self.counts, self.floor)
            yield tuple(array[:, chunk] for array in arrays)


def pack(sequences: Sequence[Training], n_rows: int, length: int) -> Packed:
    """
    Lay out sequences in rows, each in the row that is shortest so far.

    :param sequences: in the order in which they shall be laid out
    :param n_rows: B
    :param length: of a chunk; T is a multiple of it
    :returns: the rows
    """
    ends = np.zeros(n_rows, dtype=np.int64)
    places = []
    for sequence in sequences:
        row = int(ends.argmin())
        places.append((row, ends[row]))
        ends[row] += len(sequence.raw)
    n_samples = -(-int(ends.max()) // length) * length
    first = sequences[0]
    shape = (n_rows, n_samples)
    packed = Packed(
        raw=np.zeros((*shape, *first.raw.shape[1:]), np.float32),
        fresh=np.zeros(shape, bool),
        target=np.zeros((*shape, *first.target.shape[1:]), first.target.dtype),
        counts=np.zeros(shape, bool),
        floor=np.ones(shape, np.float32),
    )
    for sequence, (row, begin) in zip(sequences, places):
        cells = slice(begin, begin + len(sequence.raw))
        packed.raw[row, cells] = sequence.raw
        packed.fresh[row, begin] = True
        packed.target[row, cells] = np.where(
            _wide(sequence.counts, sequence.target), sequence.target, 0
        )
        packed.counts[row, cells] = sequence.counts
        packed.floor[row, cells] = sequence.floor
    # Behind the end of a row its last memory goes on over zeros, which could be anything.
    for row, end in enumerate(ends):
        packed.fresh[row, end:] = True
    return packed


def _wide(counts: np.ndarray, target: np.ndarray) -> np.ndarray:
    return counts.reshape(counts.shape + (1,) * (target.ndim - 1))
