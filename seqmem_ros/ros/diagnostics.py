"""
What the node tells about itself on ``/diagnostics``.

The level follows from what happened since the last report:

ERROR  messages came but none could be used; one stamp came with two positions of a joint; a
       model gave a value that is not finite; or the node could not be configured
WARN   nothing came; a message or value was refused; memory was restarted unasked; several
       publishers send the same joints; or a publisher cannot be heard for its QoS
OK     everything that came was used, or the node is not active
"""

from collections import Counter
from collections import deque
from collections.abc import Mapping
from collections.abc import Sequence
import time
from types import MappingProxyType

from diagnostic_msgs.msg import DiagnosticStatus
from diagnostic_msgs.msg import KeyValue
import numpy as np

from seqmem_ros.ros.event_log import is_unusual

# More than a second at 1 kHz: enough for the 99th percentile, bounded if nobody reports.
KEPT_MESSAGES = 2048
ALWAYS_SHOWN = (
    'received',
    'published',
    'thinned',
    'estimated',
    'filling',
    'merging',
    'drop_late',
    'drop_duplicate_stamp',
    'drop_all_rejected',
    'value_non_finite',
    'value_jump',
    'value_conflict',
    'reset_gap',
    'reset_joint',
    'reset_time_backwards',
    'reset_non_finite_output',
    'reset_requested',
)
NOTHING_YET: Mapping[str, int] = MappingProxyType({})


class Monitor:
    """
    Collects times and counts between two reports.

    :param counts: counters of the stream up to now, which no report is to tell
    """

    def __init__(self, counts: Mapping[str, int] = NOTHING_YET) -> None:
        self._latency_ns: deque[int] = deque(maxlen=KEPT_MESSAGES)
        self._step_ns: deque[int] = deque(maxlen=KEPT_MESSAGES)
        self._age_ns: deque[int] = deque(maxlen=KEPT_MESSAGES)
        self._reported = Counter(counts)
        self._reported_s = time.monotonic()

    def note(self, latency_ns: int, step_ns: int, age_ns: int) -> None:
        """
        Remember one published message.

        :param latency_ns: from receipt to publication
        :param step_ns: of that in the stream
        :param age_ns: from its stamp to its turn, by the clock of the node; told and not judged
        """
        self._age_ns.append(age_ns)
        self._latency_ns.append(latency_ns)
        self._step_ns.append(step_ns)

    def report(
        self, counts: Counter[str], shared_joints: Sequence[str] = (), n_unheard: int = 0
    ) -> tuple[bytes, str, dict[str, str]]:
        """
        Sum up the time since the last report, and start the next.

        :param counts: counters of the stream
        :param shared_joints: joints that more than one publisher sends
        :param n_unheard: publishers whose QoS does not fit
        :returns: level, message, and values by name
        """
        now_s = time.monotonic()
        new = counts - self._reported
        values = {'input_rate_hz': f'{new["received"] / (now_s - self._reported_s):.1f}'}
        for name, times_ns in (
            ('latency', self._latency_ns),
            ('step', self._step_ns),
            ('age', self._age_ns),
        ):
            for percent in (50, 99):
                values[f'{name}_p{percent}_ms'] = _percentile_ms(times_ns, percent)
            times_ns.clear()
        values['dropped'] = str(sum(n for key, n in counts.items() if key.startswith('drop_')))
        shown = {key: counts[key] for key in ALWAYS_SHOWN} | dict(sorted(counts.items()))
        values |= {key: str(count) for key, count in shown.items()}
        values['shared_joints'] = ', '.join(shared_joints) or 'none'
        values['unheard_publishers'] = str(n_unheard)
        self._reported, self._reported_s = counts.copy(), now_s
        return (*judge(new, shared_joints, n_unheard), values)


def judge(
    new: Counter[str], shared_joints: Sequence[str] = (), n_unheard: int = 0
) -> tuple[bytes, str]:
    """
    Say how well an active node does.

    :param new: what was counted since the last report
    :param shared_joints: joints that more than one publisher sends
    :param n_unheard: publishers whose QoS does not fit
    :returns: level and a sentence
    """
    if n_unheard and not new['received']:
        return DiagnosticStatus.WARN, f'{n_unheard} publishers cannot be heard for their QoS'
    unusual = {key: count for key, count in new.items() if is_unusual(key) and count}
    told = ', '.join(f'{key} {n}' for key, n in sorted(unusual.items()))
    if not new['received']:
        return DiagnosticStatus.WARN, 'no joint states are coming in'
    if not new['estimated'] and not new['filling'] and not new['merging']:
        return DiagnosticStatus.ERROR, f'no message can be used: {told}'
    if 'value_conflict' in unusual:
        return DiagnosticStatus.ERROR, f'publishers contradict each other: {told}'
    if any('non_finite_output' in key for key in unusual):
        return DiagnosticStatus.ERROR, f'the model fails: {told}'
    if shared_joints:
        shared = f'several publishers send {", ".join(shared_joints)}'
        return DiagnosticStatus.WARN, f'{shared}; {told}' if told else shared
    if unusual:
        return DiagnosticStatus.WARN, told
    if n_unheard:
        return DiagnosticStatus.WARN, f'{n_unheard} publishers cannot be heard for their QoS'
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
