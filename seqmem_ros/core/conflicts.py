"""Two publishers that say different things about one instant."""

import numpy as np

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
