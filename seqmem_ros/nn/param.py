"""A weight array that can be set."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax.tree_util import GetAttrKey
from jax.tree_util import register_pytree_with_keys


class Param:
    """
    One weight array of a layer, settable through :attr:`value`.

    :param value: initial value, any shape
    """

    def __init__(self, value: Any):
        self._value = jnp.asarray(value)

    @property
    def value(self) -> jax.Array:
        """
        The array itself.

        A new value must have the old one's shape; a single number fills the parameter. Arrays of
        floats keep their type, everything else takes the old one's. A function compiled before,
        which closed over the module (``jax.jit(layer.step)``), keeps the value it was traced
        with.

        :raises ValueError: if a new value has another shape
        """
        return self._value

    @value.setter
    def value(self, value: Any) -> None:
        own_dtype = getattr(value, 'dtype', None)
        is_float = own_dtype is not None and jnp.issubdtype(own_dtype, jnp.floating)
        value = jnp.asarray(value, None if is_float else self.dtype)
        if value.ndim == 0 or value.size == 1 == self._value.size:
            value = jnp.broadcast_to(value.reshape(()), self.shape)
        if value.shape != self.shape:
            raise ValueError(
                f'parameter has shape {self.shape}, new value has {value.shape}; '
                'matrices are (outputs, inputs), transpose if yours are the other way'
            )
        self._value = value

    @property
    def shape(self) -> tuple[int, ...]:
        return self._value.shape

    @property
    def dtype(self) -> Any:
        return self._value.dtype

    def __repr__(self) -> str:
        return f'Param(shape={self.shape}, dtype={self.dtype})'


def _unflatten_param(_: None, children: tuple[Any]) -> Param:
    # JAX also puts placeholders here (None, shapes, flags): no conversion, no check.
    param = object.__new__(Param)
    param._value = children[0]
    return param


register_pytree_with_keys(
    Param,
    lambda param: (((GetAttrKey('value'), param._value),), None),
    _unflatten_param,
    lambda param: ((param._value,), None),
)
