"""A whole recording at a glance: RMSE against lag, and the RMSE of each joint."""

from matplotlib.figure import Figure
import numpy as np
from scipy.interpolate import CubicSpline

from seqmem_ros.offline.metrics import LagCurve
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
        lag_s = curve.best_lag_s()
        best = '' if np.isnan(lag_s) else f' (best at {round(1000 * lag_s, 1) + 0.0:.1f} ms)'
        lags_s, rmse = _smooth(curve, lag_s)
        axes.plot(1000 * lags_s, rmse, label=name + best, **style)
        if np.isfinite(lag_s):
            there = rmse[np.searchsorted(lags_s, lag_s)]
            axes.plot(1000 * lag_s, there, marker='o', ms=5, color=style['color'], zorder=3)
        lowest = min(lowest, float(rmse.min()))
        highest = max(highest, float(rmse.max()))
    if highest:
        axes.set_yscale('log')
        axes.set_ylim(0.7 * max(lowest, 1e-9), 1.4 * highest)
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


def _smooth(curve: LagCurve, lag_s: float) -> tuple[np.ndarray, np.ndarray]:
    """Draw between the lags of the grid, where the minimum is; it is quadratic there."""
    lags_s = np.linspace(curve.lags_s[0], curve.lags_s[-1], 10 * len(curve.lags_s))
    if np.isfinite(lag_s):
        lags_s = np.union1d(lags_s, lag_s)
    means = CubicSpline(curve.lags_s, curve.squares)(lags_s) / curve.samples
    return lags_s, np.sqrt(np.maximum(means, 1e-3 * curve.squares.min() / curve.samples))


def plot_joint_errors(result: Result) -> Figure:
    """
    Draw the RMSE of every joint for every estimator.

    :param result: of an evaluation with estimators of velocity
    :returns: the figure
    """
    chosen = _joints_with_errors(result)
    names = [result.recording.names[joint] for joint in chosen]
    figure = Figure(figsize=(9.0, 2.0 + 0.24 * len(names)), layout='constrained')
    axes = figure.add_subplot()
    lines = styles(result)
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
            color=lines[name]['color'],
            label=name,
            alpha=0.85,
        )
    moving = result.moving[chosen]
    titles = [name if moves else f'{name} (still)' for name, moves in zip(names, moving)]
    axes.set_yticks(np.arange(len(names)), titles, fontsize=8)
    axes.set_ylim(len(names) - 0.5, -0.5)
    if any(result.estimators[name].total.rmse for name in velocities(result)):
        axes.set_xscale('log')
    left_out = len(result.recording.names) - len(names)
    others = f'; {left_out} joints with an RMSE of 0 are left out' if left_out else ''
    axes.set_xlabel(f'RMSE / (rad/s); no mark: 0{others}')
    clean(axes)
    legend_below(figure, [axes])
    return figure


def _joints_with_errors(result: Result) -> list[int]:
    """Leave out joints that stand still and are said to; all joints if all do."""
    scores = [result.estimators[name].per_joint for name in velocities(result)]
    names = result.recording.names
    chosen = [
        joint
        for joint, name in enumerate(names)
        if result.moving[joint] or any(each[name].rmse > 0.0 for each in scores)
    ]
    return chosen or list(range(len(names)))
