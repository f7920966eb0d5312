"""The bars that a shipped model has to clear."""

from dataclasses import dataclass

import numpy as np
from velocity_scores import geometric_mean
from velocity_scores import ORACLE
from velocity_scores import Scores
from velocity_suite import Cell

# Most that a model's error may be, as a share of a peer's; see docs/accuracy.md.
MOST = {
    ('simulated', 'best filter'): 0.60,
    ('simulated', ORACLE): 1.0,
    ('real', 'best filter'): 0.80,
    ('real', ORACLE): 1.1,
    ('real', 'worst cell'): 1.5,
}
MOST_STANDSTILL = 1.0
MOST_PEAK = 3.0
STILL = 'still'


@dataclass(frozen=True)
class Bar:
    """
    One number that has a limit.

    :param model: whose
    :param what: which
    :param value: the number
    :param most: its limit, None where it is only told
    """

    model: str
    what: str
    value: float
    most: float | None = None

    @property
    def met(self) -> bool:
        """Whether the number keeps to its limit, if it has one."""
        return self.most is None or self.value <= self.most

    def __str__(self) -> str:
        line = f'{self.model:<12} {self.what:<62} {self.value:6.3f}'
        if self.most is None:
            return line
        return f'{line}  {"met" if self.met else "NOT met"} (at most {self.most:g})'


def list_bars(scores: Scores) -> list[Bar]:
    """
    Compare every model with the best filter and the oracle, over the cells of the suite.

    :param scores: of :func:`velocity_scores.score`
    :returns: the bars of all models
    """
    suite, best = scores.suite.name, scores.best_filter()
    bars = []
    for model in scores.models:
        to_best, to_oracle = (scores.ratio(model, peer) for peer in (best, ORACLE))
        worst = max(to_oracle, key=to_oracle.get)
        bars += [
            Bar(model, f'{suite}: RMSE / {best}', _mean(to_best), MOST[suite, 'best filter']),
            Bar(model, f'{suite}: RMSE / oracle', _mean(to_oracle), MOST[suite, ORACLE]),
            Bar(
                model, f'{suite}: worst cell / oracle: {worst}', to_oracle[worst],
                MOST.get((suite, 'worst cell')),
            ),
        ]  # fmt: skip
        bars += _without_still(model, to_best, to_oracle, best) if suite == 'simulated' else []
        bars += _standstill(scores, model)
        peak = float(scores.errors[model]['peak'].max())
        bars.append(Bar(model, f'{suite}: largest estimate / largest velocity', peak, MOST_PEAK))
    return bars


def _without_still(
    model: str, to_best: dict[Cell, float], to_oracle: dict[Cell, float], best: str
) -> list[Bar]:
    def mean(ratios: dict[Cell, float]) -> float:
        return geometric_mean(ratio for cell, ratio in ratios.items() if cell.motion != STILL)

    return [
        Bar(model, f'  the same without still joints / {best}', mean(to_best)),
        Bar(model, '  the same without still joints / oracle', mean(to_oracle)),
    ]


def _mean(ratios: dict[Cell, float]) -> float:
    return geometric_mean(ratios.values())


def _standstill(scores: Scores, model: str) -> list[Bar]:
    """Compare where joints rest: in the pauses of a motion, and where they never move."""
    suite = scores.suite
    ratio = scores.floored(model, 'standstill') / scores.floored(ORACLE, 'standstill')
    still = np.array([cell.motion == STILL for cell in suite.cells])
    noisy = np.array([r.encoder.noise_counts > 0 for r in suite.recordings])
    groups = {
        'rests within motions': ~still,
        'still joints, quantised only': still & ~noisy,
        'still joints, with noise': still & noisy,
    }
    limited = 'still joints, quantised only' if still.any() else 'rests within motions'
    return [
        Bar(
            model, f'{suite.name}: standstill / oracle: {name}',
            geometric_mean(ratio[group]), MOST_STANDSTILL if name == limited else None,
        )
        for name, group in groups.items()
        if np.isfinite(ratio[group]).any()
    ]  # fmt: skip


def bars(scores: Scores) -> str:
    """
    Put the bars into lines.

    :param scores: of :func:`velocity_scores.score`
    :returns: text
    """
    return '\n'.join(str(bar) for bar in list_bars(scores))
