"""Layers without memory that act on each sample alone."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp

from seqmem_ros.nn.initializers import get_initializer
from seqmem_ros.nn.initializers import Initializer
from seqmem_ros.nn.input_check import check_input
from seqmem_ros.nn.module import Module
from seqmem_ros.nn.module import Param

ACTIVATIONS: dict[str, Callable[[jax.Array], jax.Array]] = {
    'tanh': jnp.tanh,
    'relu': jax.nn.relu,
    'gelu': lambda x: jax.nn.gelu(x, approximate=False),
    'sigmoid': jax.nn.sigmoid,
}


def check_activation(name: str, choices: tuple[str, ...] = tuple(ACTIVATIONS)) -> str:
    """
    Refuse an activation that does not exist.

    :param name: of the activation
    :param choices: names to choose from
    :returns: the name
    :raises ValueError: lists the choices
    """
    if name not in choices:
        raise ValueError(f'unknown activation {name!r}; choose one of {", ".join(choices)}')
    return name


def normalise(x: jax.Array, eps: float) -> jax.Array:
    """
    Bring the last axis to mean 0 and variance 1.

    ``(x - mean) / sqrt(var + eps)`` with the biased variance. Ba, Kiros and Hinton, *Layer
    normalization*, arXiv:1607.06450 (2016), Eq. 3.

    :param x: any shape (..., n)
    :param eps: keeps the root away from zero, in the squared unit of ``x``
    :returns: the same shape, dimensionless
    """
    centred = x - x.mean(-1, keepdims=True)
    return centred * jax.lax.rsqrt((centred**2).mean(-1, keepdims=True) + eps)


class Dense(Module):
    """
    A linear map of each sample, with an optional activation.

    ``y = f(W x + b)``; W has shape (n_out, n_in), b (n_out,). Rumelhart, Hinton and Williams,
    *Learning representations by back-propagating errors*, Nature 323 (1986), p. 533, Eqs. 1 and 2;
    f there is the logistic function, here any or none. ``gelu`` is x Phi(x), Phi the normal
    distribution function (Hendrycks and Gimpel, arXiv:1606.08415, section 2).

    :param n_in: width of the input
    :param n_out: width of the output
    :param key: random key
    :param activation: None, ``tanh``, ``relu``, ``gelu`` or ``sigmoid``
    :param bias: False for ``y = f(W x)``
    :param initializer: name or function, for W; b starts at zero
    :raises ValueError: for an unknown activation or initialiser
    """

    def __init__(
        self,
        n_in: int,
        n_out: int,
        key: jax.Array,
        *,
        activation: str | None = None,
        bias: bool = True,
        initializer: str | Initializer = 'xavier_normal',
    ):
        self.n_in = n_in
        self.n_out = n_out
        self.activation = None if activation is None else check_activation(activation)
        self.W = Param(get_initializer(initializer)(key, (n_out, n_in)))
        self.b = Param(jnp.zeros(n_out)) if bias else None

    def width_after(self, n_in: int | None) -> int:
        return self.n_out

    def forward(self, seq: jax.Array, rng_key: jax.Array | None = None) -> jax.Array:
        """
        Map every sample.

        :param seq: any shape (..., n_in)
        :param rng_key: not used
        :returns: shape (..., n_out)
        :raises ValueError: if the width is not n_in
        """
        y = check_input(seq, self.n_in, self) @ self.W.value.T
        if self.b is not None:
            y = y + self.b.value
        return y if self.activation is None else ACTIVATIONS[self.activation](y)


class LayerNorm(Module):
    """
    Normalise each sample over its features, then scale and shift.

    ``y = g (x - mean) / sqrt(var + eps) + b``. Ba, Kiros and Hinton, *Layer normalization*,
    arXiv:1607.06450 (2016), Eqs. 3 and 4, with eps inside the root as in PyTorch.

    :param n_in: width; g starts at 1 and b at 0, both of shape (n_in,)
    :param eps: added to the variance
    """

    def __init__(self, n_in: int, eps: float = 1e-5):
        self.n_in = n_in
        self.eps = eps
        self.g = Param(jnp.ones(n_in))
        self.b = Param(jnp.zeros(n_in))

    def forward(self, seq: jax.Array, rng_key: jax.Array | None = None) -> jax.Array:
        """
        Normalise every sample.

        :param seq: any shape (..., n_in)
        :param rng_key: not used
        :returns: the same shape
        :raises ValueError: if the width is not n_in
        """
        x = check_input(seq, self.n_in, self)
        return normalise(x, self.eps) * self.g.value + self.b.value


class Dropout(Module):
    """
    Set random elements to zero while training.

    ``y = m x / (1 - rate)``, m Bernoulli(1 - rate). Srivastava et al., *Dropout*, JMLR 15 (2014),
    section 4; scaled while training (their section 10), so that nothing changes afterwards. It
    acts only where ``forward`` is given a key, never in ``step``.

    :param rate: share of elements set to zero, 0 <= rate < 1
    :raises ValueError: for a rate outside of that
    """

    def __init__(self, rate: float):
        if not 0 <= rate < 1:
            raise ValueError(f'dropout rate must be at least 0 and below 1, got {rate}')
        self.rate = rate

    def forward(self, seq: jax.Array, rng_key: jax.Array | None = None) -> jax.Array:
        """
        Drop elements where a key is given.

        :param seq: any shape
        :param rng_key: random key; None leaves everything as it is
        :returns: the same shape
        """
        if rng_key is None or self.rate == 0:
            return seq
        keep = jax.random.bernoulli(rng_key, 1 - self.rate, seq.shape)
        return jnp.where(keep, seq / (1 - self.rate), jnp.zeros_like(seq))
