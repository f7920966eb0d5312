"""Windows of touches, held out block by block so that no touch is on both sides."""

import numpy as np

EVENT_WINDOWS = 6
# Windows of one touch follow one another; the nearest touches on either side are not used.
GAP_WINDOWS = 10


def blocks_of(y: np.ndarray, n_blocks: int) -> np.ndarray:
    """
    Cut windows into contiguous blocks, each with every label.

    Where one link is touched for a whole stretch of the recording, as the files with windows
    before the touch (label 0) have it, each stretch is cut by itself, between touches; else the
    whole recording.

    :param y: labels in the order of recording, shape (N,)
        with windows of label 0, whole touches of ``EVENT_WINDOWS``
    :param n_blocks: how many
    :returns: number of the block of each window, 0 to ``n_blocks - 1``, shape (N,)
    """
    if 0 not in y:
        return np.arange(len(y)) * n_blocks // len(y)
    link = y.reshape(-1, EVENT_WINDOWS)[:, 1]
    blocks = np.empty(len(link), np.int64)
    for stretch in np.split(np.arange(len(link)), np.flatnonzero(np.diff(link)) + 1):
        blocks[stretch] = np.arange(len(stretch)) * n_blocks // len(stretch)
    return np.repeat(blocks, EVENT_WINDOWS)


def learned_from(blocks: np.ndarray, held_out: int) -> np.ndarray:
    """
    Find the windows that are clear of a held-out block.

    :param blocks: from :func:`blocks_of`
    :param held_out: number of the block
    :returns: bool, shape (N,)
    """
    near = np.convolve(blocks == held_out, np.ones(2 * GAP_WINDOWS + 1)) > 0
    return ~near[GAP_WINDOWS : GAP_WINDOWS + len(blocks)]
