"""
A memory of many arrays laid out as one, a row a joint.

Every array that goes into a compiled program or comes out of it costs about a microsecond, as much
as the arithmetic of a small network: a dozen arrays of memory go through as one.
"""

from math import prod
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

WORD_BYTES = 4


class PackedState:
    """
    Knows where each array of a memory stands in the rows of one float32 array.

    Arrays of other types stand there bit by bit, so that all come back as they were.

    :param state: a memory of one row, whose arrays lack the axis of the rows
    :ivar width: number of columns
    :raises ValueError: for an array whose numbers do not fill words of 32 bits
    """

    def __init__(self, state: Any) -> None:
        leaves, self._tree = jax.tree.flatten(state)
        self._leaves = [jax.ShapeDtypeStruct(np.shape(leaf), leaf.dtype) for leaf in leaves]
        for leaf in self._leaves:
            if leaf.dtype.itemsize % WORD_BYTES:
                raise ValueError(f'state: expected numbers of 4 or 8 bytes, got {leaf.dtype}')
        self._columns = [
            prod(leaf.shape) * leaf.dtype.itemsize // WORD_BYTES for leaf in self._leaves
        ]
        self.width = sum(self._columns)

    def pack(self, state: Any) -> jax.Array:
        """
        Lay out the memory of one row inside a compiled program.

        :param state: like the one of the constructor
        :returns: shape (width,), float32
        """
        words = [
            leaf if leaf.dtype == jnp.float32 else jax.lax.bitcast_convert_type(leaf, jnp.float32)
            for leaf in map(jnp.asarray, self._tree.flatten_up_to(state))
        ]
        return jnp.concatenate([jnp.zeros(0, jnp.float32), *[word.ravel() for word in words]])

    def unpack(self, packed: jax.Array) -> Any:
        """
        Undo :meth:`pack`.

        :param packed: shape (width,)
        :returns: the memory
        """
        leaves, at = [], 0
        for leaf, n_columns in zip(self._leaves, self._columns):
            words = packed[at : at + n_columns]
            at += n_columns
            # An array of 8 bytes a number has its words along one axis more.
            axes = (-1,) if leaf.dtype.itemsize > WORD_BYTES else ()
            words = words.reshape(*leaf.shape, *axes)
            if leaf.dtype != jnp.float32:
                words = jax.lax.bitcast_convert_type(words, leaf.dtype)
            leaves.append(words)
        return jax.tree.unflatten(self._tree, leaves)
