"""
Many steps of a filter at once: a long recording cut into chunks that run side by side.

A step depends on the one before, so a recording has to be gone through in order. Filters are
NumPy, where a step of many joints costs hardly more than one of a few, and their memory fades.
All chunks therefore run together, as so many joints more, from memories that are guessed; then
again, each from what the chunk before it left in memory, until that is what it was started with:
the fixed point is the pass in order (a Jacobi iteration over chunks, as in the parareal method of
Lions, Maday and Turinici, C. R. Acad. Sci. Paris 332, 2001). Chunks that do not get there within
a few passes are computed in order. So what comes out never depends on how long a filter
remembers; only the time does.
"""

from typing import Any

import jax
import numpy as np

from seqmem_ros.core.estimator import Estimator
from seqmem_ros.offline.filter_runner import FilterRunner

MOST_PASSES = 4
# Two memories are the same if they differ by less than this share of the usual size of each
# number: single precision rounds at 1e-7, and outputs shall agree to 1e-5.
SAME = 2e-6

Tree = Any


class ChunkedScan:
    """
    Goes through steps in chunks that run side by side, and keeps the memory between calls.

    :param runner: of the estimator
    :param estimator: says what an empty memory is
    :ivar passes: number of passes made
    :ivar in_order: number of chunks that were computed in order
    """

    def __init__(self, runner: FilterRunner, estimator: Estimator) -> None:
        self._runner = runner
        self._estimator = estimator
        self._state: Tree = None
        self._n_rows = 0
        self.size = runner.n_chunks * runner.chunk
        self.inputs = runner.inputs
        self.passes = 0
        self.in_order = 0

    def run(self, inputs: Tree) -> np.ndarray:
        """
        Advance over up to ``size`` steps.

        :param inputs: of n steps of R rows, at least as many rows as before
        :returns: outputs, shape (n, R), (n, R, L) or (n, 1, L)
        """
        n_steps, n_rows = jax.tree.leaves(inputs)[0].shape[:2]
        self._make_room(n_rows)
        runner = self._runner
        # A whole number of the shortest, so that few programs serve all recordings.
        length = -(-n_steps // (runner.n_chunks * runner.shortest)) * runner.shortest
        n_chunks = -(-n_steps // length)
        if n_chunks == 1:
            return self._one(runner.rest(inputs, length))[:n_steps]
        inputs = _cut(runner.rest(inputs, runner.n_chunks * length), runner.n_chunks, length)
        return np.concatenate(self._side_by_side(inputs))[:n_steps]

    def _side_by_side(self, inputs: Tree) -> list[np.ndarray]:
        n_chunks = self._runner.n_chunks
        begins = jax.tree.map(lambda leaf: np.stack([leaf] * n_chunks), self._state)
        for _ in range(MOST_PASSES):
            outputs, ends = self._runner.run(begins, inputs)
            self.passes += 1
            true = jax.tree.map(
                lambda first, leaf: np.concatenate([first[None], leaf[:-1]]), self._state, ends
            )
            good = _same(true, begins)
            if good.all():
                break
            begins, started = true, begins
        outputs = list(outputs)
        if good.all():
            self._state = _chunk(ends, n_chunks - 1)
            return outputs
        # Before the first that was started wrongly all are right.
        first = int(np.argmin(good))
        self._state = _chunk(ends, first - 1)
        for k in range(first, n_chunks):
            usual = jax.tree.map(lambda leaf, k=k: leaf[k : k + 1], started)
            now = jax.tree.map(lambda leaf: leaf[None], self._state)
            if _same(now, usual, started).all():
                self._state = _chunk(ends, k)
            else:
                outputs[k] = self._one(_chunk(inputs, k))
                self.in_order += 1
        return outputs

    def _one(self, inputs: Tree) -> np.ndarray:
        """Run one chunk from the true memory."""
        state, inputs = jax.tree.map(lambda leaf: leaf[None], (self._state, inputs))
        outputs, state = self._runner.run(state, inputs)
        self._state = _chunk(state, 0)
        return outputs[0]

    def _make_room(self, n_rows: int) -> None:
        empty = self._estimator.init_state(n_rows)
        if self._state is None:
            self._state = empty
        elif n_rows > self._n_rows and not self._estimator.joints:
            self._state = jax.tree.map(
                lambda new, old: np.concatenate([old, new[self._n_rows :]]), empty, self._state
            )
        self._n_rows = max(n_rows, self._n_rows)


def _cut(tree: Tree, n_chunks: int, length: int) -> Tree:
    return jax.tree.map(lambda leaf: leaf.reshape(n_chunks, length, *leaf.shape[1:]), tree)


def _chunk(tree: Tree, k: int) -> Tree:
    return jax.tree.map(lambda leaf: leaf[k], tree)


def _same(true: Tree, guessed: Tree, many: Tree | None = None) -> np.ndarray:
    """Compare memories, each number with the usual size of its kind; bool, shape (K,)."""

    def close(a: np.ndarray, b: np.ndarray, usual: np.ndarray) -> np.ndarray:
        size = np.sqrt(np.mean(np.square(usual, dtype=np.float64)))
        good = np.abs(a - b) <= SAME * (size + np.abs(a))
        return good.reshape(len(a), -1).all(axis=1)

    leaves = jax.tree.leaves(jax.tree.map(close, true, guessed, true if many is None else many))
    return np.all(leaves, axis=0)
