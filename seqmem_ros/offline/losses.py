"""
Losses over sequences of which some samples do not count.

A mask is True where a sample counts; it has the leading axes of the loss, (T,) or (batch, T). The
mean is taken over the samples that count, so that padding changes neither value nor gradient.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp


def masked_mean(values: jax.Array, mask: jax.Array | None = None) -> jax.Array:
    """
    Average what counts: ``sum(m v) / sum(m)``.

    :param values: one loss a sample, (T,) or (batch, T), or with further axes
    :param mask: bool, the leading axes of ``values``; None: everything counts
    :returns: the mean, shape (); 0 where nothing counts
    :raises ValueError: if the mask is not as long as the values
    """
    if mask is None:
        return values.mean()
    mask = jnp.broadcast_to(_expanded(mask, values.shape), values.shape)
    # where() and not a product: padding may hold NaN, and 0 NaN is NaN.
    return jnp.where(mask, values, 0).sum() / jnp.maximum(mask.sum(), 1)


def mse(prediction: jax.Array, target: jax.Array, mask: jax.Array | None = None) -> jax.Array:
    """
    Mean squared error: ``mean((y - d)^2)``.

    :param prediction: y, shape (..., n)
    :param target: d, the same shape and unit
    :param mask: see :func:`masked_mean`
    :returns: shape (), in the squared unit
    :raises ValueError: if the shapes differ
    """
    return masked_mean(_error(prediction, target, mask) ** 2, mask)


def huber(
    prediction: jax.Array, target: jax.Array, mask: jax.Array | None = None, delta: float = 1.0
) -> jax.Array:
    """
    Squared for small errors, linear for large ones, so that a jump in a recording pulls little.

    ``e^2 / 2`` where ``|e| <= delta``, else ``delta (|e| - delta / 2)``. Huber, *Robust estimation
    of a location parameter*, Annals of Mathematical Statistics 35 (1964), p. 78.

    :param prediction: y, shape (..., n)
    :param target: d, the same shape and unit
    :param mask: see :func:`masked_mean`
    :param delta: where the square ends, in the unit of the error
    :returns: shape (), in the squared unit
    :raises ValueError: if the shapes differ, or delta is not positive
    """
    if not delta > 0:
        raise ValueError(f'delta: expected a number above 0, got {delta}')
    size = jnp.abs(_error(prediction, target, mask))
    inside = jnp.minimum(size, delta)
    return masked_mean(inside * (size - inside / 2), mask)


def log_cosh(prediction: jax.Array, target: jax.Array, mask: jax.Array | None = None) -> jax.Array:
    """
    Mean of ``ln cosh e``: half the square for small errors, ``|e| - ln 2`` for large ones.

    Written as ``|e| + ln(1 + exp(-2 |e|)) - ln 2``, which cannot overflow.

    :param prediction: y, shape (..., n)
    :param target: d, the same shape, scaled to about 1
    :param mask: see :func:`masked_mean`
    :returns: shape (), dimensionless
    :raises ValueError: if the shapes differ
    """
    size = jnp.abs(_error(prediction, target, mask))
    return masked_mean(size + jnp.log1p(jnp.exp(-2 * size)) - jnp.log(2.0), mask)


def cross_entropy(
    logits: jax.Array, labels: jax.Array, mask: jax.Array | None = None
) -> jax.Array:
    """
    Mean negative log-likelihood of the true classes: ``-log softmax(y)[d]``.

    Goodfellow, Bengio and Courville, *Deep learning* (2016), section 6.2.2.3, Eq. 6.30, in nats.

    :param logits: y, shape (..., n_classes)
    :param labels: d, class indices, shape (...)
    :param mask: see :func:`masked_mean`
    :returns: shape (), in nats
    :raises ValueError: if there is not one label for each row of logits
    """
    labels = jnp.asarray(labels)
    if labels.shape != logits.shape[:-1]:
        raise ValueError(
            f'labels: expected one index for each row of logits, shape {logits.shape[:-1]}, '
            f'got {labels.shape}'
        )
    if mask is not None:
        logits = _zero_where_masked(logits, mask)
        labels = jnp.where(jnp.asarray(mask, bool), labels, 0)
    scores = jax.nn.log_softmax(logits)
    return masked_mean(-jnp.take_along_axis(scores, labels[..., None], -1)[..., 0], mask)


def _error(prediction: jax.Array, target: jax.Array, mask: jax.Array | None) -> jax.Array:
    prediction, target = jnp.asarray(prediction), jnp.asarray(target)
    if prediction.shape != target.shape:
        raise ValueError(
            f'target: expected the shape of the prediction, {prediction.shape}, got {target.shape}'
        )
    error = prediction - target
    return error if mask is None else _zero_where_masked(error, mask)


def _zero_where_masked(values: jax.Array, mask: jax.Array) -> jax.Array:
    # Before the non-linear part: the gradient of where() multiplies what it hides by 0, and a NaN
    # derivative times 0 is NaN.
    return jnp.where(_expanded(mask, values.shape), values, 0)


def _expanded(mask: jax.Array, shape: tuple[int, ...]) -> jax.Array:
    mask = jnp.asarray(mask, bool)
    if shape[: mask.ndim] != mask.shape:
        raise ValueError(
            f'mask: expected the leading axes of the prediction, {shape}, got {mask.shape}'
        )
    # (batch, T) -> (batch, T, 1 ...)
    return mask.reshape(mask.shape + (1,) * (len(shape) - mask.ndim))
