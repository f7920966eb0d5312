"""
When a sample is new, when it is late, and when time itself has started again.

All decisions rest on the header stamps; the clock of the receiver only tells a late message
(stamp back, clock not) from a recording or simulator that starts over (both back). The age
of a message is never a reason to refuse it.
"""

import numpy as np

from seqmem_ros.core.dropped import Dropped
from seqmem_ros.core.joints import NANOSECONDS_PER_SECOND
from seqmem_ros.core.options import StreamOptions
from seqmem_ros.core.window import with_rows

# Longer than any two stamps of a message can lie apart (int32 seconds), short enough for int64.
LONGEST_S = 5e9


class TimeStartedAgain(Exception):
    """The stamps belong to an earlier time than the memory: all of it is to be forgotten."""


class TimeRules:
    """
    Sorts samples by their stamps, joint by joint: publishers on one topic have their own times.

    :param options: uses ``max_gap_s``, ``clock_jump_tolerance_s`` and ``max_rejected``
    :param capacity: number of rows
    """

    def __init__(self, options: StreamOptions, capacity: int) -> None:
        self._late_in_a_row = np.zeros(capacity, dtype=np.int64)
        self._late_stamp_ns = np.zeros(capacity, dtype=np.int64)
        self._any_late = False
        self._last_receive_ns: int | None = None
        self.use(options)

    def use(self, options: StreamOptions) -> None:
        """
        Take other limits; what has been counted stays.

        :param options: see the class
        """
        self.max_gap_ns = nanoseconds(options.max_gap_s)
        self._tolerance_ns = nanoseconds(options.clock_jump_tolerance_s)
        self._max_late = options.max_rejected

    def resize(self, capacity: int) -> None:
        """
        Make room for more joints, or for fewer.

        :param capacity: new number of rows
        """
        self._late_in_a_row = with_rows(self._late_in_a_row, capacity)
        self._late_stamp_ns = with_rows(self._late_stamp_ns, capacity)

    def admit(
        self,
        stamp_ns: int,
        receive_ns: int | None,
        rows: np.ndarray,
        last_ns: np.ndarray,
        seen: np.ndarray,
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        """
        Decide which joints of a message advance.

        :param stamp_ns: stamp of the message in ns
        :param receive_ns: time of its receipt in ns, None if unknown
        :param rows: rows of the message's joints, shape (n,)
        :param last_ns: last stamp of each of them in ns, shape (n,)
        :param seen: joints that have a last stamp, bool, shape (n,)
        :returns: joints that advance; joints whose last sample is too old to go on from; joints
            of a source that started over, None for none; each bool, shape (n,)
        :raises Dropped: if no joint advances
        :raises TimeStartedAgain: if the memory is of another time
        """
        clock_back = self.note_receipt(receive_ns)
        newer = ~seen | (stamp_ns > last_ns)
        gap = seen & (stamp_ns - last_ns > self.max_gap_ns)
        if not self._any_late and newer.all():
            return newer, gap, None
        far_back = seen & (last_ns - stamp_ns > self._tolerance_ns)
        again = self._believed_late(rows, far_back, stamp_ns)
        # A joint without a last stamp, new or never finite, says nothing about time.
        all_back = far_back.any() and not newer[seen].any()
        if clock_back and all_back:
            raise TimeStartedAgain(went_back(last_ns[far_back].max() - stamp_ns))
        newer |= again
        if newer.any():
            return newer, gap, again if again.any() else None
        back_ns = int(last_ns.max()) - stamp_ns
        if back_ns == 0:
            raise Dropped('drop_duplicate_stamp', f'stamp {stamp_ns} ns came a second time')
        raise Dropped(
            'drop_late', f'late by {back_ns / NANOSECONDS_PER_SECOND:.6f} s against the last stamp'
        )

    @property
    def is_undisturbed(self) -> bool:
        """Whether no joint has been late since it last was in time."""
        return not self._any_late

    def note_receipt(self, receive_ns: int | None) -> bool:
        """
        Note when a message was received.

        :param receive_ns: time in ns, None if unknown
        :returns: whether the receiver's clock went back, or may have
        """
        last_ns, self._last_receive_ns = self._last_receive_ns, receive_ns
        if receive_ns is None or last_ns is None:
            return receive_ns is None
        return receive_ns < last_ns

    def _believed_late(self, rows: np.ndarray, far_back: np.ndarray, stamp_ns: int) -> np.ndarray:
        """One straggler is late; a run of them in order is a source that started over."""
        in_order = stamp_ns > self._late_stamp_ns[rows]
        in_a_row = np.where(in_order, self._late_in_a_row[rows] + 1, 1)
        self._late_in_a_row[rows] = in_a_row = np.where(far_back, in_a_row, 0)
        self._late_stamp_ns[rows] = stamp_ns
        self._any_late = bool(self._late_in_a_row.any())
        return in_a_row > self._max_late


def went_back(back_ns: int) -> str:
    """
    Say by how much time went back.

    :param back_ns: from the last stamp to the new one, in ns
    :returns: one sentence
    """
    return f'stamps went back by {back_ns / NANOSECONDS_PER_SECOND:.3f} s'


def nanoseconds(duration_s: float) -> int:
    """
    Turn a duration that a user set into nanoseconds.

    :param duration_s: in s, any length
    :returns: in ns, no longer than two stamps can lie apart
    """
    return round(min(duration_s, LONGEST_S) * NANOSECONDS_PER_SECOND)
