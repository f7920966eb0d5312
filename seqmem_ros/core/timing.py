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


class TimeStartedAgain(Exception):
    """The stamps belong to an earlier time than the memory: all of it is to be forgotten."""


class TimeRules:
    """
    Sorts samples by their stamps.

    :param options: uses ``max_gap_s``, ``clock_jump_tolerance_s`` and ``max_rejected``
    """

    def __init__(self, options: StreamOptions) -> None:
        self._max_gap_ns = round(options.max_gap_s * NANOSECONDS_PER_SECOND)
        self._tolerance_ns = round(options.clock_jump_tolerance_s * NANOSECONDS_PER_SECOND)
        self._max_late = options.max_rejected
        self._late_in_a_row = 0
        self._late_stamp_ns = 0
        self._last_receive_ns: int | None = None

    def admit(
        self, stamp_ns: int, receive_ns: int | None, last_ns: np.ndarray, seen: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """
        Decide which joints of a message advance.

        :param stamp_ns: stamp of the message in ns
        :param receive_ns: time of its receipt in ns, None if unknown
        :param last_ns: last stamp of each joint of the message in ns, shape (n,)
        :param seen: joints that have a last stamp, bool, shape (n,)
        :returns: joints that advance, and joints whose last sample is too old to go on from,
            both bool, shape (n,)
        :raises Dropped: if no joint advances
        :raises TimeStartedAgain: if the memory is of another time
        """
        clock_back = self._clock_went_back(receive_ns)
        newer = ~seen | (stamp_ns > last_ns)
        if newer.any():
            self._late_in_a_row = 0
            return newer, seen & (stamp_ns - last_ns > self._max_gap_ns)
        newest_ns = int(last_ns.max())
        if stamp_ns == newest_ns:
            raise Dropped('drop_duplicate_stamp', f'stamp {stamp_ns} ns came a second time')
        back_ns = newest_ns - stamp_ns
        if back_ns > self._tolerance_ns and (clock_back or self._believes_late(stamp_ns)):
            raise TimeStartedAgain(f'stamps went back by {back_ns / NANOSECONDS_PER_SECOND:.3f} s')
        raise Dropped(
            'drop_late', f'late by {back_ns / NANOSECONDS_PER_SECOND:.6f} s against the last stamp'
        )

    def _clock_went_back(self, receive_ns: int | None) -> bool:
        last_ns, self._last_receive_ns = self._last_receive_ns, receive_ns
        if receive_ns is None or last_ns is None:
            return receive_ns is None
        return receive_ns < last_ns

    def _believes_late(self, stamp_ns: int) -> bool:
        """One straggler is late; a run of them in order is a source that started over."""
        in_order = stamp_ns > self._late_stamp_ns
        self._late_in_a_row = self._late_in_a_row + 1 if in_order else 1
        self._late_stamp_ns = stamp_ns
        return self._late_in_a_row > self._max_late
