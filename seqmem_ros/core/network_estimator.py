"""A network as an estimator: one compiled program that advances all joints by one sample."""

from functools import cached_property
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from seqmem_ros.core.errors import SeqmemError
from seqmem_ros.core.inputs import N_RAW
from seqmem_ros.core.inputs import raw_inputs
from seqmem_ros.core.inputs import step_inputs
from seqmem_ros.core.model import SequenceModel
from seqmem_ros.core.packed_state import PackedState
from seqmem_ros.core.spec import WINDOW
from seqmem_ros.core.weights import file_digest
from seqmem_ros.core.window import JointWindows

MEMORIES = ('persistent', 'window')


class NetworkEstimator:
    """
    See :class:`~seqmem_ros.core.estimator.Estimator`.

    Weights are constants of the program, inputs and masks one array, outputs and memory another:
    the cost of a call is nearly that of the call itself.

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
        self._n_outputs = len(spec.labels) or len(spec.joints) or 1
        self._program = jax.jit(self._run_packed if memory == 'persistent' else self._run_window)

    def init_state(self, capacity: int) -> Any:
        """Make the empty memory of a stream."""
        if self.memory == 'window':
            return ()
        state = self.model.init_state()
        if self.joints:
            return state
        return jax.tree.map(lambda leaf: np.zeros((capacity, *leaf.shape), leaf.dtype), state)

    def step(self, windows: JointWindows, advance: np.ndarray, state: Any) -> tuple:
        """Take one new sample of some joints; the memory comes back as one array."""
        if self.memory == 'window':
            raw = np.stack([raw_inputs(past) for past in windows.growing()])
            return np.asarray(self._program(raw), dtype=np.float64), state
        # A stream begins with the memory as the model has it.
        memory = self._packed(state, windows.capacity) if isinstance(state, tuple) else state
        return self.run(step_inputs(windows, advance), memory)

    def empty_memory(self, capacity: int) -> np.ndarray:
        """
        Lay out :meth:`init_state` as :meth:`run` takes it.

        :param capacity: number of rows
        :returns: outputs and memory side by side, all zero
        """
        return self._packed(self.init_state(capacity), capacity)

    def run(self, inputs: np.ndarray, memory: Any) -> tuple:
        """
        Call the compiled program of :meth:`step` as it is.

        :param inputs: see :func:`seqmem_ros.core.inputs.step_inputs`
        :param memory: from :meth:`empty_memory` or the step before
        :returns: outputs and memory after, see :meth:`step`
        """
        memory = self._program(inputs, memory)
        packed = np.asarray(memory)
        if self.labels or self.joints:
            outputs = packed[:, : self._n_outputs].astype(np.float64)
            return outputs if self.labels else outputs[0], memory
        return packed[:, 0].astype(np.float64), memory

    def advance(self, packed: jax.Array, state: Any) -> tuple[jax.Array, Any]:
        """
        Take one new sample of some joints; pure, for programs that take many.

        :param packed: raw inputs, then 1 for rows that get a sample, then 1 for rows whose
            memory starts with it, shape (capacity, N_RAW + 2), float32
        :param state: memory before the sample
        :returns: outputs and memory after, see :meth:`step`
        """
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

    @cached_property
    def _packing(self) -> PackedState:
        return PackedState(self.model.init_state())

    def _packed(self, state: Any, capacity: int) -> np.ndarray:
        packed = self._packing.pack_numpy(state, 1 if self.joints else capacity)
        return np.pad(packed, [(0, 0), (self._n_outputs, 0)])

    def _run_packed(self, inputs: jax.Array, memory: jax.Array) -> jax.Array:
        """Advance; the memory before and after has the outputs in front."""
        state = self._packing.unpack(memory[:, self._n_outputs :])
        if self.joints:
            state = jax.tree.map(lambda leaf: leaf[0], state)
        outputs, state = self.advance(inputs, state)
        if self.joints:
            state = jax.tree.map(lambda leaf: leaf[None], state)
        outputs = outputs.reshape(len(memory), self._n_outputs).astype(memory.dtype)
        if not self._packing.width:
            return outputs
        return jnp.concatenate([outputs, self._packing.pack(state)], axis=1)

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
