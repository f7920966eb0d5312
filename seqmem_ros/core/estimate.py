"""What a stream says about one sample."""

from typing import NamedTuple

import numpy as np


class Estimate(NamedTuple):
    """
    The output for one message: velocities, or labels with their probabilities.

    :param stamp_ns: stamp of the message that it belongs to, in ns
    :param names: joints that have an estimate, in the order of the message
    :param position: their positions as received, rad or m, shape (J,)
    :param velocity: rad/s or m/s, shape (J,); None for labels
    :param scores: probabilities, shape (J, L), or (1, L) for a model that gives one label for
        the whole arm; None for velocity
    :param labels: the label of each row of ``scores``: the most probable one, unless
        :class:`~seqmem_ros.core.label_rules.LabelRules` say otherwise
    """

    stamp_ns: int
    names: tuple[str, ...]
    position: np.ndarray
    velocity: np.ndarray | None = None
    scores: np.ndarray | None = None
    labels: tuple[str, ...] = ()
