"""
A stream of joint samples in, an estimate for each out, by rules that can be read here.

The node and the offline evaluator both go through :meth:`Stream.push`, so what is scored on
a recording is what a robot gets.
"""

from collections import Counter
from collections.abc import Iterable
from math import isfinite
from typing import Any

import numpy as np

from seqmem_ros.core.accepted import Accepted
from seqmem_ros.core.dropped import Dropped
from seqmem_ros.core.dropped import Waiting
from seqmem_ros.core.estimate import Estimate
from seqmem_ros.core.estimator import capacity_for
from seqmem_ros.core.estimator import Estimator
from seqmem_ros.core.estimator import SMALLEST_CAPACITY
from seqmem_ros.core.intake import Intake
from seqmem_ros.core.joints import JointSample
from seqmem_ros.core.journal import Journal
from seqmem_ros.core.label_rules import LabelRules
from seqmem_ros.core.options import StreamOptions
from seqmem_ros.core.routine import Routine
from seqmem_ros.core.timing import TimeStartedAgain
from seqmem_ros.core.window import JointWindows
from seqmem_ros.core.window import with_rows


class Stream:
    """
    One estimator, its memory, and the rules by which samples enter.

    Every message is counted once: ``received`` equals ``estimated`` + ``filling`` (accepted,
    but no window was full yet) + ``merging`` (kept until the other joints of the model have
    come) + the sum of all ``drop_*``. Single values that a gate rejected are counted as
    ``value_*``, restarts as ``reset_*``.

    :param estimator: a model or a filter from :mod:`seqmem_ros.core.estimators`
    :param options: the rules that can be set
    :ivar counts: the counters
    :ivar starts: how often all of it began anew, 1 at first
    """

    def __init__(self, estimator: Estimator, options: StreamOptions | None = None) -> None:
        self.estimator = estimator
        self.options = options or StreamOptions()
        self._journal = Journal()
        self.starts = 0
        self.counts: Counter[str] = self._journal.counts
        self._start()

    @property
    def last_event(self) -> str:
        """One sentence about the last message dropped or the last restart."""
        return self._journal.last_event

    @property
    def n_events(self) -> int:
        """How many messages, values or restarts there have been to hear about."""
        return self._journal.n_events

    @property
    def events(self) -> dict[str, str]:
        """One sentence about the last event of each kind, by the name of its counter."""
        return self._journal.events

    @property
    def compile_count(self) -> int:
        """Programs that the estimator has compiled so far."""
        return self.estimator.compile_count

    def push(self, sample: JointSample, receive_ns: int | None = None) -> Estimate | None:
        """
        Advance the memory by one message.

        :param sample: the message
        :param receive_ns: when it was received, in ns; tells late messages from a clock that
            was set back, and stamps those without a stamp if ``zero_stamp`` allows it
        :returns: the estimate, or None if there is nothing to say: see ``counts``
        """
        self.counts['received'] += 1
        try:
            estimate = self._take_or_start_again(sample, receive_ns)
        except Waiting:
            self.counts['merging'] += 1
            return None
        except Dropped as drop:
            self._journal.note(drop.key, str(drop))
            return None
        self.counts['filling' if estimate is None else 'estimated'] += 1
        return estimate

    def push_again(self, samples: Iterable[tuple[JointSample, int | None]]) -> None:
        """
        Advance the memory by messages that were counted elsewhere.

        :param samples: messages and times of receipt, as for :meth:`push`
        """
        with self._journal.closed():
            for sample, receive_ns in samples:
                self.push(sample, receive_ns)

    def refuse(self, key: str, sentence: str) -> None:
        """
        Count a message that the caller does not push, so that none is unaccounted for.

        :param key: name of the counter, ``drop_*``
        :param sentence: what was expected and what came
        """
        self.counts['received'] += 1
        self._journal.note(key, sentence)

    def change(self, options: StreamOptions) -> None:
        """
        Take other limits from the next message on; the memory stays.

        :param options: the new options, with the same names of joints
        """
        self.options = options
        self._intake.use(options)
        if self._labels is not None:
            self._labels.use(options)

    def reset(self, cause: str = 'requested') -> None:
        """
        Forget everything but the counters, as if the stream were new.

        :param cause: ends the name of the counter ``reset_<cause>``
        """
        self._start()
        self._journal.note(f'reset_{cause}', f'all memory was reset ({cause})')

    def warm_up(self, n_joints: int = SMALLEST_CAPACITY) -> None:
        """
        Compile and run once, so that the first message does not wait; leaves no trace.

        :param n_joints: number of joints to expect; more are fine, but compile again
        """
        capacity = capacity_for(n_joints, self.estimator)
        windows = JointWindows(capacity, self.estimator.window)
        windows.push(np.arange(capacity), 0, np.zeros(capacity))
        advance = np.ones(capacity, dtype=bool)
        self.estimator.step(windows, advance, self.estimator.init_state(capacity))

    def _start(self) -> None:
        self.starts += 1
        estimator, options = self.estimator, self.options
        self._intake = Intake(estimator, options, self._journal)
        capacity = self._intake.windows.capacity
        self._labels = (
            LabelRules(estimator.labels, options, capacity) if estimator.labels else None
        )
        self._state = estimator.init_state(capacity)

    def _take_or_start_again(self, sample: JointSample, receive_ns: int | None) -> Estimate | None:
        try:
            return self._take(sample, receive_ns)
        except TimeStartedAgain as again:
            self._start()
            self._journal.note('reset_time_backwards', str(again))
            return self._take(sample, receive_ns)

    def _take(self, sample: JointSample, receive_ns: int | None) -> Estimate | None:
        intake = self._intake
        routine = intake.routine(sample, receive_ns)
        if routine is not None:
            return self._go_on(routine, sample)
        n_joints, capacity = intake.n_joints, intake.windows.capacity
        try:
            accepted = intake.accept(sample, receive_ns)
        except Dropped:
            if intake.n_joints > n_joints:
                # Names in a message that is not used must cost nothing from now on.
                intake.forget_from(n_joints)
                intake.resize(capacity)
            raise
        if intake.windows.capacity != capacity:
            self._grow(intake.windows.capacity)
        return self._estimate(accepted, self._step(accepted))

    def _go_on(self, routine: Routine, sample: JointSample) -> Estimate | None:
        """Take a routine message: every joint of it advances, and every window is full."""
        columns, windows = routine.columns, self._intake.windows
        values = {field: getattr(sample, field)[columns] for field in self.estimator.fields}
        stamp_ns = sample.stamp_ns
        windows.slide(routine.rows, stamp_ns, routine.elapsed_s(stamp_ns), **values)
        outputs, self._state = self.estimator.step(windows, routine.advance, self._state)
        said, position = outputs[routine.rows], values['position']
        if not isfinite(said.sum()):
            return self._estimate(routine.accepted(sample, values), outputs)
        if self._labels is None:
            return Estimate(stamp_ns, routine.names, position, velocity=said)
        goes_on = np.zeros(len(said), dtype=bool)
        labels = self._labels.choose(routine.rows, goes_on, stamp_ns, said)
        return Estimate(stamp_ns, routine.names, position, scores=said, labels=labels)

    def _grow(self, capacity: int) -> None:
        # What new rows hold does not matter: a row starts from zero memory at its first sample
        # (see Estimator).
        self._state = _with_rows(self._state, capacity)
        if self._labels is not None:
            self._labels.resize(capacity)

    def _step(self, accepted: Accepted) -> np.ndarray:
        windows = self._intake.windows
        windows.push(accepted.rows, accepted.stamp_ns, accepted.position, **accepted.measured)
        advance = np.zeros(windows.capacity, dtype=bool)
        advance[accepted.rows] = True
        outputs, self._state = self.estimator.step(windows, advance, self._state)
        return outputs

    def _estimate(self, accepted: Accepted, outputs: np.ndarray) -> Estimate | None:
        per_joint, rows, windows = self.estimator.per_joint, accepted.rows, self._intake.windows
        values = outputs[rows] if per_joint else outputs
        good = np.isfinite(values.reshape(len(values), -1)).all(axis=1)
        count = windows.count[rows]
        full = count >= windows.window
        if not good.all():
            self._intake.restart(rows[~good] if per_joint else rows)
            self._journal.note(
                'reset_non_finite_output', 'the model gave a value that is not finite'
            )
        if not good.any():
            raise Dropped('drop_non_finite_output', self._journal.last_event)
        ready = good & full if per_joint else np.full(len(rows), full.all())
        if not ready.any():
            return None
        stamp_ns = int(np.max(accepted.stamp_ns))
        names, position = accepted.names, accepted.received
        if not ready.all():
            names = tuple([name for name, is_ready in zip(names, ready) if is_ready])
            position = position[ready]
        values = values[ready] if per_joint else values
        if self._labels is None:
            return Estimate(stamp_ns, names, position, velocity=values)
        # A window that has just become full is the first to speak after a start.
        started = (count == windows.window)[ready]
        if not per_joint:
            rows, ready, started = rows[:1], ready[:1], started.all(keepdims=True)
        labels = self._labels.choose(rows[ready], started, stamp_ns, values)
        return Estimate(stamp_ns, names, position, scores=values, labels=labels)


def _with_rows(state: Any, capacity: int) -> Any:
    if isinstance(state, dict):  # of a filter
        return {name: with_rows(array, capacity) for name, array in state.items()}
    return with_rows(np.asarray(state), capacity) if len(state) else state
