"""Two positions of one joint: whether they contradict, and where whole turns do not count."""

from collections.abc import Sequence

import numpy as np

from seqmem_ros.core.joint_map import listed

TURN_RAD = 2 * np.pi
# A copy of a message that went through single precision is no contradiction.
SAME_RAD = 1e-6
SAME_RELATIVE = 1e-6


def conflicting(kept: np.ndarray, came: np.ndarray, wraps: np.ndarray) -> np.ndarray:
    """
    Find the joints that have two positions for the same stamp.

    A position that is not finite says nothing, so it contradicts nothing.

    :param kept: positions that the stream went on with, rad, shape (n,)
    :param came: positions that came later, rad, shape (n,)
    :param wraps: joints that turn without end, where whole turns do not matter, bool, shape (n,)
    :returns: bool, shape (n,)
    """
    came = np.where(np.isfinite(came), came, kept)
    difference = came - kept
    difference = np.where(wraps, np.remainder(difference + np.pi, TURN_RAD) - np.pi, difference)
    return np.abs(difference) > SAME_RAD + SAME_RELATIVE * np.abs(kept)


def conflict(
    names: Sequence[str], kept: np.ndarray, came: np.ndarray, wraps: np.ndarray
) -> tuple[int, str]:
    """
    Say which joint has two positions for the same stamp.

    :param names: of the joints that have the same stamp twice
    :param kept: see :func:`conflicting`
    :param came: likewise
    :param wraps: likewise
    :returns: number of joints, and a sentence about the first; empty if there is none
    """
    bad = np.flatnonzero(conflicting(kept, came, wraps))
    if not len(bad):
        return 0, ''
    first = bad[0]
    return len(bad), (
        f'expected one position for one stamp, got {kept[first]:.6g} and then {came[first]:.6g} '
        f'for {listed([names[first]])}; the first is kept: do two publishers send the same joints?'
    )


def nearest_turn(position: np.ndarray, last: np.ndarray, wraps: np.ndarray) -> np.ndarray:
    """
    Add the whole turns that bring a position nearest to the last one.

    :param position: rad, shape (n,)
    :param last: rad, shape (n,)
    :param wraps: joints that turn without end, bool, shape (n,); others are left alone
    :returns: rad, shape (n,)
    """
    turns = np.zeros(len(position))
    turns[wraps] = np.rint((last[wraps] - position[wraps]) / TURN_RAD)
    return position + turns * TURN_RAD
