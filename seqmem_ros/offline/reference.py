r"""
The velocity to score against: a zero-phase derivative of the clean recording.

A recording's own velocity is often a difference of its positions, or lags, or is zero (see
:mod:`seqmem_ros.offline.truth`). The reference looks at both sides of a sample instead, as no
estimator on a robot can: the slope at t of the polynomial that fits the positions within
:math:`t \pm h` best,

.. math:: \min_{a_0 \dots a_d} \sum_{|t_i - t| \le h} \Big(p_i - \sum_k a_k (t_i - t)^k\Big)^2,
   \qquad v(t) = a_1 .

On even stamps this is the derivative filter of Savitzky and Golay (Analytical Chemistry 36,
1964, 1627-1639); fitting at the measured stamps keeps it right where they are uneven.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from seqmem_ros.core.joints import NANOSECONDS_PER_SECOND

DEGREE = 3
# Arms move below some 10 Hz and shake up to 40 Hz; a cubic over 40 ms follows both.
HALF_WIDTH_S = 0.02
# With fewer samples on each side a cubic would smooth nothing.
SMALLEST_SIDE = 3
# Stamps further back than this are of another time, not late; as in StreamOptions.
CLOCK_JUMP_NS = 100_000_000
_BLOCK = 4096
_PIECE = 25_000


@dataclass(frozen=True, eq=False)
class Reference:
    """
    The reference and how far to trust it.

    :ivar velocity: rad/s, float32, shape (T, J); NaN where a window is not filled on both sides
    :ivar half_width_s: h in s
    :ivar doubt_rad_s: RMS difference per joint to a fit of degree 5 in the same windows, rad/s,
        shape (J,): large where the window smears the motion or the recording is noisy
    """

    velocity: np.ndarray
    half_width_s: float
    doubt_rad_s: np.ndarray

    def __str__(self) -> str:
        return (
            f'slope of a local polynomial of degree {DEGREE} over '
            f'+-{1000 * self.half_width_s:.1f} ms, zero phase'
        )


def make_reference(
    time_ns: np.ndarray, position: np.ndarray, max_gap_s: float, half_width_s: float | None = None
) -> Reference:
    """
    Differentiate a clean recording.

    :param time_ns: ns, shape (T,), in any order
    :param position: rad, shape (T, J), NaN where absent
    :param max_gap_s: no window reaches across a longer gap, s
    :param half_width_s: h in s; None: 20 ms, or 3 samples if they take longer
    :returns: the reference
    """
    period_s = median_period_s(time_ns)
    if half_width_s is None:
        side = max(SMALLEST_SIDE, round(HALF_WIDTH_S / period_s)) if period_s else SMALLEST_SIDE
        # Half a period more, so that uneven stamps do not let samples in and out at the rim.
        half_width_s = (side + 0.5) * period_s
    velocity = np.full(position.shape, np.nan, dtype=np.float32)
    squares = np.zeros(position.shape[1])
    samples = np.zeros(position.shape[1])
    for rows, joints in _stretches(time_ns, position, max_gap_s):
        for piece, inner in _pieces(time_ns[rows], half_width_s):
            cells = np.ix_(rows[piece], joints)
            slopes, finer = (
                local_slopes(time_ns[rows[piece]], position[cells], half_width_s, degree)[inner]
                for degree in (DEGREE, 5)
            )
            velocity[np.ix_(rows[piece][inner], joints)] = slopes
            both = np.isfinite(slopes) & np.isfinite(finer)
            squares[joints] += np.sum(np.where(both, slopes - finer, 0.0) ** 2, axis=0)
            samples[joints] += both.sum(axis=0)
    doubt = np.sqrt(squares / np.maximum(samples, 1))
    return Reference(velocity, half_width_s, np.where(samples > 0, doubt, np.nan))


def median_period_s(time_ns: np.ndarray) -> float:
    """
    Say how far apart the samples are.

    :param time_ns: ns, shape (T,)
    :returns: median of the positive steps in s, 0 without any
    """
    steps = np.diff(time_ns)
    steps = steps[steps > 0]
    return float(np.median(steps)) / NANOSECONDS_PER_SECOND if len(steps) else 0.0


def unbroken_runs(time_ns: np.ndarray, max_gap_s: float) -> Iterator[np.ndarray]:
    """
    Cut a recording where its time breaks.

    :param time_ns: ns, shape (T,); some stamps may be late, doubled, or start over
    :param max_gap_s: a longer gap ends a run, s
    :returns: indices of the samples of each run, in order of strictly increasing time
    """
    steps_ns = np.diff(time_ns)
    longest_ns = max_gap_s * NANOSECONDS_PER_SECOND
    if (steps_ns > 0).all():
        yield from np.split(np.arange(len(time_ns)), np.flatnonzero(steps_ns > longest_ns) + 1)
        return
    # A restart is seen against the newest stamp since the last restart, not since the start.
    starts = [0]
    while len(time_ns) > starts[-1]:
        begin = starts[-1]
        newest = np.maximum.accumulate(time_ns[begin:])
        back = np.flatnonzero(newest - time_ns[begin:] > CLOCK_JUMP_NS)
        if not len(back):
            break
        starts.append(begin + int(back[0]))
    for begin, end in zip(starts, [*starts[1:], len(time_ns)]):
        _, first = np.unique(time_ns[begin:end], return_index=True)
        order = begin + first
        gaps = np.flatnonzero(np.diff(time_ns[order]) > longest_ns)
        yield from np.split(order, gaps + 1)


def _stretches(
    time_ns: np.ndarray, position: np.ndarray, max_gap_s: float
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield rows of unbroken runs, with the joints that are present in just these messages."""
    joints_of: dict[bytes, list[int]] = {}
    for joint in range(position.shape[1]):
        pattern = np.packbits(np.isfinite(position[:, joint])).tobytes()
        joints_of.setdefault(pattern, []).append(joint)
    for joints in joints_of.values():
        rows = np.flatnonzero(np.isfinite(position[:, joints[0]]))
        for run in unbroken_runs(time_ns[rows], max_gap_s):
            yield rows[run], np.array(joints)


def _pieces(time_ns: np.ndarray, half_width_s: float) -> Iterator[tuple[slice, slice]]:
    """Cut a long run, so that memory stays bounded; pieces overlap by more than a window."""
    margin_ns = round(3 * half_width_s * NANOSECONDS_PER_SECOND)
    for begin in range(0, len(time_ns), _PIECE):
        end = min(begin + _PIECE, len(time_ns))
        first = int(np.searchsorted(time_ns, time_ns[begin] - margin_ns))
        last = int(np.searchsorted(time_ns, time_ns[end - 1] + margin_ns, side='right'))
        yield slice(first, last), slice(begin - first, end - first)


def local_slopes(
    time_ns: np.ndarray, values: np.ndarray, half_width_s: float, degree: int = DEGREE
) -> np.ndarray:
    """
    Slope at each sample of the polynomial through its neighbourhood (see the module).

    :param time_ns: ns, strictly increasing, shape (n,)
    :param values: shape (n, J)
    :param half_width_s: half-width h of the window in s
    :param degree: of the polynomial
    :returns: values per s, shape (n, J); NaN where the window is not filled on both sides, or
        where the fit would amplify noise more than a difference of two neighbours does
    """
    half_ns = round(half_width_s * NANOSECONDS_PER_SECOND)
    slopes = np.full(values.shape, np.nan)
    if len(time_ns) < degree + 2:
        return slopes
    left = np.searchsorted(time_ns, time_ns - half_ns)
    right = np.searchsorted(time_ns, time_ns + half_ns, side='right')
    middle = np.arange(len(time_ns))
    # Windows that stick out of the run by more than a period have one empty side.
    rim_ns = half_ns - round(median_period_s(time_ns) * NANOSECONDS_PER_SECOND)
    inside = (time_ns - time_ns[0] >= rim_ns) & (time_ns[-1] - time_ns >= rim_ns)
    fitted = inside & (right - left >= degree + 2)
    fitted &= (middle - left >= 2) & (right - 1 - middle >= 2)
    largest_gain = np.sqrt(2.0) / median_period_s(time_ns)
    for block in np.array_split(np.flatnonzero(fitted), max(1, fitted.sum() // _BLOCK)):
        weights, index = _slope_weights(time_ns, left, right, block, half_ns, degree)
        gain = np.sqrt(np.sum(weights**2, axis=1))
        slope = _weighted(values, block, index, weights)
        slopes[block] = np.where(gain[:, None] <= largest_gain, slope, np.nan)
    return slopes


def _weighted(
    values: np.ndarray, block: np.ndarray, index: np.ndarray, weights: np.ndarray
) -> np.ndarray:
    """Sum values around each sample, less its own, by weight; (block, J)."""
    centre, n_windows = values[block], len(block)
    first = index[:1, 0]
    even = (weights == weights[:1]).all() and (index[:, 0] == first + np.arange(n_windows)).all()
    if n_windows and even:
        slope = np.zeros_like(centre)
        for begin, weight in enumerate(weights[0], int(first[0])):
            slope += weight * (values[begin : begin + n_windows] - centre)
        return slope
    around = values[index] - centre[:, None, :]  # (block, window, J)
    return np.einsum('bw,bwj->bj', weights, around)


def _slope_weights(
    time_ns: np.ndarray,
    left: np.ndarray,
    right: np.ndarray,
    block: np.ndarray,
    half_ns: int,
    degree: int,
) -> tuple[np.ndarray, np.ndarray]:
    """Solve the normal equations of many windows at once, in time scaled to -1 to 1."""
    width = int((right[block] - left[block]).max()) if len(block) else 1
    index = left[block, None] + np.arange(width)
    inside = index < right[block, None]
    index = np.minimum(index, len(time_ns) - 1)
    scaled = (time_ns[index] - time_ns[block, None]) / half_ns
    n_windows = len(scaled)
    if np.all(scaled == scaled[:1]) and np.all(inside == inside[:1]):
        # Even stamps: one fit serves all windows.
        scaled, inside = scaled[:1], inside[:1]
    powers = scaled[..., None] ** np.arange(degree + 1) * inside[..., None]  # (b, w, d + 1)
    gram = np.einsum('bwi,bwj->bij', powers, powers)
    first = np.zeros((len(scaled), degree + 1, 1))
    first[:, 1] = 1.0
    solution = np.linalg.solve(gram, first)[..., 0]
    weights = np.einsum('bwi,bi->bw', powers, solution)
    weights = np.broadcast_to(weights, (n_windows, width))
    return weights / (half_ns / NANOSECONDS_PER_SECOND), index
