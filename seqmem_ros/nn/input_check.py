"""Inputs of the wrong shape, refused with what was expected."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from seqmem_ros.nn.module import Module

# Shapes by number of axes; none listed means that any number will do.
_FORMS = {
    'sample': {1: '({n},)', 2: '(batch, {n})'},
    'sequence': {2: '(time, {n})', 3: '(batch, time, {n})'},
    'any': {},
}


def check_input(x: Any, n_in: int, owner: Module, form: str = 'any') -> jax.Array:
    """
    Refuse an input of the wrong shape and convert it to the type of the layer's weights.

    :param x: input, the last axis its features
    :param n_in: expected width
    :param owner: layer named in the error
    :param form: ``sample``, (n_in,) or (batch, n_in); ``sequence``, (T, n_in) or
        (batch, T, n_in); ``any``, (..., n_in)
    :returns: ``x`` in the type of the owner's parameters, where it has any
    :raises ValueError: with the expected and the given shape
    """
    params = owner.params()
    x = jnp.asarray(x, params[0].dtype if params else None)
    forms = _FORMS[form]
    if x.ndim == 0 or x.shape[-1] != n_in or (forms and x.ndim not in forms):
        shapes = ' or '.join(forms.values()) or '(..., {n})'
        raise ValueError(
            f'{type(owner).__name__} expected input of width {n_in}, shape '
            f'{shapes.format(n=n_in)}; got {x.shape}'
        )
    return x
