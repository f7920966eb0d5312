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
    :ivar delay_range_s: its 1st and 99th percentile, s
    :ivar record_inversions: record times older than the one before
    :ivar period_range_s: 1st and 99th percentile of the periods, s
    :ivar jitter_edges_s: edges of a histogram of the periods, s, shape (n + 1,)
    :ivar jitter_counts: periods in each bin; those outside count for the first and last
    :ivar absent: joints that some messages lack, and in how many of them
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
    delay_range_s: tuple[float, float]
    record_inversions: int
    period_range_s: tuple[float, float]
    jitter_edges_s: np.ndarray
    jitter_counts: np.ndarray
    absent: dict[str, int]

    @property
    def jitter_s(self) -> float:
        """Half the range of the periods that 98 % of them keep, s."""
        low_s, high_s = self.period_range_s
        return (high_s - low_s) / 2

    def __str__(self) -> str:
        faults = {
            'gaps': self.gaps,
            'late': self.late,
            'clock restarts': self.clock_restarts,
            'duplicate stamps': self.duplicate_stamps,
            'zero stamps': self.zero_stamps,
            'NaN or infinite': self.non_finite,
            'malformed': self.malformed,
            'record times that go back': self.record_inversions,
            'joints that come and go': len(self.absent),
        }
        found = ', '.join(f'{name} {count}' for name, count in faults.items() if count)
        return (
            f'{_counted(self.messages, "message")}, {_counted(self.joints, "joint")}, '
            f'{self.duration_s:.2f} s at '
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
    edges_s, counts = _histogram(steps_ns, period_s)
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
        delay_range_s=_range(delays),
        record_inversions=int(np.sum(np.diff(recording.record_ns) < 0)),
        period_range_s=_range(steps_ns[steps_ns > 0] / NANOSECONDS_PER_SECOND),
        jitter_edges_s=edges_s,
        jitter_counts=counts,
        absent=_absent(recording),
    )


def _range(values: np.ndarray) -> tuple[float, float]:
    if not len(values):
        return float('nan'), float('nan')
    low, high = np.percentile(values, (1, 99))
    return float(low), float(high)


def _histogram(steps_ns: np.ndarray, period_s: float) -> tuple[np.ndarray, np.ndarray]:
    """Count periods in bins of a twentieth of the usual one, up to three of it."""
    edges_s = np.arange(61) * (period_s or 1.0) / 20
    periods_s = steps_ns[steps_ns > 0] / NANOSECONDS_PER_SECOND
    # A period of just k twentieths belongs to one bin, however it is rounded.
    edges_s = edges_s - edges_s[1] / 2
    counts, _ = np.histogram(np.clip(periods_s, edges_s[0], edges_s[-1]), edges_s)
    return edges_s, counts


def _absent(recording: Recording) -> dict[str, int]:
    return {
        name: int(lacking) for name, lacking in zip(recording.names, recording.lacking) if lacking
    }


def _counted(number: int, thing: str) -> str:
    return f'{number} {thing}' + 's' * (number != 1)
