"""Fit a model to sequences: what recorded bags and files of windows have in common."""

from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from seqmem_ros.core.inputs import FEATURES
from seqmem_ros.core.inputs import features
from seqmem_ros.core.model import SequenceModel
from seqmem_ros.core.spec import ModelSpec
from seqmem_ros.core.spec import WINDOW
from seqmem_ros.nn import Module
from seqmem_ros.offline.packing import Packed
from seqmem_ros.offline.packing import Training
from seqmem_ros.offline.resumable import History
from seqmem_ros.offline.resumable import learn
from seqmem_ros.offline.resumable import Plan
from seqmem_ros.offline.resumable import Progress
from seqmem_ros.offline.stateful import empty_memory
from seqmem_ros.offline.stateful import Learned
from seqmem_ros.offline.stateful import make_chunk_check
from seqmem_ros.offline.stateful import make_chunk_step
from seqmem_ros.offline.train import fresh_network
from seqmem_ros.offline.train import network_of
from seqmem_ros.offline.train import TrainingOptions
from seqmem_ros.offline.training import schedule_for

# A feature that hardly varies is not blown up by more than this against its mean.
LEAST_RELATIVE_SCALE = 1e-3


@dataclass(frozen=True, eq=False)
class Course:
    """
    Sequences to learn from.

    :ivar epoch: batches of the pass with this number
    :ivar held_out: rows of sequences that are not learned from; None for none
    :ivar n_rows: B of every batch
    :ivar chunk: T of every batch
    """

    epoch: Callable[[int], Iterator[tuple]]
    held_out: Packed | None
    n_rows: int
    chunk: int


def direct_spec(
    options: TrainingOptions,
    joints: tuple[str, ...],
    names: tuple[str, ...],
    labels: tuple[str, ...],
    sequences: list[Training],
    rate_hz: float,
) -> ModelSpec:
    """
    Describe a network that reads plain features of named joints together.

    Inputs are brought to mean 0 and deviation 1 over the sequences; for velocities the output is
    scaled by the deviation of the targets.

    :param options: model and sizes
    :param joints: names, J of them
    :param names: features, out of :data:`seqmem_ros.core.inputs.FEATURES`
    :param labels: names of the classes; empty for velocity
    :param sequences: what will be learned from; raw inputs of shape (T, J, N_RAW); none leaves
        the scales at 1
    :param rate_hz: of the samples
    :returns: the spec, without a card
    """
    n_in = len(joints) * sum(FEATURES[name] for name in names)
    mean, scale, output_scale = np.zeros(n_in), np.ones(n_in), 1.0
    if sequences:
        x = np.concatenate([np.asarray(features(each.raw, names)) for each in sequences])
        flat = x.reshape(len(x), -1).astype(np.float64)  # (T, J, F) -> (T, J F)
        mean = flat.mean(axis=0)
        scale = np.maximum(flat.std(axis=0), LEAST_RELATIVE_SCALE * np.abs(mean))
    if sequences and not labels:
        targets = np.concatenate([each.target[each.counts].ravel() for each in sequences])
        output_scale = float(targets.std()) or 1.0
    return ModelSpec(
        task=options.task,
        network=network_of(options, n_in, len(labels) or len(joints)),
        readout='direct',
        features=names,
        joints=joints,
        labels=labels,
        input_mean=tuple(mean.tolist()),
        input_scale=tuple(np.where(scale > 0, scale, 1.0).tolist()),
        output_scale=output_scale,
        nominal_rate_hz=(rate_hz, rate_hz),
    )


def fit(
    spec: ModelSpec,
    course: Course,
    options: TrainingOptions,
    network: Module | None = None,
    path: str | Path | None = None,
    resume: bool = False,
    progress: Progress = lambda step, loss: None,
    asked: Mapping[str, Any] | None = None,
) -> tuple[SequenceModel, History]:
    """
    Learn from sequences by truncated backpropagation through time.

    :param spec: of the model
    :param course: what to learn from
    :param options: steps, learning rate and seed
    :param network: to begin with; None for fresh weights
    :param path: of the checkpoint; None writes none
    :param resume: go on from the checkpoint
    :param progress: called after each step with its number and its loss
    :param asked: what a checkpoint must agree on, plain JSON
    :returns: the model, and how it went
    :raises SeqmemError: as :func:`seqmem_ros.offline.resumable.learn`
    """
    if network is None:
        network = fresh_network(spec, options.seed)
    optimizer = schedule_for(options.learning_rate, options.n_steps)
    memory = empty_memory(spec, network, course.n_rows)
    plan = Plan(
        make_chunk_step(spec, optimizer),
        course.epoch,
        options.n_steps,
        None if course.held_out is None else _check_of(spec, course),
        asked or {},
    )
    start = Learned(network, optimizer.init(network), memory)
    learned, history = learn(plan, start, path, resume, progress)
    return SequenceModel(spec, learned.network), history


def _check_of(spec: ModelSpec, course: Course) -> Callable[[Learned], float]:
    """Mean loss over all chunks that are held out, from empty memory."""
    check = make_chunk_check(spec)

    def loss(learned: Learned) -> float:
        memory = empty_memory(spec, learned.network, len(course.held_out.fresh))
        losses = []
        for chunk in course.held_out.chunks(course.chunk):
            value, memory = check(learned.network, memory, *chunk)
            if chunk[3].any():
                losses.append(float(value))
        return float(np.mean(losses)) if losses else float('nan')

    return loss


def is_long_enough(sequences: list[Training]) -> bool:
    """
    Say whether there is anything to compare with.

    :param sequences: to learn from
    :returns: whether at least two windows of samples count
    """
    return sum(int(each.counts.sum()) for each in sequences) >= 2 * WINDOW
