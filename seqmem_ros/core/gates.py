"""Which values may enter the memory: finite, and no faster than the arm can be."""

import numpy as np

from seqmem_ros.core.options import StreamOptions
from seqmem_ros.core.window import with_rows

# No joint turns this far; beyond it a squared difference could overflow single precision.
ABSURD_POSITION_RAD = 1e9


class ValueGates:
    """
    Judges single values of a message, joint by joint.

    :param options: uses ``max_velocity_rad_s`` and ``max_rejected``
    :param capacity: number of rows
    """

    def __init__(self, options: StreamOptions, capacity: int) -> None:
        self._rejected_in_a_row = np.zeros(capacity, dtype=np.int64)
        self.use(options)

    def use(self, options: StreamOptions) -> None:
        """
        Take other limits; what has been counted stays.

        :param options: uses ``max_velocity_rad_s`` and ``max_rejected``
        """
        self._max_velocity_rad_s = options.max_velocity_rad_s
        self._max_rejected = options.max_rejected

    def resize(self, capacity: int) -> None:
        """
        Make room for more joints, or for fewer.

        :param capacity: new number of rows
        """
        self._rejected_in_a_row = with_rows(self._rejected_in_a_row, capacity)

    def finite(self, *fields: np.ndarray) -> np.ndarray:
        """
        Find the joints whose values can be computed with.

        :param fields: values of the fields in use, each shape (n,)
        :returns: bool, shape (n,)
        """
        good = np.ones(len(fields[0]), dtype=bool)
        for values in fields:
            # NaN compares false.
            good &= np.abs(values) < ABSURD_POSITION_RAD
        return good

    def reachable(
        self, difference_rad: np.ndarray, elapsed_s: np.ndarray, continues: np.ndarray
    ) -> np.ndarray:
        """
        Find the joints that can have moved so far in that time.

        :param difference_rad: since the last sample, shape (n,)
        :param elapsed_s: since the last sample, shape (n,)
        :param continues: joints that go on from a last sample, bool, shape (n,)
        :returns: bool, shape (n,); all true where the gate is off
        """
        if self._max_velocity_rad_s == 0:
            return np.ones(len(difference_rad), dtype=bool)
        return ~continues | (np.abs(difference_rad) <= self._max_velocity_rad_s * elapsed_s)

    def exhausted(self, rows: np.ndarray, good: np.ndarray) -> np.ndarray:
        """
        Count rejected values in a row.

        :param rows: rows of the message's joints, shape (n,)
        :param good: joints whose value was accepted, bool, shape (n,)
        :returns: joints that have now been rejected too often to go on, bool, shape (n,)
        """
        in_a_row = np.where(good, 0, self._rejected_in_a_row[rows] + 1)
        out = in_a_row >= self._max_rejected
        self._rejected_in_a_row[rows] = np.where(out, 0, in_a_row)
        return out
