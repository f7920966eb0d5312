"""A network with all that it takes to use it on joint states."""

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp

from seqmem_ros import nn
from seqmem_ros.core.errors import SeqmemError
from seqmem_ros.core.inputs import features
from seqmem_ros.core.inputs import lags
from seqmem_ros.core.layer_stack import kind_of_stack
from seqmem_ros.core.layer_stack import layer_stack
from seqmem_ros.core.observer import SteeredObserver
from seqmem_ros.core.spec import ModelSpec

BUILDERS = {
    'recurrent_net': nn.recurrent_net,
    'causal_transformer': nn.causal_transformer,
    'layer_stack': layer_stack,
}
# A file may ask for any size; nobody streams through more than this.
LARGEST_SIZE = 16384
MOST_LAYERS = 64


class SequenceModel:
    """
    Network, inputs, outputs and their meaning.

    :param spec: what the network is and means
    :param network: the network itself; see :func:`build_network`
    """

    def __init__(self, spec: ModelSpec, network: nn.Module) -> None:
        self.spec = spec
        self.network = network

    @property
    def kind(self) -> str:
        """Its cell (``rnn``, ``gru``, ``lstm``) or ``attention``: what ``model`` asks for."""
        return kind_of(self.spec.network)

    def init_state(self) -> Any:
        """
        Make the empty memory of one stream.

        :returns: state for :meth:`step`
        :raises SeqmemError: if the network needs samples yet to come, or a memory without end
        """
        reason = self.network.why_not_streaming()
        state = None if reason else self._streamed().init_state()
        if any(leaf.size == 0 for leaf in jax.tree.leaves(state)):
            reason = 'its attention has no window and would keep every sample since the start'
        if reason:
            raise SeqmemError(
                f"the network cannot go on from sample to sample: {reason}; set memory to 'window'"
            )
        return state

    def step(self, raw: jax.Array, state: Any) -> tuple[jax.Array, Any]:
        """
        Advance by one sample.

        :param raw: see :func:`seqmem_ros.core.inputs.raw_inputs`; shape (N_RAW,), or
            (J, N_RAW) for a model over named joints
        :param state: from :meth:`init_state` or the step before
        :returns: velocity in rad/s, shape () or (J,), or logits of the labels, shape (L,); and
            the new state
        """
        outputs, state = self._streamed().step(self._inputs(raw), state)
        return self._outputs(outputs), state

    def forward(self, raw: jax.Array) -> jax.Array:
        """
        Run over a whole sequence from the empty memory.

        :param raw: shape (T, N_RAW) or (T, J, N_RAW)
        :returns: shape (T,), (T, J) or (T, L); T is 1 for a network that gives one output for
            the whole sequence
        """
        network = self._streamed()
        outputs = self._outputs(network.forward(self._inputs(raw)))
        return outputs[None] if network.collapses_time else outputs

    def _streamed(self) -> nn.Module:
        if self.spec.readout == 'observer':
            return SteeredObserver(self.network, len(self.spec.labels))
        return self.network

    def _inputs(self, raw: jax.Array) -> jax.Array:
        spec = self.spec
        if spec.readout == 'observer':
            return lags(raw)
        x = features(raw, spec.features)
        if spec.joints:
            x = x.reshape(*x.shape[:-2], -1)  # (..., J, F) -> (..., J F)
        if spec.input_mean:
            x = x - jnp.array(spec.input_mean)
        if spec.input_scale:
            x = x / jnp.array(spec.input_scale)
        return x

    def _outputs(self, y: jax.Array) -> jax.Array:
        spec = self.spec
        if spec.readout == 'observer':
            return y[..., 1:] if spec.labels else y[..., 0]
        if spec.labels:
            return y
        y = y * spec.output_scale + spec.output_mean
        return y if spec.joints else y[..., 0]


def build_network(network: Mapping[str, Any], key: jax.Array) -> nn.Module:
    """
    Build the network that a spec describes, with fresh weights.

    :param network: ``builder`` and its arguments
    :param key: random key for the initial weights
    :returns: the network
    :raises SeqmemError: if there is no such builder, or its arguments are wrong
    """
    arguments = dict(network)
    builder = arguments.pop('builder', None)
    if not isinstance(builder, str) or builder not in BUILDERS:
        raise SeqmemError(
            f"network: expected a builder out of {', '.join(BUILDERS)}, got '{builder}'"
        )
    for name, value in arguments.items():
        most = MOST_LAYERS if name in ('n_layers', 'depth') else LARGEST_SIZE
        if isinstance(value, (int, float)) and not 0 <= value <= most:
            raise SeqmemError(f'network: expected {name} from 0 to {most}, got {value}')
    try:
        return BUILDERS[builder](key=key, **arguments)
    # Whatever a file may ask of a constructor, it is the file that is at fault.
    except Exception as error:
        raise SeqmemError(f'network: {builder} does not take {arguments}: {error}') from error


def kind_of(network: Mapping[str, Any]) -> str:
    """
    Name a network as a user does.

    :param network: ``builder`` and its arguments
    :returns: ``rnn``, ``gru``, ``lstm`` or ``attention``; ``dense`` without memory
    """
    if network['builder'] == 'layer_stack':
        return kind_of_stack(network['layers'])
    if network['builder'] == 'causal_transformer':
        return 'attention'
    return network.get('cell', 'lstm')  # as recurrent_net has it
