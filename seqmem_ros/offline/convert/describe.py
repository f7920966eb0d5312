"""What a file of weights does not say: what the inputs and outputs are on the robot."""

from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import field
from typing import Any

import numpy as np

from seqmem_ros.core.errors import SeqmemError
from seqmem_ros.core.inputs import FEATURES
from seqmem_ros.core.model import SequenceModel
from seqmem_ros.core.spec import ModelSpec
from seqmem_ros.core.spec import TASKS
from seqmem_ros.nn import Bidirectional
from seqmem_ros.nn import Module
from seqmem_ros.nn import MultiHeadSelfAttention
from seqmem_ros.nn import Sequential
from seqmem_ros.nn import TransformerBlock
from seqmem_ros.offline.convert.pieces import linear_piece
from seqmem_ros.offline.convert.pieces import network_of
from seqmem_ros.offline.convert.pieces import Piece
from seqmem_ros.offline.convert.pieces import width_given
from seqmem_ros.offline.convert.pieces import width_read
from seqmem_ros.offline.convert.plan import Converted

INPUT_ORDERS = ('feature', 'joint')


@dataclass(frozen=True)
class Meaning:
    """
    What a network reads and what its outputs mean.

    :param task: ``velocity``: an output a joint, in rad/s once scaled; ``label``: one a class
    :param features: names out of :data:`seqmem_ros.core.inputs.FEATURES`
    :param joints: names in the order of the training data; empty: the network was trained on one
        joint at a time and is shared by all
    :param labels: names of the classes in the order of the outputs
    :param input_order: ``feature``: all joints' first feature, then all joints' second one, as
        from concatenating arrays; ``joint``: all features of the first joint, then of the second
    :param input_mean: subtracted from the inputs, in the network's order; one value serves all;
        empty for 0
    :param input_scale: divides them thereafter; empty for 1
    :param output_mean: added to the outputs, after scaling; one value serves all; empty for 0
    :param output_scale: multiplies the outputs; empty for 1
    :param rate_hz: lowest and highest rate of the training data; (0, 0) if unknown
    :param card: further facts for people
    """

    task: str = 'velocity'
    features: tuple[str, ...] = ('position',)
    joints: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    input_order: str = 'feature'
    input_mean: tuple[float, ...] = ()
    input_scale: tuple[float, ...] = ()
    output_mean: tuple[float, ...] = ()
    output_scale: tuple[float, ...] = ()
    rate_hz: tuple[float, float] = (0.0, 0.0)
    card: Mapping[str, Any] = field(default_factory=dict)


def make_model(converted: Converted, meaning: Meaning) -> SequenceModel:
    """
    Give a converted network its meaning.

    Weights stay as they are, to the bit: another order of inputs becomes a layer before them, a
    scale of its own for each output one behind them.

    :param converted: the layers
    :param meaning: what the inputs and outputs are
    :returns: the model, ready for :func:`seqmem_ros.core.weights.save_model`
    :raises SeqmemError: if the meaning does not fit the widths of the network
    """
    _check(meaning, converted)
    before, mean, scale = _inputs(meaning)
    after, output_mean, output_scale = _outputs(meaning)
    n_in, n_out = _n_in(meaning), _n_out(meaning)
    network, built = network_of([*before, *converted.pieces, *after], n_in, n_out)
    origins = [None] * len(before) + converted.origins + [None] * len(after)
    spec = ModelSpec(
        task=meaning.task,
        network=network,
        readout='direct',
        features=meaning.features,
        joints=meaning.joints,
        labels=meaning.labels,
        input_mean=mean,
        input_scale=scale,
        output_mean=output_mean,
        output_scale=output_scale,
        nominal_rate_hz=meaning.rate_hz,
        card={**meaning.card, 'modules': origins},
    )
    return SequenceModel(spec, built)


def reach_of(network: Sequential) -> str:
    """
    Say in words how the network can run on a robot.

    :param network: converted
    :returns: one sentence
    """
    reason = network.why_not_streaming()
    if reason is not None:
        return f'cannot go on from sample to sample ({reason}): runs with memory: window only'
    growing = [layer for layer in _attention_layers(network) if layer.window is None]
    if growing:
        return (
            'its attention keeps every sample since the start, and compiles anew with each: give '
            'it window=W'
        )
    return 'goes on from sample to sample (memory: persistent)'


def _attention_layers(module: Module) -> list[MultiHeadSelfAttention]:
    if isinstance(module, MultiHeadSelfAttention):
        return [module]
    if isinstance(module, TransformerBlock):
        return [module.attention]
    if isinstance(module, Bidirectional):
        return []
    layers = module.layers if isinstance(module, Sequential) else ()
    return [found for layer in layers for found in _attention_layers(layer)]


def _check(meaning: Meaning, converted: Converted) -> None:
    _expect_one_of('task', meaning.task, TASKS)
    _expect_one_of('input_order', meaning.input_order, INPUT_ORDERS)
    for name in meaning.features:
        _expect_one_of('features', name, tuple(FEATURES))
    if converted.softmax and meaning.task != 'label':
        raise SeqmemError(
            "task: expected 'label' for a network that ends with a softmax, got "
            f"'{meaning.task}'; name its classes with --labels"
        )
    if meaning.task == 'label' and not meaning.labels:
        raise SeqmemError('labels: expected the names of the classes in order, got none')
    got, expected = width_read(converted.pieces), _n_in(meaning)
    if got != expected:
        raise SeqmemError(
            f'the network reads {got} inputs, but {len(meaning.joints) or "one of any"} joint(s) '
            f'with the features {", ".join(meaning.features)} make {expected}: name the joints '
            f'that it was trained on with --joints, and what it read of each with --features'
        )
    got, expected = width_given(converted.pieces), _n_out(meaning)
    if got != expected:
        unit = 'label' if meaning.task == 'label' else 'joint'
        raise SeqmemError(
            f'the network gives {got} outputs, expected {expected}, one a {unit}: check '
            f'--{unit}s and --task'
        )


def _expect_one_of(name: str, value: str, choices: Sequence[str]) -> None:
    if value not in choices:
        raise SeqmemError(f"{name}: expected one of {', '.join(choices)}, got '{value}'")


def _n_in(meaning: Meaning) -> int:
    return (len(meaning.joints) or 1) * sum(FEATURES[name] for name in meaning.features)


def _n_out(meaning: Meaning) -> int:
    return len(meaning.labels) or len(meaning.joints) or 1


def _inputs(
    meaning: Meaning,
) -> tuple[list[Piece], tuple[float, ...], tuple[float, ...]]:
    """Find the layer that puts inputs into the network's order, and mean and scale before it."""
    n_in = _n_in(meaning)
    mean = _values('input_mean', meaning.input_mean, n_in)
    scale = _values('input_scale', meaning.input_scale, n_in)
    if not (scale > 0).all():
        raise SeqmemError(f'input_scale: expected numbers above 0, got {scale.min()}')
    order = _joint_major(meaning) if meaning.input_order == 'feature' else np.arange(n_in)
    # Column order[i] of what the node computes is input i of the network.
    before = [] if (order == np.arange(n_in)).all() else [linear_piece(np.eye(n_in)[order], None)]
    given = [np.empty(n_in), np.empty(n_in)]
    given[0][order], given[1][order] = mean, scale
    return (
        [_single(piece) for piece in before],
        tuple(given[0]) if meaning.input_mean else (),
        tuple(given[1]) if meaning.input_scale else (),
    )


def _joint_major(meaning: Meaning) -> np.ndarray:
    """Find where each input of a network with ``feature`` order stands in ``joint`` order."""
    widths = [FEATURES[name] for name in meaning.features]
    starts = np.cumsum([0, *widths[:-1]])
    n_joints = len(meaning.joints) or 1
    return np.concatenate(
        [
            joint * sum(widths) + start + np.arange(width)
            for start, width in zip(starts, widths)
            for joint in range(n_joints)
        ]
    )


def _outputs(meaning: Meaning) -> tuple[list[Piece], float, float]:
    """Find the layer that scales each output by its own, or one mean and scale for all."""
    if meaning.task == 'label':
        if meaning.output_mean or meaning.output_scale:
            raise SeqmemError('output_mean, output_scale: expected none for labels')
        return [], 0.0, 1.0
    n_out = _n_out(meaning)
    mean = _values('output_mean', meaning.output_mean, n_out)
    scale = _values('output_scale', meaning.output_scale or (1.0,), n_out)
    if len({*mean}) == len({*scale}) == 1:
        return [], float(mean[0]), float(scale[0])
    return [_single(linear_piece(np.diag(scale), mean))], 0.0, 1.0


def _values(name: str, values: Sequence[float], n: int) -> np.ndarray:
    if len(values) not in (0, 1, n):
        raise SeqmemError(f'{name}: expected 1 or {n} numbers, got {len(values)}')
    default = 1.0 if name.endswith('scale') else 0.0
    return np.broadcast_to(np.asarray(values or (default,), float), (n,)).copy()


def _single(piece: Piece) -> Piece:
    return Piece(piece.description, {n: v.astype(np.float32) for n, v in piece.params.items()})
