"""
What the velocity inside a recording really is.

Scoring against a velocity that is itself a difference of the positions rewards the difference,
so each joint's recorded velocity is compared with what is commonly passed off as one.
"""

from collections import Counter
from dataclasses import dataclass

import numpy as np

from seqmem_ros.core.joints import NANOSECONDS_PER_SECOND
from seqmem_ros.offline.metrics import lag_curve
from seqmem_ros.offline.recording import Recording
from seqmem_ros.offline.reference import median_period_s
from seqmem_ros.offline.reference import unbroken_runs

# Rounding of a copied difference stays below; a filter, however fast, does not.
COPIED = 1e-4
# A first-order low-pass with unit gain explains all but this share of the velocity.
EXPLAINED = 0.01

_SENTENCES = {
    'absent': 'is absent',
    'constant': 'is constant although the joint moves',
    'difference': 'is the backward difference of the recorded positions',
    'low-pass': 'is a first-order low-pass of the difference of the recorded positions',
    'other': 'is not a difference of the recorded positions',
    'at rest': 'cannot be judged, the joint rests',
}


@dataclass(frozen=True)
class TruthCheck:
    """
    What the recorded velocity of one joint is; NaN where it could not be computed.

    :ivar kind: a key of the sentences of this module
    :ivar relative_to_difference: RMS of (velocity - backward difference) / RMS of velocity
    :ivar lag_s: against the zero-phase reference, s; positive: late
    :ivar rmse: against the reference, rad/s
    :ivar time_constant_s: of the low-pass, s
    """

    kind: str
    relative_to_difference: float = float('nan')
    lag_s: float = float('nan')
    rmse: float = float('nan')
    time_constant_s: float = float('nan')


def check_truth(
    recording: Recording, reference: np.ndarray, moving: np.ndarray, max_gap_s: float
) -> dict[str, TruthCheck]:
    """
    Judge the recorded velocity of each joint.

    :param recording: as recorded, not degraded
    :param reference: rad/s, shape (T, J)
    :param moving: joints that move, bool, shape (J,)
    :param max_gap_s: no difference is taken across a longer gap, s
    :returns: by name of the joint
    """
    return {
        name: _check_joint(
            recording.time_ns,
            recording.position[:, joint],
            recording.velocity[:, joint],
            reference[:, joint],
            moving[joint],
            max_gap_s,
        )
        for joint, name in enumerate(recording.names)
    }


def summarise(checks: dict[str, TruthCheck]) -> str:
    """
    Say it in a sentence or two.

    :param checks: by name of the joint
    :returns: the commonest finding among joints that move, then what differs
    """
    kinds = Counter(check.kind for check in checks.values())
    if len(kinds) > 1:
        kinds.pop('at rest', None)
    parts = [_sentence(kind, count, checks) for kind, count in kinds.most_common()]
    return 'recorded velocity ' + '; '.join(parts)


def _sentence(kind: str, count: int, checks: dict[str, TruthCheck]) -> str:
    chosen = [check for check in checks.values() if check.kind == kind]
    text = _SENTENCES[kind]
    lags = [check.lag_s for check in chosen if np.isfinite(check.lag_s)]
    if lags:
        text += f' and lags by {1000 * np.median(lags):.1f} ms'
    if kind in ('low-pass', 'other'):
        relative = 100 * np.median([check.relative_to_difference for check in chosen])
        text += f' (differs from the difference by {relative:.1f} %)'
    return f'{text} ({count} of {len(checks)} joints)'


def _check_joint(
    time_ns: np.ndarray,
    position: np.ndarray,
    velocity: np.ndarray,
    reference: np.ndarray,
    moves: bool,
    max_gap_s: float,
) -> TruthCheck:
    known = np.isfinite(velocity)
    if not known.any():
        return TruthCheck('absent')
    if not moves:
        return TruthCheck('at rest')
    if np.ptp(velocity[known]) == 0.0:
        return TruthCheck('constant')
    triples = _triples(time_ns, position, velocity, max_gap_s)
    now, before, difference = triples
    size = np.sqrt(np.mean(now**2)) if len(now) else 0.0
    if size == 0.0:
        return TruthCheck('at rest')
    relative = float(np.sqrt(np.mean((now - difference) ** 2)) / size)
    lag_s = lag_curve(time_ns, reference, velocity, max_gap_s).best_lag_s()
    errors = (velocity - reference)[known & np.isfinite(reference)]
    rmse = float(np.sqrt(np.mean(errors**2))) if len(errors) else float('nan')
    if relative < COPIED:
        return TruthCheck('difference', relative, lag_s, rmse)
    pole, unexplained = _low_pass(now, before, difference)
    if unexplained < min(EXPLAINED, 0.5 * relative) * size and 0.01 < pole < 0.999:
        time_constant_s = -median_period_s(time_ns) / float(np.log(pole))
        return TruthCheck('low-pass', relative, lag_s, rmse, time_constant_s)
    return TruthCheck('other', relative, lag_s, rmse)


def _triples(
    time_ns: np.ndarray, position: np.ndarray, velocity: np.ndarray, max_gap_s: float
) -> np.ndarray:
    """Collect velocity, the one before it, and the backward difference; float32, (3, n)."""
    parts = []
    rows = np.flatnonzero(np.isfinite(position) & np.isfinite(velocity))
    for run in unbroken_runs(time_ns[rows], max_gap_s):
        run = rows[run]
        triple = np.empty((3, max(0, len(run) - 1)), dtype=np.float32)
        difference = np.diff(position[run])
        difference /= np.diff(time_ns[run]) / NANOSECONDS_PER_SECOND
        triple[:] = velocity[run[1:]], velocity[run[:-1]], difference
        parts.append(triple)
    if len(parts) == 1:
        return parts[0]
    return np.concatenate([np.empty((3, 0), dtype=np.float32), *parts], axis=1)


def _low_pass(now: np.ndarray, before: np.ndarray, difference: np.ndarray) -> tuple[float, float]:
    """Fit v_t = a v_{t-1} + (1 - a) d_t; return a and the RMS of what it leaves."""
    step = before - difference
    power = float(step @ step)
    pole = float(step @ (now - difference)) / power if power > 0.0 else 0.0
    return pole, float(np.sqrt(np.mean((now - difference - pole * step) ** 2)))
