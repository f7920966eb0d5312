"""Whole recordings as arrays: the inputs that a stream would have made, all at once."""

import numpy as np

from seqmem_ros.core.estimator import Estimator
from seqmem_ros.core.inputs import N_LAGS
from seqmem_ros.core.inputs import N_RAW
from seqmem_ros.core.joints import NANOSECONDS_PER_SECOND
from seqmem_ros.core.window import JointWindows
from seqmem_ros.offline.simulate import Recording


def raw_sequence(stamp_ns: np.ndarray, position: np.ndarray) -> np.ndarray:
    """
    Make a model's raw inputs for each sample of an unbroken recording of one joint.

    :param stamp_ns: ns, shape (T,), int64, increasing
    :param position: rad, shape (T,)
    :returns: what :func:`seqmem_ros.core.inputs.raw_inputs` gives sample by sample, shape
        (T, N_RAW), float32; velocity and effort are zero
    """
    raw = np.zeros((len(position), N_RAW), dtype=np.float32)
    raw[:, 0] = position
    for lag in range(1, N_LAGS + 1):
        before = np.maximum(np.arange(len(position)) - lag, 0)
        raw[:, 2 + lag] = position - position[before]
        raw[:, 2 + N_LAGS + lag] = (stamp_ns - stamp_ns[before]) / NANOSECONDS_PER_SECOND
    return raw


def run_together(estimator: Estimator, recordings: list[Recording]) -> np.ndarray:
    """
    Run an estimator over recordings of the same length, as if each were a joint of one arm.

    :param estimator: estimates velocities of any joint
    :param recordings: B recordings of T samples
    :returns: estimates in rad/s, shape (B, T)
    """
    position = np.stack([recording.position for recording in recordings], axis=1)
    stamp_ns = np.stack([recording.stamp_ns for recording in recordings], axis=1)
    rows = np.arange(len(recordings))
    windows = JointWindows(len(rows), estimator.window)
    state = estimator.init_state(len(rows))
    advance = np.ones(len(rows), dtype=bool)
    outputs = []
    for stamps, positions in zip(stamp_ns, position):
        windows.push(rows, stamps, positions)
        output, state = estimator.step(windows, advance, state)
        outputs.append(output)
    return np.stack(outputs, axis=1)
