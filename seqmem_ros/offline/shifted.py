"""Estimates against a reference that is shifted in time, by cubic interpolation."""

import numpy as np

from seqmem_ros.core.joints import NANOSECONDS_PER_SECOND
from seqmem_ros.offline.reference import unbroken_runs

# So many samples at once: arrays as long as a recording, several of them, would fill memory.
PIECE = 50_000
# What 100 ns make of a reference that changes by 10 rad/s^2 is 1e-6 rad/s.
EVEN_NS = 100.0
# So near to a sample, in periods, nothing is left to interpolate.
ON_A_SAMPLE = 1e-6


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
            for some in np.array_split(points, len(points) // PIECE + 1):
                parts.append(told[some] - _cubic_on_even(values, some, lags_s / period_s))
            continue
        time_s = (time_ns[run] - time_ns[run[0]]) / NANOSECONDS_PER_SECOND
        known = (time_s >= most_s) & (time_s <= time_s[-1] + least_s)
        points = np.flatnonzero(known & np.isfinite(told))[::stride]
        slopes = np.gradient(values, time_s)
        for some in np.array_split(points, len(points) // PIECE + 1):
            shifted = _cubic(time_s, values, slopes, time_s[some] - lags_s[:, None])
            parts.append(told[some] - shifted)
    return np.concatenate(parts, axis=1)


def _even_period_s(time_ns: np.ndarray) -> float:
    """Return the period of stamps that are even, 0 if they are not."""
    period_ns = int(time_ns[-1] - time_ns[0]) / (len(time_ns) - 1)
    for begin in range(0, len(time_ns), PIECE):
        after_ns = time_ns[begin : begin + PIECE] - time_ns[0]
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
