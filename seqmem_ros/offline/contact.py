"""
Train and score the contact models on windows of joint position error: which link was touched.

What such a model reads is the position error of each joint, commanded minus measured, in rad; a
contact bends the arm out of its command by some 1e-4 rad. A ``JointState`` does not carry it, so
a node that runs one is given a topic whose ``position`` is the error. The windows of 28 samples
are seen by one block of attention over 28 samples, so that in a stream the network sees exactly
what it saw in a window, at every sample and for ever.

``python -m seqmem_ros.offline.contact FOLDER`` makes the files; the same seed gives the same
ones. The data: Rezayati, *contactInterpretation* (MIT), windows of a Franka and a UR5.
"""

import argparse
from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import replace
from itertools import islice
from pathlib import Path
import sys

import jax
import numpy as np

from seqmem_ros import __version__
from seqmem_ros.core.estimators import WEIGHTS_DIR
from seqmem_ros.core.model import build_network
from seqmem_ros.core.model import SequenceModel
from seqmem_ros.core.spec import ModelSpec
from seqmem_ros.core.weights import save_model
from seqmem_ros.nn import Module
from seqmem_ros.offline.contact_blocks import blocks_of
from seqmem_ros.offline.contact_blocks import learned_from
from seqmem_ros.offline.fit import direct_spec
from seqmem_ros.offline.labels import score_labels
from seqmem_ros.offline.losses import cross_entropy
from seqmem_ros.offline.packing import Training
from seqmem_ros.offline.train import TrainingOptions
from seqmem_ros.offline.train_report import confusion_table
from seqmem_ros.offline.train_windows import predict
from seqmem_ros.offline.train_windows import raw_windows
from seqmem_ros.offline.training import make_train_step
from seqmem_ros.offline.training import schedule_for
from seqmem_ros.offline.windows_file import read_windows

# The windows carry no times; a rate has to be assumed for the differences over time.
RATE_HZ = 200.0
FOLDS = 5

OPTIONS = TrainingOptions(
    task='label',
    model='attention',
    hidden_size=32,
    n_steps=500,
    learning_rate=4e-3,
    attention_window=28,
)


@dataclass(frozen=True)
class Robot:
    """
    An arm and the files of its windows.

    :param name: ends the name of the weights file
    :param joints: names, in the order of the signals
    :param file: windows to learn from, scored block by block
    :param features: what the network reads of the error
    :param offset_rad: size of an offset that another pose would give, added at random
    :param force_spread: spread of the logarithm of the force of a touch, at random as well
    :param batch_size: windows in each step
    :param other: another recording of the arm, never learned from; empty for none
    """

    name: str
    joints: tuple[str, ...]
    file: str
    features: tuple[str, ...]
    offset_rad: float
    force_spread: float
    batch_size: int
    other: str = ''


ROBOTS = (
    Robot(
        'franka',
        tuple(f'panda_joint{index}' for index in range(1, 8)),
        'localization_23',
        # The direction in which the error moves says more here than its size.
        ('position', 'lag_velocity'), 1e-4, 0.7, 32,
        'test_dataset_source_robot',
    ),
    Robot(
        'ur5',
        (
            'shoulder_pan_joint', 'shoulder_lift_joint', 'elbow_joint', 'wrist_1_joint',
            'wrist_2_joint', 'wrist_3_joint',
        ),
        'test_dataset_target_robot_ur5',
        ('position',), 0.2e-4, 0.3, 64,
    ),
)  # fmt: skip


def nearest_neighbour(x: np.ndarray, y: np.ndarray, asked: np.ndarray) -> np.ndarray:
    """
    Label windows like the most similar one that is known, in Euclidean distance.

    :param x: known windows, shape (N, T, J)
    :param y: their labels, shape (N,)
    :param asked: shape (M, T, J)
    :returns: labels, shape (M,)
    """
    scale = x.std(axis=(0, 1))
    known, wanted = ((each / scale).reshape(len(each), -1) for each in (x, asked))
    distances = np.sum(known**2, axis=1) - 2 * wanted @ known.T
    return y[distances.argmin(axis=1)]


def train_contact(
    x: np.ndarray, y: np.ndarray, labels: tuple[str, ...], robot: Robot, options: TrainingOptions
) -> SequenceModel:
    """
    Train one model.

    :param x: position error in rad, shape (N, 28, J)
    :param y: indices of labels, shape (N,)
    :param labels: names
    :param robot: names its joints
    :param options: sizes, steps and seed
    :returns: the model, without a card
    """
    raw = raw_windows(x, RATE_HZ)
    seen = [
        Training(each, np.zeros(len(each), np.int32), np.ones(len(each), bool)) for each in raw
    ]
    spec = direct_spec(options, robot.joints, robot.features, labels, seen, RATE_HZ)
    network = build_network(spec.network, jax.random.key(options.seed))
    optimizer = schedule_for(options.learning_rate, options.n_steps)
    step, opt_state = make_train_step(_loss_for(spec), optimizer), optimizer.init(network)
    for batch in islice(_batches(x, y, robot, options), options.n_steps):
        network, opt_state, _ = step(network, opt_state, *batch)
    return SequenceModel(spec, network)


def _loss_for(spec: ModelSpec) -> Callable[..., jax.Array]:
    def loss(network: Module, raw: jax.Array, labels: jax.Array) -> jax.Array:
        logits = jax.vmap(SequenceModel(spec, network).forward)(raw)
        return cross_entropy(logits[:, -1], labels)

    return loss


def _batches(
    x: np.ndarray, y: np.ndarray, robot: Robot, options: TrainingOptions
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Vary force and pose; a window of each label comes as often as the root of its number."""
    rng = np.random.default_rng(options.seed)
    weights = 1 / np.sqrt(np.bincount(y))[y]
    while True:
        chosen = rng.choice(len(y), robot.batch_size, p=weights / weights.sum())
        force = np.exp(robot.force_spread * rng.standard_normal((len(chosen), 1, 1)))
        offset = robot.offset_rad * rng.standard_normal((len(chosen), 1, x.shape[2]))
        yield raw_windows(x[chosen] * force + offset, RATE_HZ), y[chosen].astype(np.int32)


def main(argv: Sequence[str] | None = None) -> int:
    """
    Score each robot's model on every block in turn, then train on all and write it.

    :param argv: arguments; None: those of the process
    :returns: exit code
    """
    parser = argparse.ArgumentParser(prog='contact', description='Train the contact models.')
    parser.add_argument('folder', type=Path, help='with the .npz files')
    parser.add_argument('--out', type=Path, default=WEIGHTS_DIR, help='folder (%(default)s)')
    parser.add_argument('--only', choices=[robot.name for robot in ROBOTS], action='append')
    parser.add_argument('--steps', type=int, default=OPTIONS.n_steps, help='(%(default)s)')
    args = parser.parse_args(argv)
    options = replace(OPTIONS, n_steps=args.steps)
    for robot in ROBOTS:
        if not args.only or robot.name in args.only:
            _make(robot, args.folder, args.out, options)
    return 0


def _make(robot: Robot, folder: Path, out: Path, options: TrainingOptions) -> None:
    x, links = _read(folder, robot.file)
    values = np.unique(links)
    labels = tuple('none' if value == 0 else f'link_{value}' for value in values)
    y = np.searchsorted(values, links)
    told = _cross_validated(robot, x, y, blocks_of(links, FOLDS), labels, options)
    scores = {robot.file: _scores(y, told, len(labels))}
    _print(robot.file, f'{FOLDS} contiguous blocks, each held out once', labels, scores)
    model = train_contact(x, y, labels, robot, options)
    if robot.other:
        other_x, other_links = _read(folder, robot.other)
        known = np.isin(other_links, values)
        truth = np.searchsorted(values, other_links[known])
        told = _answers(model, x, y, other_x[known])
        scores[robot.other] = _scores(truth, told, len(labels))
        _print(robot.other, 'another recording, windows of known links', labels, scores)
    card = {
        'training': {
            'data': f'contactInterpretation (MIT), {robot.file}',
            'reads': 'position error of each joint, commanded minus measured, rad, as position',
            'assumed_rate_hz': RATE_HZ,
            'n_steps': options.n_steps,
            'seed': options.seed,
            'seqmem_ros': __version__,
        },
        'scores': {'split': f'{FOLDS} contiguous blocks, each held out once', **scores},
    }
    path = out / f'contact_{robot.name}.safetensors'
    save_model(path, SequenceModel(replace(model.spec, card=card), model.network))
    print(f'{path}: {path.stat().st_size / 1000:.0f} kB', flush=True)


def _read(folder: Path, name: str) -> tuple[np.ndarray, np.ndarray]:
    windows = read_windows(folder / f'{name}.npz')
    return windows.x, np.array([int(label) for label in windows.labels])[windows.y]


def _cross_validated(
    robot: Robot,
    x: np.ndarray,
    y: np.ndarray,
    blocks: np.ndarray,
    labels: tuple[str, ...],
    options: TrainingOptions,
) -> dict[str, np.ndarray]:
    """Label every window by a model that has not seen its block, and by the simple rules."""
    told: dict[str, np.ndarray] = {}
    for held_out in range(FOLDS):
        use, asked = learned_from(blocks, held_out), blocks == held_out
        model = train_contact(x[use], y[use], labels, robot, options)
        for who, answer in _answers(model, x[use], y[use], x[asked]).items():
            told.setdefault(who, np.zeros(len(y), np.int64))[asked] = answer
    return told


def _answers(
    model: SequenceModel, x: np.ndarray, y: np.ndarray, asked: np.ndarray
) -> dict[str, np.ndarray]:
    return {
        'model': predict(model, raw_windows(asked, RATE_HZ)),
        'nearest neighbour': nearest_neighbour(x, y, asked),
        'commonest': np.full(len(asked), np.bincount(y).argmax()),
    }


def _print(name: str, how: str, labels: tuple[str, ...], scores: dict) -> None:
    print(f'{name}, {np.sum(scores[name]["confusion"])} windows, {how}')
    for who, score in scores[name].items():
        if who != 'confusion':
            print(f'  {who:<20}accuracy {score["accuracy"]}, macro-F1 {score["macro_f1"]}')
    print(confusion_table(labels, scores[name]['confusion']), flush=True)


def _scores(truth: np.ndarray, told: dict[str, np.ndarray], n_labels: int) -> dict:
    found = {}
    for who, guess in told.items():
        score = score_labels(truth, guess, n_labels)
        found[who] = {'accuracy': round(score.accuracy, 3), 'macro_f1': round(score.macro_f1, 3)}
        if who == 'model':
            found['confusion'] = score.confusion.tolist()
    return found


if __name__ == '__main__':
    sys.exit(main())
