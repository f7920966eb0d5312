"""A network as an estimator: one compiled program that advances all joints by one sample."""

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from seqmem_ros.core.errors import SeqmemError
from seqmem_ros.core.inputs import N_RAW
from seqmem_ros.core.inputs import raw_inputs
from seqmem_ros.core.model import SequenceModel
from seqmem_ros.core.spec import WINDOW
from seqmem_ros.core.weights import file_digest
from seqmem_ros.core.window import JointWindows

MEMORIES = ('persistent', 'window')


class NetworkEstimator:
    """
    See :class:`~seqmem_ros.core.estimator.Estimator`.

    Weights are constants of the program, inputs and masks one array, outputs one array: the
    cost of a call is that of the call itself.

    :param model: network and spec
    :param source: the file that it came from, None if it was never in one
    :param memory: ``persistent``: the state goes on from sample to sample; ``window``: each
        estimate is what a fresh stream would say after the samples of the window
    :raises SeqmemError: if there is no such ``memory``
    """

    def __init__(
        self, model: SequenceModel, source: Path | None = None, memory: str = 'persistent'
    ) -> None:
        if memory not in MEMORIES:
            raise SeqmemError(f"memory: expected one of {', '.join(MEMORIES)}, got '{memory}'")
        spec = model.spec
        self.model = model
        self.name = model.kind if spec.task == 'velocity' else f'{model.kind} ({spec.task})'
        self.task = spec.task
        self.labels = spec.labels
        self.joints = spec.joints
        self.per_joint = spec.per_joint
        self.fields = spec.fields
        self.window = WINDOW
        self.source = str(source or '')
        self.digest = file_digest(source) if source else ''
        self.memory = memory
        self.compile_count = 0
        self._program = jax.jit(self._advance if memory == 'persistent' else self._run_window)

    def init_state(self, capacity: int) -> Any:
        """Make the empty memory of a stream."""
        if self.memory == 'window':
            return ()
        state = self.model.init_state()
        if self.joints:
            return state
        return jax.tree.map(lambda leaf: np.zeros((capacity, *leaf.shape), leaf.dtype), state)

    def step(self, windows: JointWindows, advance: np.ndarray, state: Any) -> tuple:
        """Take one new sample of some joints."""
        if self.memory == 'window':
            raw = np.stack([raw_inputs(past) for past in windows.growing()])
            outputs = self._program(raw)
        else:
            masks = np.stack([advance, windows.count == 1], axis=1).astype(np.float32)
            packed = np.concatenate([raw_inputs(windows), masks], axis=1)
            outputs, state = self._program(packed, state)
        return np.asarray(outputs, dtype=np.float64), state

    def _advance(self, packed: jax.Array, state: Any) -> tuple[jax.Array, Any]:
        self.compile_count += 1  # runs when traced, that is once for each compilation
        raw, advance, fresh = packed[:, :N_RAW], packed[:, N_RAW] > 0, packed[:, N_RAW + 1] > 0
        empty = self.model.init_state()
        if self.joints:
            state = _where(fresh.any(), empty, state)
            outputs, state = self.model.step(raw, state)
            return self._probabilities(outputs), state
        start = _where(fresh, empty, state)
        outputs, after = jax.vmap(self.model.step)(raw, start)
        return self._probabilities(outputs), _where(advance, after, state)

    def _run_window(self, raw: jax.Array) -> jax.Array:
        self.compile_count += 1
        # raw: (window, capacity, N_RAW)
        forward = self.model.forward if self.joints else jax.vmap(self.model.forward, 1, 1)
        return self._probabilities(forward(raw)[-1])

    def _probabilities(self, outputs: jax.Array) -> jax.Array:
        if self.task == 'velocity':
            return outputs
        outputs = jax.nn.softmax(outputs, axis=-1)
        return outputs if self.per_joint else outputs[None]


def _where(mask: jax.Array, if_true: Any, if_false: Any) -> Any:
    """Select whole rows of a state; ``if_true`` may lack the rows' axis."""

    def select(a: jax.Array, b: jax.Array) -> jax.Array:
        return jnp.where(mask.reshape(mask.shape + (1,) * (jnp.ndim(b) - mask.ndim)), a, b)

    return jax.tree.map(select, if_true, if_false)
