"""What a network, and each layer in it, is fed with along a recording."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from seqmem_ros.core.model import SequenceModel
from seqmem_ros.nn import Bidirectional
from seqmem_ros.nn import Module
from seqmem_ros.nn import Residual
from seqmem_ros.nn import Sequential
from seqmem_ros.nn.recurrent_layer import RecurrentLayer


class _Tap:
    """A network that notes what it is given."""

    def __init__(self, network: Module) -> None:
        self._network = network
        self.collapses_time = network.collapses_time
        self.seen: Any = None

    def init_state(self, *args: Any, **options: Any) -> Any:
        return self._network.init_state(*args, **options)

    def step(self, x: jax.Array, state: Any) -> tuple[jax.Array, Any]:
        self.seen = x
        return self._network.step(x, state)

    def forward(self, seq: jax.Array, rng_key: jax.Array | None = None) -> jax.Array:
        self.seen = seq
        return self._network.forward(seq, rng_key)


def network_inputs(model: SequenceModel, raw: np.ndarray) -> np.ndarray:
    """
    Run a model and keep what its network reads.

    With the readout ``observer`` the network reads what the tracking filter knows, which depends
    on the gains that the network chose before: there is no way to them but to run the model.

    :param model: the model
    :param raw: see :func:`seqmem_ros.core.inputs.raw_inputs`; shape (T, N_RAW), or
        (T, J, N_RAW) for a model over named joints
    :returns: inputs of the network, dimensionless, shape (T, n_in)
    """
    raw = jnp.asarray(raw, jnp.float32)
    if model.spec.readout == 'direct':
        tap = _Tap(model.network)
        SequenceModel(model.spec, tap).forward(raw)
        return np.asarray(tap.seen)

    def advance(state: Any, raw: jax.Array) -> tuple[Any, jax.Array]:
        tap = _Tap(model.network)
        _, state = SequenceModel(model.spec, tap).step(raw, state)
        return state, tap.seen

    return np.asarray(jax.jit(lambda raw: jax.lax.scan(advance, model.init_state(), raw)[1])(raw))


def recurrent_layers(
    layer: Module, seq: jax.Array, path: str = ''
) -> Iterator[tuple[str, RecurrentLayer, np.ndarray]]:
    """
    Find the recurrent layers of a network and what each is fed with.

    :param layer: a layer or network
    :param seq: its inputs, shape (T, n_in)
    :param path: path of ``layer`` itself
    :returns: path, layer and its inputs, shape (T, n), in the order in which it reads them: the
        backward half of a bidirectional layer reads from the end
    """
    start = f'{path}.' if path else ''
    if isinstance(layer, RecurrentLayer):
        yield path, layer, np.asarray(seq)
    elif isinstance(layer, Residual):
        yield from recurrent_layers(layer.layer, seq, f'{start}layer')
    elif isinstance(layer, Bidirectional):
        yield from recurrent_layers(layer.layer_fwd, seq, f'{start}layer_fwd')
        yield from recurrent_layers(layer.layer_bwd, jnp.flip(seq, -2), f'{start}layer_bwd')
    elif isinstance(layer, Sequential):
        for index, inner in enumerate(layer.layers):
            yield from recurrent_layers(inner, seq, f'{start}layers.{index}')
            seq = inner.forward(seq)
