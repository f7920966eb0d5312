"""
The last five samples of every joint: what the estimators see of the past.

One row a joint, because publishers interleave: an arm and a gripper on one topic advance at
their own times.
"""

from collections.abc import Iterator
from collections.abc import Sequence

import numpy as np

from seqmem_ros.core.joints import NANOSECONDS_PER_SECOND


class JointWindows:
    r"""
    Sliding windows over the samples of each joint, oldest first.

    A row that holds fewer than ``window`` samples is padded at its old end with its first
    sample, so that lags reach back to the start and no further: the lag-k difference is

    .. math:: d_k = p_t - p_{\max(t-k, 0)}, \qquad T_k = t_t - t_{\max(t-k, 0)}

    :ivar position: rad, shape (capacity, window), float64
    :ivar stamp_ns: ns, shape (capacity, window), int64
    :ivar velocity: as measured, rad/s, shape (capacity, window); kept only if pushed
    :ivar effort: as measured, N m, shape (capacity, window); kept only if pushed
    :ivar count: samples since the row was started, shape (capacity,); 1 means just started
    :ivar routine_elapsed_s: one row of :meth:`elapsed_s`, which holds for every row that got the
        last sample, all of them full; None where that is not known
    """

    routine_elapsed_s: Sequence[float] | None = None

    def __init__(self, capacity: int, window: int = 5) -> None:
        if window < 2:
            raise ValueError(f'window: expected at least 2 samples, got {window}')
        self.window = window
        self.position = np.zeros((capacity, window))
        self.stamp_ns = np.zeros((capacity, window), dtype=np.int64)
        self.velocity = np.zeros((capacity, window))
        self.effort = np.zeros((capacity, window))
        self.count = np.zeros(capacity, dtype=np.int64)

    @property
    def capacity(self) -> int:
        return len(self.count)

    def resize(self, capacity: int) -> None:
        """
        Make room for more joints, or for fewer; the rows that remain keep their content.

        :param capacity: new number of rows
        """
        for name in ('position', 'stamp_ns', 'velocity', 'effort', 'count'):
            setattr(self, name, with_rows(getattr(self, name), capacity))

    def push(
        self,
        rows: np.ndarray,
        stamp_ns: int | np.ndarray,
        position: np.ndarray,
        **measured: np.ndarray,
    ) -> None:
        """
        Append one sample to some rows.

        :param rows: indices of the rows, shape (n,)
        :param stamp_ns: time of the sample in ns, one for all or shape (n,)
        :param position: rad, shape (n,)
        :param measured: ``velocity`` in rad/s and ``effort`` in N m, shape (n,), where in use
        """
        fresh = rows[self.count[rows] == 0]
        self.slide(rows, stamp_ns, None, position=position, **measured)
        for name in ('stamp_ns', 'position', *measured) if len(fresh) else ():
            array = getattr(self, name)
            array[fresh] = array[fresh, -1:]

    def slide(
        self,
        rows: np.ndarray | slice,
        stamp_ns: int | np.ndarray,
        elapsed_s: Sequence[float] | None,
        **values: np.ndarray,
    ) -> None:
        """
        Append one sample to rows that hold some.

        :param rows: indices of the rows, shape (n,), or a slice
        :param stamp_ns: see :meth:`push`
        :param elapsed_s: see ``routine_elapsed_s``
        :param values: ``position`` and what else is in use, see :meth:`push`
        """
        self.routine_elapsed_s = elapsed_s
        self.stamp_ns[rows, :-1] = self.stamp_ns[rows, 1:]
        self.stamp_ns[rows, -1] = stamp_ns
        for name, value in values.items():
            array = getattr(self, name)
            array[rows, :-1] = array[rows, 1:]
            array[rows, -1] = value
        self.count[rows] += 1

    def restart(self, rows: np.ndarray | slice) -> None:
        """
        Forget some rows; their next sample is a first one.

        :param rows: indices, a mask or a slice of the rows
        """
        self.count[rows] = 0

    def differences(self) -> np.ndarray:
        """
        Position differences over the lags 1 to window - 1.

        :returns: rad, shape (capacity, window - 1); column k - 1 holds lag k
        """
        return self.position[:, -1:] - self.position[:, -2::-1]

    def elapsed_s(self) -> np.ndarray:
        """
        Measured times that belong to :meth:`differences`.

        :returns: s, shape (capacity, window - 1); 0 where a lag reaches before the start
        """
        return (self.stamp_ns[:, -1:] - self.stamp_ns[:, -2::-1]) / NANOSECONDS_PER_SECOND

    def growing(self) -> Iterator['JointWindows']:
        """
        Show the windows as they were while they filled, as if the oldest sample were the first.

        :returns: one object for each sample of the window, oldest first
        """
        last = self.window - 1
        for newest in range(self.window):
            past = JointWindows(0, self.window)
            index = np.maximum(np.arange(self.window) + newest - last, 0)
            for name in ('position', 'stamp_ns', 'velocity', 'effort'):
                setattr(past, name, getattr(self, name)[:, index])
            past.count = np.full(self.capacity, newest + 1)
            yield past


def with_rows(array: np.ndarray, n_rows: int) -> np.ndarray:
    """
    Lengthen an array with zeros, or cut it.

    :param array: shape (n, ...)
    :param n_rows: new number of rows
    :returns: shape (n_rows, ...)
    """
    more = n_rows - len(array)
    if more <= 0:
        return array[:n_rows]
    return np.pad(array, [(0, more)] + [(0, 0)] * (array.ndim - 1))
