"""All views on the memory of one model along one sequence."""

from __future__ import annotations

from dataclasses import dataclass

import jax
import numpy as np

from seqmem_ros.core.errors import SeqmemError
from seqmem_ros.core.memory_counts import count_parameters
from seqmem_ros.core.memory_counts import ParameterCount
from seqmem_ros.core.memory_filters import filter_memories
from seqmem_ros.core.memory_filters import FilterMemory
from seqmem_ros.core.memory_influence import gradient_along
from seqmem_ros.core.memory_influence import influence
from seqmem_ros.core.memory_inputs import network_inputs
from seqmem_ros.core.memory_inputs import recurrent_layers
from seqmem_ros.core.memory_linear import linear_memory
from seqmem_ros.core.memory_linear import linearise
from seqmem_ros.core.memory_linear import LinearMemory
from seqmem_ros.core.memory_linear import OnePole
from seqmem_ros.core.memory_linear import settled_state
from seqmem_ros.core.memory_linear import unit_poles
from seqmem_ros.core.memory_trace import attention_reach
from seqmem_ros.core.memory_trace import LayerTrace
from seqmem_ros.core.memory_trace import trace
from seqmem_ros.core.memory_training import training_memory
from seqmem_ros.core.memory_training import TrainingMemory
from seqmem_ros.core.memory_training import TrainingSizes
from seqmem_ros.core.model import SequenceModel
from seqmem_ros.nn import Module


@dataclass(frozen=True, eq=False)
class LayerMemory:
    """
    One recurrent layer.

    :ivar path: where it is in the network
    :ivar kind: name of its class
    :ivar units: each part of the state as a one-pole filter of its own, S of them
    :ivar linear: modes of the linearised cell
    :ivar influence: see :func:`~seqmem_ros.core.memory_influence.influence`, shape (T + 1,)
    :ivar gradient: see :func:`~seqmem_ros.core.memory_influence.gradient_along`, shape (T,); None
        where the network carries no state of fixed size from sample to sample
    """

    path: str
    kind: str
    units: list[OnePole]
    linear: LinearMemory
    influence: np.ndarray
    gradient: np.ndarray | None


@dataclass(frozen=True, eq=False)
class MemoryReport:
    """
    Everything that ``seqmem inspect`` says of a memory.

    :ivar rate_hz: of the sequence
    :ivar at: sample at which cells are linearised; None for at rest under the mean input
    :ivar n_last: outputs that the loss of the gradient sees
    :ivar counts: parameters of each layer
    :ivar layers: recurrent layers
    :ivar traces: what each layer with memory holds and looks at
    :ivar reach_samples: of the attention; None without
    :ivar filters: the classical filters at the same rate; empty for labels
    :ivar training: memory of training
    """

    rate_hz: float
    at: int | None
    n_last: int
    counts: list[ParameterCount]
    layers: list[LayerMemory]
    traces: list[LayerTrace]
    reach_samples: float | None
    filters: list[FilterMemory]
    training: TrainingMemory


def report_memory(
    model: SequenceModel,
    raw: np.ndarray,
    rate_hz: float,
    at: int | None = None,
    n_last: int = 1,
    sizes: TrainingSizes | None = None,
) -> MemoryReport:
    """
    Look at the memory of a model along a sequence.

    :param model: the model
    :param raw: its raw inputs, shape (T, N_RAW), or (T, J, N_RAW) for named joints
    :param rate_hz: of the sequence
    :param at: sample at which cells are linearised; None for at rest under the mean input
    :param n_last: outputs that the loss of the gradient sees
    :param sizes: for the memory of training
    :returns: the report
    :raises SeqmemError: if ``at`` or ``n_last`` is not within the sequence, or a size makes no
        network
    """
    if at is not None and not 0 <= at < len(raw):
        raise SeqmemError(f'at: expected a sample from 0 to {len(raw) - 1}, got {at}')
    if not 1 <= n_last <= len(raw):
        raise SeqmemError(f'last: expected 1 to {len(raw)} outputs, got {n_last}')
    training = training_memory(model, sizes or TrainingSizes())
    network = model.network
    inputs = network_inputs(model, raw)
    found = list(recurrent_layers(network, inputs))
    gradients = {}
    if found and _carries_state(network, inputs.shape[-1]):
        gradients = gradient_along(network, inputs, n_last)
    return MemoryReport(
        rate_hz,
        at,
        n_last,
        count_parameters(network),
        [_layer_memory(path, layer, seq, at, gradients) for path, layer, seq in found],
        trace(network, inputs),
        attention_reach(network),
        filter_memories(rate_hz) if model.spec.task == 'velocity' else [],
        training,
    )


def _carries_state(network: Module, n_in: int) -> bool:
    if network.why_not_streaming() is not None:
        return False
    # An attention without a window begins with a memory of no samples, and it grows.
    return all(leaf.size for leaf in jax.tree.leaves(network.init_state(n_in=n_in)))


def _layer_memory(
    path: str, layer: Module, seq: np.ndarray, at: int | None, gradients: dict[str, np.ndarray]
) -> LayerMemory:
    if at is None:
        x = seq.mean(axis=0)
        state = settled_state(layer, x)
    else:
        x = seq[at]
        state = layer.unroll(seq[:at])[1] if at else layer.init_state()
    A, B = linearise(layer, x, state)
    return LayerMemory(
        path,
        type(layer).__name__,
        unit_poles(A, B),
        linear_memory(A),
        influence(layer, seq),
        # The gradient is listed under the place in the stack, a residual layer's inner one is not.
        gradients.get(path.removesuffix('.layer')),
    )
