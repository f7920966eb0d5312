"""Labels: which are taken for which, when, and how late."""

from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator
import numpy as np

from seqmem_ros.offline.plot_style import BLUE
from seqmem_ros.offline.plot_style import busiest_stretch
from seqmem_ros.offline.plot_style import clean
from seqmem_ros.offline.plot_style import GREEN
from seqmem_ros.offline.plot_style import joints_by_speed
from seqmem_ros.offline.plot_style import ORANGE
from seqmem_ros.offline.plot_style import PURPLE
from seqmem_ros.offline.plot_style import seconds
from seqmem_ros.offline.plot_style import SKY_BLUE
from seqmem_ros.offline.plot_style import VERMILLION
from seqmem_ros.offline.plot_style import YELLOW
from seqmem_ros.offline.result import EstimatorResult
from seqmem_ros.offline.result import Result

SHOWN_S = 20.0
MOST_COLUMNS = 8
_COLORS = ('#CCCCCC', ORANGE, BLUE, GREEN, VERMILLION, PURPLE, SKY_BLUE, YELLOW)
_LONGEST_DELAY_S = 0.5


def plot_confusion(each: EstimatorResult) -> Figure:
    """
    Draw which label is taken for which.

    :param each: a label estimator with a score
    :returns: the figure
    """
    counts = each.total.confusion
    share = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    size = 2.6 + 0.75 * len(each.labels)
    figure = Figure(figsize=(size + 1.6, size), layout='constrained')
    axes = figure.add_subplot()
    image = axes.imshow(share, cmap='Blues', vmin=0.0, vmax=1.0)
    for row, column in np.ndindex(*counts.shape):
        color = 'white' if share[row, column] > 0.6 else 'black'
        text = f'{100 * share[row, column]:.0f} %\n{counts[row, column]}'
        axes.text(column, row, text, ha='center', va='center', color=color, fontsize=8)
    ticks = range(len(each.labels))
    axes.set_xticks(ticks, each.labels, rotation=30, ha='right')
    axes.set_yticks(ticks, each.labels)
    axes.set_xlabel('predicted label')
    axes.set_ylabel('true label')
    figure.colorbar(image, ax=axes, shrink=0.8, label='share of the true label')
    axes.set_title(
        f'macro-F1 {each.total.macro_f1:.3f}, accuracy {each.total.accuracy:.3f}',
        fontsize=10,
        loc='left',
    )
    return figure


def plot_timeline(result: Result, each: EstimatorResult) -> Figure:
    """
    Draw true and predicted labels over time, for the joints that move most.

    :param result: of an evaluation
    :param each: a label estimator with a score
    :returns: the figure
    """
    fastest = joints_by_speed(result)[:MOST_COLUMNS]
    fastest = [joint for joint in fastest if result.moving[joint]] or fastest[:1]
    columns = [0] if each.outputs.shape[1] == 1 else fastest
    rows = busiest_stretch(result, fastest, SHOWN_S)
    predicted = np.nan_to_num(each.outputs[rows]).argmax(axis=2)
    predicted = np.where(np.isfinite(each.outputs[rows]).all(axis=2), predicted, -1)
    figure = Figure(figsize=(11.0, 1.6 + 0.62 * len(columns)), layout='constrained')
    grid = figure.subplots(len(columns), 1, sharex=True, squeeze=False)[:, 0]
    for axes, column in zip(grid, columns):
        name = 'whole arm' if each.whole_arm else result.recording.names[column]
        _draw_bands(axes, seconds(result, rows), each.expected[rows, column], predicted[:, column])
        axes.set_ylabel(name, rotation=0, ha='right', va='center', fontsize=8)
    grid[-1].set_xlabel('time / s')
    patches = [
        Patch(color=_COLORS[index % len(_COLORS)], label=label)
        for index, label in enumerate(each.labels)
    ]
    figure.legend(handles=patches, loc='outside lower center', ncols=min(8, len(patches)),
                  frameon=False)  # fmt: skip
    grid[0].set_title(_timeline_title(result, rows, columns), fontsize=9, loc='left')
    return figure


def _timeline_title(result: Result, rows: np.ndarray, columns: list[int]) -> str:
    parts = ['upper band: true, lower band: predicted, white: none']
    if len(rows) < len(result.recording.time_ns):
        parts.append(f'the {SHOWN_S:g} s in which they move most')
    if len(columns) == MOST_COLUMNS < len(result.recording.names):
        parts.append(f'the {MOST_COLUMNS} joints that move most')
    return '; '.join(parts)


def _draw_bands(
    axes: Axes, time_s: np.ndarray, expected: np.ndarray, predicted: np.ndarray
) -> None:
    colors = ListedColormap(['white', *_COLORS])
    for values, low in ((expected, 0.5), (predicted, 0.0)):
        shown = np.where(values < 0, 0, values % len(_COLORS) + 1)
        starts = np.append(0, np.flatnonzero(np.diff(shown)) + 1)
        ends = np.append(starts[1:], len(shown) - 1)
        spans = np.stack([time_s[starts], time_s[ends] - time_s[starts]], axis=1)
        axes.broken_barh(spans, (low, 0.48), color=[colors(int(shown[s])) for s in starts], lw=0)
    axes.set_ylim(0.0, 1.0)
    axes.set_xlim(time_s[0], time_s[-1])
    axes.set_yticks([])
    axes.spines[['top', 'right', 'left']].set_visible(False)


def plot_delay(each: EstimatorResult) -> Figure:
    """
    Draw how late changes of the label are told.

    :param each: a label estimator with a score
    :returns: the figure
    """
    delays_s, missed = each.total.delays_s, each.total.missed
    figure = Figure(figsize=(7.5, 3.6), layout='constrained')
    axes = figure.add_subplot()
    longest_s = min(_LONGEST_DELAY_S, float(delays_s.max(initial=0.01)) * 1.05)
    edges_ms = np.linspace(0.0, 1000 * longest_s, 41)
    axes.hist(np.clip(1000 * delays_s, 0.0, edges_ms[-1]), edges_ms, color=BLUE)
    if len(delays_s):
        median_ms = 1000 * each.total.median_delay_s
        axes.axvline(median_ms, color=VERMILLION, lw=1.5, ls='--')
    axes.set_xlabel('delay from a change of the true label until it is told / ms')
    axes.set_ylabel('changes')
    axes.yaxis.set_major_locator(MaxNLocator(integer=True))
    median = f'median {1000 * each.total.median_delay_s:.0f} ms (dashed)' if len(delays_s) else ''
    axes.set_title(
        f'{len(delays_s)} changes told, {median}; {missed} not told before the next one',
        fontsize=9,
        loc='left',
    )
    clean(axes)
    return figure
