"""Recorded messages through streams, sample by sample: what the node would have done."""

from collections import Counter
from collections.abc import Callable
from collections.abc import Mapping

import numpy as np

from seqmem_ros.core.estimate import Estimate
from seqmem_ros.core.estimator import Estimator
from seqmem_ros.core.options import StreamOptions
from seqmem_ros.core.stream import Stream
from seqmem_ros.offline.joint_layout import JointBlock
from seqmem_ros.offline.recording import JointTable

WHOLE_ARM = ('whole arm',)

# Told of so many messages that are done.
OnProgress = Callable[[int], object]

_TOLD_EVERY = 256


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
        for index, row in enumerate(rows):
            sample, record_ns = block.sample(index), int(block.record_ns[index])
            for name, stream in self._streams.items():
                estimate = stream.push(sample, record_ns)
                if estimate is not None:
                    self.tables[name].put(row, *_entry(estimate, stream.estimator))
            if index % _TOLD_EVERY == _TOLD_EVERY - 1:
                on_progress(_TOLD_EVERY)
        on_progress(len(rows) % _TOLD_EVERY)

    def finish(self) -> None:
        """Complete the tables: they are."""


def new_tables(estimators: Mapping[str, Estimator]) -> dict[str, JointTable]:
    """
    Make room for outputs.

    :param estimators: by name
    :returns: tables by the same names; single precision tells errors that matter
    """
    return {name: JointTable(np.float32) for name in estimators}


def _entry(estimate: Estimate, estimator: Estimator) -> tuple[tuple[str, ...], np.ndarray]:
    if estimate.velocity is not None:
        return estimate.names, estimate.velocity
    return (estimate.names if estimator.per_joint else WHOLE_ARM), estimate.scores
