"""A whole recording as arrays over time and joints."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import field

import numpy as np

from seqmem_ros.core.checks import checked_names
from seqmem_ros.core.dropped import Dropped
from seqmem_ros.core.joints import FIELDS
from seqmem_ros.core.joints import JointSample
from seqmem_ros.core.options import StreamOptions
from seqmem_ros.offline.joint_layout import JointBlock

_LEAST_ROWS = 1024


@dataclass(frozen=True, eq=False)
class Recording:
    """
    Every message of a recording, one row each; NaN where a message lacks a joint or a field.

    T messages, J joints in the order in which they appear.

    :ivar names: names of the joints
    :ivar stamp_ns: stamps from the headers, ns, shape (T,); 0 where there is none
    :ivar record_ns: record times, ns, shape (T,)
    :ivar position: rad or m, float64, shape (T, J)
    :ivar velocity: rad/s or m/s, float32, shape (T, J)
    :ivar effort: N m or N, float32, shape (T, J), or (T, 0) if it was not kept
    :ivar malformed: number of messages whose arrays do not fit their names, or that name a
        joint twice
    :ivar non_finite: number of positions that are NaN or infinite in messages that name the
        joint
    :ivar order: by what the messages are in order, ``'record'`` or ``'header'``
    :ivar lacking: number of well-formed messages that do not name the joint, shape (J,)
    """

    names: tuple[str, ...]
    stamp_ns: np.ndarray
    record_ns: np.ndarray
    position: np.ndarray
    velocity: np.ndarray
    effort: np.ndarray
    malformed: int
    non_finite: int
    order: str = 'record'
    lacking: np.ndarray = field(default_factory=lambda: np.empty(0, dtype=np.int64))

    @property
    def time_ns(self) -> np.ndarray:
        """When each message was measured, in ns: its stamp, or without one its record time."""
        return np.where(self.stamp_ns == 0, self.record_ns, self.stamp_ns)


class JointTable:
    """
    Rows over joints that turn up in any order, at any time.

    :param dtype: of the numbers
    :ivar names: joints so far
    """

    def __init__(self, dtype: type = np.float64) -> None:
        self.names: list[str] = []
        self._dtype = dtype
        self._columns_of: dict[tuple[str, ...], np.ndarray] = {}
        self._table = np.empty((0, 0), dtype=dtype)

    def put(self, row: int, names: tuple[str, ...], values: np.ndarray) -> None:
        """
        Enter values into a row.

        :param row: its index
        :param names: joints, J of them
        :param values: shape (J,) or (J, L)
        """
        columns = self._columns(names, values.shape[1:])
        self._reserve(row + 1)
        self._table[row, columns] = values

    def put_rows(self, rows: np.ndarray, names: tuple[str, ...], values: np.ndarray) -> None:
        """
        Enter values into several rows.

        :param rows: their indices, in order, shape (n,)
        :param names: joints, J of them
        :param values: shape (n, J) or (n, J, L)
        """
        columns = self._columns(names, values.shape[2:])
        if len(rows):
            self._reserve(int(rows[-1]) + 1)
            self._table[rows[:, None], columns] = values

    def array(self, n_rows: int, names: Sequence[str]) -> np.ndarray:
        """
        Lay out what was entered.

        :param n_rows: T
        :param names: joints of the columns, J of them
        :returns: shape (T, J) or (T, J, L), NaN where nothing was entered
        """
        self._reserve(n_rows)
        # The room for more is given back.
        self._table.resize((n_rows, *self._table.shape[1:]), refcheck=False)
        if list(names) == self.names:
            return self._table[:n_rows]
        column_of = {name: column for column, name in enumerate(self.names)}
        chosen = np.full((n_rows, len(names), *self._table.shape[2:]), np.nan, dtype=self._dtype)
        for column, name in enumerate(names):
            if name in column_of:
                chosen[:, column] = self._table[:n_rows, column_of[name]]
        return chosen

    def _columns(self, names: tuple[str, ...], depth: tuple[int, ...]) -> np.ndarray:
        columns = self._columns_of.get(names)
        if columns is None:
            known = set(self.names)
            self.names += [name for name in names if name not in known]
            shape = (len(self._table), len(self.names), *depth)
            wider = np.full(shape, np.nan, dtype=self._dtype)
            if self._table.shape[1]:
                wider[:, : self._table.shape[1]] = self._table
            self._table = wider
            columns = np.array([self.names.index(name) for name in names], dtype=np.intp)
            self._columns_of[names] = columns
        return columns

    def _reserve(self, n_rows: int) -> None:
        """Lengthen the table in place: a copy of it may not fit into memory beside it."""
        there = len(self._table)
        if n_rows > there:
            more = max(n_rows, _LEAST_ROWS, there + there // 8)
            self._table.resize((more, *self._table.shape[1:]), refcheck=False)
            self._table[there:] = np.nan


class RecordingBuilder:
    """
    Collect a recording by the rules of a stream.

    :param options: uses ``assume_joint_order`` and ``joints``
    :param fields: fields of the messages to keep, ``'position'`` among them
    :param order: by what the messages come in order
    """

    def __init__(
        self,
        options: StreamOptions,
        fields: tuple[str, ...] = FIELDS,
        order: str = 'record',
    ) -> None:
        self._options = options
        self._order = order
        self._fields = {
            field: JointTable(np.float64 if field == 'position' else np.float32)
            for field in fields
        }
        self._stamps: list[np.ndarray] = []
        self._records: list[np.ndarray] = []
        self._malformed = 0
        self._non_finite = 0
        self._carrying: Counter[str] = Counter()
        self.n_rows = 0

    def add(self, record_ns: int, sample: JointSample) -> None:
        """
        Append one message.

        :param record_ns: record time in ns
        :param sample: the message
        """
        times = (np.array([time_ns], dtype=np.int64) for time_ns in (record_ns, sample.stamp_ns))
        values = (getattr(sample, field)[None] for field in FIELDS)
        self.add_block(JointBlock(*times, sample.names, '', *values))

    def add_block(self, block: JointBlock) -> None:
        """
        Append messages of one layout.

        :param block: the messages, at least one
        """
        rows = np.arange(self.n_rows, self.n_rows + len(block))
        self.n_rows += len(block)
        self._stamps.append(block.stamp_ns)
        self._records.append(block.record_ns)
        names = usable_names(block, self._options)
        if not names:
            self._malformed += len(block)
            return
        self._non_finite += int(np.sum(~np.isfinite(block.position)))
        self._carrying.update(dict.fromkeys(names, len(block)))
        for name, table in self._fields.items():
            values = getattr(block, name)
            if values.shape[1]:
                table.put_rows(rows, names, values)

    def build(self) -> Recording:
        """
        Finish.

        :returns: all messages so far
        """
        seen = tuple(self._fields['position'].names)
        wanted = self._options.joints
        names = tuple(name for name in seen if name in wanted) if wanted else seen
        empty = [np.empty(0, dtype=np.int64)]
        arrays = {
            field: self._fields[field].array(self.n_rows, names)
            if field in self._fields
            else np.empty((self.n_rows, 0), dtype=np.float32)
            for field in FIELDS
        }
        return Recording(
            names,
            np.concatenate(empty + self._stamps),
            np.concatenate(empty + self._records),
            malformed=self._malformed,
            non_finite=self._non_finite,
            order=self._order,
            lacking=np.array(
                [self.n_rows - self._malformed - self._carrying[name] for name in names],
                dtype=np.int64,
            ),
            **arrays,
        )


def usable_names(block: JointBlock, options: StreamOptions) -> tuple[str, ...]:
    """
    Name the joints of messages, if they can be used at all.

    :param block: messages of one layout, at least one
    :param options: uses ``assume_joint_order``
    :returns: one name a position, or none if lengths or names do not fit
    """
    try:
        names = checked_names(block.sample(0), ('position',), options)
    except Dropped:
        return ()
    return names if len(set(names)) == len(names) else ()
