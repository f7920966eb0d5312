"""
What a network may be fed with, computed from one raw vector for each joint and sample.

The raw vector is made once in NumPy from the windows; all that follows is compiled with the
network, so training, replay and the robot share it.
"""

import jax
import jax.numpy as jnp
import numpy as np

from seqmem_ros.core.joints import FIELDS
from seqmem_ros.core.window import JointWindows

N_LAGS = 4
# position, velocity, effort, differences over lags 1 to 4, the times that they took
N_RAW = 3 + 2 * N_LAGS
DIFFERENCES = slice(3, 3 + N_LAGS)
ELAPSED = slice(3 + N_LAGS, N_RAW)
SHORTEST_STEP_S = 1e-6

# Name -> number of columns.
FEATURES = {
    'position': 1,
    'velocity': 1,
    'effort': 1,
    'difference': 1,
    'lag_velocity': N_LAGS,
    'step_s': 1,
}


def raw_inputs(windows: JointWindows) -> np.ndarray:
    """
    Lay out the newest sample of every row for the compiled step.

    :param windows: windows of 5 samples
    :returns: shape (capacity, N_RAW), float32
    """
    raw = np.empty((windows.capacity, N_RAW), dtype=np.float32)
    _fill(raw, windows, FIELDS)
    raw[:, ELAPSED] = windows.elapsed_s()
    return raw


def step_inputs(
    windows: JointWindows, advance: np.ndarray, fields: tuple[str, ...] = FIELDS
) -> np.ndarray:
    """
    Lay out what one step takes, as one array, since each array costs time of its own.

    :param windows: windows of 5 samples
    :param advance: rows that got a sample, bool, shape (capacity,)
    :param fields: what the network reads of them; the columns of others are zero
    :returns: :func:`raw_inputs`, then 1 for rows that got a sample, then 1 for rows whose memory
        starts with it, shape (capacity, N_RAW + 2), float32; without a meaning in other rows
    """
    inputs = np.zeros((windows.capacity, N_RAW + 2), dtype=np.float32)
    _fill(inputs, windows, fields)
    inputs[:, N_RAW] = advance
    if windows.routine_elapsed_s is not None:
        inputs[:, ELAPSED] = windows.routine_elapsed_s
        return inputs
    inputs[:, ELAPSED] = windows.elapsed_s()
    inputs[:, N_RAW + 1] = windows.count == 1
    return inputs


def _fill(raw: np.ndarray, windows: JointWindows, fields: tuple[str, ...]) -> None:
    for field in fields:
        raw[:, FIELDS.index(field)] = getattr(windows, field)[:, -1]
    raw[:, DIFFERENCES] = windows.differences()


def lags(raw: jax.Array) -> jax.Array:
    """
    Select what :class:`~seqmem_ros.core.observer.SteeredObserver` reads.

    :param raw: shape (..., N_RAW)
    :returns: differences in rad and times in s, shape (..., 8)
    """
    return raw[..., DIFFERENCES.start :]


def features(raw: jax.Array, names: tuple[str, ...]) -> jax.Array:
    """
    Compute plain features, for networks that are trained on them elsewhere.

    :param raw: shape (..., N_RAW)
    :param names: names out of :data:`FEATURES`, in the order of the network's inputs
    :returns: rad, rad/s, N m and s, shape (..., n_features)
    """
    difference, elapsed_s = raw[..., DIFFERENCES], raw[..., ELAPSED]
    columns = {
        'position': raw[..., 0:1],
        'velocity': raw[..., 1:2],
        'effort': raw[..., 2:3],
        'difference': difference[..., :1],
        'lag_velocity': difference / jnp.maximum(elapsed_s, SHORTEST_STEP_S),
        'step_s': elapsed_s[..., :1],
    }
    return jnp.concatenate([columns[name] for name in names], axis=-1)
