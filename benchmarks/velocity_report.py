"""Tables of the scores, as text and as JSON."""

from collections.abc import Callable
from collections.abc import Hashable
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
from velocity_bars import bars
from velocity_bars import list_bars
from velocity_scores import geometric_mean
from velocity_scores import ORACLE
from velocity_scores import Scores
from velocity_suite import Cell

_NOTHING = '-'


def report(scores: Scores) -> str:
    """
    Say all about one suite.

    :param scores: of :func:`velocity_scores.score`
    :returns: text
    """
    parts = [
        f'{scores.suite.name}: {len(scores.suite.recordings)} recordings, rad/s',
        overview(scores),
        'RMSE of the oracle in rad/s, and the shares of it that the others have',
        by(scores, 'rate_hz'),
        by(scores, 'bits'),
        by(scores, 'motion'),
        cells(scores),
        bars(scores),
    ]
    return '\n\n'.join(parts)


def overview(scores: Scores) -> str:
    """
    Average every measure over all cells.

    :param scores: of :func:`velocity_scores.score`
    :returns: text, one line an estimator; rad/s, and the median lag in ms
    """
    first = next(iter(scores.errors.values()))
    measures = [m for m in first if m not in ('lag_s', 'peak')]
    with_lag = 'lag_s' in first
    lines = [
        f'{"estimator":<15}'
        + ''.join(f'{m:>12}' for m in measures)
        + (f'{"lag ms":>9}' if with_lag else '')
    ]
    for name, errors in scores.errors.items():
        numbers = [geometric_mean(scores.by_cell(name, m).values()) for m in measures]
        lag = f'{1000 * np.nanmedian(errors["lag_s"]):9.1f}' if with_lag else ''
        lines.append(f'{name:<15}' + ''.join(_number(n, 12, 5) for n in numbers) + lag)
    return '\n'.join(lines)


def cells(scores: Scores) -> str:
    """
    List every cell: its RMSE by the oracle, and the shares of all others.

    :param scores: of :func:`velocity_scores.score`
    :returns: text, one line a cell
    """
    return _shares(scores, 'motion, rate, resolution', lambda cell: cell)


def by(scores: Scores, *fields: str) -> str:
    """
    Average over all cells that share some fields.

    :param scores: of :func:`velocity_scores.score`
    :param fields: of :class:`velocity_suite.Cell`
    :returns: text, one line a group
    """
    units = {'motion': '{}', 'rate_hz': '{} Hz', 'bits': '{} bits'}

    def group_of(cell: Cell) -> str:
        return ' '.join(units[name].format(getattr(cell, name)) for name in fields)

    return _shares(scores, ', '.join(fields), group_of)


def _shares(scores: Scores, title: str, group_of: Callable[[Cell], Hashable]) -> str:
    names = [name for name in scores.errors if name != ORACLE]
    widths = [max(7, len(name) + 1) for name in names]
    groups: dict[Hashable, list[Cell]] = {}
    for cell in dict.fromkeys(scores.suite.cells):
        groups.setdefault(group_of(cell), []).append(cell)
    oracle = scores.by_cell(ORACLE)
    ratios = {name: scores.ratio(name, ORACLE) for name in names}
    lines = [f'{title:<26}{ORACLE:>9}' + ''.join(f'{n:>{w}}' for n, w in zip(names, widths))]
    for group, members in groups.items():
        error = geometric_mean(oracle[cell] for cell in members)
        shares = [geometric_mean(ratios[name][cell] for cell in members) for name in names]
        row = ''.join(_number(share, width, 2) for share, width in zip(shares, widths))
        lines.append(f'{group!s:<26}{error:9.5f}{row}')
    return '\n'.join(lines)


def as_json(scores: Scores) -> dict[str, Any]:
    """
    Give all numbers.

    :param scores: of :func:`velocity_scores.score`
    :returns: what :mod:`json` can write: by cell and estimator all measures, and the bars
    """
    names = list(scores.errors)
    by_cell = {
        (name, measure): scores.by_cell(name, measure)
        for name in names
        for measure in scores.errors[name]
    }
    return {
        'suite': scores.suite.name,
        'recordings': len(scores.suite.recordings),
        'best_filter': scores.best_filter(),
        'cells': [
            {
                **asdict(cell),
                'scores': {
                    name: {m: _finite(by_cell[name, m][cell]) for m in scores.errors[name]}
                    for name in names
                },
            }
            for cell in dict.fromkeys(scores.suite.cells)
        ],
        'bars': [asdict(bar) | {'met': bar.met} for bar in list_bars(scores)],
    }


def _finite(value: float) -> float | None:
    return float(f'{value:.5g}') if np.isfinite(value) else None


def _number(value: float, width: int, digits: int) -> str:
    return f'{value:{width}.{digits}f}' if np.isfinite(value) else f'{_NOTHING:>{width}}'


def unmet(scores: Scores, most: float) -> Sequence[str]:
    """
    List the cells where a model is worse than the oracle by more than a factor.

    :param scores: of :func:`velocity_scores.score`
    :param most: the factor
    :returns: a line for each model, worst cell first
    """
    lines = []
    for model in scores.models:
        ratios = scores.ratio(model, ORACLE)
        above = sorted((c for c in ratios if ratios[c] > most), key=ratios.get, reverse=True)
        text = ', '.join(f'{cell} {ratios[cell]:.2f}' for cell in above) or 'none'
        lines.append(f'{model:<11}{text}')
    return lines
