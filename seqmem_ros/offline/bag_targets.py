"""What is learned from bags: the velocities or the labels that belong to their samples."""

from collections.abc import Sequence

import numpy as np

from seqmem_ros.core.errors import SeqmemError
from seqmem_ros.core.motion import LABELS
from seqmem_ros.core.spec import ModelSpec
from seqmem_ros.offline.label_sources import LabelTrack
from seqmem_ros.offline.label_sources import read_label_track
from seqmem_ros.offline.label_sources import sorted_labels
from seqmem_ros.offline.material import Material

MOTION = 'motion'


def velocities_to_learn(material: Material, target: str) -> np.ndarray:
    """
    Choose the velocity that is the truth of a bag.

    :param material: the bag
    :param target: ``reference`` or ``recorded``
    :returns: rad/s, shape (T, J); NaN where nothing is known
    :raises SeqmemError: if the recorded velocity is asked for and there is none
    """
    if target == 'reference':
        return material.reference.velocity
    velocity = material.recording.velocity.astype(np.float64)
    bad = [n for n, c in material.truth.items() if c.kind in ('absent', 'constant')]
    if bad:
        raise SeqmemError(
            f'{material.path}: expected recorded velocities to learn from, but that of '
            f'{", ".join(bad)} is {material.truth[bad[0]].kind}; leave --target at reference'
        )
    return velocity


def labels_to_learn(
    materials: Sequence[Material], sources: tuple[str, ...], start: ModelSpec | None
) -> tuple[tuple[str, ...], list[np.ndarray]]:
    """
    Read the labels of bags.

    :param materials: the bags
    :param sources: a CSV file for each bag, or a topic for all of them, or ``motion``
    :param start: the model to go on from, which says the order of the labels; None for none
    :returns: names of the labels, and their indices for each bag, shape (T, J), -1 where unknown
    :raises SeqmemError: if fewer than two labels occur, or they are not those of ``start``
    """
    if sources == (MOTION,):
        names, tracks = LABELS, [None] * len(materials)
    else:
        tracks = _tracks(materials, sources)
        names = sorted_labels(name for track in tracks for name in track.names)
    if start is not None and set(start.labels) != set(names):
        raise SeqmemError(
            f'start-from: its labels are {", ".join(start.labels)}, but those to learn are '
            f'{", ".join(names)}; start afresh'
        )
    names = start.labels if start else names
    targets = [m.labels(track, names) for m, track in zip(materials, tracks)]
    occurring = {int(i) for target in targets for i in np.unique(target[target >= 0])}
    if len(occurring) < 2:
        only = ', '.join(names[index] for index in occurring) or 'none'
        raise SeqmemError(f'labels: expected at least two that occur, got {only}')
    return names, targets


def _tracks(materials: Sequence[Material], sources: tuple[str, ...]) -> list[LabelTrack]:
    if len(sources) not in (1, len(materials)):
        raise SeqmemError(
            f'labels: expected one source, or one for each of {len(materials)} bags, got '
            f'{len(sources)}'
        )
    if len(sources) == 1 < len(materials) and sources[0].lower().endswith('.csv'):
        raise SeqmemError(
            f'labels: expected a CSV file for each of {len(materials)} bags, in their order, got 1'
        )
    each = sources * len(materials) if len(sources) == 1 else sources
    return [read_label_track(source, m.path) for source, m in zip(each, materials)]
