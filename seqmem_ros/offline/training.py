"""
What every training loop here needs: an optimiser, a compiled step, and windows that carry state.

Nothing here knows the network or the data. Networks are pytrees, so optax works on them as they
are.
"""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import optax

from seqmem_ros.nn import Module

Loss = Callable[[jax.Array, jax.Array, jax.Array | None], jax.Array]

# So many steps without a finite gradient in a row are no accident.
MOST_BAD_STEPS = 20

OPTIMIZERS: dict[str, Callable[..., optax.GradientTransformation]] = {
    'adam': optax.adam,
    'adamw': optax.adamw,
    'rmsprop': optax.rmsprop,
    'sgd': optax.sgd,
}


def make_optimizer(
    name: str = 'adam',
    learning_rate: float | optax.Schedule = 1e-3,
    max_grad_norm: float | None = 1.0,
    **options: Any,
) -> optax.GradientTransformation:
    """
    Make an optimiser that never follows a gradient longer than ``max_grad_norm``.

    ``g <- g min(1, max_grad_norm / |g|)`` with the norm over all parameters together, before the
    optimiser sees it. Pascanu, Mikolov and Bengio, *On the difficulty of training recurrent neural
    networks*, ICML 2013, Algorithm 1.

    :param name: ``adam``, ``adamw``, ``rmsprop`` or ``sgd``
    :param learning_rate: a number, or an optax schedule
    :param max_grad_norm: dimensionless; None leaves gradients as they are
    :param options: further arguments of the optax optimiser
    :returns: optax transformation
    :raises ValueError: for an unknown name (lists the choices), or a norm that is not positive
    """
    if name not in OPTIMIZERS:
        raise ValueError(f'unknown optimizer {name!r}; choose one of {", ".join(OPTIMIZERS)}')
    optimizer = OPTIMIZERS[name](learning_rate, **options)
    if max_grad_norm is None:
        return optimizer
    if not max_grad_norm > 0:
        raise ValueError(f'max_grad_norm: expected a number above 0 or None, got {max_grad_norm}')
    return optax.chain(optax.clip_by_global_norm(max_grad_norm), optimizer)


def schedule_for(
    learning_rate: float, n_steps: int, longest_warm_up: int = 100
) -> optax.GradientTransformation:
    """
    Make the optimiser: Adam, a short warm-up, then a cosine down to a fiftieth.

    :param learning_rate: highest
    :param n_steps: of the training
    :param longest_warm_up: in steps; a tenth of the training if that is shorter
    :returns: an optimiser that leaves out steps whose gradient is not finite
    """
    schedule = optax.warmup_cosine_decay_schedule(
        0.0,
        learning_rate,
        warmup_steps=min(longest_warm_up, n_steps // 10),
        decay_steps=n_steps,
        end_value=learning_rate / 50,
    )
    return optax.apply_if_finite(make_optimizer('adam', schedule), MOST_BAD_STEPS)


def make_train_step(
    loss_of: Callable[..., jax.Array], optimizer: optax.GradientTransformation
) -> Callable[..., tuple[Any, Any, jax.Array]]:
    """
    Compile one step of gradient descent.

    :param loss_of: function of (params, *batch) with a scalar value; ``params`` is any pytree, a
        network or several
    :param optimizer: from :func:`make_optimizer` or optax
    :returns: function of (params, opt_state, *batch) giving the new params, the new opt_state, and
        the loss before the step; begin with ``opt_state = optimizer.init(params)``
    """

    @jax.jit
    def train_step(params: Any, opt_state: Any, *batch: Any) -> tuple[Any, Any, jax.Array]:
        value, gradient = jax.value_and_grad(loss_of)(params, *batch)
        updates, opt_state = optimizer.update(gradient, opt_state, params)
        return optax.apply_updates(params, updates), opt_state, value

    return train_step


def unroll(network: Module, seq: jax.Array, state: Any = None) -> tuple[jax.Array, Any]:
    """
    Step any network that streams over a sequence, from any state, and keep the last state.

    :param network: with ``step`` and ``init_state``
    :param seq: shape (T, n_in) or (batch, T, n_in)
    :param state: to begin with; None for the empty one
    :returns: outputs, (T, n_out) or (batch, T, n_out), and the state after the last sample
    :raises ValueError: if the network cannot stream; names the layer and the reason
    """
    return unroll_truncated(network, seq, seq.shape[-2], state)


def unroll_truncated(
    network: Module, seq: jax.Array, window: int, state: Any = None
) -> tuple[jax.Array, Any]:
    """
    Unroll with the gradient cut every ``window`` samples; the values are those of :func:`unroll`.

    The state that enters samples k, 2 k, 3 k ... is a constant to the gradient; the first state
    is not. Williams and Peng, *An efficient gradient-based algorithm for on-line training of
    recurrent network trajectories*, Neural Computation 2 (1990), BPTT(h; h') with h = h' = k.

    :param network: with ``step`` and ``init_state``
    :param seq: shape (T, n_in) or (batch, T, n_in)
    :param window: k, in samples
    :param state: to begin with; None for the empty one
    :returns: outputs, (T, n_out) or (batch, T, n_out), and the state after the last sample
    :raises ValueError: if the network cannot stream, or the window is below 1
    """
    if window < 1:
        raise ValueError(f'window: expected at least 1 sample, got {window}')
    if state is None:
        state = network.init_state(seq.shape[0] if seq.ndim == 3 else None, n_in=seq.shape[-1])

    def advance(state: Any, inputs: tuple[jax.Array, jax.Array]) -> tuple[Any, jax.Array]:
        x, index = inputs
        cut = (index > 0) & (index % window == 0)
        state = jax.tree.map(lambda s: jnp.where(cut, jax.lax.stop_gradient(s), s), state)
        y, state = network.step(x, state)
        return state, y

    # (..., T, n_in) -> (T, ..., n_in): scan runs over the first axis.
    time_first = jnp.moveaxis(jnp.asarray(seq), -2, 0)
    state, outputs = jax.lax.scan(advance, state, (time_first, jnp.arange(len(time_first))))
    return jnp.moveaxis(outputs, 0, -2), state


def make_window_step(
    loss: Loss, optimizer: optax.GradientTransformation
) -> Callable[..., tuple[Module, Any, Any, jax.Array]]:
    """
    Compile one step of truncated backpropagation through time that learns after every window.

    Only one window's activations are ever held, however long the sequence. The state that goes on
    to the next window was made by the weights before the step.

    :param loss: function of (prediction, target, mask), such as
        :func:`~seqmem_ros.offline.losses.mse`
    :param optimizer: from :func:`make_optimizer` or optax
    :returns: function of (network, opt_state, state, inputs, targets, mask=None) giving the new
        network, opt_state and detached state, and the loss before the step
    """

    def loss_of(
        network: Module, state: Any, inputs: jax.Array, targets: jax.Array, mask: Any
    ) -> tuple[jax.Array, Any]:
        prediction, state = unroll(network, inputs, state)
        return loss(prediction, targets, mask), state

    @jax.jit
    def window_step(
        network: Module,
        opt_state: Any,
        state: Any,
        inputs: jax.Array,
        targets: jax.Array,
        mask: jax.Array | None = None,
    ) -> tuple[Module, Any, Any, jax.Array]:
        gradient_of = jax.value_and_grad(loss_of, has_aux=True)
        (value, state), gradient = gradient_of(network, state, inputs, targets, mask)
        updates, opt_state = optimizer.update(gradient, opt_state, network)
        return optax.apply_updates(network, updates), opt_state, state, value

    return window_step


def windows_of(window: int, *arrays: jax.Array | None) -> Iterator[tuple[jax.Array | None, ...]]:
    """
    Cut sequences into windows along their time axis, the last one shorter where need be.

    :param window: in samples
    :param arrays: each (batch, T) or (batch, T, n), or None, which stays None
    :returns: iterator over tuples of windows
    :raises ValueError: if the window is below 1 or the lengths differ
    """
    if window < 1:
        raise ValueError(f'window: expected at least 1 sample, got {window}')
    lengths = {array.shape[1] for array in arrays if array is not None}
    if len(lengths) != 1:
        raise ValueError(f'expected sequences of one length, got {sorted(lengths)}')
    for start in range(0, lengths.pop(), window):
        yield tuple(None if a is None else a[:, start : start + window] for a in arrays)
