"""Learn from simulated joints, in a way that may be interrupted; no two passes are alike."""

from collections.abc import Iterator
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from seqmem_ros.core.estimators import load_estimator
from seqmem_ros.core.model import SequenceModel
from seqmem_ros.core.network_estimator import NetworkEstimator
from seqmem_ros.offline.held_out import FILTERS
from seqmem_ros.offline.labels import score_labels
from seqmem_ros.offline.resumable import History
from seqmem_ros.offline.resumable import learn
from seqmem_ros.offline.resumable import Plan
from seqmem_ros.offline.resumable import Progress
from seqmem_ros.offline.sequences import forward_together
from seqmem_ros.offline.sequences import run_together
from seqmem_ros.offline.simulate import simulate
from seqmem_ros.offline.stateful import Learned
from seqmem_ros.offline.train import Batch
from seqmem_ros.offline.train import fresh_network
from seqmem_ros.offline.train import loss_for
from seqmem_ros.offline.train import spec_of
from seqmem_ros.offline.train import stacked
from seqmem_ros.offline.train import TrainingOptions
from seqmem_ros.offline.train import USES_OF_A_POOL
from seqmem_ros.offline.training import make_train_step
from seqmem_ros.offline.training import schedule_for
from seqmem_ros.offline.tune import geometric_mean_rmse
from seqmem_ros.offline.tune import rmse_of

POOL_BATCHES = 20
# Data of scores are drawn from here on; a training draws from its seed and small numbers.
SCORE_SEED = 20_261_129
SCORE_RECORDINGS = 60


def fit_simulated(
    options: TrainingOptions,
    begin: SequenceModel | None = None,
    path: str | Path | None = None,
    resume: bool = False,
    progress: Progress = lambda step, loss: None,
    asked: Mapping[str, Any] | None = None,
) -> tuple[SequenceModel, History]:
    """
    Learn from simulation; the loss is that of :func:`seqmem_ros.offline.train.train`.

    :param options: what to train and for how long
    :param begin: shared model to go on from; None for fresh weights
    :param path: of the checkpoint; None writes none
    :param resume: go on from the checkpoint
    :param progress: called after each step with its number and its loss
    :param asked: what a checkpoint must agree on, plain JSON
    :returns: the model, and how it went
    :raises SeqmemError: as :func:`seqmem_ros.offline.resumable.learn`
    """
    spec = begin.spec if begin else spec_of(options)
    if begin is None:
        network = fresh_network(spec, options.seed)
    else:
        network = begin.network
    optimizer = schedule_for(options.learning_rate, options.n_steps)
    one_step = make_train_step(loss_for(len(spec.labels), options.gradient_samples), optimizer)

    def step(learned: Learned, *batch: Any) -> tuple[Learned, Any]:
        network, opt_state, loss = one_step(learned.network, learned.opt_state, *batch)
        return Learned(network, opt_state, ()), loss

    plan = Plan(step, lambda number: epoch(options, number), options.n_steps, None, asked or {})
    start = Learned(network, optimizer.init(network), ())
    learned, history = learn(plan, start, path, resume, progress)
    return SequenceModel(spec, learned.network), history


def epoch(options: TrainingOptions, number: int) -> Iterator[Batch]:
    """
    Simulate recordings and serve each a few times.

    :param options: batch size, length and seed
    :param number: says all, with the seed
    :returns: iterator over batches, see :func:`seqmem_ros.offline.train.batches`
    """
    rng = np.random.default_rng([options.seed, number])
    n_recordings = POOL_BATCHES * options.batch_size
    pool = stacked([simulate(rng, options.n_samples, harder=True) for _ in range(n_recordings)])
    for _ in range(USES_OF_A_POOL):
        for chosen in rng.permutation(n_recordings).reshape(-1, options.batch_size):
            yield tuple(array[chosen] for array in pool)


def score_simulated(model: SequenceModel, n_samples: int) -> dict[str, float]:
    """
    Score a shared model on recordings that no training has seen.

    :param model: for velocities or motion labels
    :param n_samples: length of each
    :returns: geometric mean of the RMSE in rad/s of the model and of the filters, or macro-F1 and
        accuracy
    """
    rng = np.random.default_rng(SCORE_SEED)
    recordings = [simulate(rng, n_samples) for _ in range(SCORE_RECORDINGS)]
    if model.spec.labels:
        truth = stacked(recordings)[3]
        guess = run_together(NetworkEstimator(model), recordings).argmax(axis=-1)
        score = score_labels(truth[:, 5:].ravel(), guess[:, 5:].ravel(), len(model.spec.labels))
        return {'macro_f1': _short(score.macro_f1), 'accuracy': _short(score.accuracy)}
    estimates = {'model': forward_together(model, recordings)}
    estimates |= {name: run_together(load_estimator(name), recordings) for name in FILTERS}
    return {
        name: _short(geometric_mean_rmse(rmse_of(values, recordings), recordings))
        for name, values in estimates.items()
    }


def _short(value: float) -> float:
    return float(f'{value:.4g}')
