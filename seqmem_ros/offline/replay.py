"""Recorded messages through streams, sample by sample: what the node would have done."""

from collections import Counter
from collections.abc import Callable
from collections.abc import Mapping
from collections.abc import Sequence

import numpy as np

from seqmem_ros.core.estimator import Estimator
from seqmem_ros.core.joints import JointSample
from seqmem_ros.core.options import StreamOptions
from seqmem_ros.core.stream import Stream
from seqmem_ros.offline.joint_layout import JointBlock
from seqmem_ros.offline.recording import JointTable

WHOLE_ARM = ('whole arm',)

# Told of so many messages that are done.
OnProgress = Callable[[int], object]

_TOGETHER = 256


class ExactReplay:
    """
    All estimators on the same messages, each through its own stream.

    :param estimators: by name
    :param options: of every stream
    """

    def __init__(self, estimators: Mapping[str, Estimator], options: StreamOptions) -> None:
        self._streams = {name: Stream(each, options) for name, each in estimators.items()}
        self.tables = new_tables(estimators)

    @property
    def counts(self) -> dict[str, Counter[str]]:
        """Counters of each stream, by name of the estimator."""
        return {name: stream.counts for name, stream in self._streams.items()}

    @property
    def events(self) -> dict[str, str]:
        """What each stream noted last, by name of the estimator."""
        return {name: stream.last_event for name, stream in self._streams.items()}

    def push(self, rows: np.ndarray, block: JointBlock, on_progress: OnProgress) -> None:
        """
        Show the next messages to all streams.

        :param rows: their indices in the recording
        :param block: the messages
        :param on_progress: told of what is done
        """
        for begin in range(0, len(rows), _TOGETHER):
            part = slice(begin, begin + _TOGETHER)
            some, messages = rows[part], block.rows(part)
            samples = list(zip(messages.samples(), messages.record_ns.tolist()))
            for name, stream in self._streams.items():
                _push_all(stream, some, samples, self.tables[name])
            on_progress(len(some))

    def finish(self) -> None:
        """Complete the tables: they are."""


def new_tables(estimators: Mapping[str, Estimator]) -> dict[str, JointTable]:
    """
    Make room for outputs.

    :param estimators: by name
    :returns: tables by the same names; single precision tells errors that matter
    """
    return {name: JointTable(np.float32) for name in estimators}


def _push_all(
    stream: Stream,
    rows: np.ndarray,
    samples: Sequence[tuple[JointSample, int]],
    table: JointTable,
) -> None:
    """Push messages, and enter the estimates of the same joints together."""
    push, per_joint = stream.push, stream.estimator.per_joint
    names: tuple[str, ...] = ()
    told: list[int] = []
    values: list[np.ndarray] = []
    for index, (sample, record_ns) in enumerate(samples):
        estimate = push(sample, record_ns)
        if estimate is None:
            continue
        if estimate.names != names:
            _enter(table, rows[told], names if per_joint else WHOLE_ARM, values)
            names, told, values = estimate.names, [], []
        told.append(index)
        values.append(estimate.scores if estimate.velocity is None else estimate.velocity)
    _enter(table, rows[told], names if per_joint else WHOLE_ARM, values)


def _enter(
    table: JointTable, rows: np.ndarray, names: tuple[str, ...], values: Sequence[np.ndarray]
) -> None:
    if len(rows):
        table.put_rows(rows, names, np.array(values))
