"""
Which samples are learned from and which are held out: whole recordings, or blocks of them.

Never samples at random: neighbours are nearly copies, so a random split scores what was learned
by heart.
"""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from seqmem_ros.core.errors import SeqmemError

LEARNED, HELD_OUT, UNUSED = 0, 1, 2
SPLITS = ('block', 'recording')
MOST_HALVINGS = 5


def split_rows(n_rows: int, share: float, gap: int, n_pieces: int = 1) -> np.ndarray:
    """
    Cut one recording into pieces and hold out the last part of each.

    :param n_rows: T
    :param share: of each piece to hold out, above 0 and below 1
    :param gap: rows on either side of a held-out block that are not used at all
    :param n_pieces: number of pieces
    :returns: ``LEARNED``, ``HELD_OUT`` or ``UNUSED`` for each row, shape (T,)
    """
    use = np.full(n_rows, LEARNED)
    edges = np.arange(n_pieces + 1) * n_rows // n_pieces
    for begin, end in pairwise(edges):
        first = end - round(share * (end - begin))
        use[max(begin, first - gap) : first] = UNUSED
        use[end : end + gap] = UNUSED
        use[first:end] = HELD_OUT
    return use


def split_recordings(lengths: Sequence[int], share: float) -> list[np.ndarray]:
    """
    Hold out whole recordings, the last ones.

    :param lengths: rows of each recording, in the order in which they were given
    :param share: of the recordings to hold out, at least one of them
    :returns: as :func:`split_rows`, one array for each
    :raises SeqmemError: if there is only one recording
    """
    if len(lengths) < 2:
        raise SeqmemError(
            'split: expected at least two recordings to hold out one of them, got '
            f"{len(lengths)}; give more bags, or split by 'block'"
        )
    n_held_out = min(max(1, round(share * len(lengths))), len(lengths) - 1)
    first = len(lengths) - n_held_out
    return [
        np.full(length, HELD_OUT if index >= first else LEARNED)
        for index, length in enumerate(lengths)
    ]


def split_blocks(
    lengths: Sequence[int],
    share: float,
    gap: int,
    labels: Sequence[np.ndarray] = (),
    names: tuple[str, ...] = (),
) -> list[np.ndarray]:
    """
    Hold out contiguous blocks, the fewest that show every label on both sides.

    Where one block at the end of each recording lacks a label, there are two in each, then four,
    and so on, as long as the gaps leave half of the rows.

    :param lengths: rows of each recording
    :param share: of each recording to hold out
    :param gap: rows on either side of a block that are not used
    :param labels: index of the label of each row, -1 for none, an array for each recording;
        empty for a task without labels
    :param names: of the labels
    :returns: as :func:`split_rows`, one array for each
    :raises SeqmemError: if the recordings are too short, or there is no such split
    """
    missing: set[int] = set()
    for n_pieces in (2**power for power in range(MOST_HALVINGS + 1)):
        uses = [split_rows(length, share, gap, n_pieces) for length in lengths]
        sizes = [sum(int(np.sum(use == kind)) for use in uses) for kind in (LEARNED, HELD_OUT)]
        if min(sizes) <= max(gap, 1) or 2 * sum(sizes) < sum(lengths):
            break
        missing = missing_labels(labels, uses)
        if not missing:
            return uses
    if missing:
        listed = ', '.join(names[index] for index in sorted(missing))
        raise SeqmemError(
            'labels: expected each on both sides of a split into contiguous blocks, but the '
            f'recordings are too short or too one-sided for that: {listed}. Record each label '
            'several times, some time apart'
        )
    raise SeqmemError(
        f'too short to hold a block out: expected well over {4 * max(gap, 1)} samples, got '
        f'{sum(lengths)}; record longer'
    )


def missing_labels(labels: Sequence[np.ndarray], uses: Sequence[np.ndarray]) -> set[int]:
    """
    Find labels that are only learned or only held out.

    :param labels: see :func:`split_blocks`
    :param uses: from :func:`split_rows`
    :returns: their indices
    """
    found = []
    for kind in (LEARNED, HELD_OUT):
        found.append({int(i) for y, use in zip(labels, uses) for i in np.unique(y[use == kind])})
    return (found[0] ^ found[1]) - {-1}
