"""Train on recorded bags: read, judge, split, learn, score."""

from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import field
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from seqmem_ros.core.errors import SeqmemError
from seqmem_ros.core.model import SequenceModel
from seqmem_ros.core.options import StreamOptions
from seqmem_ros.core.spec import ModelSpec
from seqmem_ros.core.spec import WINDOW
from seqmem_ros.offline.bag_sequences import BagSequences
from seqmem_ros.offline.bag_sequences import Lesson
from seqmem_ros.offline.bag_targets import labels_to_learn
from seqmem_ros.offline.bag_targets import MOTION
from seqmem_ros.offline.bag_targets import velocities_to_learn
from seqmem_ros.offline.degrade import Degradation
from seqmem_ros.offline.fit import Course
from seqmem_ros.offline.fit import direct_spec
from seqmem_ros.offline.fit import fit
from seqmem_ros.offline.fit import is_long_enough
from seqmem_ros.offline.held_out import score_label
from seqmem_ros.offline.held_out import score_velocity
from seqmem_ros.offline.material import Material
from seqmem_ros.offline.material import read_material
from seqmem_ros.offline.reference import median_period_s
from seqmem_ros.offline.resumable import History
from seqmem_ros.offline.resumable import Progress
from seqmem_ros.offline.splits import HELD_OUT
from seqmem_ros.offline.splits import LEARNED
from seqmem_ros.offline.splits import split_blocks
from seqmem_ros.offline.splits import split_recordings
from seqmem_ros.offline.splits import UNUSED
from seqmem_ros.offline.train import spec_of
from seqmem_ros.offline.train import TrainingOptions
from seqmem_ros.offline.truth import summarise


@dataclass(frozen=True)
class BagSetting:
    """
    How bags become something to learn from; the defaults are those of the command.

    :param topic: of the joint states; None: the only one
    :param labels: a CSV file for each bag, or a topic for all of them, or ``motion``; see
        :func:`seqmem_ros.offline.label_sources.read_label_track`
    :param together: one network that reads all joints, instead of one for any joint
    :param features: of a network that reads all joints
    :param target: ``reference`` or ``recorded`` velocity
    :param split: ``block`` or ``recording``
    :param hold_out: share to hold out
    :param chunk: samples between two steps of learning
    :param degradation: what the model sees of the recordings
    :param options: by which messages are taken
    """

    topic: str | None = None
    labels: tuple[str, ...] = (MOTION,)
    together: bool = False
    features: tuple[str, ...] = ('lag_velocity',)
    target: str = 'reference'
    split: str = 'block'
    hold_out: float = 0.2
    chunk: int = 128
    degradation: Degradation = field(default_factory=Degradation)
    options: StreamOptions = field(default_factory=StreamOptions)

    def __post_init__(self) -> None:
        if not 0 < self.hold_out < 1:
            raise SeqmemError(
                f'hold-out: expected a share above 0 and below 1, got {self.hold_out}'
            )
        if self.chunk < 2 * WINDOW:
            raise SeqmemError(f'chunk: expected at least {2 * WINDOW} samples, got {self.chunk}')


@dataclass(frozen=True, eq=False)
class Studied:
    """
    Bags that are ready to be learned from.

    :ivar lessons: one for each bag
    :ivar sequences: the lessons as batches
    :ivar spec: of the model, without a card
    :ivar findings: what was found, for people, by topic
    """

    lessons: tuple[Lesson, ...]
    sequences: BagSequences
    spec: ModelSpec
    findings: dict[str, str]


def study(
    bags: Sequence[str | Path],
    options: TrainingOptions,
    setting: BagSetting,
    start: ModelSpec | None = None,
) -> Studied:
    """
    Read bags and decide what is learned from them.

    :param bags: at least one
    :param options: task, model and sizes
    :param setting: how
    :param start: the model to go on from; None for a fresh one
    :returns: what is ready to be learned from
    :raises SeqmemError: if there is nothing to learn, or it does not fit ``start``
    """
    materials = [read_material(bag, setting.options, setting.topic) for bag in bags]
    joints = start.joints if start else _common_joints(materials) if setting.together else ()
    for material in materials:
        _expect_joints(material, joints)
    names: tuple[str, ...] = ()
    if options.task == 'velocity':
        targets = [velocities_to_learn(material, setting.target) for material in materials]
    else:
        names, targets = labels_to_learn(materials, setting.labels, start)
    uses = _split(materials, targets, setting, names)
    lessons = tuple(Lesson(*each) for each in zip(materials, targets, uses))
    rates_hz = [1 / median_period_s(m.recording.time_ns) for m in materials]
    spec = start or _fresh_spec(lessons, options, setting, joints, names, rates_hz)
    sequences = BagSequences(lessons, spec, setting.degradation, options.batch_size, setting.chunk)
    if not is_long_enough(sequences.sequences(LEARNED, setting.degradation, None)):
        raise SeqmemError(
            f'nothing to learn from in {", ".join(map(str, bags))}: expected joints that move, '
            f'with targets, in unbroken stretches of more than {2 * WINDOW} samples'
        )
    return Studied(lessons, sequences, spec, _findings(lessons, rates_hz, names, setting.split))


def train_on_bags(
    studied: Studied,
    options: TrainingOptions,
    setting: BagSetting,
    start: SequenceModel | None = None,
    path: str | Path | None = None,
    resume: bool = False,
    progress: Progress = lambda step, loss: None,
    asked: Mapping[str, Any] | None = None,
) -> tuple[SequenceModel, History, dict[str, Any]]:
    """
    Learn from bags and score on what was held out.

    :param studied: from :func:`study`
    :param options: steps, learning rate and seed
    :param setting: as for :func:`study`
    :param start: model to go on from; None for fresh weights
    :param path: of the checkpoint; None writes none
    :param resume: go on from the checkpoint
    :param progress: called after each step with its number and its loss
    :param asked: what a checkpoint must agree on, plain JSON
    :returns: the model without a card, how it went, and the scores
    :raises SeqmemError: as :func:`seqmem_ros.offline.fit.fit`
    """
    source = studied.sequences
    course = Course(source.epoch, source.held_out(), source.n_rows, source.chunk)
    network = start.network if start else None
    model, history = fit(studied.spec, course, options, network, path, resume, progress, asked)
    if options.task == 'velocity':
        scores = score_velocity(model, studied.lessons, setting.degradation, start)
    else:
        scores = score_label(model, studied.lessons, setting.degradation)
    return model, history, scores


def _fresh_spec(
    lessons: Sequence[Lesson],
    options: TrainingOptions,
    setting: BagSetting,
    joints: tuple[str, ...],
    names: tuple[str, ...],
    rates_hz: Sequence[float],
) -> ModelSpec:
    if not joints:
        return replace(spec_of(options, names), nominal_rate_hz=(min(rates_hz), max(rates_hz)))
    # Sizes do not depend on the scales, which need sequences, which need the names of the joints.
    blank = direct_spec(options, joints, setting.features, names, [], 0.0)
    sequences = BagSequences(lessons, blank, setting.degradation, options.batch_size, WINDOW)
    found = sequences.sequences(LEARNED, setting.degradation, None)
    spec = direct_spec(options, joints, setting.features, names, found, 0.0)
    return replace(spec, nominal_rate_hz=(min(rates_hz), max(rates_hz)))


def _common_joints(materials: Sequence[Material]) -> tuple[str, ...]:
    first = materials[0].recording.names
    return tuple(n for n in first if all(n in m.recording.names for m in materials))


def _expect_joints(material: Material, joints: tuple[str, ...]) -> None:
    missing = [name for name in joints if name not in material.recording.names]
    if missing:
        raise SeqmemError(
            f'{material.path}: expected the joints of the model, {", ".join(joints)}, found '
            f'{", ".join(material.recording.names)}'
        )


def _split(
    materials: Sequence[Material],
    targets: Sequence[np.ndarray],
    setting: BagSetting,
    names: tuple[str, ...],
) -> list[np.ndarray]:
    lengths = [len(m.recording.stamp_ns) for m in materials]
    if setting.split == 'recording':
        return split_recordings(lengths, setting.hold_out)
    # The reference of a sample is made from what lies around it, on both sides.
    halves = [m.reference.half_width_s / median_period_s(m.recording.time_ns) for m in materials]
    gap = WINDOW + 2 * int(np.ceil(max(halves)))
    whole = setting.labels != (MOTION,)
    labels = [target[:, 0] for target in targets] if names and whole else ()
    return split_blocks(lengths, setting.hold_out, gap, labels, names)


def _findings(
    lessons: Sequence[Lesson], rates_hz: Sequence[float], names: tuple[str, ...], how: str
) -> dict[str, str]:
    data, truth = [], []
    for lesson, rate_hz in zip(lessons, rates_hz):
        material = lesson.material
        n_messages, n_joints = material.recording.position.shape
        data.append(
            f'{material.path}: {n_messages} messages at {rate_hz:.4g} Hz, {n_joints} joints, '
            f'{int(material.moving.sum())} move'
        )
        truth.append(summarise(material.truth))
    counts = [sum(int(np.sum(each.use == kind)) for each in lessons) for kind in range(3)]
    learned, held_out, unused = counts[LEARNED], counts[HELD_OUT], counts[UNUSED]
    split = (
        f'by {how}: {learned} messages to learn from, {held_out} held out, {unused} between them '
        'not used'
    )
    found = {'data': '; '.join(data), 'truth check': '; '.join(dict.fromkeys(truth))}
    if names:
        found['labels'] = ', '.join(names)
    return {**found, 'split': split}
