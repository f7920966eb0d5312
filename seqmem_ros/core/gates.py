"""Which values may enter the memory: finite, and no faster than the arm can be."""

from collections.abc import Sequence

import numpy as np

from seqmem_ros.core.joint_map import listed
from seqmem_ros.core.options import StreamOptions
from seqmem_ros.core.window import with_rows

# No joint turns this far; beyond it a squared difference could overflow single precision.
ABSURD_POSITION_RAD = 1e9


class ValueGates:
    """
    Judges single values of a message, joint by joint.

    :param options: uses ``max_velocity_rad_s``, ``joint_max_velocity`` and ``max_rejected``
    :param capacity: number of rows
    :ivar is_open: whether no joint has a limit
    """

    def __init__(self, options: StreamOptions, capacity: int) -> None:
        self._rejected_in_a_row = np.zeros(capacity, dtype=np.int64)
        self._names: Sequence[str] = ()
        self.use(options)

    def use(self, options: StreamOptions) -> None:
        """
        Take other limits; what has been counted stays.

        :param options: see the class
        """
        self._max_rejected = options.max_rejected
        self._overall_rad_s = options.max_velocity_rad_s
        self._of_joint = options.velocity_limits()
        self.name_rows(self._names)

    def name_rows(self, names: Sequence[str]) -> None:
        """
        Say which joint each row is, so that each has its own limit.

        :param names: joints in the order of their rows, those that have one
        """
        self._names = names
        limits = np.array([self._of_joint.get(name, self._overall_rad_s) for name in names])
        self._limit_rad_s = np.where(limits == 0, np.inf, limits)
        self.is_open = bool(np.isinf(self._limit_rad_s).all())

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
        self,
        rows: np.ndarray,
        difference_rad: np.ndarray,
        elapsed_s: np.ndarray,
        continues: np.ndarray,
    ) -> np.ndarray:
        """
        Find the joints that can have moved so far in that time.

        :param rows: rows of the joints: indices, shape (n,), or a slice
        :param difference_rad: since the last sample, shape (n,)
        :param elapsed_s: since the last sample, shape (n,)
        :param continues: joints that go on from a last sample, bool, shape (n,)
        :returns: bool, shape (n,); all true where the gate is off
        """
        if self.is_open:
            return np.ones(len(difference_rad), dtype=bool)
        limit_rad_s = self._limit_rad_s[rows]
        # The first sample has no time behind it, and infinity times none is no number.
        reach_rad = np.where(continues, limit_rad_s, 0.0) * np.where(continues, elapsed_s, 0.0)
        return ~continues | (np.abs(difference_rad) <= reach_rad)

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


def rejection(key: str, joints: Sequence[str]) -> str:
    """
    Say which values were rejected, and why.

    :param key: name of the counter, ``value_non_finite`` or ``value_jump``
    :param joints: names of the joints
    :returns: one sentence
    """
    if key == 'value_non_finite':
        return f'expected finite values, got NaN, infinite or absurd ones for {listed(joints)}'
    return f'expected positions within max_velocity_rad_s, got a jump of {listed(joints)}'
