"""One figure of the scores: how far from the oracle, by rate and resolution."""

from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure
import numpy as np
from velocity_scores import geometric_mean
from velocity_scores import ORACLE
from velocity_scores import Scores

# Reads the same to eyes that do not tell red from green: purple is better than the oracle.
COLOURS = 'PuOr_r'
RANGE = 4.0


def plot(all_scores: list[Scores], path: Path) -> None:
    """
    Draw one map for each of the best filter and the models, a row of maps for each suite.

    :param all_scores: of :func:`velocity_scores.score`, one for each suite
    :param path: where to write; the suffix says the format
    """
    columns = max(len(scores.models) for scores in all_scores) + 1
    heights = [len(_rows(scores)) + 2.5 for scores in all_scores]
    figure = Figure(figsize=(3.1 * columns + 1.0, 0.42 * sum(heights)), layout='constrained')
    axes = figure.subplots(len(all_scores), columns, squeeze=False, height_ratios=heights)
    for line, scores in zip(axes, all_scores):
        best = scores.best_filter()
        for axis, name in zip(line, [best, *scores.models]):
            image = _map(axis, scores, name)
            title = f'{name}, tuned once' if name == best else name
            axis.set_title(f'{scores.suite.name}: {title}', fontsize=10)
            axis.tick_params(labelleft=name == best)
    bar = figure.colorbar(image, ax=axes, shrink=0.6, aspect=30)
    bar.set_label('RMSE / RMSE of the Kalman filter tuned on each recording')
    ticks = [0.25, 0.5, 1.0, 2.0, 4.0]
    bar.set_ticks(ticks, labels=[f'{tick:g}' for tick in ticks])
    bar.minorticks_off()
    figure.savefig(path, dpi=110)


def _rows(scores: Scores) -> list[tuple[str, int]]:
    """Give (name, rate); the kinds of a simulated suite are averaged."""
    cells = dict.fromkeys(scores.suite.cells)
    real = scores.suite.name != 'simulated'
    return list(dict.fromkeys((cell.motion if real else '', cell.rate_hz) for cell in cells))


def _map(axis: Axes, scores: Scores, name: str) -> object:
    rows = _rows(scores)
    bits = sorted({cell.bits for cell in scores.suite.cells})
    ratios = scores.ratio(name, ORACLE)
    values = np.array(
        [
            [
                geometric_mean(
                    ratio
                    for cell, ratio in ratios.items()
                    if cell.motion.startswith(motion) and (cell.rate_hz, cell.bits) == (rate, b)
                )
                for b in bits
            ]
            for motion, rate in rows
        ]
    )
    norm = LogNorm(1 / RANGE, RANGE)
    image = axis.imshow(values, cmap=COLOURS, norm=norm, aspect='auto')
    for (row, column), value in np.ndenumerate(values):
        # Black on the pale middle, white on both dark ends.
        dark = abs(np.log(value)) > 0.62 * np.log(RANGE)
        colour = 'white' if dark else 'black'
        axis.text(column, row, f'{value:.2f}', ha='center', va='center', color=colour, fontsize=8)
    axis.set_xticks(range(len(bits)), [str(b) for b in bits])
    axis.set_xlabel('bits per revolution')
    axis.set_yticks(range(len(rows)), [f'{m} {rate} Hz'.strip() for m, rate in rows], fontsize=8)
    return image
