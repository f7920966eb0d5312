"""Recorded messages through estimators in arrays: what streams say, in a fraction of the time."""

from collections import Counter
from collections.abc import Mapping
from collections.abc import Sequence
from operator import itemgetter
from typing import Any

import jax
import numpy as np

from seqmem_ros.core.errors import SeqmemError
from seqmem_ros.core.estimator import Estimator
from seqmem_ros.core.filters import Filter
from seqmem_ros.core.network_estimator import NetworkEstimator
from seqmem_ros.core.options import StreamOptions
from seqmem_ros.offline.fast_scan import ChunkedScan
from seqmem_ros.offline.fast_steps import Steps
from seqmem_ros.offline.fast_trace import Tracer
from seqmem_ros.offline.filter_runner import FilterRunner
from seqmem_ros.offline.filter_runner import flat_windows
from seqmem_ros.offline.joint_layout import JointBlock
from seqmem_ros.offline.network_scan import NetworkScan
from seqmem_ros.offline.recording import JointTable
from seqmem_ros.offline.replay import new_tables
from seqmem_ros.offline.replay import OnProgress
from seqmem_ros.offline.replay import WHOLE_ARM


class FastReplay:
    """
    Stands in for :class:`~seqmem_ros.offline.replay.ExactReplay`; velocities agree to 1e-5.

    :param estimators: by name
    :param options: of every stream
    :raises SeqmemError: if an estimator cannot be run in arrays
    """

    def __init__(self, estimators: Mapping[str, Estimator], options: StreamOptions) -> None:
        self.tables = new_tables(estimators)
        groups: dict[tuple, dict[str, Estimator]] = {}
        for name, each in estimators.items():
            rules = (each.fields, each.joints, each.window, each.per_joint)
            groups.setdefault(rules, {})[name] = each
        self._groups = [_Group(group, options, self.tables) for group in groups.values()]

    @property
    def counts(self) -> dict[str, Counter[str]]:
        """Counters of each stream, by name of the estimator."""
        return {name: group.tracer.counts for group in self._groups for name in group.runs}

    @property
    def events(self) -> dict[str, str]:
        """What each stream noted last, by name of the estimator."""
        return {name: group.tracer.last_event for group in self._groups for name in group.runs}

    def push(self, rows: np.ndarray, block: JointBlock, on_progress: OnProgress) -> None:
        """
        Take the next messages.

        :param rows: their indices in the recording
        :param block: the messages
        :param on_progress: told of what is done
        """
        for group in self._groups:
            group.push(rows, block)
        on_progress(len(rows))

    def finish(self) -> None:
        """Complete the tables."""
        for group in self._groups:
            group.flush()


class _Group:
    """Estimators whose streams follow the same rules, and thus see the same windows."""

    def __init__(
        self,
        estimators: Mapping[str, Estimator],
        options: StreamOptions,
        tables: Mapping[str, JointTable],
    ) -> None:
        self.tracer = Tracer(next(iter(estimators.values())), options)
        self.runs = {name: _Run(name, each) for name, each in estimators.items()}
        self._tables = tables

    def push(self, rows: np.ndarray, block: JointBlock) -> None:
        for steps in self.tracer.take(rows, block):
            for name, run in self.runs.items():
                run.add(steps)
                while run.is_full:
                    run.go(self._tables[name], self.tracer.row_of)

    def flush(self) -> None:
        for name, run in self.runs.items():
            run.go(self._tables[name], self.tracer.row_of)
            run.settle(self._tables[name], self.tracer.row_of)


class _AtOnce:
    """Runs an estimator without memory: all steps are so many joints more."""

    size = 4096

    def __init__(self, estimator: Estimator) -> None:
        self._estimator = estimator

    def inputs(self, steps: Steps) -> dict[str, np.ndarray]:
        return {'count': steps.count, **steps.windows}

    def run(self, inputs: dict[str, np.ndarray]) -> np.ndarray:
        n_steps = len(inputs['count'])
        # Always as many, so that one compiled program serves all.
        index = np.minimum(np.arange(self.size), n_steps - 1)
        steps = {name: values[index] for name, values in inputs.items()}
        count = steps.pop('count')
        windows = flat_windows(Steps(index, steps, count, count, count))
        outputs, _ = self._estimator.step(windows, np.ones(count.size, dtype=bool), {})
        return outputs.reshape(*count.shape, *outputs.shape[1:])[:n_steps]


class _Run:
    """One estimator, and the steps that wait for it."""

    def __init__(self, name: str, estimator: Estimator) -> None:
        self._name = name
        self._per_joint = estimator.per_joint
        self._engine = _engine(name, estimator)
        self._waiting: list[dict[str, Any]] = []
        self._n_waiting = 0
        self._under_way: tuple[dict[str, Any], Any] | None = None

    @property
    def is_full(self) -> bool:
        return self._n_waiting >= self._engine.size

    def add(self, steps: Steps) -> None:
        kept = {name: getattr(steps, name) for name in ('messages', 'ready', 'advance')}
        self._waiting.append({**kept, 'inputs': self._engine.inputs(steps)})
        self._n_waiting += len(steps)

    def go(self, table: JointTable, row_of: Mapping[str, int]) -> None:
        """Run the steps that wait; their outputs are entered while the next ones run."""
        if not self._n_waiting:
            return
        together = _joined(self._waiting)
        now, later = (
            jax.tree.map(itemgetter(part), together)
            for part in (slice(None, self._engine.size), slice(self._engine.size, None))
        )
        self._n_waiting = len(later['messages'])
        self._waiting = [later] if self._n_waiting else []
        outputs = self._engine.run(now.pop('inputs'))
        self.settle(table, row_of)
        self._under_way = (now, outputs)

    def settle(self, table: JointTable, row_of: Mapping[str, int]) -> None:
        """Wait for the outputs that were asked for last, and enter them."""
        if self._under_way is None:
            return
        now, outputs = self._under_way
        self._under_way = None
        outputs = np.array(outputs, dtype=np.float32)
        advance, ready = now['advance'], now['ready']
        names, columns = tuple(row_of), list(row_of.values())
        if not self._per_joint:
            advance, ready = advance.any(axis=1)[:, None], ready.any(axis=1)[:, None]
            names, columns = WHOLE_ARM, [0]
        good = np.isfinite(outputs.reshape(*outputs.shape[:2], -1)).all(axis=2)
        if not good[advance].all():
            raise SeqmemError(
                f'--fast: {self._name} gives values that are not finite, after which its stream '
                'starts again: evaluate without --fast'
            )
        outputs[~ready] = np.nan
        said = ready.any(axis=1)
        # Rows without a name have never been ready.
        table.put_rows(now['messages'][said], names, outputs[said][:, columns])


def _engine(name: str, estimator: Estimator) -> NetworkScan | ChunkedScan | _AtOnce:
    """Choose the way: at once where there is no memory, in chunks where there is."""
    if isinstance(estimator, NetworkEstimator):
        if estimator.memory == 'persistent':
            return NetworkScan(estimator)
        if not estimator.joints:
            return _AtOnce(estimator)
    elif isinstance(estimator, Filter):
        remembers = bool(estimator.init_state(1))
        return ChunkedScan(FilterRunner(estimator), estimator) if remembers else _AtOnce(estimator)
    raise SeqmemError(
        f'--fast: expected filters and networks with memory persistent, or over any joints, got '
        f'{name}: evaluate without --fast'
    )


def _joined(parts: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Put steps one after the other, with as many rows as the widest has."""
    n_rows = max(part['advance'].shape[1] for part in parts)

    def join(*arrays: np.ndarray) -> np.ndarray:
        # What all rows share is as wide as one.
        if arrays[0].ndim == 1 or all(array.shape[1] == 1 for array in arrays):
            return np.concatenate(arrays)
        arrays = [_as_wide(array, part['advance']) for array, part in zip(arrays, parts)]
        missing = [n_rows - array.shape[1] for array in arrays]
        rest = [(0, 0)] * (arrays[0].ndim - 2)
        return np.concatenate(
            [
                np.pad(array, [(0, 0), (0, more), *rest]) if more else array
                for array, more in zip(arrays, missing)
            ]
        )

    return jax.tree.map(join, *parts)


def _as_wide(array: np.ndarray, advance: np.ndarray) -> np.ndarray:
    shape = (*advance.shape, *array.shape[2:])
    return np.broadcast_to(array, shape) if array.shape[1] == 1 else array
