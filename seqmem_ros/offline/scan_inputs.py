"""
What a network reads at many steps, in as few numbers as say all.

The vector that a step takes (:mod:`seqmem_ros.core.inputs`) has 13 numbers a joint; most of them
are times, which all joints of a message share, or fields that the network does not look at. They
are laid out in full within the compiled program.
"""

import jax
import jax.numpy as jnp
import numpy as np

from seqmem_ros.core.inputs import N_LAGS
from seqmem_ros.core.inputs import N_RAW
from seqmem_ros.core.joints import FIELDS
from seqmem_ros.core.joints import NANOSECONDS_PER_SECOND
from seqmem_ros.offline.fast_steps import Steps

Inputs = dict[str, np.ndarray]


def scan_inputs(steps: Steps, lags_alone: bool) -> Inputs:
    """
    Compute the inputs of steps.

    :param steps: n steps of R rows
    :param lags_alone: whether the network reads differences and times alone
    :returns: arrays of shape (n, R, ...); times of shape (n, 1, N_LAGS) if all rows have the same
    """
    stamps, position = steps.windows['stamp_ns'], steps.windows['position']
    if stamps.strides[1] == 0:
        stamps = stamps[:, :1]
    elapsed_s = (stamps[..., -1:] - stamps[..., -2::-1]) / NANOSECONDS_PER_SECOND
    inputs = {
        'difference': (position[..., -1:] - position[..., -2::-1]).astype(np.float32),
        'elapsed_s': elapsed_s.astype(np.float32),
        # 1 for rows that get a sample, 2 for those whose memory starts with it.
        'advance': (steps.advance * (1 + (steps.count == 1))).astype(np.int8),
    }
    for name in () if lags_alone else FIELDS:
        if name in steps.windows:
            inputs[name] = steps.windows[name][..., -1].astype(np.float32)
    return inputs


def laid_out(inputs: Inputs) -> jax.Array:
    """
    Lay out inputs as a step takes them; part of a compiled program.

    :param inputs: from :func:`scan_inputs`, with any axes before those of the rows
    :returns: see :func:`seqmem_ros.core.inputs.step_inputs`, shape (..., R, N_RAW + 2)
    """
    advance = inputs['advance']
    shape = advance.shape
    zero = jnp.zeros(shape, jnp.float32)
    parts = [
        jnp.stack([inputs.get(name, zero) for name in FIELDS], axis=-1),
        inputs['difference'],
        jnp.broadcast_to(inputs['elapsed_s'], (*shape, N_LAGS)),
        jnp.stack([advance > 0, advance > 1], axis=-1),
    ]
    return jnp.concatenate(parts, axis=-1).reshape(*shape, N_RAW + 2)
