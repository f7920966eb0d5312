"""Recorded bags as sequences to learn from, a new degradation in every pass."""

from collections.abc import Iterator
from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import replace

import numpy as np

from seqmem_ros.core.inputs import N_LAGS
from seqmem_ros.core.joints import FIELDS
from seqmem_ros.core.spec import ModelSpec
from seqmem_ros.core.spec import WINDOW
from seqmem_ros.offline.degrade import Degradation
from seqmem_ros.offline.material import Material
from seqmem_ros.offline.packing import pack
from seqmem_ros.offline.packing import Packed
from seqmem_ros.offline.packing import Training
from seqmem_ros.offline.recording import Recording
from seqmem_ros.offline.reference import median_period_s
from seqmem_ros.offline.reference import unbroken_runs
from seqmem_ros.offline.sequences import raw_together
from seqmem_ros.offline.splits import HELD_OUT
from seqmem_ros.offline.splits import LEARNED
from seqmem_ros.offline.train import LOSS_FLOOR_SHARE

# Inputs of one pass over the data stay below some hundred megabytes.
MOST_SAMPLES = 2_000_000


@dataclass(frozen=True, eq=False)
class Lesson:
    """
    A recording, what is to be learned from it, and what is not.

    :ivar material: the recording, T messages of J joints
    :ivar target: rad/s, NaN where unknown, or indices of labels, -1 where unknown, shape (T, J)
    :ivar use: see :mod:`seqmem_ros.offline.splits`, shape (T,)
    """

    material: Material
    target: np.ndarray
    use: np.ndarray


class BagSequences:
    """
    Lessons as batches.

    :param lessons: at least one
    :param spec: of the model; says joints, features and task
    :param degradation: of what is held out; those that are learned from have seeds after it
    :param batch_size: rows of a batch, fewer if there is less to learn from
    :param chunk: length of a batch in samples
    """

    def __init__(
        self,
        lessons: Sequence[Lesson],
        spec: ModelSpec,
        degradation: Degradation,
        batch_size: int,
        chunk: int,
    ) -> None:
        self.lessons = lessons
        self.spec = spec
        self.degradation = degradation
        self.chunk = chunk
        once = sum(len(each.raw) for each in self.sequences(LEARNED, degradation, None))
        n_sequences = len(self.sequences(LEARNED, degradation, None))
        changes = replace(degradation, seed=0) != Degradation(bits=0, drop=0.0)
        self.copies = -(-batch_size // max(n_sequences, 1)) if changes else 1
        self.n_rows = min(batch_size, max(n_sequences, 1) * self.copies)
        self.n_sequences = n_sequences
        self._share = min(1.0, MOST_SAMPLES / max(once * self.copies, 1))

    def epoch(self, number: int) -> Iterator[tuple[np.ndarray, ...]]:
        """
        Go over the data once.

        :param number: says degradation and order
        :returns: iterator over batches, see :meth:`seqmem_ros.offline.packing.Packed.chunks`
        """
        rng = np.random.default_rng([self.degradation.seed, number])
        sequences = []
        for copy in range(self.copies):
            seed = self.degradation.seed + 1 + number * self.copies + copy
            worse = replace(self.degradation, seed=seed)
            sequences += self.sequences(LEARNED, worse, rng)
        # Or all rows of a batch would show the same moment of a recording.
        sequences = [part for each in sequences for part in _cut(each, rng)]
        order = rng.permutation(len(sequences))
        packed = pack([sequences[index] for index in order], self.n_rows, self.chunk)
        yield from packed.chunks(self.chunk)

    def held_out(self) -> Packed | None:
        """
        Lay out what is held out.

        :returns: rows of sequences; None if there is nothing
        """
        sequences = self.sequences(HELD_OUT, self.degradation, None)
        return pack(sequences, min(len(sequences), self.n_rows), self.chunk) if sequences else None

    def sequences(
        self, kind: int, degradation: Degradation, rng: np.random.Generator | None
    ) -> list[Training]:
        """
        Cut the lessons into unbroken sequences.

        :param kind: ``LEARNED`` or ``HELD_OUT``
        :param degradation: of the positions
        :param rng: chooses a stretch of each recording where all would be too much; None takes all
        :returns: the sequences
        """
        found = []
        for lesson in self.lessons:
            rows, seen = lesson.material.degraded(degradation)
            chosen = lesson.use[rows] == kind
            if rng is not None and self._share < 1:
                length = int(self._share * len(rows))
                begin = int(rng.integers(0, len(rows) - length + 1))
                chosen &= (np.arange(len(rows)) >= begin) & (np.arange(len(rows)) < begin + length)
            if lesson.material.options.zero_stamp == 'reject':
                chosen &= seen.stamp_ns != 0
            groups = self._groups(lesson, seen)
            for joints in groups:
                found += self._of_joints(lesson, rows, seen, chosen, joints, degradation)
        return found

    def _groups(self, lesson: Lesson, seen: Recording) -> list[np.ndarray]:
        if self.spec.joints:
            return [np.array([seen.names.index(name) for name in self.spec.joints])]
        moving = lesson.material.moving if self.spec.task == 'velocity' else seen.names
        return [np.array([joint]) for joint, moves in enumerate(moving) if moves]

    def _of_joints(
        self,
        lesson: Lesson,
        rows: np.ndarray,
        seen: Recording,
        chosen: np.ndarray,
        joints: np.ndarray,
        degradation: Degradation,
    ) -> list[Training]:
        fields = [getattr(seen, field)[:, joints] for field in self.spec.fields]
        known = chosen & np.isfinite(np.concatenate(fields, axis=1)).all(axis=1)
        # A stretch ends where the use of the rows between its samples changes, too.
        stretch = np.cumsum(np.diff(lesson.use, prepend=lesson.use[:1]) != 0)[rows]
        index, parts = np.flatnonzero(known), []
        for run in unbroken_runs(seen.time_ns[index], lesson.material.options.max_gap_s):
            run = index[run]
            cuts = np.flatnonzero(np.diff(stretch[run]) != 0) + 1
            parts += [part for part in np.split(run, cuts) if len(part) > WINDOW]
        floor = self._floor(lesson, joints, degradation)
        return [self._sequence(lesson, rows, seen, part, joints, floor) for part in parts]

    def _sequence(
        self,
        lesson: Lesson,
        rows: np.ndarray,
        seen: Recording,
        part: np.ndarray,
        joints: np.ndarray,
        floor: float,
    ) -> Training:
        stamp_ns = seen.time_ns[part]
        target = lesson.target[np.ix_(rows[part], joints)]
        read = [
            getattr(seen, field)[np.ix_(part, joints)]
            if field in self.spec.fields
            else np.zeros((len(part), len(joints)))
            for field in FIELDS
        ]
        raw = raw_together(stamp_ns, *read)
        if not self.spec.joints:
            raw = raw[:, 0]
        if self.spec.labels or not self.spec.joints:
            target = target[:, 0]
        known = np.isfinite(target) & (target >= 0 if self.spec.labels else True)
        counts = known.reshape(len(part), -1).all(axis=1) & (np.arange(len(part)) >= WINDOW - 1)
        kind = np.int32 if self.spec.labels else np.float32
        clean = np.where(known, target, 0).astype(kind)
        return Training(raw, clean, counts, floor)

    def _floor(self, lesson: Lesson, joints: np.ndarray, degradation: Degradation) -> float:
        """Error below which the reference itself is not sure, rad/s."""
        if self.spec.labels:
            return 0.0
        period_s = median_period_s(lesson.material.recording.time_ns)
        doubt = np.nan_to_num(lesson.material.reference.doubt_rad_s[joints]).mean()
        return float(max(doubt, LOSS_FLOOR_SHARE * degradation.step_rad / period_s))


def _cut(sequence: Training, rng: np.random.Generator) -> list[Training]:
    """Cut at a random place; the first window of what follows says nothing yet."""
    n_samples = len(sequence.raw)
    at = int(rng.integers(0, n_samples))
    if not 2 * WINDOW <= at <= n_samples - 2 * WINDOW:
        return [sequence]
    raw, target, counts, floor = sequence
    counts_after = counts[at:] & (np.arange(n_samples - at) >= WINDOW - 1)
    # A stream that starts here does not know what was before.
    after = raw[at:].copy()
    for sample in range(min(WINDOW, len(after))):
        for lag in range(sample + 1, N_LAGS + 1):
            after[sample, ..., [2 + lag, 2 + N_LAGS + lag]] = (
                after[sample, ..., [2 + sample, 2 + N_LAGS + sample]] if sample else 0
            )
    first = Training(raw[:at], target[:at], counts[:at], floor)
    return [first, Training(after, target[at:], counts_after, floor)]
