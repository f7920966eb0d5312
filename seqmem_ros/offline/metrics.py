"""How far an estimate is from the reference, and how late."""

from dataclasses import dataclass

import numpy as np

from seqmem_ros.core.joints import NANOSECONDS_PER_SECOND
from seqmem_ros.offline.reference import median_period_s
from seqmem_ros.offline.shifted import PIECE
from seqmem_ros.offline.shifted import shifted_errors

STANDSTILL_RAD_S = 0.005
STANDSTILL_MARGIN_S = 0.1
LONGEST_LAG_S = 0.2
LONGEST_LEAD_S = 0.05
SMALLEST_LAG_STEP_S = 0.002
# Enough to find a minimum; more would only take longer.
LAG_SAMPLES = 20_000
_LAGS_TOGETHER = 32


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
    for begin in range(0, len(time_ns), PIECE):
        some = slice(begin, begin + PIECE)
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
    parts = (values[at : at + PIECE] for at in range(0, len(values), PIECE))
    total = sum(float(np.sum(np.square(part, dtype=np.float64))) for part in parts)
    return float(np.sqrt(total / len(values)))
