"""What the shipped label model calls the motion of a joint."""

import numpy as np

LABELS = ('stationary', 'accelerating', 'steady', 'decelerating')

STILL_RAD_S = 0.01
# The speed counts as steady while it changes by less than this in a second, plus this share of
# itself in a second.
STEADY_RAD_S2 = 0.1
STEADY_SHARE_PER_S = 0.25


def labels_from_acceleration(velocity: np.ndarray, acceleration: np.ndarray) -> np.ndarray:
    r"""
    Label a motion from its true velocity and acceleration.

    With the speed :math:`s = |v|` and :math:`\dot s = a \operatorname{sign} v`: *stationary* if
    s < 0.01 rad/s, else *accelerating* or *decelerating* if :math:`|\dot s|` > 0.1 rad/s^2 +
    0.25/s s, else *steady*. The limits are of this package: below the first, a 12-bit encoder at
    100 Hz shows less than a count in ten samples.

    :param velocity: rad/s, shape (T,)
    :param acceleration: rad/s^2, shape (T,)
    :returns: indices into :data:`LABELS`, shape (T,)
    """
    speed = np.abs(velocity)
    change = acceleration * np.sign(velocity)
    limit = STEADY_RAD_S2 + STEADY_SHARE_PER_S * speed
    moving = np.where(change > limit, 1, np.where(change < -limit, 3, 2))
    return np.where(speed < STILL_RAD_S, 0, moving)


def motion_labels(velocity: np.ndarray, time_s: np.ndarray) -> np.ndarray:
    """
    Label a motion from its velocity alone; see :func:`labels_from_acceleration`.

    :param velocity: rad/s, shape (T,), T at least 2, smooth enough for a central difference
    :param time_s: s, shape (T,), increasing
    :returns: indices into :data:`LABELS`, shape (T,)
    """
    return labels_from_acceleration(velocity, np.gradient(velocity, time_s))
