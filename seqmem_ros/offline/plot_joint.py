"""One joint: reference, raw difference, all estimates, and their errors."""

from matplotlib.axes import Axes
from matplotlib.figure import Figure
import numpy as np

from seqmem_ros.core.joints import NANOSECONDS_PER_SECOND
from seqmem_ros.offline.plot_style import BLACK
from seqmem_ros.offline.plot_style import busiest_stretch
from seqmem_ros.offline.plot_style import clean
from seqmem_ros.offline.plot_style import legend_below
from seqmem_ros.offline.plot_style import limits
from seqmem_ros.offline.plot_style import RAW
from seqmem_ros.offline.plot_style import seconds
from seqmem_ros.offline.plot_style import styles
from seqmem_ros.offline.plot_style import velocities
from seqmem_ros.offline.result import Result

SHOWN_S = 8.0
CLOSE_UP_S = 0.8
# Where there is no error, an axis with plain numbers says so.
NO_ERROR_RAD_S = 1e-3


def plot_joint(result: Result, joint: int) -> Figure:
    """
    Draw one joint where it moves most, a close-up of it, and the errors.

    :param result: of an evaluation with estimators of velocity
    :param joint: index of the joint
    :returns: the figure
    """
    rows = busiest_stretch(result, [joint], SHOWN_S)
    figure = Figure(figsize=(11.0, 5.6), layout='constrained')
    grid = figure.add_gridspec(2, 2, height_ratios=[1.7, 1.0], width_ratios=[2.1, 1.0])
    above, close_up = figure.add_subplot(grid[0, 0]), figure.add_subplot(grid[:, 1])
    below = figure.add_subplot(grid[1, 0], sharex=above)
    near = _liveliest_part(result, rows, joint)
    _draw_velocity(above, result, rows, joint)
    _draw_velocity(close_up, result, near, joint)
    _draw_errors(below, result, rows, joint)
    if len(near) < len(rows):
        time_s = seconds(result, near)
        above.axvspan(time_s[0], time_s[-1], color='0.93', zorder=0)
        close_up.set_title('close-up of the grey part', fontsize=9, loc='left')
    above.tick_params(labelbottom=False)
    for axes in (below, close_up):
        axes.set_xlabel('time / s')
    legend_below(figure, [above])
    figure.suptitle(_title(result, joint), fontsize=10, x=0.01, ha='left')
    return figure


def _liveliest_part(result: Result, rows: np.ndarray, joint: int) -> np.ndarray:
    """Choose where the velocity changes most, which is where estimates differ."""
    time_s = seconds(result, rows)
    reference = np.nan_to_num(result.reference.velocity[rows, joint])
    change = np.append(np.abs(np.diff(reference)), 0.0)
    total = np.concatenate([[0.0], np.cumsum(change)])
    ends = np.searchsorted(time_s, time_s + CLOSE_UP_S, side='right')
    begin = int(np.argmax(total[ends] - total[:-1]))
    return rows[begin : max(ends[begin], begin + 2)]


def _draw_velocity(axes: Axes, result: Result, rows: np.ndarray, joint: int) -> None:
    time_s = seconds(result, rows)
    reference = result.reference.velocity[rows, joint]
    shown = [reference]
    axes.plot(time_s, reference, color=BLACK, lw=2.4, label='reference', zorder=2)
    for name, style in styles(result).items():
        if name in velocities(result):
            estimate = result.estimators[name].outputs[rows, joint]
            axes.plot(time_s, estimate, label='raw difference' if name == RAW else name, **style)
            # The difference may spike out of the picture, an estimate may not.
            shown += [] if name == RAW and len(velocities(result)) > 1 else [estimate]
    axes.set_ylim(*limits(np.concatenate(shown), margin=0.12))
    axes.set_ylabel('velocity / (rad/s)')
    axes.margins(x=0.01)
    clean(axes)


def _draw_errors(axes: Axes, result: Result, rows: np.ndarray, joint: int) -> None:
    time_s = seconds(result, rows)
    reference = result.reference.velocity[rows, joint]
    largest = {}
    for name, style in styles(result).items():
        if name in velocities(result):
            error = result.estimators[name].outputs[rows, joint] - reference
            # What is behind the difference shall be seen through it.
            faint = 0.45 if name == RAW else 1.0
            axes.plot(time_s, error, **{**style, 'lw': 0.8, 'alpha': faint})
            largest[name] = float(np.nanmax(np.abs(error), initial=0.0))
    raw = largest.pop(RAW, 0.0) if len(largest) > 1 else 0.0
    limit = max(largest.values()) or NO_ERROR_RAD_S
    if raw > limit:
        axes.set_title(
            f'the raw difference is off by up to {raw:.3g} rad/s', fontsize=8, loc='right'
        )
    axes.axhline(0.0, color=BLACK, lw=0.5)
    axes.set_ylim(-1.2 * limit, 1.2 * limit)
    axes.set_ylabel('error / (rad/s)')
    clean(axes)


def _title(result: Result, joint: int) -> str:
    name = result.recording.names[joint]
    numbers = [
        f'{estimator} {result.estimators[estimator].per_joint[name].rmse:.4f}'
        for estimator in velocities(result)
    ]
    time_ns = result.recording.time_ns
    longer = np.ptp(time_ns) > SHOWN_S * NANOSECONDS_PER_SECOND
    where = f', the {SHOWN_S:g} s in which it moves most' if longer else ''
    still = '' if result.moving[joint] else ' (never moves)'
    half = -(-len(numbers) // 2) if len(numbers) > 6 else len(numbers)
    lines = [', '.join(numbers[:half]), ', '.join(numbers[half:])]
    return f'{name}{still}{where}\nRMSE / (rad/s): ' + '\n'.join(line for line in lines if line)
