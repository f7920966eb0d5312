"""Train a label model on a file of windows; it is deployed on a stream of samples like theirs."""

from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import numpy as np

from seqmem_ros.core.errors import SeqmemError
from seqmem_ros.core.inputs import N_RAW
from seqmem_ros.core.joints import NANOSECONDS_PER_SECOND
from seqmem_ros.core.model import SequenceModel
from seqmem_ros.core.spec import ModelSpec
from seqmem_ros.offline.fit import Course
from seqmem_ros.offline.fit import direct_spec
from seqmem_ros.offline.fit import fit
from seqmem_ros.offline.labels import score_labels
from seqmem_ros.offline.packing import pack
from seqmem_ros.offline.packing import Training
from seqmem_ros.offline.resumable import History
from seqmem_ros.offline.resumable import Progress
from seqmem_ros.offline.sequences import raw_together
from seqmem_ros.offline.splits import HELD_OUT
from seqmem_ros.offline.splits import LEARNED
from seqmem_ros.offline.splits import split_blocks
from seqmem_ros.offline.train import TrainingOptions
from seqmem_ros.offline.windows_file import LabelledWindows


@dataclass(frozen=True)
class WindowSetting:
    """
    How windows become something to learn from.

    :param joints: names of the signals; empty: ``joint_1``, ``joint_2`` and so on
    :param features: what the network reads of them
    :param rate_hz: of the samples, which carry no time
    :param hold_out: share to hold out
    """

    joints: tuple[str, ...] = ()
    features: tuple[str, ...] = ('position', 'lag_velocity')
    rate_hz: float = 100.0
    hold_out: float = 0.2

    def __post_init__(self) -> None:
        if not 0 < self.hold_out < 1:
            raise SeqmemError(
                f'hold-out: expected a share above 0 and below 1, got {self.hold_out}'
            )
        if not 0 < self.rate_hz < float('inf'):
            raise SeqmemError(f'rate: expected a number of Hz above 0, got {self.rate_hz}')
        wrong = [name for name in self.features if name in ('velocity', 'effort')]
        if wrong:
            raise SeqmemError(
                f'features: windows hold one signal a joint, taken as its position; got {wrong[0]}'
            )


def raw_windows(x: np.ndarray, rate_hz: float) -> np.ndarray:
    """
    Make the raw inputs of windows; the signals stand for positions.

    :param x: shape (N, T, J)
    :param rate_hz: of the samples
    :returns: shape (N, T, J, N_RAW), float32
    """
    stamp_ns = np.round(np.arange(x.shape[1]) * NANOSECONDS_PER_SECOND / rate_hz).astype(np.int64)
    n_windows, length, n_joints = x.shape
    side_by_side = np.moveaxis(x, 1, 0).reshape(length, -1)  # (N, T, J) -> (T, N J)
    nothing = np.zeros_like(side_by_side)
    raw = raw_together(stamp_ns, side_by_side, nothing, nothing)
    return np.moveaxis(raw.reshape(length, n_windows, n_joints, N_RAW), 0, 1)


def train_on_windows(
    windows: LabelledWindows,
    options: TrainingOptions,
    setting: WindowSetting,
    start: SequenceModel | None = None,
    path: str | Path | None = None,
    resume: bool = False,
    progress: Progress = lambda step, loss: None,
    asked: Mapping[str, Any] | None = None,
) -> tuple[SequenceModel, History, dict[str, Any], dict[str, str]]:
    """
    Learn the label of each window at its last sample, and score on windows held out.

    :param windows: in the order in which they were recorded
    :param options: model, sizes, steps and seed
    :param setting: how
    :param start: model to go on from; None for fresh weights
    :param path: of the checkpoint; None writes none
    :param resume: go on from the checkpoint
    :param progress: called after each step with its number and its loss
    :param asked: what a checkpoint must agree on, plain JSON
    :returns: the model without a card, how it went, the scores, and what was found
    :raises SeqmemError: if there are too few windows or labels, or they do not fit ``start``
    """
    n_windows, length, n_joints = windows.x.shape
    joints = setting.joints or tuple(f'joint_{index + 1}' for index in range(n_joints))
    if len(joints) != n_joints:
        raise SeqmemError(f'joints: expected {n_joints} names, got {", ".join(joints)}')
    if len(windows.labels) < 2:
        raise SeqmemError(
            f'labels: expected at least two that occur, got {", ".join(windows.labels)}'
        )
    # Windows may be a single sample apart: then so many share samples with a given one.
    use = split_blocks([n_windows], setting.hold_out, length, [windows.y], windows.labels)[0]
    sequences = window_sequences(windows, setting.rate_hz)
    learned = [sequences[index] for index in np.flatnonzero(use == LEARNED)]
    held_out = [sequences[index] for index in np.flatnonzero(use == HELD_OUT)]
    spec = _spec(windows, options, setting, joints, learned, start)
    n_rows = min(options.batch_size, len(learned))
    course = Course(
        lambda number: epoch(learned, n_rows, options.seed, number),
        pack(held_out, min(n_rows, len(held_out)), length),
        n_rows,
        length,
    )
    network = start.network if start else None
    model, history = fit(spec, course, options, network, path, resume, progress, asked)
    counts = [int(np.sum(use == kind)) for kind in range(3)]
    findings = {
        'data': f'{n_windows} windows of {length} samples of {n_joints} signals',
        'labels': ', '.join(windows.labels),
        'split': f'by block: {counts[0]} windows to learn from, {counts[1]} held out, '
        f'{counts[2]} between them not used',
    }
    held, known = windows.y[use == HELD_OUT], windows.y[use == LEARNED]
    guess = predict(model, np.stack([each.raw for each in held_out]))
    return model, history, _scores(held, guess, known, len(windows.labels)), findings


def window_sequences(windows: LabelledWindows, rate_hz: float) -> list[Training]:
    """
    Turn windows into sequences of which the last sample counts.

    :param windows: N windows
    :param rate_hz: of the samples
    :returns: N sequences
    """
    length = windows.x.shape[1]
    last = np.arange(length) == length - 1
    raw = raw_windows(windows.x, rate_hz)
    return [Training(x, np.full(length, y, np.int32), last) for x, y in zip(raw, windows.y)]


def epoch(
    sequences: Sequence[Training], n_rows: int, seed: int, number: int
) -> Iterator[tuple[np.ndarray, ...]]:
    """
    Go over windows once, in an order of its own.

    :param sequences: of one length
    :param n_rows: of a batch; what does not fill one is left out this time
    :param seed: of the training
    :param number: of the pass
    :returns: iterator over batches
    """
    order = np.random.default_rng([seed, number]).permutation(len(sequences))
    length = len(sequences[0].raw)
    full = len(order) // n_rows * n_rows
    for chosen in order[:full].reshape(-1, n_rows):
        yield from pack([sequences[index] for index in chosen], n_rows, length).chunks(length)


def predict(model: SequenceModel, raw: np.ndarray) -> np.ndarray:
    """
    Label windows, each from empty memory.

    :param model: label model over named joints
    :param raw: see :func:`raw_windows`
    :returns: indices of labels, shape (N,)
    """
    logits = jax.jit(jax.vmap(lambda window: model.forward(window)[-1]))(raw)
    return np.asarray(logits).argmax(axis=-1)


def _spec(
    windows: LabelledWindows,
    options: TrainingOptions,
    setting: WindowSetting,
    joints: tuple[str, ...],
    learned: list[Training],
    start: SequenceModel | None,
) -> ModelSpec:
    if start is None:
        names, labels = setting.features, windows.labels
        return direct_spec(options, joints, names, labels, learned, setting.rate_hz)
    spec = start.spec
    if spec.labels != windows.labels or len(spec.joints) != len(joints):
        raise SeqmemError(
            f'start-from: it tells {", ".join(spec.labels)} from {len(spec.joints)} joints, the '
            f'windows {", ".join(windows.labels)} from {len(joints)}; start afresh'
        )
    return spec


def _scores(
    truth: np.ndarray, guess: np.ndarray, known: np.ndarray, n_labels: int
) -> dict[str, Any]:
    score = score_labels(truth, guess, n_labels)
    commonest = np.bincount(known, minlength=n_labels).argmax()
    return {
        'macro_f1': float(f'{score.macro_f1:.4g}'),
        'accuracy': float(f'{score.accuracy:.4g}'),
        'always_the_commonest': float(f'{np.mean(truth == commonest):.4g}'),
        'samples': len(truth),
        'confusion': score.confusion.tolist(),
    }
