"""
Modules: objects to read, pytrees to compute with.

A module is an ordinary object whose weights are :class:`Param` attributes, and at the same time a
JAX pytree whose leaves are the arrays in them, so that ``jax.jit``, ``jax.grad``, ``jax.vmap`` and
optax take a whole network as they take an array.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax.tree_util import GetAttrKey
from jax.tree_util import register_pytree_with_keys

from seqmem_ros.nn.padding import zero_padding
from seqmem_ros.nn.param import Param

__all__ = ['Module', 'Param']


class Module:
    """
    Base of all layers and networks.

    Attributes that are a :class:`Param`, a :class:`Module` or a list or tuple of them are the
    module's children; every other attribute is static, part of what a compiled function depends
    on, and must be hashable. A subclass needs no registration. A module used in two places of a
    network counts as two once JAX has copied it: weights are not shared.

    The protocol that every layer keeps, T the number of samples:

    - ``forward(seq, rng_key=None)``: a whole sequence, (T, n_in) or (batch, T, n_in), from the
      empty memory. Dropout acts only where ``rng_key`` is given.
    - ``init_state(batch=None)`` and ``step(x, state) -> (y, state)``: one sample, (n_in,) or
      (batch, n_in), and the memory so far. The output of a step is what ``forward`` gives for the
      last sample of all the samples so far.
    - ``why_not_streaming()``: None, or the reason why there can be no ``step``.
    """

    # True for layers that give one vector for a sequence.
    collapses_time = False

    def __init_subclass__(cls, **kwargs: Any):
        super().__init_subclass__(**kwargs)
        register_pytree_with_keys(
            cls,
            _flatten_module_with_keys,
            lambda static, children: _unflatten_module(cls, static, children),
            _flatten_module,
        )

    def __setattr__(self, name: str, value: Any) -> None:
        if not _is_child(value):
            try:
                hash(value)
            except TypeError:
                raise ValueError(
                    f'{type(self).__name__}.{name} is a {type(value).__name__}, which cannot be '
                    'static; set .value of a Param, or wrap the array in a new one'
                ) from None
        object.__setattr__(self, name, value)

    def params(self) -> list[Param]:
        """
        List the parameters in the order of construction.

        :returns: the :class:`Param` objects themselves, so that setting ``.value`` acts on the
            module
        """
        return list(self.named_params().values())

    def named_params(self) -> dict[str, Param]:
        """
        List the parameters under dotted paths such as ``layers.0.W_r``, as weights files do.

        :returns: parameters by path, in the order of construction
        """
        named: dict[str, Param] = {}
        for name, child in vars(self).items():
            if _is_child(child):
                _collect(name, child, named)
        return named

    def load_params(self, values: dict[str, Any]) -> None:
        """
        Set every parameter from arrays by path, the inverse of :meth:`named_params`.

        :param values: one array for each path, of the parameter's shape
        :raises ValueError: if a path is missing or unknown, or a shape differs; then nothing is
            set
        """
        named = self.named_params()
        missing = [path for path in named if path not in values]
        unknown = [path for path in values if path not in named]
        if missing or unknown:
            raise ValueError(
                f'weights do not fit the network: missing {missing}, not in it {unknown}'
            )
        for path, param in named.items():
            if jnp.shape(values[path]) != param.shape:
                raise ValueError(
                    f'weights do not fit the network: {path} has shape {param.shape}, '
                    f'the given array {jnp.shape(values[path])}'
                )
        for path, param in named.items():
            param.value = values[path]

    @property
    def dtype(self) -> Any:
        """Type of the parameters; the default float type where there are none."""
        params = self.params()
        return params[0].dtype if params else jnp.zeros(()).dtype

    def width_after(self, n_in: int | None) -> int | None:
        """
        Tell the width of the output.

        :param n_in: width of the input, None if unknown
        :returns: width of the output, None if unknown
        """
        return n_in

    def why_not_streaming(self) -> str | None:
        """
        Tell why the module cannot take one sample at a time.

        :returns: None if it can, else the reason, fit to follow the name of the layer
        """
        return None

    def require_streaming(self) -> None:
        """
        Refuse a module that cannot take one sample at a time.

        :raises ValueError: with the layer and the reason
        """
        reason = self.why_not_streaming()
        if reason is not None:
            name = type(self).__name__
            raise ValueError(f'{name} cannot stream: {reason}. Use forward on whole sequences.')

    def forward(self, seq: jax.Array, rng_key: jax.Array | None = None) -> jax.Array:
        """
        Run a whole sequence from the empty memory; every layer has its own.

        :param seq: shape (T, n_in) or (batch, T, n_in)
        :param rng_key: random key of the dropout; None for no dropout
        :returns: one output for each sample, (T, n_out) or (batch, T, n_out), or where
            ``collapses_time`` one for the sequence, (n_out,) or (batch, n_out)
        """
        raise NotImplementedError(f'{type(self).__name__} has no forward of its own')

    def forward_padded(
        self, seq: jax.Array, lengths: jax.Array, rng_key: jax.Array | None = None
    ) -> jax.Array:
        """
        Run sequences of unequal length, padded at the end; see :mod:`seqmem_ros.nn.ragged`.

        Here for layers whose outputs do not depend on later samples.

        :param seq: shape (T, n_in) or (batch, T, n_in); what the padding holds does not matter
        :param lengths: samples that count, shape () or (batch,), each 1 to T
        :param rng_key: random key of the dropout; None for no dropout
        :returns: as from ``forward``, zero in the padding
        """
        seq, _ = zero_padding(seq, lengths)
        return zero_padding(self.forward(seq, rng_key), lengths)[0]

    def init_state(self, batch: int | None = None, n_in: int | None = None) -> Any:
        """
        Make the empty memory; a layer without one has ``()``.

        :param batch: number of independent streams, None for a single one without that axis
        :param n_in: width of the samples, for layers that were not told it at construction
        :returns: state for :meth:`step`
        :raises ValueError: if the module cannot stream
        """
        self.require_streaming()
        return ()

    def step(self, x: jax.Array, state: Any) -> tuple[jax.Array, Any]:
        """
        Take one sample; here, for layers without memory, the same as ``forward`` on it.

        :param x: sample, shape (n_in,) or (batch, n_in)
        :param state: from :meth:`init_state` or the step before
        :returns: output, shape (n_out,) or (batch, n_out), and the new state
        :raises ValueError: if the module cannot stream
        """
        self.require_streaming()
        return self.forward(x), state

    def __repr__(self) -> str:
        hidden = (Param, type(None))
        shown = (f'{k}={v!r}' for k, v in vars(self).items() if not isinstance(v, hidden))
        return f'{type(self).__name__}({", ".join(shown)})'


def _is_child(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return any(_is_child(item) for item in value)
    return isinstance(value, (Param, Module))


def _collect(path: str, child: Any, named: dict[str, Param]) -> None:
    if isinstance(child, Param):
        named[path] = child
    elif isinstance(child, Module):
        named.update({f'{path}.{name}': p for name, p in child.named_params().items()})
    else:
        for index, item in enumerate(child):
            _collect(f'{path}.{index}', item, named)


def _flatten_module(module: Module) -> tuple[tuple[Any, ...], Any]:
    # The names of all attributes are kept in order, so that a copy lists its parameters alike.
    names = tuple(vars(module))
    children = {name: value for name, value in vars(module).items() if _is_child(value)}
    static = tuple((n, v) for n, v in vars(module).items() if n not in children)
    return tuple(children.values()), (names, tuple(children), static)


def _flatten_module_with_keys(module: Module) -> tuple[tuple[Any, ...], Any]:
    children, aux = _flatten_module(module)
    return tuple((GetAttrKey(n), child) for n, child in zip(aux[1], children)), aux


def _unflatten_module(cls: type[Module], aux: Any, children: tuple[Any, ...]) -> Module:
    names, child_names, static = aux
    values = {**dict(static), **dict(zip(child_names, children))}
    module = object.__new__(cls)
    module.__dict__.update((name, values[name]) for name in names)
    return module
