"""
Train the weights that are shipped, and write their cards: ``./run weights``.

Each is a call of :func:`seqmem_ros.offline.train.train` with the options below; the same seeds on
the same machine give the same file. Two are trained side by side, with a core each, which takes
less than an hour.
"""

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
import sys
from typing import Any
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from tqdm import tqdm

from seqmem_ros.core.errors import SeqmemError
from seqmem_ros.core.estimators import FILTERS
from seqmem_ros.core.estimators import WEIGHTS_DIR
from seqmem_ros.core.inputs import lags
from seqmem_ros.core.model import SequenceModel
from seqmem_ros.core.observer import SteeredObserver
from seqmem_ros.core.spec import WINDOW
from seqmem_ros.core.weights import load_model
from seqmem_ros.core.weights import save_model
from seqmem_ros.offline.labels import score_labels
from seqmem_ros.offline.sequences import run_together
from seqmem_ros.offline.side_by_side import side_by_side
from seqmem_ros.offline.simulate import Recording
from seqmem_ros.offline.simulate import simulate
from seqmem_ros.offline.train import stacked
from seqmem_ros.offline.train import train
from seqmem_ros.offline.train import TrainingOptions
from seqmem_ros.offline.tune import geometric_mean_rmse
from seqmem_ros.offline.tune import rmse_of
from seqmem_ros.offline.tune import sweep

# The longest first.
SHIPPED = {
    'velocity_attention': TrainingOptions(
        model='attention',
        hidden_size=48,
        n_layers=2,
        n_steps=16000,
        batch_size=32,
        n_samples=256,
        learning_rate=4e-3,
        gradient_samples=64,
    ),
    # With recordings half as long and a higher rate it forgot less than it should: after half a
    # minute of fast motion, its errors were larger by a sixth than in the first second.
    'velocity_gru': TrainingOptions(
        model='gru',
        n_steps=5500,
        batch_size=32,
        n_samples=1024,
        learning_rate=5e-3,
        gradient_samples=1024,
    ),
    'motion_gru': TrainingOptions(task='label', model='gru', n_steps=10000, learning_rate=8e-3),
    'velocity_lstm': TrainingOptions(model='lstm', n_steps=11000, learning_rate=8e-3),
}

# Never used in training: its seeds count up from 0 and its data are drawn from these alone.
SCORE_SEED = 20_261_129
SCORE_RECORDINGS = 400
SCORE_SAMPLES = 1024
# Enough to see that it works, for those who try out the script.
TRIAL_RECORDINGS = 8


def main(arguments: Sequence[str] | None = None) -> int:
    """
    Train what is asked for.

    :param arguments: those of the command; None: of the process
    :returns: exit code
    """
    args = parsed(arguments)
    tasks = [Task(name, line, args) for line, name in enumerate(args.only or SHIPPED)]
    code = 0
    # One alone has a core of its own, too: with more threads, sums are rounded in another order.
    for task, outcome in side_by_side(make, tasks, args.jobs, a_core_each=True):
        if isinstance(outcome, SeqmemError):
            print(f'run weights: error: {task.name}: {outcome}', file=sys.stderr)
            code = 1
    return code


class Task(NamedTuple):
    """
    A file to make.

    :ivar name: of the file, without its suffix
    :ivar line: of its progress
    :ivar args: from :func:`parsed`
    """

    name: str
    line: int
    args: argparse.Namespace


def parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    """
    Read the arguments.

    :param arguments: those of the command; None: of the process
    :returns: their values
    """
    parser = argparse.ArgumentParser(prog='run weights', description='Train the shipped weights.')
    parser.add_argument('--only', choices=tuple(SHIPPED), action='append', help='train only this')
    parser.add_argument('--out', type=Path, default=WEIGHTS_DIR, help='folder (%(default)s)')
    parser.add_argument('--jobs', type=int, default=2, help='how many at once (%(default)s)')
    parser.add_argument(
        '--rescore', action='store_true', help='keep the weights, only score them again'
    )
    parser.add_argument(
        '--steps', type=int, help='fewer steps, and few recordings to score on, to try it out'
    )
    args = parser.parse_args(arguments)
    for name, value in (('jobs', args.jobs), ('steps', args.steps)):
        if value is not None and value < 1:
            parser.error(f'--{name}: expected a number from 1 up, got {value}')
    return args


def make(task: Task) -> None:
    """
    Train a model, or take it as it is, score it and write its file.

    :param task: which, and how
    :raises SeqmemError: if training diverges, or a file cannot be read or written
    """
    name, args = task.name, task.args
    try:
        args.out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SeqmemError(f'--out: expected a folder, got {args.out}: {error.strerror}') from None
    path = args.out / f'{name}.safetensors'
    model = load_model(path) if args.rescore else _trained(task)
    rng = np.random.default_rng(SCORE_SEED)
    n_recordings = TRIAL_RECORDINGS if args.steps else SCORE_RECORDINGS
    recordings = [simulate(rng, SCORE_SAMPLES) for _ in range(n_recordings)]
    score = _label_scores if model.spec.labels else _velocity_scores
    scores = score(model, recordings)
    card = {**model.spec.card, 'scores': scores}
    save_model(path, SequenceModel(replace(model.spec, card=card), model.network))
    tqdm.write(f'{path}: {path.stat().st_size / 1000:.0f} kB, {scores}')


def _trained(task: Task) -> SequenceModel:
    options, mean = SHIPPED[task.name], 0.0
    if task.args.steps:
        options = replace(options, n_steps=task.args.steps)
    with tqdm(
        total=options.n_steps, desc=task.name, unit=' steps', mininterval=5.0, position=task.line
    ) as bar:

        def progress(number: int, loss: float) -> None:
            nonlocal mean
            mean += (loss - mean) / min(number, 100)
            bar.set_postfix(loss=f'{mean:.3f}', refresh=False)
            bar.update()

        return train(options, progress)


def _outputs(model: SequenceModel, recordings: list[Recording]) -> tuple[np.ndarray, Any]:
    batch = stacked(recordings)
    observer = SteeredObserver(model.network, len(model.spec.labels))
    return np.asarray(jax.jit(observer.forward)(lags(jnp.asarray(batch[0])))), batch


def _velocity_scores(model: SequenceModel, recordings: list[Recording]) -> dict[str, float]:
    """Geometric mean over recordings of the RMSE in rad/s, of the model and of its peers."""
    estimates = _outputs(model, recordings)[0][..., 0]
    scores = {'model': geometric_mean_rmse(rmse_of(estimates, recordings), recordings)}
    for name, make in FILTERS.items():
        rmse = rmse_of(run_together(make(), recordings), recordings)
        scores[name] = geometric_mean_rmse(rmse, recordings)
    _, errors = sweep('kalman', recordings)
    scores['kalman_tuned_on_each_recording'] = geometric_mean_rmse(errors.min(axis=0), recordings)
    return {name: float(f'{value:.4g}') for name, value in scores.items()}


def _label_scores(model: SequenceModel, recordings: list[Recording]) -> dict[str, float]:
    outputs, batch = _outputs(model, recordings)
    predicted = outputs[:, WINDOW:, 1:].argmax(axis=-1).ravel()
    expected = batch[3][:, WINDOW:].ravel()
    score = score_labels(expected, predicted, len(model.spec.labels))
    return {
        'macro_f1': float(f'{score.macro_f1:.4g}'),
        'accuracy': float(f'{np.mean(expected == predicted):.4g}'),
    }


if __name__ == '__main__':
    sys.exit(main())
