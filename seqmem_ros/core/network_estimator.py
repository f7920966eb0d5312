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
# XLA shares the pieces of a long program out to threads, which have to be woken. A loop of small
# steps is one piece since this version of JAX, so there rows go one after the other, which takes
# no longer than all at once while the weights stay in a core's own cache (256 KiB).
ONE_PIECE_SINCE = (0, 12)
MOST_PARAMETERS_ROW_BY_ROW = 65536


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
        self._program = jax.jit(self.advance if memory == 'persistent' else self._run_window)

    def init_state(self, capacity: int) -> Any:
        """
        Make the empty memory of a stream.

        :param capacity: number of rows
        :returns: outputs and memory side by side, all zero, float32, one row for each joint, or
            one for all where the network has one memory for the whole arm; nothing at all where
            no memory goes on
        """
        if self.memory == 'window':
            return ()
        n_rows = 1 if self.joints else capacity
        return np.zeros((n_rows, self._n_outputs + self._packing.width), dtype=np.float32)

    def step(self, windows: JointWindows, advance: np.ndarray, state: Any) -> tuple:
        """Take one new sample of some joints; the memory comes back as one array."""
        if self.memory == 'window':
            raw = np.stack([raw_inputs(past) for past in windows.growing()])
            return np.asarray(self._program(raw), dtype=np.float64), state
        return self.run(step_inputs(windows, advance, self.fields), state)

    def run(self, inputs: np.ndarray, memory: Any) -> tuple:
        """
        Call the compiled program of :meth:`step` as it is.

        :param inputs: see :func:`seqmem_ros.core.inputs.step_inputs`
        :param memory: from :meth:`init_state` or the step before
        :returns: outputs and memory after, see :meth:`step`
        """
        memory = self._program(inputs, memory)
        return self.outputs(np.asarray(memory)).astype(np.float64), memory

    def outputs(self, memory: Any) -> Any:
        """
        Take the outputs out of what :meth:`advance` gives.

        :param memory: NumPy's or JAX's array
        :returns: see :meth:`step`
        """
        if self.labels:
            return memory[:, : self._n_outputs]
        return memory[0, : self._n_outputs] if self.joints else memory[:, 0]

    def advance(self, inputs: jax.Array, memory: jax.Array) -> jax.Array:
        """
        Take one new sample of some joints; pure, for programs that take many.

        :param inputs: see :func:`seqmem_ros.core.inputs.step_inputs`
        :param memory: from :meth:`init_state` or the step before
        :returns: outputs and memory after
        """
        self.compile_count += 1  # runs when traced, that is once for each compilation
        if self.joints:
            return self._advanced_or_kept(inputs, memory[0])[None]
        if self._goes_row_by_row:
            return jax.lax.map(lambda row: self._advanced_or_kept(*row), (inputs, memory))
        advanced = jax.vmap(self._advanced)(inputs, memory)
        return jnp.where(inputs[:, N_RAW, None] > 0, advanced, memory)

    @property
    def repeats_exactly(self) -> bool:
        """Whether a scan over :meth:`advance` gives what single steps give, to the bit."""
        return self._goes_row_by_row

    @cached_property
    def _packing(self) -> PackedState:
        # Nothing is computed: for each array, JAX would compile a program that fills it.
        return PackedState(jax.eval_shape(self.model.init_state))

    @cached_property
    def _goes_row_by_row(self) -> bool:
        # Networks alone are programs of a few pieces.
        is_long = self.model.spec.readout == 'observer'
        n_parameters = sum(np.size(leaf) for leaf in jax.tree.leaves(self.model.network))
        is_small = n_parameters <= MOST_PARAMETERS_ROW_BY_ROW
        return is_long and is_small and jax.__version_info__ >= ONE_PIECE_SINCE

    def _advanced_or_kept(self, inputs: jax.Array, memory: jax.Array) -> jax.Array:
        return jax.lax.cond(
            (inputs[..., N_RAW] > 0).any(), self._advanced, lambda _, kept: kept, inputs, memory
        )

    def _advanced(self, inputs: jax.Array, memory: jax.Array) -> jax.Array:
        """Advance one row: inputs of a joint, or of the whole arm, and what it remembers."""
        starts = (inputs[..., N_RAW + 1] > 0).any()
        # Every layer's memory is zero at first.
        memory = jnp.where(starts, 0.0, memory)
        state = self._packing.unpack(memory[self._n_outputs :])
        outputs, state = self.model.step(inputs[..., :N_RAW], state)
        outputs = self._probabilities(outputs).reshape(self._n_outputs).astype(memory.dtype)
        return jnp.concatenate([outputs, self._packing.pack(state)])

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
