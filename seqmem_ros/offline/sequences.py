"""Whole recordings as arrays: the inputs that a stream would have made, all at once."""

from collections.abc import Iterator
from collections.abc import Sequence
from dataclasses import dataclass

import jax
import numpy as np

from seqmem_ros.core.estimator import Estimator
from seqmem_ros.core.filters.kalman import kalman_start
from seqmem_ros.core.filters.kalman import kalman_step
from seqmem_ros.core.inputs import N_LAGS
from seqmem_ros.core.inputs import N_RAW
from seqmem_ros.core.joints import NANOSECONDS_PER_SECOND
from seqmem_ros.core.model import SequenceModel
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
    nothing = np.zeros((len(position), 1))
    return raw_together(stamp_ns, position[:, None], nothing, nothing)[:, 0]


def raw_together(
    stamp_ns: np.ndarray, position: np.ndarray, velocity: np.ndarray, effort: np.ndarray
) -> np.ndarray:
    """
    Make a model's raw inputs for each sample of an unbroken recording of several joints.

    :param stamp_ns: ns, shape (T,), int64, increasing
    :param position: rad, shape (T, J)
    :param velocity: rad/s, shape (T, J)
    :param effort: N m, shape (T, J)
    :returns: what :func:`seqmem_ros.core.inputs.raw_inputs` gives sample by sample, shape
        (T, J, N_RAW), float32
    """
    raw = np.zeros((*position.shape, N_RAW), dtype=np.float32)
    for column, values in enumerate((position, velocity, effort)):
        raw[..., column] = values
    for lag in range(1, N_LAGS + 1):
        before = np.maximum(np.arange(len(position)) - lag, 0)
        raw[..., 2 + lag] = position - position[before]
        elapsed_s = (stamp_ns - stamp_ns[before]) / NANOSECONDS_PER_SECOND
        raw[..., 2 + N_LAGS + lag] = elapsed_s[:, None]
    return raw


@dataclass(frozen=True, eq=False)
class Rows:
    """
    Recordings of any lengths as arrays; behind its end a recording stands still.

    :ivar stamp_ns: ns, shape (B, T), int64, increasing
    :ivar position: as sensed, rad, shape (B, T)
    :ivar velocity: true, rad/s, shape (B, T); 0 behind the end
    :ivar known: False behind the end, bool, shape (B, T)
    """

    stamp_ns: np.ndarray
    position: np.ndarray
    velocity: np.ndarray
    known: np.ndarray


def rows_of(recordings: Sequence[Recording]) -> Rows:
    """
    Lay out recordings side by side.

    :param recordings: B recordings
    :returns: arrays as long as the longest
    """
    lengths = np.array([len(recording.position) for recording in recordings])
    index = np.arange(lengths.max())
    last = np.minimum(index, lengths[:, None] - 1)  # (B, T)
    behind = index - last
    # A millisecond a sample: any increasing stamps do where nothing is compared.
    stamp_ns = np.stack([r.stamp_ns[i] for r, i in zip(recordings, last)]) + behind * 1_000_000
    position = np.stack([r.position[i] for r, i in zip(recordings, last)])
    known = behind == 0
    velocity = np.stack([r.velocity[i] for r, i in zip(recordings, last)]) * known
    return Rows(stamp_ns, position, velocity, known)


def run_together(estimator: Estimator, recordings: Sequence[Recording]) -> np.ndarray:
    """
    Run an estimator over recordings, as if each were a joint of one arm.

    :param estimator: estimates velocities of any joint
    :param recordings: B recordings, the longest of T samples
    :returns: estimates in rad/s, shape (B, T); without a meaning behind the end of a recording
    """
    data = rows_of(recordings)
    rows = np.arange(len(recordings))
    windows = JointWindows(len(rows), estimator.window)
    state = estimator.init_state(len(rows))
    advance = np.ones(len(rows), dtype=bool)
    outputs = []
    for stamps, positions in zip(data.stamp_ns.T, data.position.T):
        windows.push(rows, stamps, positions)
        output, state = estimator.step(windows, advance, state)
        outputs.append(output)
    return np.stack(outputs, axis=1)


def forward_together(model: SequenceModel, recordings: Sequence[Recording]) -> np.ndarray:
    """
    Run a network over recordings in one compiled program; as :func:`run_together`, but fast.

    :param model: a velocity model shared by all joints
    :param recordings: B recordings, the longest of T samples
    :returns: estimates in rad/s, shape (B, T); without a meaning behind the end of a recording
    """
    data = rows_of(recordings)
    raw = np.stack([raw_sequence(*row) for row in zip(data.stamp_ns, data.position)])
    return np.asarray(jax.jit(jax.vmap(model.forward))(raw), dtype=np.float64)


def kalman_together(
    recordings: Sequence[Recording], jerk_density: np.ndarray, noise_rad: float
) -> Iterator[np.ndarray]:
    """
    Run Kalman filters of many settings over recordings, sample by sample.

    :param recordings: B recordings, the longest of T samples
    :param jerk_density: q in rad^2/s^5, broadcasts to shape (S, B)
    :param noise_rad: r in rad
    :returns: iterator over T estimates in rad/s, shape (S, B)
    """
    data = rows_of(recordings)
    elapsed_s = np.diff(data.stamp_ns, axis=1) / NANOSECONDS_PER_SECOND
    shape = np.broadcast_shapes(jerk_density.shape, (len(recordings),))
    state = kalman_start(np.broadcast_to(data.position[:, 0], shape), noise_rad)
    yield state[0][1]
    for step_s, position in zip(elapsed_s.T, data.position.T[1:]):
        state = kalman_step(state, step_s, position, jerk_density, noise_rad)
        yield state[0][1]
