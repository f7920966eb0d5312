"""What a stream says about one sample."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, eq=False)
class Estimate:
    """
    The output for one message: velocities, or labels with their probabilities.

    :param stamp_ns: stamp of the message that it belongs to, in ns
    :param names: joints that have an estimate, in the order of the message
    :param position: their positions as received, rad or m, shape (J,)
    :param velocity: rad/s or m/s, shape (J,); None for labels
    :param scores: probabilities, shape (J, L), or (1, L) for a model that gives one label for
        the whole arm; None for velocity
    :param labels: the most probable label of each row of ``scores``
    """

    stamp_ns: int
    names: tuple[str, ...]
    position: np.ndarray
    velocity: np.ndarray | None = None
    scores: np.ndarray | None = None
    labels: tuple[str, ...] = ()


def make_estimate(
    stamp_ns: int,
    names: tuple[str, ...],
    position: np.ndarray,
    values: np.ndarray,
    labels: tuple[str, ...],
) -> Estimate:
    """
    Put an estimator's outputs into words.

    :param stamp_ns: stamp of the message in ns
    :param names: joints that have an estimate
    :param position: their positions as received, shape (J,)
    :param values: velocities, shape (J,), or probabilities, shape (J or 1, L)
    :param labels: names of the classes, empty for velocity
    :returns: the estimate
    """
    if not labels:
        return Estimate(stamp_ns, names, position, velocity=values)
    winners = tuple(labels[best] for best in values.argmax(axis=1))
    return Estimate(stamp_ns, names, position, scores=values, labels=winners)
