"""A whole recording as arrays over time and joints."""

from dataclasses import dataclass

import numpy as np

from seqmem_ros.core.checks import checked_names
from seqmem_ros.core.dropped import Dropped
from seqmem_ros.core.joints import JointSample
from seqmem_ros.core.options import StreamOptions


@dataclass(frozen=True, eq=False)
class Recording:
    """
    Every message of a recording, one row each; NaN where a message lacks a joint or a field.

    T messages, J joints in the order in which they appear.

    :ivar names: names of the joints
    :ivar stamp_ns: stamps from the headers, ns, shape (T,); 0 where there is none
    :ivar record_ns: record times, ns, shape (T,)
    :ivar position: rad or m, shape (T, J)
    :ivar velocity: rad/s or m/s, shape (T, J)
    :ivar effort: N m or N, shape (T, J)
    :ivar malformed: number of messages whose arrays do not fit their names, or that name a
        joint twice
    :ivar non_finite: number of positions that are NaN or infinite in messages that name the
        joint
    """

    names: tuple[str, ...]
    stamp_ns: np.ndarray
    record_ns: np.ndarray
    position: np.ndarray
    velocity: np.ndarray
    effort: np.ndarray
    malformed: int
    non_finite: int

    @property
    def time_ns(self) -> np.ndarray:
        """When each message was measured, in ns: its stamp, or without one its record time."""
        return np.where(self.stamp_ns == 0, self.record_ns, self.stamp_ns)


class JointTable:
    """
    Rows over joints that turn up in any order, at any time.

    :ivar names: joints so far
    """

    def __init__(self) -> None:
        self.names: list[str] = []
        self._columns_of: dict[tuple[str, ...], np.ndarray] = {}
        self._rows: list[tuple[int, np.ndarray, np.ndarray]] = []

    def put(self, row: int, names: tuple[str, ...], values: np.ndarray) -> None:
        """
        Enter values into a row.

        :param row: its index
        :param names: joints, J of them
        :param values: shape (J,) or (J, L)
        """
        columns = self._columns_of.get(names)
        if columns is None:
            self.names += [name for name in names if name not in self.names]
            columns = np.array([self.names.index(name) for name in names], dtype=np.intp)
            self._columns_of[names] = columns
        self._rows.append((row, columns, values))

    def array(self, n_rows: int, names: tuple[str, ...]) -> np.ndarray:
        """
        Lay out what was entered.

        :param n_rows: T
        :param names: joints of the columns, J of them
        :returns: shape (T, J) or (T, J, L), NaN where nothing was entered
        """
        depth = self._rows[0][2].shape[1:] if self._rows else ()
        # The last column stays empty: it stands for joints that never turned up.
        table = np.full((n_rows, len(self.names) + 1, *depth), np.nan)
        for row, columns, values in self._rows:
            table[row, columns] = values
        known = {name: column for column, name in enumerate(self.names)}
        return table[:, [known.get(name, -1) for name in names]]


class RecordingBuilder:
    """
    Collect a recording message by message, by the rules of a stream.

    :param options: uses ``assume_joint_order`` and ``joints``
    """

    def __init__(self, options: StreamOptions) -> None:
        self._options = options
        self._fields = {field: JointTable() for field in ('position', 'velocity', 'effort')}
        self._times: list[tuple[int, int]] = []
        self._malformed = 0
        self._non_finite = 0

    def add(self, record_ns: int, sample: JointSample) -> None:
        """
        Append one message.

        :param record_ns: record time in ns
        :param sample: the message
        """
        row = len(self._times)
        self._times.append((sample.stamp_ns, record_ns))
        try:
            names = checked_names(sample, ('position',), self._options)
        except Dropped:
            names = ()
        if not names or len(set(names)) < len(names):
            self._malformed += 1
            return
        self._non_finite += int(np.sum(~np.isfinite(sample.position)))
        for field, table in self._fields.items():
            values = getattr(sample, field)
            if len(values):
                table.put(row, names, values)

    def build(self) -> Recording:
        """
        Finish.

        :returns: all messages so far
        """
        seen = tuple(self._fields['position'].names)
        wanted = self._options.joints
        names = tuple(name for name in seen if name in wanted) if wanted else seen
        stamps, records = np.array(self._times, dtype=np.int64).reshape(-1, 2).T
        arrays = {
            field: table.array(len(self._times), names) for field, table in self._fields.items()
        }
        return Recording(
            names,
            stamps,
            records,
            malformed=self._malformed,
            non_finite=self._non_finite,
            **arrays,
        )
