"""Scores on what was held out, through the very stream that runs on a robot."""

from collections.abc import Iterator
from collections.abc import Sequence
from typing import Any

import numpy as np

from seqmem_ros.core.estimator import Estimator
from seqmem_ros.core.estimators import load_estimator
from seqmem_ros.core.model import SequenceModel
from seqmem_ros.core.network_estimator import NetworkEstimator
from seqmem_ros.core.stream import Stream
from seqmem_ros.offline.bag_sequences import Lesson
from seqmem_ros.offline.degrade import Degradation
from seqmem_ros.offline.degrade import Degrader
from seqmem_ros.offline.labels import label_delays
from seqmem_ros.offline.labels import score_labels
from seqmem_ros.offline.recording import JointTable
from seqmem_ros.offline.splits import HELD_OUT
from seqmem_ros.offline.splits import LEARNED

FILTERS = ('difference', 'lowpass', 'savgol', 'kalman')
_WHOLE_ARM = ('whole arm',)


def score_velocity(
    model: SequenceModel,
    lessons: Sequence[Lesson],
    degradation: Degradation,
    start: SequenceModel | None = None,
) -> dict[str, float]:
    """
    Compare a model with the classical filters on what is held out.

    :param model: for velocities
    :param lessons: their targets are what is compared with
    :param degradation: of the positions
    :param start: what it was before the training; None: nothing
    :returns: RMSE in rad/s over all moving joints, by name, the model first, then
        ``before``; empty where no sample has an estimate of all of them
    """
    estimators = {'model': NetworkEstimator(model)}
    if start is not None:
        estimators['before'] = NetworkEstimator(start)
    estimators |= {name: load_estimator(name) for name in FILTERS}
    squares = {name: [] for name in estimators}
    for lesson in lessons:
        names = model.spec.joints or lesson.material.recording.names
        columns = [lesson.material.recording.names.index(name) for name in names]
        outputs = {
            name: _told(each, lesson, degradation, names) for name, each in estimators.items()
        }
        target = lesson.target[:, columns]
        common = np.isfinite(target) & (lesson.use == HELD_OUT)[:, None]
        common &= lesson.material.moving[columns]
        for values in outputs.values():
            common &= np.isfinite(values)
        for name, values in outputs.items():
            squares[name].append(((values - target) ** 2)[common])
    gathered = {name: np.concatenate(parts) for name, parts in squares.items()}
    if not len(gathered['model']):
        return {}
    return {name: _short(np.sqrt(np.mean(parts))) for name, parts in gathered.items()}


def score_label(
    model: SequenceModel,
    lessons: Sequence[Lesson],
    degradation: Degradation,
) -> dict[str, Any]:
    """
    Compare a label model with the truth, and with who always says the commonest label.

    :param model: for labels
    :param lessons: their targets are the truth
    :param degradation: of the positions
    :returns: macro-F1, accuracy, that of the commonest label, confusion (row: truth), and delay in
        s; empty where nothing can be compared
    """
    estimator, labels = NetworkEstimator(model), model.spec.labels
    truths, guesses, learned, delays, missed = [], [], [], [], 0
    for lesson in lessons:
        names = lesson.material.recording.names if estimator.per_joint else _WHOLE_ARM
        scores = _told(estimator, lesson, degradation, names)
        target = lesson.target[:, : len(names)]
        learned.append(target[lesson.use == LEARNED].ravel())
        told = np.isfinite(scores).all(axis=2)
        guess = np.where(told, np.nan_to_num(scores).argmax(axis=2), -1)
        seen = told & (target >= 0) & (lesson.use == HELD_OUT)[:, None]
        truths.append(target[seen])
        guesses.append(guess[seen])
        for rows in _stretches(lesson.use):
            for truth, said in zip(target[rows].T, guess[rows].T):
                found_s, not_told = label_delays(
                    lesson.material.recording.time_ns[rows], truth, said
                )
                delays.append(found_s)
                missed += not_told
    truth, guess, known = (np.concatenate(parts) for parts in (truths, guesses, learned))
    if not len(truth):
        return {}
    score = score_labels(truth, guess, len(labels))
    commonest = np.bincount(known[known >= 0], minlength=len(labels)).argmax()
    delays_s = np.concatenate(delays)
    delays_s = delays_s if len(delays_s) else np.array([np.nan])
    return {
        'macro_f1': _short(score.macro_f1),
        'accuracy': _short(score.accuracy),
        'always_the_commonest': _short(np.mean(truth == commonest)),
        'samples': len(truth),
        'confusion': score.confusion.tolist(),
        'delay_median_s': _short(np.median(delays_s)),
        'delay_p95_s': _short(np.percentile(delays_s, 95)),
        'changes_missed': missed,
    }


def _told(
    estimator: Estimator, lesson: Lesson, degradation: Degradation, names: tuple[str, ...]
) -> np.ndarray:
    """Run over what is held out, a new stream for each block; (T, J) or (T, J, L), NaN: none."""
    table = JointTable()
    degrader = Degrader(degradation)
    held_out = lesson.use == HELD_OUT
    stream, last, row = Stream(estimator, lesson.material.options), -1, 0
    for block in lesson.material.blocks:
        for index in range(len(block)):
            sample = degrader(block.sample(index))
            if held_out[row] and sample is not None:
                if not held_out[max(last, 0) : row].all():
                    stream = Stream(estimator, lesson.material.options)
                last = row
                estimate = stream.push(sample, int(block.record_ns[index]))
                if estimate is not None:
                    _put(table, row, estimate, names)
            row += 1
    values = table.array(row, names)
    depth = (len(estimator.labels),) if estimator.labels else ()
    return values if values.ndim == 2 + len(depth) else np.full((row, len(names), *depth), np.nan)


def _put(table: JointTable, row: int, estimate: Any, names: tuple[str, ...]) -> None:
    if estimate.velocity is not None:
        table.put(row, estimate.names, estimate.velocity)
    else:
        table.put(row, names if names == _WHOLE_ARM else estimate.names, estimate.scores)


def _stretches(use: np.ndarray) -> Iterator[np.ndarray]:
    rows = np.flatnonzero(use == HELD_OUT)
    if len(rows):
        yield from np.split(rows, np.flatnonzero(np.diff(rows) > 1) + 1)


def _short(value: float) -> float | None:
    return float(f'{value:.4g}') if np.isfinite(value) else None
