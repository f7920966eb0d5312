"""A whole recording at a glance: RMSE against lag, and the RMSE of each joint."""

from matplotlib.figure import Figure
import numpy as np

from seqmem_ros.offline.plot_style import clean
from seqmem_ros.offline.plot_style import legend_below
from seqmem_ros.offline.plot_style import styles
from seqmem_ros.offline.plot_style import velocities
from seqmem_ros.offline.result import Result

_MARKERS = 'osD^vPX*'


def plot_lag(result: Result) -> Figure:
    """
    Draw the RMSE over all joints that move against the lag that is allowed for.

    :param result: of an evaluation with estimators of velocity
    :returns: the figure
    """
    figure = Figure(figsize=(9.0, 5.0), layout='constrained')
    axes = figure.add_subplot()
    lowest, highest = np.inf, 0.0
    for name, style in styles(result).items():
        curve = result.estimators[name].curve
        if curve is None or not curve.samples:
            continue
        rmse = np.sqrt(curve.squares / curve.samples)
        lag_s = curve.best_lag_s()
        best = '' if np.isnan(lag_s) else f' (best at {1000 * lag_s:.1f} ms)'
        axes.plot(1000 * curve.lags_s, rmse, label=name + best, **style)
        if np.isfinite(lag_s):
            axes.plot(1000 * lag_s, rmse.min(), marker='o', ms=5, color=style['color'], zorder=3)
        lowest = min(lowest, float(rmse.min()))
        highest = max(highest, float(np.interp(0.0, curve.lags_s, rmse)))
    if highest:
        axes.set_yscale('log')
        axes.set_ylim(0.7 * max(lowest, 1e-9), 12.0 * highest)
    axes.axvline(0.0, color='0.6', lw=0.8)
    axes.set_xlabel('lag of the estimate behind the reference / ms')
    axes.set_ylabel('RMSE / (rad/s)')
    axes.set_title(
        'RMSE against lag, all joints that move. At 0: the error itself; at the minimum: what is '
        'left beside the delay',
        fontsize=9,
        loc='left',
    )
    clean(axes)
    legend_below(figure, [axes], 3)
    return figure


def plot_joint_errors(result: Result) -> Figure:
    """
    Draw the RMSE of every joint for every estimator.

    :param result: of an evaluation with estimators of velocity
    :returns: the figure
    """
    names = result.recording.names
    figure = Figure(figsize=(9.0, 2.0 + 0.24 * len(names)), layout='constrained')
    axes = figure.add_subplot()
    chosen = styles(result)
    for index, name in enumerate(velocities(result)):
        scores = result.estimators[name].per_joint
        rmse = np.array([scores[joint].rmse for joint in names])
        axes.plot(
            # Zero has no place on a logarithmic axis: a joint that stands still reads just that.
            np.where(rmse > 0.0, rmse, np.nan),
            np.arange(len(names)),
            ls='',
            marker=_MARKERS[index % len(_MARKERS)],
            ms=6,
            color=chosen[name]['color'],
            label=name,
            alpha=0.85,
        )
    titles = [name if moves else f'{name} (still)' for name, moves in zip(names, result.moving)]
    axes.set_yticks(np.arange(len(names)), titles, fontsize=8)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.set_xscale('log')
    axes.set_xlabel('RMSE / (rad/s); no mark: 0')
    clean(axes)
    legend_below(figure, [axes])
    return figure
