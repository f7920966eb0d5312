"""
The message that brings nothing but new numbers, which is nearly every message.

All rules judge joint by joint, with an array operation for each question. Where the last message
of the same joints passed them all, most questions have their answer: what is left to ask of the
next one are its stamp and its values. A message that is not routine in the least thing goes
through the rules as they stand in :mod:`seqmem_ros.core.intake`; the answer is the same either
way, the routine one takes a tenth of the time.
"""

from collections import deque
from dataclasses import dataclass

import numpy as np

from seqmem_ros.core.accepted import Accepted
from seqmem_ros.core.estimator import Estimator
from seqmem_ros.core.gates import ABSURD_POSITION_RAD
from seqmem_ros.core.gates import ValueGates
from seqmem_ros.core.joints import JointSample
from seqmem_ros.core.joints import NANOSECONDS_PER_SECOND
from seqmem_ros.core.window import JointWindows


@dataclass(slots=True)
class Routine:
    """
    Joints that come in one message again and again, and whose windows are full.

    :ivar names: of the joints that advance
    :ivar rows: of these joints; a slice if they follow each other
    :ivar columns: of these joints in the message; a slice likewise
    :ivar advance: rows that advance, bool, shape (capacity,)
    :ivar n_values: joints in the message
    :ivar stamps_ns: of the last messages, newest first, no more than the windows have lags
    """

    names: tuple[str, ...]
    rows: np.ndarray | slice
    columns: np.ndarray | slice
    advance: np.ndarray
    n_values: int
    stamps_ns: deque[int]

    def elapsed_s(self, stamp_ns: int) -> list[float] | None:
        """
        Tell the times over the lags of a new message, and take it as the last one.

        :param stamp_ns: of the message
        :returns: s, one for each lag; None where older samples have stamps of their own
        """
        stamps_ns = self.stamps_ns
        known = None
        if len(stamps_ns) == stamps_ns.maxlen:
            known = [(stamp_ns - past_ns) / NANOSECONDS_PER_SECOND for past_ns in stamps_ns]
        stamps_ns.appendleft(stamp_ns)
        return known

    def accepted(self, sample: JointSample, values: dict[str, np.ndarray]) -> Accepted:
        """
        Say what was let through, as the rules say it.

        :param sample: the message
        :param values: its values of the fields in use, each shape (n,)
        :returns: the same
        """
        rows, measured = self.rows, dict(values)
        if isinstance(rows, slice):
            rows = np.arange(rows.start, rows.stop)
        position = measured.pop('position')
        return Accepted(rows, self.names, sample.stamp_ns, position, position, measured)


class Routines:
    """
    Knows the routines of a stream, by the names that stand in their messages.

    :param estimator: says which fields there must be
    :param windows: the last samples of every joint
    :param gates: judge how far a joint can have moved
    """

    def __init__(self, estimator: Estimator, windows: JointWindows, gates: ValueGates) -> None:
        self._fields = estimator.fields
        self._windows = windows
        self._gates = gates
        self._of: dict[tuple[str, ...], Routine] = {}

    def forget(self, rows: np.ndarray | None = None) -> None:
        """
        Trust nothing until it has gone through the rules again.

        :param rows: what is known of these joints, shape (n,); None: of all
        """
        if rows is None:
            self._of = {}
        for names, routine in list(self._of.items()):
            if routine.advance[rows].any():
                del self._of[names]

    def learn(
        self, sample: JointSample, names: tuple[str, ...], columns: np.ndarray, rows: np.ndarray
    ) -> None:
        """
        Note a message of which every value was accepted, before its values enter the windows.

        :param sample: the message
        :param names: of its joints that are in use
        :param columns: of these joints in the message, shape (n,)
        :param rows: of these joints, shape (n,), of which nothing is known
        """
        windows = self._windows
        # The one that is entered now makes them full; what follows a start is not routine.
        if not sample.names or not (windows.count[rows] >= windows.window).all():
            return
        advance = np.zeros(windows.capacity, dtype=bool)
        advance[rows] = True
        stamps_ns = deque([sample.stamp_ns], windows.window - 1)
        self._of[sample.names] = Routine(
            names, _as_slice(rows), _as_slice(columns), advance, len(sample.names), stamps_ns
        )

    def admit(self, sample: JointSample, max_gap_ns: int) -> Routine | None:
        """
        Judge a message.

        :param sample: the message
        :param max_gap_ns: longest time since the last one
        :returns: the joints that advance, all of the message; None: the rules must decide
        """
        routine = self._of.get(sample.names)
        if routine is None or sample.stamp_ns == 0:
            return None
        step_ns = sample.stamp_ns - routine.stamps_ns[0]
        if not 0 < step_ns <= max_gap_ns or not self._fit(sample, routine):
            return None
        if not self._gates.is_open and not self._within_reach(sample, routine, step_ns):
            return None
        return routine

    def _fit(self, sample: JointSample, routine: Routine) -> bool:
        """Look for the right numbers of values, all of them finite and not absurd."""
        n_values = routine.n_values
        if len(sample.velocity) not in (0, n_values) or len(sample.effort) not in (0, n_values):
            return False
        for field in self._fields:
            values = getattr(sample, field)
            if len(values) != n_values:
                return False
            # The maximum of values of which one is NaN is NaN, which compares false.
            if not np.maximum.reduce(np.abs(values)) < ABSURD_POSITION_RAD:
                return False
        return True

    def _within_reach(self, sample: JointSample, routine: Routine, step_ns: int) -> bool:
        last_rad = self._windows.position[routine.rows, -1]
        difference_rad = sample.position[routine.columns] - last_rad
        elapsed_s = np.full(len(last_rad), step_ns / NANOSECONDS_PER_SECOND)
        yes = np.ones(len(last_rad), dtype=bool)
        return bool(self._gates.reachable(routine.rows, difference_rad, elapsed_s, yes).all())


def _as_slice(index: np.ndarray) -> np.ndarray | slice:
    """Turn consecutive numbers into a slice, which NumPy reads several times as fast."""
    first, n = int(index[0]), len(index)
    if np.array_equal(index, np.arange(first, first + n)):
        return slice(first, first + n)
    return index
