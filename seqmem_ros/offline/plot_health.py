"""The recording itself: when messages came, and which joints they carried."""

from matplotlib.axes import Axes
from matplotlib.figure import Figure
import numpy as np

from seqmem_ros.core.joints import NANOSECONDS_PER_SECOND
from seqmem_ros.offline.plot_style import BLUE
from seqmem_ros.offline.plot_style import clean
from seqmem_ros.offline.plot_style import VERMILLION
from seqmem_ros.offline.result import Result

MOST_POINTS = 20_000
MOST_JOINTS = 12


def plot_health(result: Result) -> Figure:
    """
    Draw periods, their histogram, and record time against stamp; joints that come and go.

    :param result: of an evaluation
    :returns: the figure
    """
    absent = sorted(result.health.absent, key=lambda name: -result.health.absent[name])
    shown = absent[:MOST_JOINTS]
    heights = [1.0, 1.0] + ([0.2 + 0.09 * len(shown)] if shown else [])
    figure = Figure(figsize=(11.0, 5.0 + 0.3 * len(shown)), layout='constrained')
    grid = figure.add_gridspec(len(heights), 2, height_ratios=heights, width_ratios=[1.7, 1.0])
    _draw_periods(figure.add_subplot(grid[0, 0]), result)
    _draw_histogram(figure.add_subplot(grid[:2, 1]), result)
    _draw_delay(figure.add_subplot(grid[1, 0]), result)
    if shown:
        _draw_presence(figure.add_subplot(grid[2, :]), result, shown, len(absent))
    return figure


def _every(result: Result) -> np.ndarray:
    n_rows = len(result.recording.stamp_ns)
    return np.arange(0, n_rows, max(1, n_rows // MOST_POINTS))


def _draw_periods(axes: Axes, result: Result) -> None:
    time_ns = result.recording.time_ns
    rows = _every(result)[1:]
    steps_ms = (time_ns[rows] - time_ns[rows - 1]) / 1e6
    time_s = (time_ns[rows] - time_ns.min()) / NANOSECONDS_PER_SECOND
    axes.plot(time_s, steps_ms, ls='', marker='.', ms=2, color=BLUE)
    _no_closer(axes, 0.02 * float(np.median(steps_ms)) if len(steps_ms) else 1.0)
    axes.set_ylabel('since the last stamp / ms')
    axes.set_xlabel('time / s')
    clean(axes)


def _draw_histogram(axes: Axes, result: Result) -> None:
    health = result.health
    edges_ms = 1000 * health.jitter_edges_s
    axes.stairs(np.maximum(health.jitter_counts, 0.3), edges_ms, fill=True, color=BLUE)
    axes.set_yscale('log')
    axes.set_ylim(bottom=0.5)
    low_ms, high_ms = (1000 * value for value in health.period_range_s)
    for value in (low_ms, high_ms):
        axes.axvline(value, color=VERMILLION, lw=1.2, ls='--')
    axes.set_xlabel('period / ms')
    axes.set_ylabel('messages')
    axes.set_title(
        f'98 % of the periods from {low_ms:.3g} to {high_ms:.3g} ms (dashed)\n'
        'longer ones count in the last bin',
        fontsize=9,
        loc='left',
    )
    clean(axes)


def _draw_delay(axes: Axes, result: Result) -> None:
    recording = result.recording
    rows = _every(result)
    rows = rows[recording.stamp_ns[rows] != 0]
    axes.set_xlabel('time / s')
    axes.set_ylabel('record time - stamp / ms')
    clean(axes)
    if not len(rows):
        axes.text(0.5, 0.5, 'no message has a stamp', ha='center', transform=axes.transAxes)
        return
    delay_ms = (recording.record_ns[rows] - recording.stamp_ns[rows]) / 1e6
    time_s = (recording.time_ns[rows] - recording.time_ns.min()) / NANOSECONDS_PER_SECOND
    axes.plot(time_s, delay_ms, ls='', marker='.', ms=2, color=BLUE)
    _no_closer(axes, 0.1)


def _no_closer(axes: Axes, least_ms: float) -> None:
    """Widen a range within which nothing is worth to be seen, such as the last digit."""
    low, high = axes.get_ylim()
    more = max(0.0, abs(least_ms) - (high - low)) / 2
    axes.set_ylim(low - more, high + more)
    axes.ticklabel_format(axis='y', useOffset=False)


def _draw_presence(axes: Axes, result: Result, shown: list[str], n_absent: int) -> None:
    recording = result.recording
    rows = _every(result)
    time_s = (recording.time_ns[rows] - recording.time_ns.min()) / NANOSECONDS_PER_SECOND
    for index, name in enumerate(shown):
        there = np.isfinite(recording.position[rows, recording.names.index(name)])
        axes.plot(time_s[there], np.full(there.sum(), index), ls='', marker='|', ms=6, color=BLUE)
    axes.set_yticks(range(len(shown)), shown, fontsize=7)
    axes.set_ylim(len(shown) - 0.5, -0.5)
    axes.set_xlabel('time / s')
    more = f', {n_absent - len(shown)} more not shown' if n_absent > len(shown) else ''
    axes.set_title(f'joints that not every message carries{more}', fontsize=9, loc='left')
    clean(axes)
