"""The memory that training a model takes, and what it would take at other sizes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from dataclasses import dataclass
import math
from typing import Any

import jax

from seqmem_ros.core.errors import SeqmemError
from seqmem_ros.core.memory_counts import activation_bytes
from seqmem_ros.core.memory_counts import kept_bytes
from seqmem_ros.core.model import build_network
from seqmem_ros.core.model import SequenceModel

WIDTHS = {'recurrent_net': 'n_hidden', 'causal_transformer': 'd_model'}


@dataclass(frozen=True)
class TrainingSizes:
    """
    What the memory of training depends on.

    :param batch: B, sequences in a batch
    :param n_samples: T, samples in each
    :param hidden: H, width of the layers; None for that of the model
    :param window: K, samples of truncated backpropagation; None for T
    :raises SeqmemError: if a size is below 1
    """

    batch: int = 32
    n_samples: int = 512
    hidden: int | None = None
    window: int | None = None

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            if value is not None and value < 1:
                raise SeqmemError(f'{name}: expected at least 1, got {value}')


@dataclass(frozen=True)
class TrainingMemory:
    """
    Bytes that training needs in single precision.

    :ivar sizes: what it is for
    :ivar activations: by :func:`~seqmem_ros.core.memory_counts.activation_bytes`
    :ivar kept: by :func:`~seqmem_ros.core.memory_counts.kept_bytes`
    :ivar weights: of the parameters; their gradient and each moment of an optimiser take as much
    """

    sizes: TrainingSizes
    activations: int
    kept: int
    weights: int


def training_memory(model: SequenceModel, sizes: TrainingSizes) -> TrainingMemory:
    """
    Count the bytes that training a network takes.

    :param model: says the network
    :param sizes: B, T, H, K
    :returns: bytes
    :raises SeqmemError: if H makes no network
    """
    description = dict(model.spec.network)
    if sizes.hidden is not None:
        description = _widened(description, sizes.hidden)
    network = jax.eval_shape(lambda: build_network(description, jax.random.key(0)))
    window = min(sizes.window or sizes.n_samples, sizes.n_samples)
    return TrainingMemory(
        sizes,
        activation_bytes(network, sizes.batch, sizes.n_samples, window),
        kept_bytes(network, description['n_in'], sizes.batch, window),
        4 * sum(math.prod(param.shape) for param in network.params()),
    )


def _widened(description: Mapping[str, Any], hidden: int) -> dict[str, Any]:
    builder = description['builder']
    if builder not in WIDTHS:
        raise SeqmemError(
            f"hidden: expected a network of {' or '.join(WIDTHS)}, got '{builder}', whose layers "
            f'have widths of their own'
        )
    return {**description, WIDTHS[builder]: hidden}
