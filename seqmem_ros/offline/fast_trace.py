"""
What a stream would show to its estimator, made in arrays where nothing out of the common happens.

A message is *plain* if it follows one of the same layout by a positive step within
``max_gap_s`` and all its values are finite and reachable. A run of plain messages needs no
rules: each joint advances, and windows are slices of the arrays. Wherever a message is not
plain, the rules of :class:`~seqmem_ros.core.stream.Stream` itself decide, sample by sample, with
a stub in place of the estimator that notes its inputs, until the windows hold plain messages
alone again.
"""

from collections import Counter
from collections import deque

import numpy as np

from seqmem_ros.core.estimator import Estimator
from seqmem_ros.core.gates import ABSURD_POSITION_RAD
from seqmem_ros.core.gates import ValueGates
from seqmem_ros.core.joints import JointSample
from seqmem_ros.core.joints import NANOSECONDS_PER_SECOND
from seqmem_ros.core.options import StreamOptions
from seqmem_ros.core.stream import Stream
from seqmem_ros.core.window import with_rows
from seqmem_ros.offline.fast_steps import NotingEstimator
from seqmem_ros.offline.fast_steps import Steps
from seqmem_ros.offline.joint_layout import JointBlock
from seqmem_ros.offline.recording import usable_names


class Tracer:
    """
    Turns messages into the steps of one kind of estimator.

    :param estimator: what it reads and how its stream treats it
    :param options: of the stream
    :ivar row_of: rows by name of the joint
    """

    def __init__(self, estimator: Estimator, options: StreamOptions) -> None:
        self._options = options
        self._stub = NotingEstimator(estimator)
        self._stream = Stream(self._stub, options)
        self._gates = ValueGates(options, 0)
        self._recent: deque[tuple[int, JointSample]] = deque(maxlen=estimator.window + 1)
        self._good_in_a_row = 0
        self._in_arrays = False
        self._plain_steps = 0
        self._unseen = 0
        # Samples of each row since its start; the stream's own count lacks the plain ones.
        self._count = np.zeros(0, dtype=np.int64)
        self._layout: tuple[str, ...] = ()
        self._columns = np.empty(0, dtype=np.intp)
        self._last: JointBlock | None = None
        self.row_of: dict[str, int] = {name: row for row, name in enumerate(estimator.joints)}

    @property
    def counts(self) -> Counter[str]:
        """What the stream would have counted."""
        plain = Counter(received=self._plain_steps, estimated=self._plain_steps)
        return self._stream.counts + plain

    @property
    def last_event(self) -> str:
        """What the stream noted last."""
        return self._stream.last_event

    def take(self, messages: np.ndarray, block: JointBlock) -> list[Steps]:
        """
        Turn messages into steps.

        :param messages: their indices in the recording, shape (n,)
        :param block: the messages, of one layout
        :returns: the steps, in order
        """
        if not len(block):
            return []
        plain = self._plain(block)
        steps: list[Steps] = []
        at = 0
        while at < len(block):
            if not self._in_arrays:
                steps += self._one(messages[at], block, at, plain[at])
                at += 1
                continue
            broken = np.flatnonzero(~plain[at:])
            stop = at + int(broken[0]) if len(broken) else len(block)
            if stop > at:
                steps.append(self._many(messages[at:stop], block.rows(slice(at, stop))))
            if stop < len(block):
                self._back_to_the_rules()
            at = stop
        self._last = block.rows(slice(-1, None))
        return steps

    def _plain(self, block: JointBlock) -> np.ndarray:
        """Find messages to which no rule of the stream applies; bool, shape (n,)."""
        names = usable_names(block, self._options)
        wanted = self._stub.joints or self._options.joints or names
        if self._stub.joints:
            columns = [names.index(name) for name in wanted if name in names]
        else:
            columns = [index for index, name in enumerate(names) if name in set(wanted)]
        fields = [getattr(block, name) for name in self._stub.fields]
        if (
            not columns
            or self._options.continuous_joints
            or len(columns) < len(self._stub.joints)
            or any(values.shape[1] != len(names) for values in fields)
        ):
            self._layout = ()
            return np.zeros(len(block), dtype=bool)
        layout = tuple(names[column] for column in columns)
        follows = layout == self._layout and self._last is not None
        if layout != self._layout:
            self._gates.name_rows(layout)
        self._layout, self._columns = layout, np.array(columns)
        stamp_ns = self._stamps(block)
        before_ns = self._stamps(self._last) if follows else stamp_ns[:1]
        step_ns = np.diff(stamp_ns, prepend=before_ns)
        plain = (step_ns > 0) & (step_ns <= self._options.max_gap_s * NANOSECONDS_PER_SECOND)
        plain &= stamp_ns != 0
        for values in fields:
            plain &= (np.abs(values[:, columns]) < ABSURD_POSITION_RAD).all(axis=1)
        if not self._gates.is_open:
            position = block.position[:, columns]
            before = self._last_position if follows else position[:1]
            moved_rad = np.diff(position, axis=0, prepend=before)
            elapsed_s = (step_ns / NANOSECONDS_PER_SECOND)[:, None]
            near = self._gates.reachable(slice(None), moved_rad, elapsed_s, elapsed_s > 0)
            plain &= near.all(axis=1)
        self._last_position = block.position[-1:, columns]
        return plain

    def _stamps(self, block: JointBlock) -> np.ndarray:
        if self._options.zero_stamp != 'receive_time':
            return block.stamp_ns
        return np.where(block.stamp_ns == 0, block.record_ns, block.stamp_ns)

    def _one(self, message: int, block: JointBlock, at: int, plain: bool) -> list[Steps]:
        """Let the stream decide about one message."""
        record_ns, sample = int(block.record_ns[at]), block.sample(at)
        estimate = self._stream.push(sample, record_ns)
        self._recent.append((record_ns, sample))
        names = () if estimate is None else estimate.names
        if names and self._stub.per_joint:
            self.row_of.update(zip(names, (int(row) for row in estimate.velocity)))
        good = plain and names == self._layout
        self._good_in_a_row = self._good_in_a_row + 1 if good else 0
        self._in_arrays = self._good_in_a_row == self._recent.maxlen
        self._unseen = 0
        noted, self._stub.noted = self._stub.noted, []
        steps = []
        for windows, count, advance in noted:
            ready = np.zeros(len(count), dtype=bool)
            ready[[self.row_of[name] for name in names]] = True
            arrays = {name: values[None] for name, values in windows.items()}
            counted = self._counted(np.where(advance, count == 1, False), advance)
            messages = np.array([message])
            steps.append(Steps(messages, arrays, counted[None], advance[None], ready[None]))
        return steps

    def _counted(self, starts: np.ndarray, advance: np.ndarray) -> np.ndarray:
        self._count = with_rows(self._count, len(advance))
        self._count = np.where(starts, 1, self._count + advance)
        return self._count

    def _many(self, messages: np.ndarray, block: JointBlock) -> Steps:
        """Slide windows over plain messages."""
        window = self._stub.window
        before = list(self._recent)[1 - window :]
        rows = [self.row_of[name] for name in self._layout]
        n_rows = max(rows) + 1
        stamps = np.append([self._stamp_of(*entry) for entry in before], self._stamps(block))
        # All joints share them, which readers may make use of.
        wholes = {'stamp_ns': np.broadcast_to(stamps[:, None], (len(stamps), len(rows)))}
        for field in self._stub.fields:
            earlier = [getattr(sample, field)[self._columns] for _, sample in before]
            wholes[field] = np.concatenate([earlier, getattr(block, field)[:, self._columns]])
        arrays = {
            name: np.lib.stride_tricks.sliding_window_view(whole, window, axis=0)
            for name, whole in wholes.items()
        }
        if rows != list(range(n_rows)):
            for name, slid in arrays.items():
                arrays[name] = np.zeros((len(block), n_rows, window), dtype=slid.dtype)
                arrays[name][:, rows] = slid
        advance = np.zeros((len(block), n_rows), dtype=bool)
        advance[:, rows] = True
        self._count = with_rows(self._count, max(n_rows, len(self._count)))
        counts = self._count[:n_rows] + advance.cumsum(axis=0)
        self._count[rows] += len(block)
        self._plain_steps += len(block)
        self._unseen += len(block)
        for at in range(max(0, len(block) - self._recent.maxlen), len(block)):
            self._recent.append((int(block.record_ns[at]), block.sample(at)))
        return Steps(messages, arrays, counts, advance, advance)

    def _stamp_of(self, record_ns: int, sample: JointSample) -> int:
        takes_receipt = self._options.zero_stamp == 'receive_time' and not sample.stamp_ns
        return record_ns if takes_receipt else sample.stamp_ns

    def _back_to_the_rules(self) -> None:
        """Show the last plain messages to the stream, which has not seen them, uncounted."""
        # Those before its own last message would be late.
        unseen = min(self._unseen, len(self._recent))
        last = list(self._recent)[len(self._recent) - unseen :]
        self._stream.push_again((sample, record_ns) for record_ns, sample in last)
        self._stub.noted = []
        self._in_arrays = False
        self._good_in_a_row = 0
