"""The picture of how a training went."""

from pathlib import Path

from matplotlib.figure import Figure
import numpy as np

from seqmem_ros.offline.resumable import History

SKY_BLUE, BLUE, VERMILLION = '#56B4E9', '#0072B2', '#D55E00'
_SMOOTHED_OVER = 50


def plot_history(history: History, task: str, title: str, path: str | Path) -> None:
    """
    Draw the loss of every step, its running mean, and the loss on what is held out.

    :param history: of the training
    :param task: ``velocity`` or ``label``, says what the loss is
    :param title: above the picture
    :param path: where to write; the suffix says the format
    """
    figure = Figure(figsize=(7.5, 4.2), layout='constrained')
    axes = figure.add_subplot()
    steps = np.arange(1, len(history.losses) + 1)
    axes.plot(steps, history.losses, color=SKY_BLUE, lw=0.6, alpha=0.6, label='each step')
    width = max(1, min(_SMOOTHED_OVER, len(steps) // 10))
    mean = np.convolve(np.nan_to_num(history.losses), np.ones(width) / width, mode='valid')
    axes.plot(steps[width - 1 :], mean, color=BLUE, lw=1.8, label=f'mean over {width} steps')
    if history.checks:
        axes.plot(*zip(*history.checks), 'o-', color=VERMILLION, ms=4, label='held out')
    # The first steps may be far above all others.
    low, high = np.nanmin(history.losses), np.nanpercentile(history.losses, 99.5)
    axes.set_ylim(low - 0.05 * (high - low), high + 0.15 * (high - low))
    axes.set_xlabel('steps of gradient descent')
    axes.set_ylabel('cross-entropy, nats' if task == 'label' else 'mean ln(RMSE in rad/s)')
    axes.set_title(title, fontsize=11)
    axes.grid(alpha=0.3)
    axes.legend(frameon=False)
    figure.savefig(path, dpi=130)
