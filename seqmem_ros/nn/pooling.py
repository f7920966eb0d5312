"""Layers that turn a sequence into one vector."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from seqmem_ros.nn.module import Module
from seqmem_ros.nn.padding import zero_padding

# Up to here float32 counts exactly; beyond it a mean of more samples would not move any more.
MAX_COUNT = 2**24

MeanState = tuple[jax.Array, jax.Array]


class LastStep(Module):
    """
    Keep the last sample of a sequence, ``y = x_T``.

    As the summary of a sequence: Sutskever, Vinyals and Le, *Sequence to sequence learning with
    neural networks*, NeurIPS 2014 (arXiv:1409.3215), section 2, v in Eq. 1. In a stream it is the
    current one: a step passes its sample on.
    """

    collapses_time = True

    def forward(self, seq: jax.Array, rng_key: jax.Array | None = None) -> jax.Array:
        """
        Take the last sample.

        :param seq: shape (T, n) or (batch, T, n)
        :param rng_key: not used
        :returns: shape (n,) or (batch, n)
        :raises ValueError: for a sequence without samples
        """
        return _not_empty(seq, self)[..., -1, :]

    def forward_padded(
        self, seq: jax.Array, lengths: jax.Array, rng_key: jax.Array | None = None
    ) -> jax.Array:
        last = (jnp.asarray(lengths) - 1)[..., None, None]
        return jnp.take_along_axis(jnp.asarray(seq), last, axis=-2)[..., 0, :]

    def step(self, x: jax.Array, state: tuple[()]) -> tuple[jax.Array, tuple[()]]:
        """
        Pass the sample on.

        :param x: sample, shape (n,) or (batch, n)
        :param state: empty
        :returns: the sample, same shape, and the empty state
        """
        return x, state


class MeanOverTime(Module):
    """
    Take the mean of a sequence, or of its last ``window`` samples.

    ``y = (x_(T-w+1) + .. + x_T) / w``, w the smaller of window and T. In a stream that is the
    running mean so far, updated as in Welford, *Note on a method for calculating corrected sums
    of squares and products*, Technometrics 4 (1962), p. 419; after 2^24 samples without a window,
    older samples begin to fade.

    :param window: number of samples, None for all
    :raises ValueError: for a window below 1
    """

    collapses_time = True

    def __init__(self, window: int | None = None):
        if window is not None and window < 1:
            raise ValueError(f'window must be at least 1 sample, got {window}')
        self.window = window

    def forward(self, seq: jax.Array, rng_key: jax.Array | None = None) -> jax.Array:
        """
        Take the mean over time.

        :param seq: shape (T, n) or (batch, T, n)
        :param rng_key: not used
        :returns: shape (n,) or (batch, n)
        :raises ValueError: for a sequence without samples
        """
        seq = _not_empty(seq, self)
        return (seq if self.window is None else seq[..., -self.window :, :]).mean(-2)

    def forward_padded(
        self, seq: jax.Array, lengths: jax.Array, rng_key: jax.Array | None = None
    ) -> jax.Array:
        lengths = jnp.asarray(lengths)
        seq, valid = zero_padding(seq, lengths)
        if self.window is not None:
            first = jnp.maximum(lengths - self.window, 0)
            valid &= jnp.arange(seq.shape[-2]) >= first[..., None]
        weights = (valid / valid.sum(-1, keepdims=True)).astype(seq.dtype)
        return (weights[..., None] * seq).sum(-2)

    def init_state(self, batch: int | None = None, n_in: int | None = None) -> MeanState:
        """
        Make the empty memory.

        :param batch: number of independent streams that begin together, None for a single one
        :param n_in: width of the samples; a :class:`Sequential` passes it on
        :returns: the mean so far, (n_in,) or (batch, n_in), or with a window the samples in it,
            (window, n_in) or (batch, window, n_in), and their number
        :raises ValueError: if the width is not given
        """
        if n_in is None:
            raise ValueError(
                'MeanOverTime cannot know how wide its memory must be: give init_state n_in, or '
                'put it in a Sequential after a layer of known width'
            )
        axes = () if batch is None else (batch,)
        samples = () if self.window is None else (self.window,)
        return jnp.zeros((*axes, *samples, n_in)), jnp.zeros((), jnp.int32)

    def step(self, x: jax.Array, state: MeanState) -> tuple[jax.Array, MeanState]:
        """
        Take one sample into the mean.

        :param x: sample, shape (n,) or (batch, n)
        :param state: from :meth:`init_state` or the step before
        :returns: the mean, same shape, and the new state
        """
        x = jnp.asarray(x)
        kept, count = state
        count = jnp.minimum(count + 1, self.window or MAX_COUNT)
        if self.window is None:
            kept = mean = kept + (x - kept) / count
        else:
            newest = x[..., None, :].astype(kept.dtype)
            kept = jnp.concatenate([kept[..., 1:, :], newest], axis=-2)
            mean = kept.sum(-2) / count
        return mean.astype(x.dtype), (kept, count)


def _not_empty(seq: jax.Array, owner: Module) -> jax.Array:
    seq = jnp.asarray(seq)
    if seq.ndim < 2 or seq.shape[-2] == 0:
        raise ValueError(
            f'{type(owner).__name__} expected (T, n) or (batch, T, n) with at least one sample, '
            f'got {seq.shape}'
        )
    return seq
