"""How a filter, which is NumPy, advances many chunks of a recording at once."""

from typing import Any

import jax
import numpy as np

from seqmem_ros.core.estimator import Estimator
from seqmem_ros.core.window import JointWindows
from seqmem_ros.offline.fast_steps import Steps

Tree = Any


class FilterRunner:
    """
    Runs a filter: its own ``step``, on chunks as if they were joints.

    :param estimator: a filter from :mod:`seqmem_ros.core.filters`, or one like them
    :ivar n_chunks: K, how many run side by side
    :ivar chunk: length of a chunk, in steps, at most
    :ivar shortest: length of a chunk, in steps, at least
    """

    n_chunks = 128
    chunk = 512
    shortest = 512

    def __init__(self, estimator: Estimator) -> None:
        self._estimator = estimator

    def inputs(self, steps: Steps) -> Tree:
        """
        Lay out what a step takes.

        :param steps: n steps of R rows
        :returns: arrays of shape (n, R, ...)
        """
        return {'count': steps.count, 'advance': steps.advance, **steps.windows}

    def rest(self, inputs: Tree, n_steps: int) -> Tree:
        """
        Append steps in which nothing advances.

        :param inputs: n steps
        :param n_steps: number of steps to come to, at least n
        :returns: arrays of shape (n_steps, R, ...)
        """
        padded = jax.tree.map(lambda values: _repeated_to(values, n_steps), inputs)
        padded['advance'][len(inputs['advance']) :] = False
        return padded

    def run(self, state: Tree, inputs: Tree) -> tuple[np.ndarray, Tree]:
        """
        Advance.

        :param state: memories, leaves of shape (K, R, ...)
        :param inputs: leaves of shape (K, n, R, ...)
        :returns: outputs, shape (K, n, R), and memories after
        """
        n_chunks, n_steps, n_rows = inputs['count'].shape
        flat = jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), state)
        windows = JointWindows(n_chunks * n_rows, self._estimator.window)
        outputs = []
        for index in range(n_steps):
            now = {name: values[:, index] for name, values in inputs.items()}
            now = {name: v.reshape(-1, *v.shape[2:]) for name, v in now.items()}
            advance = now.pop('advance')
            for name, values in now.items():
                setattr(windows, name, values)
            output, flat = self._estimator.step(windows, advance, flat)
            outputs.append(output)
        state = jax.tree.map(lambda leaf: leaf.reshape(n_chunks, n_rows, *leaf.shape[1:]), flat)
        said = np.stack(outputs).reshape(n_steps, n_chunks, n_rows, *np.shape(outputs[0])[1:])
        return said.swapaxes(0, 1), state


def flat_windows(steps: Steps) -> JointWindows:
    """
    Show all steps as the rows of one object.

    :param steps: n steps of R rows
    :returns: windows of n R rows
    """
    n_rows = steps.count.size
    windows = JointWindows(0, steps.windows['stamp_ns'].shape[-1])
    zero = np.broadcast_to(0.0, (n_rows, windows.window))
    for name in ('stamp_ns', 'position', 'velocity', 'effort'):
        values = steps.windows.get(name)
        setattr(windows, name, zero if values is None else values.reshape(n_rows, -1))
    windows.count = steps.count.ravel()
    return windows


def _repeated_to(values: np.ndarray, n_steps: int) -> np.ndarray:
    padding = np.repeat(values[-1:], n_steps - len(values), axis=0)
    return np.concatenate([values, padding])
