"""
What the node tells about itself on ``/diagnostics``.

The level follows from what happened since the last report:

ERROR  messages came but none could be used, a model gave a value that is not finite, or the
       node could not be configured
WARN   nothing came, or a message or value was refused, or memory was restarted unasked
OK     everything that came was used, or the node is not active
"""

from collections import Counter
from collections import deque
from collections.abc import Mapping
import time
from types import MappingProxyType

from diagnostic_msgs.msg import DiagnosticStatus
from diagnostic_msgs.msg import KeyValue
import numpy as np

from seqmem_ros.ros.event_log import is_unusual

# More than a second at 1 kHz: enough for the 99th percentile, bounded if nobody reports.
KEPT_MESSAGES = 2048
ALWAYS_SHOWN = ('received', 'estimated', 'filling')
NOTHING_YET: Mapping[str, int] = MappingProxyType({})


class Monitor:
    """
    Collects times and counts between two reports.

    :param counts: counters of the stream up to now, which no report is to tell
    """

    def __init__(self, counts: Mapping[str, int] = NOTHING_YET) -> None:
        self._latency_ns: deque[int] = deque(maxlen=KEPT_MESSAGES)
        self._step_ns: deque[int] = deque(maxlen=KEPT_MESSAGES)
        self._reported = Counter(counts)
        self._reported_s = time.monotonic()

    def note(self, latency_ns: int, step_ns: int) -> None:
        """
        Remember one published message.

        :param latency_ns: from receipt to publication
        :param step_ns: of that in the stream
        """
        self._latency_ns.append(latency_ns)
        self._step_ns.append(step_ns)

    def report(self, counts: Counter[str]) -> tuple[bytes, str, dict[str, str]]:
        """
        Sum up the time since the last report, and start the next.

        :param counts: counters of the stream
        :returns: level, message, and values by name
        """
        now_s = time.monotonic()
        new = counts - self._reported
        values = {'input_rate_hz': f'{new["received"] / (now_s - self._reported_s):.1f}'}
        for name, times_ns in (('latency', self._latency_ns), ('step', self._step_ns)):
            for percent in (50, 99):
                values[f'{name}_p{percent}_ms'] = _percentile_ms(times_ns, percent)
            times_ns.clear()
        shown = {key: counts[key] for key in ALWAYS_SHOWN} | dict(sorted(counts.items()))
        values |= {key: str(count) for key, count in shown.items()}
        self._reported, self._reported_s = counts.copy(), now_s
        return (*judge(new), values)


def judge(new: Counter[str]) -> tuple[bytes, str]:
    """
    Say how well an active node does.

    :param new: what was counted since the last report
    :returns: level and a sentence
    """
    unusual = {key: count for key, count in new.items() if is_unusual(key) and count}
    told = ', '.join(f'{key} {n}' for key, n in sorted(unusual.items()))
    if not new['received']:
        return DiagnosticStatus.WARN, 'no joint states are coming in'
    if not new['estimated'] and not new['filling']:
        return DiagnosticStatus.ERROR, f'no message can be used: {told}'
    if any('non_finite_output' in key for key in unusual):
        return DiagnosticStatus.ERROR, f'the model fails: {told}'
    if unusual:
        return DiagnosticStatus.WARN, told
    return DiagnosticStatus.OK, 'estimating'


def status(name: str, level: bytes, message: str, values: dict[str, str]) -> DiagnosticStatus:
    """
    Put a report into its message.

    :param name: name of the node and of what it does
    :param level: OK, WARN or ERROR
    :param message: one sentence
    :param values: values by name
    :returns: the message
    """
    pairs = [KeyValue(key=key, value=value) for key, value in values.items()]
    return DiagnosticStatus(level=level, name=name, message=message, values=pairs)


def _percentile_ms(times_ns: deque[int], percent: float) -> str:
    return f'{np.percentile(times_ns, percent) / 1e6:.3f}' if times_ns else 'none'
