"""Which values of a message enter the memory: all the rules of one sample, in their order."""

import numpy as np

from seqmem_ros.core.accepted import Accepted
from seqmem_ros.core.checks import checked_names
from seqmem_ros.core.checks import checked_stamp_ns
from seqmem_ros.core.conflicts import conflict
from seqmem_ros.core.conflicts import nearest_turn
from seqmem_ros.core.dropped import Dropped
from seqmem_ros.core.estimator import capacity_for
from seqmem_ros.core.estimator import Estimator
from seqmem_ros.core.gates import rejection
from seqmem_ros.core.gates import ValueGates
from seqmem_ros.core.joint_map import JointMap
from seqmem_ros.core.joint_map import listed
from seqmem_ros.core.joints import JointSample
from seqmem_ros.core.joints import NANOSECONDS_PER_SECOND
from seqmem_ros.core.journal import Journal
from seqmem_ros.core.merge import VectorMerge
from seqmem_ros.core.options import StreamOptions
from seqmem_ros.core.routine import Routine
from seqmem_ros.core.routine import Routines
from seqmem_ros.core.timing import TimeRules
from seqmem_ros.core.timing import TimeStartedAgain
from seqmem_ros.core.timing import went_back
from seqmem_ros.core.window import JointWindows


class Intake:
    """
    Names to rows, stamps and values to judge, windows to fill: see :mod:`seqmem_ros.core`.

    :param estimator: says which joints and fields there must be
    :param options: the rules that can be set
    :param journal: where every refusal and restart is noted
    :ivar windows: the last samples of every joint
    """

    def __init__(self, estimator: Estimator, options: StreamOptions, journal: Journal) -> None:
        self._estimator = estimator
        self._options = options
        self._journal = journal
        self._map = JointMap(estimator.joints, options.joints, options.max_merge_age_s > 0)
        capacity = capacity_for(len(self._map), estimator)
        self.windows = JointWindows(capacity, estimator.window)
        self._time = TimeRules(options, capacity)
        self._gates = ValueGates(options, capacity)
        self._gates.name_rows(self._map.names)
        self._n_named = len(self._map)
        self._merge = VectorMerge(estimator.joints, options) if estimator.joints else None
        self._routines = Routines(estimator, self.windows, self._gates)

    @property
    def n_joints(self) -> int:
        """Joints that have a row."""
        return len(self._map)

    def use(self, options: StreamOptions) -> None:
        """
        Take other limits from the next message on.

        :param options: the new options, with the same names of joints
        """
        self._options = options
        self._routines.forget()
        self._map.set_partial(options.max_merge_age_s > 0)
        self._time.use(options)
        self._gates.use(options)
        if self._merge is not None:
            self._merge.use(options)

    def resize(self, capacity: int) -> None:
        """
        Make room for more joints, or for fewer.

        :param capacity: new number of rows
        """
        self._routines.forget()
        self.windows.resize(capacity)
        self._time.resize(capacity)
        self._gates.resize(capacity)

    def forget_from(self, n_joints: int) -> None:
        """
        Take back the rows of joints that came last.

        :param n_joints: number of joints to keep
        """
        capacity = self.windows.capacity
        self._map.forget_from(n_joints)
        self._n_named = -1
        # What was counted for them goes, too.
        self.resize(n_joints)
        self.resize(capacity)

    def restart(self, rows: np.ndarray) -> None:
        """
        Forget some joints, or all where the network has one memory for the whole arm.

        :param rows: rows of the joints, shape (n,)
        """
        self._routines.forget()
        if self._merge is None:
            self.windows.restart(rows)
            return
        self.windows.restart(slice(None))
        self._merge.clear()

    def routine(self, sample: JointSample, receive_ns: int | None) -> Routine | None:
        """
        Judge a message by what is known of the last one with the same joints.

        :param sample: the message
        :param receive_ns: when it was received in ns, None if unknown
        :returns: the joints that advance, all of the message; None: :meth:`accept` must decide
        """
        routine = self._routines.admit(sample, self._time.max_gap_ns)
        if routine is not None:
            self._time.note_receipt(receive_ns)
        return routine

    def accept(self, sample: JointSample, receive_ns: int | None) -> Accepted:
        """
        Judge a message.

        :param sample: the message
        :param receive_ns: when it was received in ns, None if unknown
        :returns: the values that the next step takes
        :raises Dropped: if there are none
        :raises Waiting: if joints of the model may still come
        :raises TimeStartedAgain: if the memory is of another time
        """
        names = checked_names(sample, self._estimator.fields, self._options)
        stamp_ns = checked_stamp_ns(sample, receive_ns, self._options)
        columns, rows = self._map.rows(names)
        if len(self._map) != self._n_named:
            self._n_named = len(self._map)
            self._gates.name_rows(self._map.names)
        if len(self._map) > self.windows.capacity:
            self.resize(capacity_for(len(self._map), self._estimator))
        self._routines.forget(rows)
        newer = self._admit_time(sample, names, columns, rows, stamp_ns, receive_ns)
        columns, rows = columns[newer], rows[newer]
        position = self._unwrapped(names, columns, rows, sample.position[columns])
        good = self._admit_values(sample, names, columns, rows, stamp_ns, position)
        if not good.any() or (self._estimator.joints and not good.all()):
            raise Dropped('drop_all_rejected', self._journal.last_event)
        columns, rows = columns[good], rows[good]
        measured = {
            field: getattr(sample, field)[columns]
            for field in self._estimator.fields
            if field != 'position'
        }
        accepted = Accepted(
            rows,
            tuple([names[column] for column in columns]),
            stamp_ns,
            sample.position[columns],
            position[good],
            measured,
        )
        if self._merge is not None:
            return self._whole_vector(accepted)
        if newer.all() and good.all() and self._is_common(sample, stamp_ns):
            self._routines.learn(sample, accepted.names, columns, rows)
        return accepted

    def _is_common(self, sample: JointSample, stamp_ns: int) -> bool:
        """Whether there is nothing about a message that all was accepted of to keep an eye on."""
        return (
            stamp_ns == sample.stamp_ns
            and self._time.is_undisturbed
            and not self._options.continuous_joints
        )

    def _whole_vector(self, part: Accepted) -> Accepted:
        whole = self._merge.whole(part)
        gap_ns = whole.stamp_ns - self.windows.stamp_ns[whole.rows, -1]
        seen = self.windows.count[whole.rows] > 0
        self._restart_after(gap_ns, whole.rows, seen & (gap_ns > self._time.max_gap_ns))
        self._merge.clear(since_ns=int(np.max(whole.stamp_ns)))
        return whole

    def _admit_time(
        self,
        sample: JointSample,
        names: tuple[str, ...],
        columns: np.ndarray,
        rows: np.ndarray,
        stamp_ns: int,
        receive_ns: int | None,
    ) -> np.ndarray:
        seen = self.windows.count[rows] > 0
        last_ns, last = self.windows.stamp_ns[rows, -1], self.windows.position[rows, -1]
        if self._merge is not None:
            new = self._merge.new[rows]
            seen = seen | new
            last_ns = np.where(new, self._merge.stamp_ns[rows], last_ns)
            last = np.where(new, self._merge.values['position'][rows], last)

        def note_conflict() -> str:
            return self._note_conflict(sample, names, columns, last, seen & (last_ns == stamp_ns))

        try:
            newer, gap, again = self._time.admit(stamp_ns, receive_ns, rows, last_ns, seen)
        except Dropped as drop:
            raise Dropped(drop.key, note_conflict() or str(drop)) from None
        if not newer.all():
            note_conflict()
        if again is not None:
            back_ns = int(last_ns[again].max()) - stamp_ns
            self._start_again(names, columns[again], rows[again], stamp_ns, back_ns)
        if self._merge is None and gap.any():
            self._restart_after(stamp_ns - last_ns, rows, gap)
        return newer

    def _note_conflict(
        self,
        sample: JointSample,
        names: tuple[str, ...],
        columns: np.ndarray,
        kept: np.ndarray,
        same_stamp: np.ndarray,
    ) -> str:
        """Count joints that have two positions for one stamp, and say so."""
        at = columns[same_stamp]
        n_bad, sentence = conflict(
            [names[column] for column in at],
            kept[same_stamp],
            sample.position[at],
            self._wraps(names, at),
        )
        if n_bad:
            self._journal.note('value_conflict', sentence, n_bad)
        return sentence

    def _start_again(
        self,
        names: tuple[str, ...],
        columns: np.ndarray,
        rows: np.ndarray,
        stamp_ns: int,
        back_ns: int,
    ) -> None:
        """Restart the joints of a publisher that started over, or all if it is the only one."""
        sentence = went_back(back_ns)
        seen = self.windows.count > 0
        # A network over the whole arm may have no vector yet, and has one memory anyway.
        if self._estimator.joints or not seen.any():
            raise TimeStartedAgain(sentence)
        last_ns = self.windows.stamp_ns[:, -1]
        near = self._time.max_gap_ns
        others = seen & (
            (last_ns >= last_ns[seen].max() - near) | (np.abs(last_ns - stamp_ns) <= near)
        )
        others[rows] = False
        if not others.any():
            raise TimeStartedAgain(sentence)
        self.restart(rows)
        whose = listed([names[column] for column in columns])
        self._journal.note('reset_time_backwards', f'{sentence}: {whose}')

    def _restart_after(self, gap_ns: np.ndarray, rows: np.ndarray, gap: np.ndarray) -> None:
        if not gap.any():
            return
        self.restart(rows[gap])
        longest_s = gap_ns[gap].max() / NANOSECONDS_PER_SECOND
        self._journal.note(
            'reset_gap', f'a gap of {longest_s:.3f} s, above max_gap_s {self._options.max_gap_s}'
        )

    def _unwrapped(
        self, names: tuple[str, ...], columns: np.ndarray, rows: np.ndarray, position: np.ndarray
    ) -> np.ndarray:
        if not self._options.continuous_joints:
            return position
        wraps = self._wraps(names, columns) & (self.windows.count[rows] > 0)
        wraps &= self._gates.finite(position)
        last = self.windows.position[rows, -1]
        return np.where(wraps, nearest_turn(position, last, wraps), position)

    def _wraps(self, names: tuple[str, ...], columns: np.ndarray) -> np.ndarray:
        continuous = self._options.continuous_joints
        return np.array([names[column] in continuous for column in columns], dtype=bool)

    def _admit_values(
        self,
        sample: JointSample,
        names: tuple[str, ...],
        columns: np.ndarray,
        rows: np.ndarray,
        stamp_ns: int,
        position: np.ndarray,
    ) -> np.ndarray:
        used = [getattr(sample, field)[columns] for field in self._estimator.fields]
        finite = self._gates.finite(*used)
        difference = np.where(finite, position, 0.0) - self.windows.position[rows, -1]
        elapsed_s = (stamp_ns - self.windows.stamp_ns[rows, -1]) / NANOSECONDS_PER_SECOND
        near = self._gates.reachable(rows, difference, elapsed_s, self.windows.count[rows] > 0)
        good = finite & near
        for key, bad in (('value_jump', finite & ~near), ('value_non_finite', ~finite)):
            if bad.any():
                whose = [names[column] for column in columns[bad]]
                self._journal.note(key, rejection(key, whose), len(whose))
        exhausted = self._gates.exhausted(rows, good)
        # A joint that never had a finite value has nothing to forget.
        exhausted &= self.windows.count[rows] > 0
        if exhausted.any():
            self.restart(rows[exhausted])
            whose = listed([names[column] for column in columns[exhausted]])
            n_rejected = self._options.max_rejected
            self._journal.note(
                'reset_joint', f'{n_rejected} values in a row were rejected: {whose}'
            )
        return good
