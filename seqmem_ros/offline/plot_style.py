"""What all figures share: colours, lines and axes."""

from collections.abc import Iterable

from matplotlib.axes import Axes
from matplotlib.figure import Figure
import numpy as np

from seqmem_ros.core.joints import NANOSECONDS_PER_SECOND
from seqmem_ros.offline.result import Result

# Colours that people with any kind of colour vision can tell apart (Okabe and Ito, "Color
# Universal Design", 2008).
BLACK, SKY_BLUE, VERMILLION, ORANGE = '#000000', '#56B4E9', '#D55E00', '#E69F00'
BLUE, GREEN, PURPLE, YELLOW = '#0072B2', '#009E73', '#CC79A7', '#F0E442'

RAW = 'difference'
_MODELS = (VERMILLION, BLUE, GREEN, PURPLE)
_FILTERS = (ORANGE, GREEN, PURPLE, '#777777', BLUE)
# Colours come again; the kind of line tells them apart even in grey.
_MODEL_LINES = ('-', (0, (6, 1.5)), (0, (3, 1)))
_FILTER_LINES = (':', (0, (4, 1, 1, 1)), '-.')


def styles(result: Result) -> dict[str, dict]:
    """
    Give every estimator a line of its own, the same in all figures.

    :param result: of an evaluation
    :returns: arguments of ``Axes.plot`` by name of the estimator
    """
    chosen: dict[str, dict] = {}
    n_models = n_filters = 0
    for name, each in result.estimators.items():
        if name == RAW:
            chosen[name] = {'color': SKY_BLUE, 'lw': 0.8, 'ls': '-', 'zorder': 1.5}
        elif each.source == 'filter':
            line = _FILTER_LINES[n_filters % len(_FILTER_LINES)]
            color = _FILTERS[n_filters % len(_FILTERS)]
            chosen[name] = {'color': color, 'lw': 1.2, 'ls': line, 'zorder': 2.2}
            n_filters += 1
        else:
            line = _MODEL_LINES[n_models // len(_MODELS) % len(_MODEL_LINES)]
            color = _MODELS[n_models % len(_MODELS)]
            chosen[name] = {'color': color, 'lw': 1.5, 'ls': line, 'zorder': 2.5}
            n_models += 1
    return chosen


def velocities(result: Result) -> list[str]:
    """
    List the estimators of velocity.

    :param result: of an evaluation
    :returns: their names
    """
    return [name for name, each in result.estimators.items() if each.task == 'velocity']


def seconds(result: Result, rows: np.ndarray) -> np.ndarray:
    """
    Count time from the first sample.

    :param result: of an evaluation
    :param rows: indices of messages, shape (n,)
    :returns: s, shape (n,)
    """
    time_ns = result.recording.time_ns
    return (time_ns[rows] - time_ns.min()) / NANOSECONDS_PER_SECOND


def busiest_stretch(result: Result, joints: list[int], longest_s: float) -> np.ndarray:
    """
    Choose the stretch in which some joints move most.

    :param result: of an evaluation
    :param joints: their indices
    :param longest_s: length of the stretch, s
    :returns: rows of the recording in order of time, shape (n,)
    """
    time_ns = result.recording.time_ns
    order = np.argsort(time_ns, kind='stable')
    length_ns = round(longest_s * NANOSECONDS_PER_SECOND)
    if time_ns[order[-1]] - time_ns[order[0]] <= length_ns:
        return order
    motion = np.nan_to_num(result.reference.velocity[np.ix_(order, joints)] ** 2).sum(axis=1)
    total = np.concatenate([[0.0], np.cumsum(motion, dtype=np.float64)])
    ends = np.searchsorted(time_ns[order], time_ns[order] + length_ns, side='right')
    begin = int(np.argmax(total[ends] - total[:-1]))
    return order[begin : ends[begin]]


def joints_by_speed(result: Result) -> list[int]:
    """
    Sort joints by their RMS velocity.

    :param result: of an evaluation
    :returns: indices, the fastest first; those that never move last
    """
    velocity = result.reference.velocity
    known = np.isfinite(velocity)
    squares = np.where(known, velocity, 0.0) ** 2
    speed = np.sqrt(squares.sum(axis=0) / np.maximum(known.sum(axis=0), 1))
    order = np.argsort(-speed, kind='stable')
    return sorted((int(joint) for joint in order), key=lambda joint: not result.moving[joint])


def limits(values: np.ndarray, margin: float) -> tuple[float, float]:
    """
    Choose the range of an axis.

    :param values: to be shown, NaN or not
    :param margin: room on both sides, as a share of their range
    :returns: lowest and highest
    """
    known = values[np.isfinite(values)]
    if not len(known):
        return -1.0, 1.0
    room = margin * max(float(np.ptp(known)), 1e-3)
    return float(known.min()) - room, float(known.max()) + room


def clean(axes: Axes) -> None:
    """
    Leave out of an axis what says nothing.

    :param axes: to be changed
    """
    axes.spines[['top', 'right']].set_visible(False)
    axes.grid(True, color='0.9', lw=0.6)
    axes.set_axisbelow(True)


def legend_below(figure: Figure, sources: Iterable[Axes], most_columns: int = 6) -> None:
    """
    Explain the lines of several axes once.

    :param figure: gets the legend
    :param sources: axes whose lines have labels
    :param most_columns: entries side by side
    """
    entries: dict[str, object] = {}
    for axes in sources:
        for handle, name in zip(*axes.get_legend_handles_labels()):
            entries.setdefault(name, handle)
    if entries:
        figure.legend(
            list(entries.values()),
            list(entries),
            loc='outside lower center',
            # As many in each line as in the others.
            ncols=-(-len(entries) // -(-len(entries) // most_columns)),
            frameon=False,
        )
