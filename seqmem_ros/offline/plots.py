"""One figure that shows an estimate beside the reference, and its error."""

from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure
import numpy as np

from seqmem_ros.offline.plot_style import BLACK
from seqmem_ros.offline.plot_style import busiest_stretch
from seqmem_ros.offline.plot_style import clean
from seqmem_ros.offline.plot_style import joints_by_speed
from seqmem_ros.offline.plot_style import limits
from seqmem_ros.offline.plot_style import seconds
from seqmem_ros.offline.plot_style import SKY_BLUE
from seqmem_ros.offline.plot_style import VERMILLION
from seqmem_ros.offline.result import EstimatorResult
from seqmem_ros.offline.result import Result

MOST_JOINTS = 6
LONGEST_S = 10.0
_RAW = 'difference'


def plot_result(result: Result, path: str | Path) -> None:
    """
    Draw reference, raw difference, estimate and errors of the joints that move most.

    :param result: of an evaluation
    :param path: where to write; the suffix says the format
    """
    joints = _joints_that_move_most(result)
    rows = busiest_stretch(result, joints, LONGEST_S)
    columns = 1 if len(joints) <= 2 else 2
    lines = -(-len(joints) // columns)
    figure = Figure(figsize=(7.5 * columns + 1.0, 3.6 * lines + 1.4), layout='constrained')
    grid = figure.add_gridspec(2 * lines, columns, height_ratios=[2.2, 1.0] * lines)
    shown = _shown_estimator(result)
    for index, joint in enumerate(joints):
        line, column = divmod(index, columns)
        above = figure.add_subplot(grid[2 * line, column])
        below = figure.add_subplot(grid[2 * line + 1, column], sharex=above)
        _draw_velocity(above, result, rows, joint, shown)
        _draw_below(below, result, rows, joint, shown)
        above.tick_params(labelbottom=False)
        if line < lines - 1 and index + columns < len(joints):
            below.set_xlabel('')
    entries = [axes.get_legend_handles_labels() for axes in figure.axes[:2]]
    handles, names = (first + second for first, second in zip(*entries))
    figure.legend(
        handles, names, loc='outside lower center', ncols=len(names), markerscale=5, frameon=False
    )
    figure.suptitle(_title(result, joints, rows, shown), fontsize=11)
    figure.savefig(path, dpi=130)


def _joints_that_move_most(result: Result) -> list[int]:
    """Take the joints of the largest RMS velocity, in the order of the message."""
    most = joints_by_speed(result)[:MOST_JOINTS]
    return sorted([joint for joint in most if result.moving[joint]] or most[:1])


def _shown_estimator(result: Result) -> str:
    """Prefer a model over the filters, velocity over labels, then what is best."""

    def rank(name: str) -> tuple:
        each = result.estimators[name]
        error = getattr(each.total, 'rmse', 0.0)
        return each.source == 'filter', each.task != 'velocity', name == _RAW, error

    return min(result.estimators, key=rank)


def _draw_velocity(axes: Axes, result: Result, rows: np.ndarray, joint: int, shown: str) -> None:
    time_s = seconds(result, rows)
    reference = result.reference.velocity[rows, joint]
    raw = result.estimators.get(_RAW)
    if raw is not None and shown != _RAW:
        axes.plot(time_s, raw.outputs[rows, joint], color=SKY_BLUE, lw=0.7, label='raw difference')
    axes.plot(time_s, reference, color=BLACK, lw=1.8, label='reference')
    if result.estimators[shown].task == 'velocity':
        estimate = result.estimators[shown].outputs[rows, joint]
        axes.plot(time_s, estimate, color=VERMILLION, lw=1.0, ls=(0, (5, 1)), label=shown)
    axes.set_title(result.recording.names[joint], fontsize=10, loc='left')
    axes.set_ylabel('velocity / (rad/s)')
    axes.set_ylim(*limits(reference, margin=0.25))
    axes.margins(x=0.01)
    clean(axes)


def _draw_below(axes: Axes, result: Result, rows: np.ndarray, joint: int, shown: str) -> None:
    each = result.estimators[shown]
    if each.task == 'velocity':
        _draw_errors(axes, result, rows, joint, shown)
    else:
        _draw_labels(axes, result, rows, joint, each)
    axes.set_xlabel('time / s')
    clean(axes)


def _draw_errors(axes: Axes, result: Result, rows: np.ndarray, joint: int, shown: str) -> None:
    time_s = seconds(result, rows)
    reference = result.reference.velocity[rows, joint]
    largest = [1e-6]
    # The difference may spike out of the picture, the estimate may not.
    for name, color, width, share in ((_RAW, SKY_BLUE, 0.6, 99), (shown, VERMILLION, 0.9, 100)):
        if name in result.estimators:
            error = result.estimators[name].outputs[rows, joint] - reference
            axes.plot(time_s, error, color=color, lw=width)
            known = np.abs(error[np.isfinite(error)])
            largest.append(float(np.percentile(known, share)) if len(known) else 0.0)
    axes.axhline(0.0, color=BLACK, lw=0.5)
    axes.set_ylim(-1.15 * max(largest), 1.15 * max(largest))
    axes.set_ylabel('error / (rad/s)')


def _draw_labels(
    axes: Axes, result: Result, rows: np.ndarray, joint: int, each: EstimatorResult
) -> None:
    column = joint if each.outputs.shape[1] == len(result.recording.names) else 0
    scores = each.outputs[rows, column]
    known = np.isfinite(scores).all(axis=1)
    winners = np.where(known, np.nan_to_num(scores).argmax(axis=1), np.nan)
    series = [('predicted label', VERMILLION, winners - 0.15)]
    if each.expected is not None:
        truth = each.expected[rows, joint]
        series.append(('label of the reference', BLACK, np.where(truth < 0, np.nan, truth + 0.15)))
    for label, color, heights in series:
        axes.plot(seconds(result, rows), heights, color=color, lw=0, marker='.', ms=2, label=label)
    axes.set_yticks(range(len(each.labels)), each.labels, fontsize=7)
    axes.set_ylim(-0.5, len(each.labels) - 0.5)


def _title(result: Result, joints: list[int], rows: np.ndarray, shown: str) -> str:
    hidden = len(result.recording.names) - len(joints)
    time_s = seconds(result, rows)
    total = result.estimators[shown].total
    parts = [f'{shown} on {Path(result.bag).name}, {result.input}']
    numbers = []
    if hasattr(total, 'rmse'):
        raw = result.estimators.get(_RAW)
        beside = f' (difference: {raw.total.rmse:.4f})' if raw and shown != _RAW else ''
        numbers.append(f'RMSE over all moving joints {total.rmse:.4f} rad/s{beside}')
    elif total is not None:
        numbers.append(f'macro-F1 over all joints {total.macro_f1:.3f}')
    if len(rows) < len(result.recording.time_ns):
        numbers.append(f'{time_s[0]:.1f} to {time_s[-1]:.1f} s, where they move most')
    if hidden:
        shown_joints = f'{len(joints)} joints that move' if len(joints) > 1 else 'joint that moves'
        numbers.append(f'the {shown_joints} most, {hidden} hidden')
    return '\n'.join([*parts, '; '.join(numbers)])
