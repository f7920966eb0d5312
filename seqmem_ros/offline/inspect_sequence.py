"""The sequence along which a memory is looked at: a stretch of a bag, or a simulated motion."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from seqmem_ros.core.errors import SeqmemError
from seqmem_ros.core.inputs import N_RAW
from seqmem_ros.core.inputs import raw_inputs
from seqmem_ros.core.joints import NANOSECONDS_PER_SECOND
from seqmem_ros.core.options import StreamOptions
from seqmem_ros.core.spec import ModelSpec
from seqmem_ros.core.spec import WINDOW
from seqmem_ros.core.window import JointWindows
from seqmem_ros.offline.bags import read_joint_samples
from seqmem_ros.offline.recording import Recording
from seqmem_ros.offline.recording import RecordingBuilder
from seqmem_ros.offline.reference import median_period_s
from seqmem_ros.offline.reference import unbroken_runs
from seqmem_ros.offline.simulate import Encoder
from seqmem_ros.offline.simulate import random_motion
from seqmem_ros.offline.simulate import record

MOTION = 'moves'
ENCODER_BITS = 14
FEWEST_SAMPLES = 2 * WINDOW
# Beyond what any joint is sampled at.
RATES_HZ = (1.0, 100_000.0)


@dataclass(frozen=True, eq=False)
class InspectSequence:
    """
    Raw inputs of a model, and where they come from.

    :ivar raw: see :func:`seqmem_ros.core.inputs.raw_inputs`; shape (T, N_RAW), or
        (T, J, N_RAW) for a model over named joints
    :ivar time_s: since the first sample, s, shape (T,)
    :ivar position: rad or m, shape (T, J)
    :ivar rate_hz: of the samples
    :ivar source: in words
    """

    raw: np.ndarray
    time_s: np.ndarray
    position: np.ndarray
    rate_hz: float
    source: str


def simulated_sequence(
    spec: ModelSpec, n_samples: int, rate_hz: float, seed: int
) -> InspectSequence:
    """
    Simulate moves of one joint, or of each joint that a model names, through a 14-bit encoder.

    :param spec: says the joints
    :param n_samples: T
    :param rate_hz: of the samples
    :param seed: says all
    :returns: the sequence; its effort is zero
    :raises SeqmemError: if it would be too short, or the rate is out of range
    """
    _check_length(n_samples)
    lowest_hz, highest_hz = RATES_HZ
    if not lowest_hz <= rate_hz <= highest_hz:
        raise SeqmemError(f'rate: expected {lowest_hz:g} to {highest_hz:g} Hz, got {rate_hz:g}')
    rng = np.random.default_rng(seed)
    encoder = Encoder(rate_hz, ENCODER_BITS)
    joints = [
        record(rng, random_motion(rng, MOTION, n_samples / rate_hz), encoder, n_samples, MOTION)
        for _ in spec.joints or ('any',)
    ]
    position = np.stack([joint.position for joint in joints], axis=1)
    velocity = np.stack([joint.velocity for joint in joints], axis=1)
    source = f'simulated {MOTION}, {ENCODER_BITS}-bit encoder, seed {seed}'
    stamp_ns = joints[0].stamp_ns
    return _sequence(spec, stamp_ns, position, velocity, 0 * position, rate_hz, source)


def bag_sequence(
    spec: ModelSpec,
    path: str | Path,
    topic: str | None = None,
    joint: str | None = None,
    n_samples: int = 256,
    start_s: float | None = None,
) -> InspectSequence:
    """
    Take a stretch without gaps out of a bag, positions as recorded.

    :param spec: says the joints and fields that it must have
    :param path: of the bag
    :param topic: of the joint states; None takes the only one
    :param joint: which one, for a model of any joint; None for the one that moves most
    :param n_samples: T, at most
    :param start_s: where it begins, since the start of the bag; None for where it moves most
    :returns: the sequence
    :raises SeqmemError: if the bag cannot be read, or has no such stretch
    """
    _check_length(n_samples)
    recording = _read(path, topic)
    columns = _columns(recording, spec, joint, path)
    rows = _stretch(recording, columns, spec, n_samples, start_s)
    if len(rows) < FEWEST_SAMPLES:
        where = 'in it' if start_s is None else f'from {start_s} s on'
        raise SeqmemError(
            f'{path}: expected {FEWEST_SAMPLES} samples without a gap, each with '
            f'{", ".join(spec.fields)} of {", ".join(recording.names[c] for c in columns)}, '
            f'found {len(rows)} {where}'
        )
    time_ns = recording.time_ns[rows]
    start_s = (time_ns[0] - recording.time_ns.min()) / NANOSECONDS_PER_SECOND
    names = ', '.join(recording.names[column] for column in columns)
    source = f'{path}, {names}, from {start_s:.2f} s on'
    fields = (recording.position, recording.velocity, recording.effort)
    taken = [np.nan_to_num(field[np.ix_(rows, columns)]) for field in fields]
    return _sequence(spec, time_ns, *taken, 1 / median_period_s(time_ns), source)


def _check_length(n_samples: int) -> None:
    if n_samples < FEWEST_SAMPLES:
        raise SeqmemError(f'samples: expected at least {FEWEST_SAMPLES}, got {n_samples}')


def _read(path: str | Path, topic: str | None) -> Recording:
    builder = RecordingBuilder(StreamOptions())
    for record_ns, sample in read_joint_samples(path, topic):
        builder.add(record_ns, sample)
    recording = builder.build()
    if not recording.names:
        raise SeqmemError(f'{path}: expected positions of joints, found none')
    return recording


def _columns(
    recording: Recording, spec: ModelSpec, joint: str | None, path: str | Path
) -> list[int]:
    if spec.joints and joint is not None:
        raise SeqmemError(
            f'joint: expected none, as the model reads {", ".join(spec.joints)} together, '
            f"got '{joint}'"
        )
    wanted = spec.joints or ((joint,) if joint is not None else ())
    for name in wanted:
        if name not in recording.names:
            raise SeqmemError(
                f"{path}: expected the joint '{name}', found {', '.join(recording.names)}"
            )
    if wanted:
        return [recording.names.index(name) for name in wanted]
    travel = np.nansum(np.abs(np.diff(recording.position, axis=0)), axis=0)
    return [int(travel.argmax())]


def _stretch(
    recording: Recording,
    columns: list[int],
    spec: ModelSpec,
    n_samples: int,
    start_s: float | None,
) -> np.ndarray:
    """Choose rows: from ``start_s`` on, or where the joints travel furthest in n_samples."""
    time_ns = recording.time_ns
    fields = [getattr(recording, name)[:, columns] for name in spec.fields]
    usable = np.flatnonzero(np.isfinite(np.concatenate(fields, axis=1)).all(axis=1))
    if start_s is not None:
        since_ns = time_ns[usable] - time_ns.min()
        usable = usable[since_ns >= round(start_s * NANOSECONDS_PER_SECOND)]
    runs = [usable[run] for run in unbroken_runs(time_ns[usable], StreamOptions().max_gap_s)]
    if not len(usable):
        return usable
    if start_s is not None:
        return runs[0][:n_samples]
    stretches = [_busiest(run, recording.position[:, columns], n_samples) for run in runs]
    return max(stretches, key=lambda each: each[0])[1]


def _busiest(run: np.ndarray, position: np.ndarray, n_samples: int) -> tuple[float, np.ndarray]:
    steps = np.abs(np.diff(position[run], axis=0)).sum(axis=1)
    travelled = np.concatenate([[0.0], np.cumsum(steps)])
    last = np.minimum(np.arange(len(run)) + n_samples, len(run)) - 1
    travel = travelled[last] - travelled
    begin = int(travel.argmax())
    return float(travel[begin]), run[begin : begin + n_samples]


def _sequence(
    spec: ModelSpec,
    time_ns: np.ndarray,
    position: np.ndarray,
    velocity: np.ndarray,
    effort: np.ndarray,
    rate_hz: float,
    source: str,
) -> InspectSequence:
    n_samples, n_joints = position.shape
    windows = JointWindows(n_joints, WINDOW)
    rows = np.arange(n_joints)
    raw = np.empty((n_samples, n_joints, N_RAW), np.float32)
    for t in range(n_samples):
        measured = {'velocity': velocity[t], 'effort': effort[t]}
        windows.push(rows, int(time_ns[t]), position[t], **measured)
        raw[t] = raw_inputs(windows)
    time_s = (time_ns - time_ns[0]) / NANOSECONDS_PER_SECOND
    raw = raw if spec.joints else raw[:, 0]
    return InspectSequence(raw, time_s, position, rate_hz, source)
