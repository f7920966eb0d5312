"""
Many steps of a network at once: one compiled scan over the very step of a stream.

Where JAX makes one piece of code of a step (see
:attr:`seqmem_ros.core.network_estimator.NetworkEstimator.repeats_exactly`), what comes out is the
same to the bit as step by step. With an older JAX it differs in the last digit, of which a label
in the balance and attention make much; these are computed step by step.

A network may remember for thousands of samples, so a recording is gone through in order. Chunks of
it side by side, as so many rows more, were tried: three times as fast with an older JAX, no faster
with a new one, and a few velocities in a million were off by 4e-5 rad/s, since arithmetic on a
hundred rows rounds otherwise than on seven.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from seqmem_ros.core.network_estimator import NetworkEstimator
from seqmem_ros.core.window import with_rows
from seqmem_ros.offline.fast_steps import Steps
from seqmem_ros.offline.scan_inputs import Inputs
from seqmem_ros.offline.scan_inputs import laid_out
from seqmem_ros.offline.scan_inputs import scan_inputs


class NetworkScan:
    """
    Goes through steps with a network, and keeps the memory between calls.

    :param estimator: with a persistent memory
    :ivar piece: steps of one call of the compiled program
    :ivar size: steps that one call of :meth:`run` takes at most
    """

    piece = 2048
    size = 2**17

    def __init__(self, estimator: NetworkEstimator) -> None:
        self._estimator = estimator
        sensitive = estimator.task == 'label' or estimator.model.kind == 'attention'
        self._one_by_one = sensitive and not estimator.repeats_exactly
        self._program = jax.jit(self._scan)
        self._memory: Any = estimator.init_state(1)

    def inputs(self, steps: Steps) -> Inputs:
        """
        Lay out what steps take.

        :param steps: n steps of R rows
        :returns: for :meth:`run`
        """
        return scan_inputs(steps, self._estimator.model.spec.readout == 'observer')

    def run(self, inputs: Inputs) -> np.ndarray | jax.Array:
        """
        Advance over up to ``size`` steps, in general without waiting until they are computed.

        :param inputs: of n steps of R rows, at least as many rows as before
        :returns: outputs, shape (n, R), (n, J), (n, R, L) or (n, 1, L)
        """
        n_steps, n_rows = inputs['advance'].shape
        if not self._estimator.joints and n_rows > len(self._memory):
            self._memory = with_rows(np.asarray(self._memory), n_rows)
        if self._one_by_one:
            return self._go_one_by_one(inputs)
        outputs = []
        for begin in range(0, n_steps, self.piece):
            # The last is filled up with steps in which nothing advances.
            piece = {
                name: with_rows(values[begin : begin + self.piece], self.piece)
                for name, values in inputs.items()
            }
            self._memory, said = self._program(self._memory, piece)
            outputs.append(said)
        return jnp.concatenate(outputs)[:n_steps]

    def _go_one_by_one(self, inputs: Inputs) -> np.ndarray:
        """Call the program of a stream for each step."""
        memory, outputs = self._memory, []
        for sample in np.asarray(laid_out(inputs)):
            said, memory = self._estimator.run(sample, memory)
            outputs.append(said)
        self._memory = memory
        return np.stack(outputs).astype(np.float32)

    def _scan(self, memory: jax.Array, inputs: Inputs) -> tuple[jax.Array, jax.Array]:
        def step(memory: jax.Array, sample: jax.Array) -> tuple[jax.Array, jax.Array]:
            memory = self._estimator.advance(sample, memory)
            return memory, self._estimator.outputs(memory)

        return jax.lax.scan(step, memory, laid_out(inputs))
