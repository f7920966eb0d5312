"""What streaming attention remembers: the keys and values of earlier samples."""

from __future__ import annotations

from typing import Any
from typing import NamedTuple

import jax
import jax.numpy as jnp


class WindowCache(NamedTuple):
    """
    The last W keys and values of a stream, oldest first, in arrays of fixed size.

    :param keys: shape (W, d_model) or (batch, W, d_model), before any rotation
    :param values: the same shape
    :param count: how many of them are filled, at most W; they are the newest, at the end
    """

    keys: jax.Array
    values: jax.Array
    count: jax.Array


GrowingCache = tuple[jax.Array, jax.Array]


def empty_cache(
    width: int, window: int | None, batch: int | None, dtype: Any
) -> GrowingCache | WindowCache:
    """
    Make a cache that holds nothing yet.

    :param width: of keys and values
    :param window: samples to keep in arrays of fixed size, None for a growing cache
    :param batch: number of independent streams, None for a single one
    :param dtype: of keys and values
    :returns: :class:`WindowCache`, or keys and values of shape (0, width) or (batch, 0, width)
    :raises ValueError: for a window below 1
    """
    if window is not None and window < 1:
        raise ValueError(f'window must be at least 1 sample, got {window}')
    axes = () if batch is None else (batch,)
    empty = jnp.zeros((*axes, window or 0, width), dtype)
    return (empty, empty) if window is None else WindowCache(empty, empty, jnp.int32(0))


def ages_of(cache: GrowingCache | WindowCache) -> tuple[jax.Array, jax.Array]:
    """
    Tell how old each row is.

    :param cache: with the newest sample in it
    :returns: age in samples, 0 for the newest, and whether the row is filled, both (rows,)
    """
    n_rows = cache[0].shape[-2]
    ages = jnp.arange(n_rows - 1, -1, -1)
    return ages, ages < (cache.count if isinstance(cache, WindowCache) else n_rows)


def remember(
    cache: GrowingCache | WindowCache, key: jax.Array, value: jax.Array, window: int | None
) -> GrowingCache | WindowCache:
    """
    Put the newest sample at the end of a cache.

    The rows are in order of time, so that a row's place tells the age of its sample, whatever
    has been dropped at the other end.

    :param cache: of the samples before
    :param key: shape (1, d_model) or (batch, 1, d_model)
    :param value: the same shape
    :param window: rows at which a growing cache begins to drop the oldest, None for never
    :returns: cache of the same kind
    """
    keys = jnp.concatenate([cache[0], key], axis=-2)
    values = jnp.concatenate([cache[1], value], axis=-2)
    if isinstance(cache, WindowCache):
        n_rows = cache.keys.shape[-2]
        count = jnp.minimum(cache.count + 1, n_rows)
        return WindowCache(keys[..., -n_rows:, :], values[..., -n_rows:, :], count)
    if window is None:
        return keys, values
    return keys[..., -window:, :], values[..., -window:, :]
