"""
What the velocity benchmark plays: a simulated suite, and real motions seen by worse encoders.

Both are lists of :class:`~seqmem_ros.offline.simulate.Recording`, each with the name of the cell
that it belongs to. Nothing here is drawn from a seed that training uses: a training seed is one
integer, these are sequences of integers that begin with :data:`SEED`.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from dataclasses import replace
from pathlib import Path

import numpy as np
from scipy.interpolate import CubicSpline

from seqmem_ros.core.joints import NANOSECONDS_PER_SECOND
from seqmem_ros.core.options import StreamOptions
from seqmem_ros.offline.bags import list_topics
from seqmem_ros.offline.bags import read_joint_messages
from seqmem_ros.offline.recording import RecordingBuilder
from seqmem_ros.offline.reference import make_reference
from seqmem_ros.offline.reference import unbroken_runs
from seqmem_ros.offline.simulate import Encoder
from seqmem_ros.offline.simulate import KINDS
from seqmem_ros.offline.simulate import Motion
from seqmem_ros.offline.simulate import random_encoder
from seqmem_ros.offline.simulate import random_motion
from seqmem_ros.offline.simulate import record
from seqmem_ros.offline.simulate import Recording
from seqmem_ros.offline.topics import choose_topic

SEED = 20_261_129
RATES_HZ = (50, 100, 250, 500, 1000)
BITS = (10, 12, 14, 17, 20)
REAL_RATES_HZ = (100, 250, 500)
REAL_BITS = (12, 14, 17)
# Three draws a cell: 525 recordings, and a cell's number is not that of a single draw.
PER_CELL = 3
N_SAMPLES = 1500
REAL_DROP = 0.01
MAX_GAP_S = 0.25
MOVES_RAD = 0.01
DATA = Path(__file__).parent / 'data'
SHIPPED_BAG = Path(__file__).parents[1] / 'seqmem_ros' / 'data' / 'kr300_a'
# A contact ends a motion within milliseconds: the velocity begins to decay at such a rate at once.
STOP_RATE_PER_S = 90.0
STOP_GRID_S = 5e-4
NO_STOPS = np.empty(0, np.int64)


@dataclass(frozen=True, order=True)
class Cell:
    """
    What recordings have in common that are averaged.

    :param motion: kind of a simulated motion, or name of a real recording
    :param rate_hz: nominal rate
    :param bits: resolution
    """

    motion: str
    rate_hz: int
    bits: int

    def __str__(self) -> str:
        return f'{self.motion} {self.rate_hz} Hz {self.bits} bits'


@dataclass(frozen=True, eq=False)
class Suite:
    """
    Recordings, each with its cell.

    :ivar name: ``simulated`` or ``real``
    :ivar recordings: B recordings, of any lengths
    :ivar cells: the cell of each
    :ivar stops_ns: stamps of the sudden stops in each, shape (n,)
    """

    name: str
    recordings: tuple[Recording, ...]
    cells: tuple[Cell, ...]
    stops_ns: tuple[np.ndarray, ...]

    def only(self, chosen: Iterable[int]) -> 'Suite':
        """
        Take a part.

        :param chosen: indices of recordings
        :returns: the suite of these
        """
        columns = (self.recordings, self.cells, self.stops_ns)
        return Suite(self.name, *(tuple(column[i] for i in chosen) for column in columns))


def simulated_suite(
    rates_hz: Iterable[int] = RATES_HZ,
    bits: Iterable[int] = BITS,
    kinds: Iterable[str] = KINDS,
    per_cell: int = PER_CELL,
    n_samples: int = N_SAMPLES,
) -> Suite:
    """
    Draw the simulated suite; each recording from a seed of its own, so parts equal the whole.

    :param rates_hz: nominal rates
    :param bits: resolutions
    :param kinds: kinds of motion
    :param per_cell: recordings of each cell
    :param n_samples: length of each
    :returns: the suite
    """
    cells, recordings, stops_ns = [], [], []
    for cell in (Cell(k, rate, b) for k in kinds for rate in rates_hz for b in bits):
        for index in range(per_cell):
            seed = [SEED, KINDS.index(cell.motion), cell.rate_hz, cell.bits, index]
            rng = np.random.default_rng(seed)
            # The defects that training meets, too: half of the encoders have each.
            encoder = replace(random_encoder(rng), rate_hz=float(cell.rate_hz), bits=cell.bits)
            duration_s = n_samples / cell.rate_hz
            motion = random_motion(rng, cell.motion, duration_s)
            cells.append(cell)
            recordings.append(record(rng, motion, encoder, n_samples, cell.motion))
            hit = cell.motion == 'contacts'
            stops_ns.append(_stops_ns(motion, duration_s) if hit else NO_STOPS)
    return Suite('simulated', tuple(recordings), tuple(cells), tuple(stops_ns))


def real_suite(
    rates_hz: Iterable[int] = REAL_RATES_HZ,
    bits: Iterable[int] = REAL_BITS,
    data: Path | None = None,
) -> Suite:
    """
    Sense motions of real arms through worse encoders, each joint as a recording of its own.

    The motion is a smooth curve through the recording: its velocity is the zero-phase reference
    (:mod:`seqmem_ros.offline.reference`), joined by a cubic spline, and its position the integral
    of that. So the truth is exact at any rate, above that of the recording too; what the
    recording had above some 15 Hz is no part of it.

    :param rates_hz: nominal rates
    :param bits: resolutions
    :param data: a folder of bags to be taken beside what is committed
    :returns: the suite; one message in a hundred is lost
    """
    cells, recordings = [], []
    for name, motions in real_motions(data).items():
        for cell in (Cell(name, rate, b) for rate in rates_hz for b in bits):
            for joint, (motion, duration_s) in enumerate(motions):
                rng = np.random.default_rng([SEED, cell.rate_hz, cell.bits, joint])
                encoder = Encoder(float(cell.rate_hz), cell.bits, drop=REAL_DROP)
                # Lost messages stretch a recording; nothing is known behind its end.
                n_samples = int(duration_s * cell.rate_hz * (1 - 3 * REAL_DROP))
                cells.append(cell)
                recordings.append(record(rng, motion, encoder, n_samples, name))
    # No arm was hit while it was recorded.
    return Suite('real', tuple(recordings), tuple(cells), (NO_STOPS,) * len(cells))


def real_motions(data: Path | None = None) -> dict[str, list[tuple[Motion, float]]]:
    """
    Read the recordings that are there, and make a motion of each joint that moves.

    :param data: a folder of bags to be taken beside what is committed
    :returns: by the name of a recording: motions and their lengths in s
    """
    tables = {'kr300': _read_bag(SHIPPED_BAG)}
    for path in sorted(DATA.glob('*.npz')):
        with np.load(path) as archive:
            tables[path.stem.split('_')[-1]] = archive['stamp_ns'], archive['position']
    for path in sorted(data.iterdir()) if data else ():
        if path.is_dir() or path.suffix in ('.bag', '.mcap', '.db3'):
            tables[path.stem] = _read_bag(path)
    return {name: _joint_motions(*table) for name, table in tables.items()}


def _read_bag(path: Path) -> tuple[np.ndarray, np.ndarray]:
    builder = RecordingBuilder(StreamOptions())
    topic = choose_topic(list_topics(path), None, path)
    for message in read_joint_messages(path, topic):
        builder.add(message.record_ns, message.sample)
    recording = builder.build()
    return recording.time_ns, recording.position


def _joint_motions(time_ns: np.ndarray, position: np.ndarray) -> list[tuple[Motion, float]]:
    velocity = make_reference(time_ns, position, MAX_GAP_S).velocity
    motions = []
    for joint in range(position.shape[1]):
        rows = np.flatnonzero(np.isfinite(velocity[:, joint]))
        if not len(rows):
            continue
        longest = max(unbroken_runs(time_ns[rows], MAX_GAP_S), key=len)
        rows = rows[longest]
        if np.ptp(position[rows, joint]) > MOVES_RAD:
            motions.append(_smooth(time_ns[rows], velocity[rows, joint], position[rows[0], joint]))
    return motions


def _smooth(time_ns: np.ndarray, velocity: np.ndarray, start_rad: float) -> tuple[Motion, float]:
    time_s = (time_ns - time_ns[0]) / NANOSECONDS_PER_SECOND
    speed = CubicSpline(time_s, velocity)
    travel, rate = speed.antiderivative(), speed.derivative()

    def motion(t: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        t = np.clip(t, 0, time_s[-1])
        return start_rad + travel(t), speed(t), rate(t)

    return motion, float(time_s[-1])


def _stops_ns(motion: Motion, duration_s: float) -> np.ndarray:
    """Find when a velocity suddenly begins to decay within milliseconds, on the stamps' clock."""
    time_s = np.arange(0, duration_s, STOP_GRID_S)
    _, velocity, acceleration = motion(time_s)
    moving = np.abs(velocity) > 1e-4
    decay = -acceleration / np.where(moving, velocity, np.inf)
    begins = (decay[1:] >= STOP_RATE_PER_S) & (decay[:-1] < STOP_RATE_PER_S / 2) & moving[:-1]
    # As in record(), whose clock starts at one second.
    stamps_s = 1.0 + time_s[1:][begins]
    return np.round(stamps_s * NANOSECONDS_PER_SECOND).astype(np.int64)
