"""How far an estimate is from the reference, and how late."""

from dataclasses import dataclass

import numpy as np

from seqmem_ros.core.joints import NANOSECONDS_PER_SECOND
from seqmem_ros.offline.reference import median_period_s
from seqmem_ros.offline.reference import unbroken_runs

STANDSTILL_RAD_S = 0.005
STANDSTILL_MARGIN_S = 0.1
LONGEST_LAG_S = 0.2
LONGEST_LEAD_S = 0.05
SMALLEST_LAG_STEP_S = 0.002
# Enough to find a minimum; more would only take longer.
LAG_SAMPLES = 20_000
_LAGS_TOGETHER = 32
_POINTS_TOGETHER = 50_000
# What 100 ns make of a reference that changes by 10 rad/s^2 is 1e-6 rad/s.
EVEN_NS = 100.0
# So near to a sample, in periods, nothing is left to interpolate.
ON_A_SAMPLE = 1e-6


@dataclass(frozen=True)
class Score:
    """
    Errors of a velocity estimate e against a reference r; NaN where there is nothing to say.

    :ivar samples: number of values compared
    :ivar rmse: sqrt(mean((e - r)^2)), rad/s
    :ivar lag_s: the shift that minimises the RMSE of e(t) - r(t - lag), s; positive: late
    :ivar rmse_at_lag: RMSE of e(t) - r(t - lag), rad/s: what is left beside the delay
    :ivar p99: 99th percentile of abs(e - r), rad/s
    :ivar standstill_rms: RMS of e - r where the joint rests, rad/s
    :ivar rest_samples: number of values at rest
    """

    samples: int
    rmse: float
    lag_s: float
    rmse_at_lag: float
    p99: float
    standstill_rms: float
    rest_samples: int


class LagCurve:
    """
    Squared error over a grid of lags, which adds up over joints.

    :ivar lags_s: the grid in s, shape (L,)
    :ivar squares: sums of squared errors, shape (L,)
    :ivar samples: number of values in each sum
    """

    def __init__(self, lags_s: np.ndarray, squares: np.ndarray, samples: int) -> None:
        self.lags_s = lags_s
        self.squares = squares
        self.samples = samples

    def __add__(self, other: 'LagCurve') -> 'LagCurve':
        return LagCurve(self.lags_s, self.squares + other.squares, self.samples + other.samples)

    def best_lag_s(self) -> float:
        """
        Find the best lag between the points of the grid by a parabola through the lowest three.

        The mean square of the difference of two delayed signals is quadratic in the delay
        near its minimum.

        :returns: lag in s; NaN if the minimum is at the rim of the grid
        """
        best = int(np.argmin(self.squares)) if self.samples else 0
        if not 0 < best < len(self.lags_s) - 1:
            return float('nan')
        low, mid, high = self.squares[best - 1 : best + 2]
        curvature = low - 2.0 * mid + high
        offset = 0.5 * (low - high) / curvature if curvature > 0.0 else 0.0
        return float(self.lags_s[best] + offset * (self.lags_s[1] - self.lags_s[0]))


NO_CURVE = LagCurve(np.zeros(1), np.zeros(1), 0)


def lag_grid_s(time_ns: np.ndarray) -> np.ndarray:
    """
    Choose the lags to try: whole periods, so that even stamps need no interpolation.

    :param time_ns: ns, shape (T,)
    :returns: s, shape (L,), evenly spaced, with 0 among them
    """
    period_s = median_period_s(time_ns) or SMALLEST_LAG_STEP_S
    step_s = period_s * max(1, round(SMALLEST_LAG_STEP_S / period_s))
    early = max(2, round(LONGEST_LEAD_S / step_s))
    late = max(2, round(LONGEST_LAG_S / step_s))
    return np.arange(-early, late + 1) * step_s


def lag_curve(
    time_ns: np.ndarray, reference: np.ndarray, estimate: np.ndarray, max_gap_s: float
) -> LagCurve:
    """
    Compare an estimate with the reference at many shifts, always on the same samples.

    :param time_ns: ns, shape (T,)
    :param reference: rad/s, shape (T,), NaN where unknown
    :param estimate: rad/s, shape (T,), NaN where not to be compared
    :param max_gap_s: the reference is not interpolated across a longer gap, s
    :returns: the curve for one joint
    """
    lags_s = lag_grid_s(time_ns)
    stride = max(1, int(np.isfinite(estimate).sum()) // LAG_SAMPLES)
    span = (lags_s.min(), lags_s.max())
    squares, samples = [], 0
    # A few lags at once: their errors are as many arrays as long as the recording.
    for some in np.array_split(lags_s, max(1, len(lags_s) // _LAGS_TOGETHER)):
        errors = shifted_errors(time_ns, reference, estimate, some, max_gap_s, stride, span)
        squares.append(np.sum(errors**2, axis=1, dtype=np.float64))
        samples = errors.shape[1]
    return LagCurve(lags_s, np.concatenate(squares), samples)


def shifted_errors(
    time_ns: np.ndarray,
    reference: np.ndarray,
    estimate: np.ndarray,
    lags_s: np.ndarray,
    max_gap_s: float,
    stride: int = 1,
    span_s: tuple[float, float] | None = None,
) -> np.ndarray:
    """
    Compare e(t) with r(t - lag) wherever r is known for every lag.

    :param time_ns: ns, shape (T,)
    :param reference: r in rad/s, shape (T,), NaN where unknown
    :param estimate: e in rad/s, shape (T,), NaN where not to be compared
    :param lags_s: in s, shape (L,)
    :param max_gap_s: r is not interpolated across a longer gap, s
    :param stride: take only every so manieth sample
    :param span_s: lags for which r has to be known, in s; None: those of ``lags_s``
    :returns: errors in rad/s, shape (L, n)
    """
    parts = [np.empty((len(lags_s), 0), dtype=np.float32)]
    least_s, most_s = span_s or (lags_s.min(), lags_s.max())
    rows = np.flatnonzero(np.isfinite(reference))
    for run in unbroken_runs(time_ns[rows], max_gap_s):
        if len(run) < 2:
            continue
        run = rows[run]
        values, told = reference[run], estimate[run]
        period_s = _even_period_s(time_ns[run])
        if period_s:
            first = max(0, int(np.ceil(most_s / period_s - ON_A_SAMPLE)))
            end = len(run) + min(0, int(np.floor(least_s / period_s + ON_A_SAMPLE)))
            points = first + np.flatnonzero(np.isfinite(told[first:end]))[::stride]
            for some in np.array_split(points, len(points) // _POINTS_TOGETHER + 1):
                parts.append(told[some] - _cubic_on_even(values, some, lags_s / period_s))
            continue
        time_s = (time_ns[run] - time_ns[run[0]]) / NANOSECONDS_PER_SECOND
        known = (time_s >= most_s) & (time_s <= time_s[-1] + least_s)
        points = np.flatnonzero(known & np.isfinite(told))[::stride]
        slopes = np.gradient(values, time_s)
        for some in np.array_split(points, len(points) // _POINTS_TOGETHER + 1):
            shifted = _cubic(time_s, values, slopes, time_s[some] - lags_s[:, None])
            parts.append(told[some] - shifted)
    return np.concatenate(parts, axis=1)


def _even_period_s(time_ns: np.ndarray) -> float:
    """Return the period of stamps that are even, 0 if they are not."""
    period_ns = int(time_ns[-1] - time_ns[0]) / (len(time_ns) - 1)
    for begin in range(0, len(time_ns), _POINTS_TOGETHER):
        after_ns = time_ns[begin : begin + _POINTS_TOGETHER] - time_ns[0]
        expected_ns = period_ns * np.arange(begin, begin + len(after_ns))
        if (np.abs(after_ns - expected_ns) > EVEN_NS).any():
            return 0.0
    return period_ns / NANOSECONDS_PER_SECOND


def _cubic_on_even(values: np.ndarray, points: np.ndarray, lags: np.ndarray) -> np.ndarray:
    """Interpolate like :func:`_cubic`: at each lag, all points lie alike between two samples."""
    shifted = np.empty((len(lags), len(points)), dtype=values.dtype)
    for row, lag in zip(shifted, lags):
        back = round(lag)
        if abs(lag - back) < ON_A_SAMPLE:
            row[:] = values[np.clip(points - back, 0, len(values) - 1)]
            continue
        back = int(np.ceil(lag))
        u = back - lag
        left = np.clip(points - back, 0, len(values) - 2)
        start = values[left] * (1.0 + 2.0 * u) + _rise(values, left) * u
        end = values[left + 1] * (3.0 - 2.0 * u) - _rise(values, left + 1) * (1.0 - u)
        row[:] = start * (1.0 - u) ** 2 + end * u**2
    return shifted


def _rise(values: np.ndarray, at: np.ndarray) -> np.ndarray:
    """Return the slope a sample, from both neighbours where there are two."""
    before, after = np.maximum(at - 1, 0), np.minimum(at + 1, len(values) - 1)
    return (values[after] - values[before]) / (after - before).astype(np.float32)


def _cubic(
    time_s: np.ndarray, values: np.ndarray, slopes: np.ndarray, wanted_s: np.ndarray
) -> np.ndarray:
    """Interpolate by cubic Hermite polynomials."""
    left = np.clip(np.searchsorted(time_s, wanted_s, side='right') - 1, 0, len(time_s) - 2)
    step_s = time_s[left + 1] - time_s[left]
    u = (wanted_s - time_s[left]) / step_s
    start = values[left] * (1.0 + 2.0 * u) + slopes[left] * step_s * u
    end = values[left + 1] * (3.0 - 2.0 * u) - slopes[left + 1] * step_s * (1.0 - u)
    return start * (1.0 - u) ** 2 + end * u**2


def standstill(time_ns: np.ndarray, reference: np.ndarray) -> np.ndarray:
    """
    Find where a joint rests: below 0.005 rad/s for 0.1 s before and after.

    :param time_ns: ns, shape (T,)
    :param reference: rad/s, shape (T,)
    :returns: bool, shape (T,)
    """
    moving_ns = np.sort(time_ns[np.abs(reference) >= STANDSTILL_RAD_S])
    margin_ns = round(STANDSTILL_MARGIN_S * NANOSECONDS_PER_SECOND)
    rests = np.isfinite(reference)
    for begin in range(0, len(time_ns), _POINTS_TOGETHER):
        some = slice(begin, begin + _POINTS_TOGETHER)
        first = np.searchsorted(moving_ns, time_ns[some] - margin_ns)
        end = np.searchsorted(moving_ns, time_ns[some] + margin_ns, side='right')
        rests[some] &= first == end
    return rests


def score(
    errors: np.ndarray, rest_errors: np.ndarray, lag_s: float, late_errors: np.ndarray
) -> Score:
    """
    Sum up errors, of one joint or of several.

    :param errors: e - r, rad/s, shape (n,)
    :param rest_errors: those at standstill, shape (m,)
    :param lag_s: the best lag in s, NaN if there is none
    :param late_errors: e(t) - r(t - lag), rad/s, shape (k,)
    :returns: the score
    """
    return Score(
        samples=len(errors),
        rmse=_rms(errors),
        lag_s=lag_s,
        rmse_at_lag=_rms(late_errors),
        p99=_percentile(np.abs(errors), 0.99),
        standstill_rms=_rms(rest_errors),
        rest_samples=len(rest_errors),
    )


def _percentile(sizes: np.ndarray, share: float) -> float:
    """Interpolate between the two nearest, as NumPy does, which makes copies; sorts its input."""
    if not len(sizes):
        return float('nan')
    place = share * (len(sizes) - 1)
    low = int(place)
    high = min(low + 1, len(sizes) - 1)
    sizes.partition((low, high))
    return float(sizes[low] + (place - low) * (sizes[high] - sizes[low]))


def _rms(values: np.ndarray) -> float:
    if not len(values):
        return float('nan')
    # Squares in double precision, without an array of all of them.
    parts = (values[at : at + _POINTS_TOGETHER] for at in range(0, len(values), _POINTS_TOGETHER))
    total = sum(float(np.sum(np.square(part, dtype=np.float64))) for part in parts)
    return float(np.sqrt(total / len(values)))
