"""
One step of learning from chunks of endless streams, with the very program that runs on a robot.

Truncated backpropagation through time: the memory that enters a chunk is a constant to the
gradient (Williams and Peng, *An efficient gradient-based algorithm for on-line training of
recurrent network trajectories*, Neural Computation 2, 1990, BPTT(h; h')).
"""

from collections.abc import Callable
from typing import Any
from typing import NamedTuple

import jax
import jax.numpy as jnp
import optax

from seqmem_ros.core.model import SequenceModel
from seqmem_ros.core.spec import ModelSpec
from seqmem_ros.nn import Module
from seqmem_ros.offline.bounded_gradient import BoundedGradient
from seqmem_ros.offline.bounded_gradient import LARGEST_GRADIENT
from seqmem_ros.offline.losses import cross_entropy

SMALLEST_FLOOR_RAD_S = 1e-6


class Learned(NamedTuple):
    """
    Everything that a step of learning changes.

    :ivar network: its weights
    :ivar opt_state: of the optimiser
    :ivar memory: of the streams, one row each; () where nothing is carried
    """

    network: Module
    opt_state: Any
    memory: Any


def empty_memory(spec: ModelSpec, network: Module, n_rows: int) -> Any:
    """
    Make the memory of streams that have seen nothing.

    :param spec: of the model
    :param network: of the model
    :param n_rows: B
    :returns: the state of one stream, repeated along a first axis of length B
    :raises SeqmemError: if the network cannot go on from sample to sample
    """
    empty = SequenceModel(spec, network).init_state()
    return jax.tree.map(lambda leaf: jnp.repeat(leaf[None], n_rows, axis=0), empty)


def run_rows(
    spec: ModelSpec, network: Module, memory: Any, raw: jax.Array, fresh: jax.Array
) -> tuple[jax.Array, Any]:
    """
    Step through samples of B streams.

    :param spec: of the model
    :param network: of the model
    :param memory: before, see :func:`empty_memory`
    :param raw: inputs, shape (B, T, ...)
    :param fresh: where memory begins anew, bool, shape (B, T)
    :returns: outputs of :meth:`seqmem_ros.core.model.SequenceModel.step`, shape (B, T, ...), and
        the memory after
    """
    model = SequenceModel(spec, network)
    empty = model.init_state()

    def advance(memory: Any, sample: tuple[jax.Array, jax.Array]) -> tuple[Any, jax.Array]:
        x, starts = sample
        memory = _where(starts, empty, memory)
        outputs, memory = jax.vmap(model.step)(x, memory)
        return memory, outputs

    time_first = (jnp.moveaxis(raw, 1, 0), jnp.moveaxis(fresh, 1, 0))
    memory, outputs = jax.lax.scan(advance, memory, time_first)
    return jnp.moveaxis(outputs, 0, 1), memory


def chunk_loss(
    spec: ModelSpec, outputs: jax.Array, target: jax.Array, counts: jax.Array, floor: jax.Array
) -> jax.Array:
    r"""
    Compare outputs with targets.

    For labels the cross-entropy in nats. For velocities the mean over rows and joints of
    :math:`\tfrac12 \ln(\overline{(v - d)^2} + f^2)`, so that fast and slow joints count the same;
    f is the error of the target itself.

    :param spec: of the model
    :param outputs: shape (B, T, L), (B, T) or (B, T, J)
    :param target: see :class:`seqmem_ros.offline.packing.Training`, (B, T) or (B, T, J)
    :param counts: bool, shape (B, T)
    :param floor: f in rad/s, shape (B, T)
    :returns: shape (); 0 where nothing counts
    """
    if spec.labels:
        return cross_entropy(outputs, target, counts)
    outputs = outputs.reshape(*counts.shape, -1)
    target = target.reshape(outputs.shape)
    squares = jnp.where(counts[..., None], outputs - target, 0) ** 2
    n = counts.sum(axis=1)[:, None]
    mean = squares.sum(axis=1) / jnp.maximum(n, 1)  # (B, J)
    least = jnp.maximum(jnp.max(jnp.where(counts, floor, 0), axis=1), SMALLEST_FLOOR_RAD_S)
    logs = jnp.where(n > 0, 0.5 * jnp.log(mean + least[:, None] ** 2), 0)
    return logs.sum() / jnp.maximum((n > 0).sum() * logs.shape[1], 1)


def make_chunk_step(
    spec: ModelSpec, optimizer: optax.GradientTransformation
) -> Callable[..., tuple[Learned, jax.Array]]:
    """
    Compile one step of learning.

    :param spec: of the model
    :param optimizer: see :func:`seqmem_ros.offline.training.make_optimizer`
    :returns: function of (learned, raw, fresh, target, counts, floor) giving what is learned
        thereafter, and the loss before
    """

    def loss_of(
        network: Module, memory: Any, raw: Any, fresh: Any, target: Any, counts: Any, floor: Any
    ) -> Any:
        if spec.readout == 'observer':
            n_rows = jnp.maximum(counts.any(axis=1).sum(), 1)
            network = BoundedGradient(network, LARGEST_GRADIENT / n_rows)
        outputs, memory = run_rows(spec, network, memory, raw, fresh)
        return chunk_loss(spec, outputs, target, counts, floor), memory

    @jax.jit
    def step(learned: Learned, *chunk: Any) -> tuple[Learned, jax.Array]:
        gradient_of = jax.value_and_grad(loss_of, has_aux=True)
        (loss, memory), gradient = gradient_of(learned.network, learned.memory, *chunk)
        updates, opt_state = optimizer.update(gradient, learned.opt_state, learned.network)
        network = optax.apply_updates(learned.network, updates)
        return Learned(network, opt_state, _finite_rows(memory)), loss

    return step


def make_chunk_check(spec: ModelSpec) -> Callable[..., tuple[jax.Array, Any]]:
    """
    Compile the loss of a chunk without learning from it.

    :param spec: of the model
    :returns: function of (network, memory, raw, fresh, target, counts, floor) giving the loss
        and the memory after
    """

    @jax.jit
    def check(network: Module, memory: Any, raw: Any, fresh: Any, *rest: Any) -> Any:
        outputs, memory = run_rows(spec, network, memory, raw, fresh)
        return chunk_loss(spec, outputs, *rest), memory

    return check


def _where(mask: jax.Array, if_true: Any, if_false: Any) -> Any:
    def select(a: jax.Array, b: jax.Array) -> jax.Array:
        return jnp.where(mask.reshape(mask.shape + (1,) * (b.ndim - 1)), a, b)

    return jax.tree.map(select, if_true, if_false)


def _finite_rows(memory: Any) -> Any:
    """Empty the memory of rows that have run away, or they would never come back."""
    leaves = jax.tree.leaves(memory)
    if not leaves:
        return memory
    good = jnp.ones(leaves[0].shape[0], bool)
    for leaf in leaves:
        good &= jnp.isfinite(leaf).reshape(len(leaf), -1).all(axis=1)
    return _where(good, memory, jax.tree.map(jnp.zeros_like, memory))
