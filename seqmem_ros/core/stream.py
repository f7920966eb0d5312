"""
A stream of joint samples in, an estimate for each out, by rules that can be read here.

The node and the offline evaluator both go through :meth:`Stream.push`, so what is scored on
a recording is what a robot gets.
"""

from collections import Counter

import jax
import numpy as np

from seqmem_ros.core.checks import checked_names
from seqmem_ros.core.checks import checked_stamp_ns
from seqmem_ros.core.dropped import Dropped
from seqmem_ros.core.estimate import Estimate
from seqmem_ros.core.estimate import make_estimate
from seqmem_ros.core.estimator import Estimator
from seqmem_ros.core.gates import ValueGates
from seqmem_ros.core.joint_map import JointMap
from seqmem_ros.core.joints import JointSample
from seqmem_ros.core.joints import NANOSECONDS_PER_SECOND
from seqmem_ros.core.options import StreamOptions
from seqmem_ros.core.timing import TimeRules
from seqmem_ros.core.timing import TimeStartedAgain
from seqmem_ros.core.window import JointWindows

# Six or seven axes and a gripper, the common arm, fit without a second compilation.
SMALLEST_CAPACITY = 8
TURN_RAD = 2 * np.pi


class Stream:
    """
    One estimator, its memory, and the rules by which samples enter.

    Every message is counted once: ``received`` equals ``estimated`` + ``filling`` (accepted,
    but no window was full yet) + the sum of all ``drop_*``. Single values that a gate
    rejected are counted as ``value_*``, restarts as ``reset_*``.

    :param estimator: a model or a filter from :mod:`seqmem_ros.core.estimators`
    :param options: the rules that can be set
    :ivar counts: the counters
    :ivar last_event: one sentence about the last message dropped or the last restart
    """

    def __init__(self, estimator: Estimator, options: StreamOptions | None = None) -> None:
        self.estimator = estimator
        self.options = options or StreamOptions()
        self.counts: Counter[str] = Counter()
        self.last_event = ''
        self._start()

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
        except Dropped as drop:
            self.counts[drop.key] += 1
            self.last_event = str(drop)
            return None
        self.counts['filling' if estimate is None else 'estimated'] += 1
        return estimate

    def reset(self, cause: str = 'requested') -> None:
        """
        Forget everything but the counters, as if the stream were new.

        :param cause: ends the name of the counter ``reset_<cause>``
        """
        self._start()
        self._note_reset(cause, f'all memory was reset ({cause})')

    def warm_up(self, n_joints: int = SMALLEST_CAPACITY) -> None:
        """
        Compile and run once, so that the first message does not wait; leaves no trace.

        :param n_joints: number of joints to expect; more are fine, but compile again
        """
        capacity = _capacity_for(n_joints, self.estimator)
        windows = JointWindows(capacity, self.estimator.window)
        windows.push(np.arange(capacity), 0, np.zeros(capacity))
        advance = np.ones(capacity, dtype=bool)
        self.estimator.step(windows, advance, self.estimator.init_state(capacity))

    def _start(self) -> None:
        self._map = JointMap(self.estimator.joints, self.options.joints)
        capacity = _capacity_for(len(self._map), self.estimator)
        self._windows = JointWindows(capacity, self.estimator.window)
        self._time = TimeRules(self.options, capacity)
        self._gates = ValueGates(self.options, capacity)
        self._state = self.estimator.init_state(capacity)

    def _take_or_start_again(self, sample: JointSample, receive_ns: int | None) -> Estimate | None:
        try:
            return self._take(sample, receive_ns)
        except TimeStartedAgain as again:
            self._start()
            self._note_reset('time_backwards', str(again))
            return self._take(sample, receive_ns)

    def _take(self, sample: JointSample, receive_ns: int | None) -> Estimate | None:
        names = checked_names(sample, self.estimator.fields, self.options)
        stamp_ns = checked_stamp_ns(sample, receive_ns, self.options)
        columns, rows = self._map.rows(names)
        if len(self._map) > self._windows.capacity:
            self._grow()
        newer = self._admit_time(stamp_ns, receive_ns, rows)
        columns, rows = columns[newer], rows[newer]
        position = self._unwrapped(names, columns, rows, sample.position[columns])
        good = self._admit_values(sample, names, columns, rows, stamp_ns, position)
        if not good.any() or (self.estimator.joints and not good.all()):
            raise Dropped('drop_all_rejected', self.last_event)
        columns, rows = columns[good], rows[good]
        outputs = self._step(sample, columns, rows, stamp_ns, position[good])
        return self._estimate(sample, names, columns, rows, outputs)

    def _grow(self) -> None:
        more = _capacity_for(len(self._map), self.estimator) - self._windows.capacity
        self._windows.grow(self._windows.capacity + more)
        self._gates.grow(self._windows.capacity)
        self._time.grow(self._windows.capacity)
        # What the new rows hold does not matter: a row starts from zero memory at its first
        # sample (see Estimator).
        self._state = jax.tree.map(
            lambda leaf: np.pad(leaf, [(0, more)] + [(0, 0)] * (np.ndim(leaf) - 1)), self._state
        )

    def _admit_time(self, stamp_ns: int, receive_ns: int | None, rows: np.ndarray) -> np.ndarray:
        seen = self._windows.count[rows] > 0
        last_ns = self._windows.stamp_ns[rows, -1]
        newer, gap = self._time.admit(stamp_ns, receive_ns, rows, last_ns, seen)
        if gap.any():
            self._restart(rows[gap])
            longest_s = (stamp_ns - last_ns[gap].min()) / NANOSECONDS_PER_SECOND
            self._note_reset(
                'gap', f'a gap of {longest_s:.3f} s, above max_gap_s {self.options.max_gap_s}'
            )
        return newer

    def _unwrapped(
        self, names: tuple[str, ...], columns: np.ndarray, rows: np.ndarray, position: np.ndarray
    ) -> np.ndarray:
        if not self.options.continuous_joints:
            return position
        wraps = np.array([names[column] in self.options.continuous_joints for column in columns])
        wraps &= self._windows.count[rows] > 0
        wraps &= self._gates.finite(position)
        last = self._windows.position[rows, -1]
        turns = np.rint((last[wraps] - position[wraps]) / TURN_RAD)
        position = position.copy()
        position[wraps] += turns * TURN_RAD
        return position

    def _admit_values(
        self,
        sample: JointSample,
        names: tuple[str, ...],
        columns: np.ndarray,
        rows: np.ndarray,
        stamp_ns: int,
        position: np.ndarray,
    ) -> np.ndarray:
        used = [getattr(sample, field)[columns] for field in self.estimator.fields]
        finite = self._gates.finite(*used)
        difference = np.where(finite, position, 0.0) - self._windows.position[rows, -1]
        elapsed_s = (stamp_ns - self._windows.stamp_ns[rows, -1]) / NANOSECONDS_PER_SECOND
        near = self._gates.reachable(difference, elapsed_s, self._windows.count[rows] > 0)
        good = finite & near
        if not good.all():
            self.counts['value_non_finite'] += int(np.sum(~finite))
            self.counts['value_jump'] += int(np.sum(finite & ~near))
            self.last_event = _rejection(names, columns, finite, near)
        exhausted = self._gates.exhausted(rows, good)
        # A joint that never had a finite value has nothing to forget.
        exhausted &= self._windows.count[rows] > 0
        if exhausted.any():
            self._restart(rows[exhausted])
            whose = ', '.join(names[column] for column in columns[exhausted])
            self._note_reset(
                'joint', f'{self.options.max_rejected} values in a row were rejected: {whose}'
            )
        return good

    def _step(
        self,
        sample: JointSample,
        columns: np.ndarray,
        rows: np.ndarray,
        stamp_ns: int,
        position: np.ndarray,
    ) -> np.ndarray:
        windows = self._windows
        measured = {
            field: getattr(sample, field)[columns]
            for field in self.estimator.fields
            if field != 'position'
        }
        windows.push(rows, stamp_ns, position, **measured)
        advance = np.zeros(windows.capacity, dtype=bool)
        advance[rows] = True
        outputs, self._state = self.estimator.step(windows, advance, self._state)
        return outputs

    def _estimate(
        self,
        sample: JointSample,
        names: tuple[str, ...],
        columns: np.ndarray,
        rows: np.ndarray,
        outputs: np.ndarray,
    ) -> Estimate | None:
        per_joint = self.estimator.per_joint
        values = outputs[rows] if per_joint else outputs
        good = np.isfinite(values.reshape(len(values), -1)).all(axis=1)
        full = self._windows.count[rows] >= self._windows.window
        if not good.all():
            self._restart(rows[~good] if per_joint else rows)
            self._note_reset('non_finite_output', 'the model gave a value that is not finite')
        if not good.any():
            raise Dropped('drop_non_finite_output', self.last_event)
        ready = good & full if per_joint else np.full(len(rows), full.all())
        if not ready.any():
            return None
        columns = columns[ready]
        return make_estimate(
            stamp_ns=int(self._windows.stamp_ns[rows[0], -1]),
            names=tuple(names[column] for column in columns),
            position=sample.position[columns],
            values=values[ready] if per_joint else values,
            labels=self.estimator.labels,
        )

    def _restart(self, rows: np.ndarray) -> None:
        # A network over the whole arm has one memory for all joints.
        self._windows.restart(slice(None) if self.estimator.joints else rows)

    def _note_reset(self, cause: str, sentence: str) -> None:
        self.counts[f'reset_{cause}'] += 1
        self.last_event = sentence


def _capacity_for(n_joints: int, estimator: Estimator) -> int:
    """Round up to a power of two, so that a few late joints do not compile again and again."""
    if estimator.joints:
        return len(estimator.joints)
    return max(SMALLEST_CAPACITY, 1 << (n_joints - 1).bit_length() if n_joints else 0)


def _rejection(
    names: tuple[str, ...], columns: np.ndarray, finite: np.ndarray, near: np.ndarray
) -> str:
    broken = [names[column] for column in columns[~finite]]
    if broken:
        return f'expected finite values, got NaN, infinite or absurd ones for {", ".join(broken)}'
    far = [names[column] for column in columns[~near]]
    return f'expected positions within max_velocity_rad_s, got a jump of {", ".join(far)}'
