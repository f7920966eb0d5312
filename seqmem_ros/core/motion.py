"""What the shipped label model calls the motion of a joint."""

import numpy as np

LABELS = ('stationary', 'forward', 'backward')

STILL_RAD_S = 0.02


def motion_labels(velocity: np.ndarray) -> np.ndarray:
    r"""
    Label a motion from its true velocity.

    *stationary* if :math:`|v| < 0.02` rad/s (about one degree in a second), else *forward* where
    the position grows and *backward* where it falls. The limit is of this package: a joint that
    crosses it shows a 12-bit encoder at 100 Hz one count in eight samples. Labels of the
    acceleration were tried and given up: behind a coarse encoder nothing can tell them in time.

    :param velocity: rad/s, any shape
    :returns: indices into :data:`LABELS`, the same shape
    """
    moving = np.where(velocity > 0, 1, 2)
    return np.where(np.abs(velocity) < STILL_RAD_S, 0, moving)
