"""What the scores say: the bars that a shipped model has to clear, and tables of the cells."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from velocity_scores import ORACLE
from velocity_scores import Scores

# Most that a model's error may be, as a share of a peer's; see docs/accuracy.md.
MOST = {
    ('simulated', 'best filter'): 0.60,
    ('simulated', ORACLE): 1.0,
    ('real', 'best filter'): 0.80,
    ('real', ORACLE): 1.1,
    ('real', 'worst cell'): 1.5,
}
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

    def __str__(self) -> str:
        line = f'{self.model:<12} {self.what:<58} {self.value:6.3f}'
        if self.most is None:
            return line
        return f'{line}  {"met" if self.value <= self.most else "NOT met"} (at most {self.most:g})'


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
    return bars


def _without_still(model: str, to_best: Mapping, to_oracle: Mapping, best: str) -> list[Bar]:
    moving = [cell for cell in to_best if cell.motion != STILL]
    return [
        Bar(model, f'  the same without still joints / {best}', _mean(to_best, moving)),
        Bar(model, '  the same without still joints / oracle', _mean(to_oracle, moving)),
    ]


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
            float(np.exp(np.nanmean(np.log(ratio[group])))), 1.0 if name == limited else None,
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


def overview(scores: Scores) -> str:
    """
    Average every measure over all cells.

    :param scores: of :func:`velocity_scores.score`
    :returns: text, one line an estimator
    """
    measures = [m for m in next(iter(scores.errors.values())) if m != 'lag_s']
    lines = [f'{"estimator":<12}' + ''.join(f'{m:>12}' for m in measures) + f'{"lag ms":>9}']
    for name, errors in scores.errors.items():
        numbers = [_mean(scores.by_cell(name, m)) for m in measures]
        lag_ms = 1000 * np.nanmedian(errors['lag_s']) if 'lag_s' in errors else np.nan
        lines.append(f'{name:<12}' + ''.join(f'{n:12.5f}' for n in numbers) + f'{lag_ms:9.1f}')
    return '\n'.join(lines)


def cells(scores: Scores) -> str:
    """
    List every cell: its RMSE by the oracle, and the shares of all others.

    :param scores: of :func:`velocity_scores.score`
    :returns: text, one line a cell
    """
    names = [name for name in scores.errors if name != ORACLE]
    oracle = scores.by_cell(ORACLE)
    ratios = {name: scores.ratio(name, ORACLE) for name in names}
    lines = [f'{"RMSE / that of the oracle":<28}{"oracle":>10}' + _row(names, '{:>12}')]
    for cell, value in oracle.items():
        shares = [ratios[name][cell] for name in names]
        lines.append(f'{cell!s:<28}{value:10.5f}' + _row(shares, '{:12.2f}'))
    return '\n'.join(lines)


def _row(values: list, form: str) -> str:
    return ''.join(form.format(value) for value in values)


def _mean(values: Mapping, chosen: list | None = None) -> float:
    numbers = np.array([values[key] for key in (values if chosen is None else chosen)])
    finite = numbers[np.isfinite(numbers)]
    return float(np.exp(np.mean(np.log(finite)))) if len(finite) else float('nan')
