"""Train a shared network on simulated joints: one network for any joint, rate and resolution."""

from collections.abc import Callable
from collections.abc import Iterator
from dataclasses import asdict
from dataclasses import dataclass
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

from seqmem_ros import __version__
from seqmem_ros.core.errors import SeqmemError
from seqmem_ros.core.inputs import lags
from seqmem_ros.core.model import build_network
from seqmem_ros.core.model import SequenceModel
from seqmem_ros.core.motion import LABELS
from seqmem_ros.core.motion import motion_labels
from seqmem_ros.core.observer import N_FEATURES
from seqmem_ros.core.observer import N_STEERING
from seqmem_ros.core.observer import PARTS_OF_LABEL
from seqmem_ros.core.observer import SteeredObserver
from seqmem_ros.core.spec import ModelSpec
from seqmem_ros.core.spec import WINDOW
from seqmem_ros.nn import Module
from seqmem_ros.offline.bounded_gradient import BoundedGradient
from seqmem_ros.offline.bounded_gradient import LARGEST_GRADIENT
from seqmem_ros.offline.sequences import raw_sequence
from seqmem_ros.offline.simulate import Recording
from seqmem_ros.offline.simulate import simulate
from seqmem_ros.offline.training import make_train_step
from seqmem_ros.offline.training import MOST_BAD_STEPS
from seqmem_ros.offline.training import schedule_for
from seqmem_ros.offline.training import unroll_truncated

MODELS = ('gru', 'lstm', 'rnn', 'attention', 'transformer')
HEADS = 4
# Simulating is a tenth of the work, so a recording serves a few times before it is replaced.
POOL_BATCHES = 100
USES_OF_A_POOL = 3
# The error of a recording counts in full down to this share of one count per sample.
LOSS_FLOOR_SHARE = 3e-3
# Share of the output weights as they are drawn. A filter that is steered at random runs away, and
# what is learned first is to steer less. After 600 steps, the logarithm of the RMSE is lower by
# 0.16 with a GRU, and attention bears twice the learning rate.
FRESH_STEERING = 0.1
# Attention diverges without; nobody else minds.
WARM_UP_STEPS = 300
# The weights that are kept are a running mean over about so many of the last steps.
AVERAGED_STEPS = 500
VELOCITY_SHARE_OF_LABEL_LOSS = 0.1
# Nothing in an LSTM's forward pass bounds its cells: one that counts without end costs nothing
# over a training sequence and ruins single precision within a day.
LARGEST_MEMORY = 10.0

Batch = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


@dataclass(frozen=True)
class TrainingOptions:
    """
    What to train and for how long.

    :param task: ``velocity`` or ``label`` (the motion labels of :mod:`seqmem_ros.core.motion`)
    :param model: one of :data:`MODELS`
    :param hidden_size: width of the recurrent layers, or of the attention model
    :param n_layers: recurrent layers, or attention blocks
    :param n_steps: steps of gradient descent
    :param batch_size: recordings in each
    :param n_samples: length of a recording
    :param learning_rate: highest, reached in a few steps, falls to a fiftieth on a cosine
    :param gradient_samples: the gradient reaches back over so many samples (truncated
        backpropagation); the values over the whole recording
    :param seed: of the weights and of all data
    :param attention_window: samples that a block of ``attention`` or ``transformer`` attends to
    :raises SeqmemError: if the model or the task is unknown, or a number out of its range
    """

    task: str = 'velocity'
    model: str = 'gru'
    hidden_size: int = 32
    n_layers: int = 1
    n_steps: int = 6000
    batch_size: int = 48
    n_samples: int = 512
    learning_rate: float = 3e-3
    gradient_samples: int = 512
    seed: int = 0
    attention_window: int = WINDOW

    def __post_init__(self) -> None:
        if self.model not in MODELS:
            raise SeqmemError(f"model: expected one of {', '.join(MODELS)}, got '{self.model}'")
        if self.task not in ('velocity', 'label'):
            raise SeqmemError(f"task: expected velocity or label, got '{self.task}'")
        # A loss is taken of the samples behind the first window.
        lowest = {'n_samples': WINDOW + 1, 'seed': 0}
        whole = ('hidden_size', 'n_layers', 'n_steps', 'batch_size', 'n_samples', 'seed')
        for name in (*whole, 'attention_window', 'gradient_samples'):
            if not getattr(self, name) >= lowest.get(name, 1):
                raise SeqmemError(
                    f'{name}: expected at least {lowest.get(name, 1)}, got {getattr(self, name)}'
                )
        if not 0 < self.learning_rate < float('inf'):
            raise SeqmemError(
                f'learning_rate: expected a number above 0, got {self.learning_rate}'
            )


def spec_of(options: TrainingOptions, names: tuple[str, ...] = LABELS) -> ModelSpec:
    """
    Describe the network that the options ask for.

    :param options: model, sizes and task
    :param names: of the labels, where the task is to label
    :returns: its spec, without a card
    """
    labels = names if options.task == 'label' else ()
    return ModelSpec(
        task=options.task,
        network=network_of(options, N_FEATURES, N_STEERING + PARTS_OF_LABEL * len(labels)),
        labels=labels,
        nominal_rate_hz=(50.0, 1000.0),
    )


def fresh_network(spec: ModelSpec, seed: int) -> Module:
    """
    Draw the weights that training begins with.

    :param spec: of the model
    :param seed: of the weights
    :returns: a network; one that steers a filter hardly does so yet
    """
    network = build_network(spec.network, jax.random.key(seed))
    if spec.readout == 'observer':
        output = network.layers[-1].W
        output.value = FRESH_STEERING * output.value
    return network


def network_of(options: TrainingOptions, n_in: int, n_out: int) -> dict[str, Any]:
    """
    Describe a network of a model's kind and sizes.

    ``transformer`` is ``attention`` with a wider dense part, four times its width as in Vaswani
    et al., *Attention is all you need* (2017), section 3.3, not twice.

    :param options: model and sizes
    :param n_in: width of the samples
    :param n_out: width of the output
    :returns: builder and arguments, as in :class:`seqmem_ros.core.spec.ModelSpec`
    """
    sizes: dict[str, Any] = {'n_in': n_in, 'n_out': n_out}
    if options.model in ('attention', 'transformer'):
        wider = 4 if options.model == 'transformer' else 2
        return sizes | {
            'builder': 'causal_transformer',
            'd_model': options.hidden_size,
            'n_heads': HEADS,
            'd_ff': wider * options.hidden_size,
            'depth': options.n_layers,
            'window': options.attention_window,
        }
    return sizes | {
        'builder': 'recurrent_net',
        'cell': options.model,
        'n_hidden': options.hidden_size,
        'n_layers': options.n_layers,
    }


def train(
    options: TrainingOptions,
    progress: Callable[[int, float], None] = lambda step, loss: None,
) -> SequenceModel:
    """
    Train a model on simulated recordings; its weights are a running mean over the last steps.

    The loss of a velocity model is the mean over recordings of the logarithm of the root mean
    squared error, so that slow and fast, coarse and fine recordings count the same; that of a
    label model is the cross-entropy, and a share of the former, which teaches the observer.

    :param options: what to train and for how long
    :param progress: called after each step with its number and its loss
    :returns: the model, with a card that says how it was trained
    :raises SeqmemError: if the loss is not finite any more
    """
    spec = spec_of(options)
    network = fresh_network(spec, options.seed)
    # Early on a batch can overflow: the filter, badly steered, runs away over 500 samples.
    optimizer = schedule_for(options.learning_rate, options.n_steps, WARM_UP_STEPS)
    loss_of = loss_for(len(spec.labels), options.gradient_samples)
    step = make_train_step(loss_of, optimizer)
    opt_state = optimizer.init(network)
    average, averaged = jax.jit(_moved_by), network
    bad_in_a_row = 0
    for number, batch in enumerate(batches(options), start=1):
        network, opt_state, loss = step(network, opt_state, *batch)
        bad_in_a_row = 0 if np.isfinite(loss) else bad_in_a_row + 1
        if bad_in_a_row > MOST_BAD_STEPS:
            raise SeqmemError(
                f'training diverged at step {number}: try a learning_rate below '
                f'{options.learning_rate}'
            )
        averaged = average(averaged, network, jnp.minimum(number / 10, AVERAGED_STEPS))
        progress(number, float(loss))
        if number == options.n_steps:
            break
    card = {'training': {**asdict(options), 'data': 'simulated', 'seqmem_ros': __version__}}
    return SequenceModel(replace(spec, card=card), averaged)


def _moved_by(mean: Module, new: Module, steps: jax.Array) -> Module:
    """Leak the newest weights into a mean (Polyak and Juditsky, SIAM J. Control 30(4), 1992)."""
    return jax.tree.map(lambda old, now: old + (now - old) / jnp.maximum(steps, 1), mean, new)


def loss_for(n_labels: int, gradient_samples: int = 512) -> Callable[..., jax.Array]:
    """
    Make the loss of :func:`train`.

    :param n_labels: 0 for velocity
    :param gradient_samples: see :class:`TrainingOptions`
    :returns: function of (network, raw inputs, velocity, count velocity, label indices)
    """

    def loss(
        network: Module, raw: jax.Array, velocity: jax.Array, count: jax.Array, labels: jax.Array
    ) -> jax.Array:
        bounded = BoundedGradient(network, LARGEST_GRADIENT / len(raw))
        observer = SteeredObserver(bounded, n_labels, bounded=False)
        outputs, (_, memory) = unroll_truncated(observer, lags(raw), gradient_samples)
        outputs = outputs[:, WINDOW:]
        squared = jnp.mean((outputs[..., 0] - velocity[:, WINDOW:]) ** 2, axis=1)
        log_rmse = 0.5 * jnp.mean(jnp.log(squared + (LOSS_FLOOR_SHARE * count) ** 2))
        growth = sum(
            jnp.mean(jax.nn.relu(jnp.abs(leaf) - LARGEST_MEMORY))
            for leaf in jax.tree.leaves(memory)
        )
        if n_labels == 0:
            return log_rmse + growth
        cross_entropy = optax.softmax_cross_entropy_with_integer_labels(
            outputs[..., 1:], labels[:, WINDOW:]
        )
        return jnp.mean(cross_entropy) + VELOCITY_SHARE_OF_LABEL_LOSS * log_rmse + growth

    return loss


def batches(options: TrainingOptions) -> Iterator[Batch]:
    """
    Draw training data without end.

    :param options: batch size, length, seed, and number of steps, which few data serve if small
    :returns: iterator over raw inputs (B, T, N_RAW), velocities in rad/s (B, T), one count per
        sample in rad/s (B,), and label indices (B, T)
    """
    rng = np.random.default_rng(options.seed)
    size = options.batch_size
    n_recordings = min(POOL_BATCHES, options.n_steps) * size
    while True:
        recordings = [simulate(rng, options.n_samples, harder=True) for _ in range(n_recordings)]
        pool = stacked(recordings)
        for _ in range(USES_OF_A_POOL):
            order = rng.permutation(len(recordings)).reshape(-1, size)
            for chosen in order:
                yield tuple(array[chosen] for array in pool)


def stacked(recordings: list[Recording]) -> Batch:
    """
    Put recordings of one length into arrays.

    :param recordings: B recordings of T samples
    :returns: see :func:`batches`
    """
    raw = np.stack([raw_sequence(r.stamp_ns, r.position) for r in recordings])
    velocity = np.stack([r.velocity for r in recordings]).astype(np.float32)
    count = np.array([r.encoder.count_rad * r.encoder.rate_hz for r in recordings], np.float32)
    labels = np.stack([motion_labels(r.velocity) for r in recordings])
    return raw, velocity, count, labels
