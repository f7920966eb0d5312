"""Starting values of weight matrices, shape (outputs, inputs)."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp

Initializer = Callable[[jax.Array, tuple[int, int]], jax.Array]


def xavier_normal(key: jax.Array, shape: tuple[int, int]) -> jax.Array:
    """
    Draw from a normal distribution that keeps the variance alike forwards and backwards.

    ``W ~ N(0, 2 / (n_in + n_out))``. Glorot and Bengio, *Understanding the difficulty of training
    deep feedforward neural networks*, AISTATS 2010, Eq. 12; the normal variant of their Eq. 16.

    :param key: random key
    :param shape: (n_out, n_in)
    :returns: matrix of that shape
    """
    return jax.random.normal(key, shape) * jnp.sqrt(2.0 / sum(shape))


def orthogonal(key: jax.Array, shape: tuple[int, int]) -> jax.Array:
    """
    Draw a matrix whose singular values are all 1, uniformly.

    ``A = Q R, W = Q sign(diag R)`` for a Gaussian A. Proposed as a start by Saxe, McClelland and
    Ganguli, *Exact solutions to the nonlinear dynamics of learning in deep linear neural
    networks*, ICLR 2014 (arXiv:1312.6120); the signs make it uniform: Mezzadri, *How to generate
    random matrices from the classical compact groups*, Notices of the AMS 54 (2007), section "A
    correct and efficient algorithm".

    :param key: random key
    :param shape: (n_out, n_in); the shorter side is orthonormal
    :returns: matrix of that shape
    """
    tall = (max(shape), min(shape))
    q, r = jnp.linalg.qr(jax.random.normal(key, tall))
    q = q * jnp.where(jnp.diagonal(r) < 0, -1.0, 1.0).astype(q.dtype)
    return q if shape[0] >= shape[1] else q.T


def scaled_identity(key: jax.Array, shape: tuple[int, int], scale: float = 1.0) -> jax.Array:
    """
    Start from a multiple of the identity, so that a recurrent layer begins as a plain memory.

    ``W = scale I``. Le, Jaitly and Hinton, *A simple way to initialize recurrent networks of
    rectified linear units*, arXiv:1504.00941 (2015), section 2; a scale below 1 forgets.

    :param key: not used
    :param shape: (n_out, n_in); cut off or padded with zeros where not square
    :param scale: diagonal element
    :returns: matrix of that shape
    """
    del key
    return jnp.eye(*shape) * scale


def zeros(key: jax.Array, shape: tuple[int, ...]) -> jax.Array:
    """
    Start from zero.

    :param key: not used
    :param shape: any
    :returns: zeros of that shape
    """
    del key
    return jnp.zeros(shape)


INITIALIZERS: dict[str, Initializer] = {
    'xavier_normal': xavier_normal,
    'orthogonal': orthogonal,
    'scaled_identity': scaled_identity,
    'zeros': zeros,
}


def get_initializer(initializer: str | Initializer) -> Initializer:
    """
    Look an initialiser up by name.

    :param initializer: a name, or a function of (key, shape), which is returned as it is
    :returns: function of (key, shape)
    :raises ValueError: if there is none of that name; lists the choices
    """
    if callable(initializer):
        return initializer
    if initializer not in INITIALIZERS:
        raise ValueError(
            f'unknown initializer {initializer!r}; choose one of {", ".join(INITIALIZERS)}'
        )
    return INITIALIZERS[initializer]
