"""
Many steps of a network at once, in compiled scans.

Where JAX makes one piece of code of a step (see
:attr:`seqmem_ros.core.network_estimator.NetworkEstimator.repeats_exactly`), a scan in order over
the very step of a stream is fast, and the same to the bit.

With an older JAX a scan is not the same to the bit, and what makes much of a last digit, labels
and attention, is computed step by step. Velocities of a recurrent network are computed in chunks
of the recording that run side by side, as so many rows more: a step of a hundred rows takes five
times as long as one of seven. Each chunk starts from a memory that is guessed, and afterwards once
more from what the chunk before it has left, until outputs and memory have become those of the
first time; from there on both ways are one. Networks forget within thousands of samples (they are
trained to), so that this is a part of the work. Chunks that do not come together are computed in
order, so that what comes out never depends on how long a network remembers; only the time does.
"""

from typing import Any
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from seqmem_ros.core.network_estimator import NetworkEstimator
from seqmem_ros.core.window import with_rows
from seqmem_ros.offline.fast_steps import Steps
from seqmem_ros.offline.scan_inputs import Inputs
from seqmem_ros.offline.scan_inputs import laid_out
from seqmem_ros.offline.scan_inputs import scan_inputs

# Two runs are one where their outputs agree so far over a piece (rad/s, and as a share), and all
# that they remember nearly: what is left of a difference only shrinks.
SAME_OUTPUT = 1e-6
SAME_MEMORY = 1e-3
MOST_PASSES = 3
# A recording whose chunks do not come together is gone through in order for so many rounds.
PATIENCE = 4


class _Run(NamedTuple):
    """
    What one pass over all chunks gave.

    :ivar outputs: shape (K, P, S, ...)
    :ivar begins: memory before each chunk, shape (K, rows, columns)
    :ivar ends: memory after each piece, P of shape (K, rows, columns)
    """

    outputs: np.ndarray
    begins: np.ndarray
    ends: list[np.ndarray]


class NetworkScan:
    """
    Goes through steps with a network, and keeps the memory between calls.

    :param estimator: with a persistent memory
    :ivar size: steps that one call takes at most
    :ivar passes: number of times that chunks were started again
    :ivar in_order: number of pieces that were computed in order
    """

    piece = 2048
    # As many rows in all, so that numbers fill the registers of a processor.
    rows_together = 112
    most_chunks = 32
    size = 2**19

    def __init__(self, estimator: NetworkEstimator) -> None:
        self._estimator = estimator
        # Labels in the balance and attention make much of a last digit.
        sensitive = estimator.task == 'label' or estimator.model.kind == 'attention'
        self._one_by_one = sensitive and not estimator.repeats_exactly
        self._exact = estimator.repeats_exactly or sensitive or bool(estimator.joints)
        self._program = jax.jit(self._exact_scan if self._exact else self._scan)
        self._memory: Any = estimator.empty_memory(1)
        if self._exact:
            # Far fewer to wait for, and to lay out, while others are under way.
            self.size //= 4
        self._patience = 0
        self.passes = 0
        self.in_order = 0

    def inputs(self, steps: Steps) -> Inputs:
        """
        Lay out what steps take.

        :param steps: n steps of R rows
        :returns: for :meth:`run`
        """
        return scan_inputs(steps, self._estimator.model.spec.readout == 'observer')

    def run(self, inputs: Inputs) -> np.ndarray | jax.Array:
        """
        Advance over up to ``size`` steps; in order, without waiting until they are computed.

        :param inputs: of n steps of R rows, at least as many rows as before
        :returns: outputs, shape (n, R), (n, J), (n, R, L) or (n, 1, L)
        """
        n_steps, n_rows = inputs['advance'].shape
        if not self._estimator.joints and n_rows > len(self._memory):
            self._memory = with_rows(np.asarray(self._memory), n_rows)
        if self._one_by_one:
            return self._go_one_by_one(inputs)
        n_chunks = max(2, min(self.most_chunks, self.rows_together // n_rows))
        worth_it = n_steps >= 4 * n_chunks * self.piece and not self._exact
        self._patience = max(0, self._patience - 1)
        if not worth_it or self._patience:
            return self._go_in_order(self._pieces(inputs))[0, :n_steps]
        outputs = self._go_side_by_side(self._cut(inputs, n_chunks))
        return outputs.reshape(-1, *outputs.shape[3:])[:n_steps]

    def _pieces(self, inputs: Inputs) -> list[Inputs]:
        """Cut into pieces; the last is filled up with steps in which nothing advances."""
        return [
            {n: with_rows(v[at : at + self.piece], self.piece)[None] for n, v in inputs.items()}
            for at in range(0, len(inputs['advance']), self.piece)
        ]

    def _cut(self, inputs: Inputs, n_chunks: int) -> list[Inputs]:
        """Fill up likewise, and cut into chunks and pieces; P of shape (K, S, R, ...)."""
        n_pieces = -(-len(inputs['advance']) // (n_chunks * self.piece))
        shape = (n_chunks, n_pieces, self.piece)
        cut = {
            name: with_rows(values, np.prod(shape)).reshape(*shape, *values.shape[1:])
            for name, values in inputs.items()
        }
        return [{name: values[:, p] for name, values in cut.items()} for p in range(n_pieces)]

    def _go_in_order(self, pieces: list[Inputs]) -> jax.Array:
        outputs, memory = [], self._memory[None]
        for piece in pieces:
            memory, said = self._program(memory, piece)
            outputs.append(said)
        self.in_order += len(pieces)
        self._memory = memory[0]
        return jnp.concatenate(outputs, axis=1)

    def _go_one_by_one(self, inputs: Inputs) -> np.ndarray:
        """Call the program of a stream for each step."""
        memory, outputs = self._memory, []
        for sample in np.asarray(laid_out(inputs)):
            said, memory = self._estimator.run(sample, memory)
            outputs.append(said)
        self._memory = memory
        return np.stack(outputs).astype(np.float32)

    def _go_side_by_side(self, pieces: list[Inputs]) -> np.ndarray:
        n_chunks = len(pieces[0]['advance'])
        self._memory = np.asarray(self._memory)
        run = self._first(np.stack([self._memory] * n_chunks), pieces)
        for _ in range(MOST_PASSES):
            true = np.concatenate([self._memory[None], run.ends[-1][:-1]])
            wrong = _differs(true, run.begins)
            if not wrong.any():
                self._memory = run.ends[-1][-1]
                return run.outputs
            self._again(run, true, wrong, pieces)
            self.passes += 1
        return self._rest_in_order(run, pieces)

    def _first(self, memory: np.ndarray, pieces: list[Inputs]) -> _Run:
        begins, ends, outputs = memory, [], []
        for piece in pieces:
            memory, said = self._program(memory, piece)
            ends.append(memory)
            outputs.append(said)
        ends = [np.array(each) for each in ends]
        return _Run(np.stack([np.asarray(said) for said in outputs], axis=1), begins.copy(), ends)

    def _again(self, run: _Run, true: np.ndarray, wrong: np.ndarray, pieces: list[Inputs]) -> None:
        """Start chunks from their true memory, up to where that makes no difference any more."""
        run.begins[wrong] = true[wrong]
        memory, differs = true, wrong.copy()
        for p, piece in enumerate(pieces):
            memory, said = (np.asarray(each) for each in self._program(memory, piece))
            same = _near(said, run.outputs[:, p], SAME_OUTPUT, 1.0)
            size = np.sqrt(np.mean(np.square(memory), axis=(0, 1)))
            same &= _near(memory, run.ends[p], SAME_MEMORY, size)
            run.outputs[differs, p] = said[differs]
            differs &= ~same
            if not differs.any():
                return
            run.ends[p][differs] = memory[differs]

    def _rest_in_order(self, run: _Run, pieces: list[Inputs]) -> np.ndarray:
        true = np.concatenate([self._memory[None], run.ends[-1][:-1]])
        # Before the first that was started wrongly all are right.
        first = int(np.argmax(_differs(true, run.begins)))
        self._memory = true[first]
        for k in range(first, len(true)):
            chunk = [{name: v[k : k + 1] for name, v in piece.items()} for piece in pieces]
            run.outputs[k] = np.reshape(self._go_in_order(chunk), run.outputs[k].shape)
        self._patience = PATIENCE + 1
        return run.outputs

    def _scan(self, memory: jax.Array, inputs: Inputs) -> tuple[jax.Array, jax.Array]:
        """Advance K chunks by S steps, all rows at once; outputs of shape (K, S, R)."""
        together = memory.reshape(-1, memory.shape[-1])
        samples = laid_out(inputs).swapaxes(0, 1)
        samples = samples.reshape(len(samples), len(together), -1)

        def step(memory: jax.Array, sample: jax.Array) -> tuple[jax.Array, jax.Array]:
            memory = self._estimator.advance_together(sample, memory)
            return memory, self._estimator.outputs(memory)

        together, outputs = jax.lax.scan(step, together, samples)
        outputs = outputs.reshape(len(outputs), len(memory), -1)
        return together.reshape(memory.shape), outputs.swapaxes(0, 1)

    def _exact_scan(self, memory: jax.Array, inputs: Inputs) -> tuple[jax.Array, jax.Array]:
        """Advance one chunk as a stream does; outputs of shape (1, S, ...)."""

        def step(memory: jax.Array, sample: jax.Array) -> tuple[jax.Array, jax.Array]:
            memory = self._estimator.advance(sample, memory)
            return memory, self._estimator.outputs(memory)

        after, outputs = jax.lax.scan(step, memory[0], laid_out(inputs)[0])
        return after[None], outputs[None]


def _differs(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Compare chunk by chunk, to the bit; bool, shape (K,)."""
    # Whole numbers that a memory holds look like any float, NaN among them.
    return (a.view(np.int32) != b.view(np.int32)).any(axis=(1, 2))


def _near(a: np.ndarray, b: np.ndarray, most: float, size: float | np.ndarray) -> np.ndarray:
    """Compare chunk by chunk; bool, shape (K,)."""
    good = np.abs(a - b) <= most * (size + np.abs(b))
    return good.reshape(len(a), -1).all(axis=1)
