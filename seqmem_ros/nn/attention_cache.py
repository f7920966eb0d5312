"""What streaming attention remembers: the keys and values of earlier samples."""

from __future__ import annotations

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
