"""The state of a recording: its rate, its gaps, and what is wrong with its messages."""

from dataclasses import dataclass

import numpy as np

from seqmem_ros.core.joints import NANOSECONDS_PER_SECOND
from seqmem_ros.offline.recording import Recording
from seqmem_ros.offline.reference import CLOCK_JUMP_NS
from seqmem_ros.offline.reference import median_period_s


@dataclass(frozen=True)
class Health:
    """
    Counts over a recording.

    :ivar messages: all of them
    :ivar joints: number of different joints
    :ivar duration_s: from the first to the last stamp in s, less the times that started over
    :ivar rate_hz: 1 / median period; 0 without two different stamps
    :ivar gaps: periods longer than ``max_gap_s``
    :ivar longest_gap_s: longest period in s
    :ivar late: stamps older than one before
    :ivar clock_restarts: stamps that went back by more than 0.1 s
    :ivar duplicate_stamps: stamps equal to the one before
    :ivar zero_stamps: messages without a stamp
    :ivar non_finite: positions that are NaN or infinite, in messages that carry the joint
    :ivar malformed: messages whose arrays do not fit their names
    :ivar delay_s: median of record time - stamp, s
    """

    messages: int
    joints: int
    duration_s: float
    rate_hz: float
    gaps: int
    longest_gap_s: float
    late: int
    clock_restarts: int
    duplicate_stamps: int
    zero_stamps: int
    non_finite: int
    malformed: int
    delay_s: float

    def __str__(self) -> str:
        faults = {
            'gaps': self.gaps,
            'late': self.late,
            'clock restarts': self.clock_restarts,
            'duplicate stamps': self.duplicate_stamps,
            'zero stamps': self.zero_stamps,
            'NaN or infinite': self.non_finite,
            'malformed': self.malformed,
        }
        found = ', '.join(f'{name} {count}' for name, count in faults.items() if count)
        return (
            f'{self.messages} messages, {self.joints} joints, {self.duration_s:.2f} s at '
            f'{self.rate_hz:.4g} Hz, {found or "no faults"}'
        )


def check_health(recording: Recording, max_gap_s: float) -> Health:
    """
    Count what is wrong with a recording.

    :param recording: as recorded
    :param max_gap_s: a longer period counts as a gap, s
    :returns: the counts
    """
    time_ns = recording.time_ns
    steps_ns = np.diff(time_ns)
    restarts = steps_ns < -CLOCK_JUMP_NS
    longest_s = float(steps_ns.max(initial=0)) / NANOSECONDS_PER_SECOND
    period_s = median_period_s(time_ns)
    stamped = recording.stamp_ns != 0
    delays = (recording.record_ns - recording.stamp_ns)[stamped] / NANOSECONDS_PER_SECOND
    return Health(
        messages=len(time_ns),
        joints=len(recording.names),
        duration_s=float(steps_ns[~restarts].sum()) / NANOSECONDS_PER_SECOND,
        rate_hz=1.0 / period_s if period_s else 0.0,
        gaps=int(np.sum(steps_ns > max_gap_s * NANOSECONDS_PER_SECOND)),
        longest_gap_s=longest_s,
        late=int(np.sum((steps_ns < 0) & ~restarts)),
        clock_restarts=int(np.sum(restarts)),
        duplicate_stamps=int(np.sum((steps_ns == 0) & stamped[1:])),
        zero_stamps=int(np.sum(~stamped)),
        non_finite=recording.non_finite,
        malformed=recording.malformed,
        delay_s=float(np.median(delays)) if len(delays) else float('nan'),
    )
