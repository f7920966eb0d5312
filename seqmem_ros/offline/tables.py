"""The result of an evaluation as text for a terminal."""

from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence

import numpy as np

from seqmem_ros.offline.labels import LabelScore
from seqmem_ros.offline.metrics import Score
from seqmem_ros.offline.pooled import pool
from seqmem_ros.offline.pooled import totals_by_name
from seqmem_ros.offline.result import EstimatorResult
from seqmem_ros.offline.result import Result
from seqmem_ros.offline.truth import summarise

_VELOCITY_HEAD = ('RMSE', 'lag', 'RMSE at lag', '99 %', 'standstill')
_UNITS = ('rad/s', 'ms', 'rad/s', 'rad/s', 'rad/s')
# Beyond this share of the best error, the reference itself is in question.
_DOUBTFUL = 0.2


def report(result: Result, per_joint: bool = False) -> str:
    """
    Describe a result.

    :param result: of an evaluation
    :param per_joint: add the table of joints
    :returns: lines of text, without a final newline
    """
    sections = [_head(result)]
    velocities = _of_task(result, 'velocity')
    if velocities:
        sections.append(_velocity_table(velocities))
        sections.append(_comparison(velocities))
    sections += [_label_section(name, each) for name, each in _of_task(result, 'label').items()]
    if per_joint:
        sections.append(_joint_table(result))
    sections.append(_notes(result))
    return '\n\n'.join(section for section in sections if section)


def _head(result: Result) -> str:
    return '\n'.join(
        [
            f'bag          {result.bag}, topic {result.topic}',
            f'recording    {result.health}',
            f'timing       {_timing(result)}',
            f'reference    {result.reference}',
            f'truth check  {summarise(dict(result.truth))}',
            f'input        {result.input}',
        ]
    )


def _timing(result: Result) -> str:
    health = result.health
    low_s, high_s = health.period_range_s
    parts = [f'98 % of the periods from {1000 * low_s:.3g} to {1000 * high_s:.3g} ms']
    if np.isfinite(health.delay_s):
        least_s, most_s = health.delay_range_s
        parts.append(
            f'recorded {_signed(health.delay_s)} the stamp (98 % from {1000 * least_s:.3g} to '
            f'{1000 * most_s:.3g} ms)'
        )
    else:
        parts.append('no message has a stamp')
    if result.recording.order == 'header':
        parts.append(
            f'ordered by stamp: {health.record_inversions} record times go back in this order'
        )
    return '; '.join(parts)


def _signed(delay_s: float) -> str:
    return f'{1000 * abs(delay_s):.3g} ms {"after" if delay_s >= 0 else "before"}'


def _of_task(result: Result, task: str) -> dict[str, EstimatorResult]:
    return {name: each for name, each in result.estimators.items() if each.task == task}


def _velocity_table(estimators: dict[str, EstimatorResult]) -> str:
    rows = [(name, *_velocity_cells(each.total)) for name, each in estimators.items()]
    return _aligned([('estimator', *_VELOCITY_HEAD), ('', *_UNITS), *rows])


def _velocity_cells(score: Score) -> tuple[str, ...]:
    return (
        _number(score.rmse),
        _milliseconds(score.lag_s),
        _number(score.rmse_at_lag),
        _number(score.p99),
        _number(score.standstill_rms),
    )


def _comparison(estimators: dict[str, EstimatorResult]) -> str:
    """Set each model against the best filter."""
    filters = {n: each for n, each in estimators.items() if each.source == 'filter'}
    if not filters:
        return ''
    best = min(filters, key=lambda name: filters[name].total.rmse)
    if not filters[best].total.rmse:
        return f'{best}, the best filter here, has no error: nothing moves'
    return '\n'.join(
        f'{name}: {each.total.rmse / filters[best].total.rmse:.2f} times the RMSE of {best}, the '
        f'best filter here'
        for name, each in estimators.items()
        if name not in filters
    )


def _label_section(name: str, each: EstimatorResult) -> str:
    if not isinstance(each.total, LabelScore):
        return f'{name}: {each.note}'
    rows = [
        (label, *(str(count) for count in counts))
        for label, counts in zip(each.labels, each.total.confusion)
    ]
    total = each.total
    title = (
        f'{name}: macro-F1 {total.macro_f1:.3f}, accuracy {total.accuracy:.3f} over '
        f'{total.samples} labels; {len(total.delays_s)} changes told after '
        f'{_milliseconds(total.median_delay_s)} ms (median), {total.missed} not told in time'
    )
    head = ('true, then predicted', *each.labels)
    return f'{title}\n{_aligned([head, *rows])}'


def _joint_table(result: Result) -> str:
    head = ('joint', 'estimator', *_VELOCITY_HEAD)
    rows = []
    for joint, name in enumerate(result.recording.names):
        title = name if result.moving[joint] else f'{name} (still)'
        for estimator, each in result.estimators.items():
            score = each.per_joint.get(name)
            if isinstance(score, Score):
                rows.append((title, estimator, *_velocity_cells(score)))
            elif isinstance(score, LabelScore):
                rows.append((title, estimator, f'macro-F1 {_number(score.macro_f1)}', *[''] * 4))
            title = ''
    return _aligned([head, ('', '', *_UNITS), *rows], left=2)


def summary(scores: Sequence[Mapping[str, EstimatorResult]]) -> str:
    """
    Put several recordings together.

    RMSE pools all values, ``lag`` is the mean over values, ``99 %`` the worst recording's.

    :param scores: estimators by name, of each recording
    :returns: lines of text, without a final newline
    """
    rows = []
    pooled_by_name = totals_by_name(scores)
    labels = any(not isinstance(totals[0], Score) for totals in pooled_by_name.values())
    for name, totals in pooled_by_name.items():
        if isinstance(totals[0], Score):
            pooled = pool(totals)
            rows.append((name, str(len(totals)), *_velocity_cells(pooled), ''))
        else:
            accuracy = np.average(
                [one.accuracy for one in totals], weights=[one.samples for one in totals]
            )
            macro = np.mean([one.macro_f1 for one in totals])
            said = f'macro-F1 {macro:.3f}, accuracy {accuracy:.3f}'
            rows.append((name, str(len(totals)), *[''] * len(_UNITS), said))
    head = ('estimator', 'bags', *_VELOCITY_HEAD, 'labels' * labels)
    return f'all {len(scores)} bags\n\n' + _aligned([head, ('', '', *_UNITS, ''), *rows])


def _notes(result: Result) -> str:
    notes = [f'compared on {int(result.compared.sum())} values that all estimators have']
    if result.still_joints and result.moving.any():
        notes.append(
            f'{len(result.still_joints)} joints never move: they count for standstill, not for '
            'the other totals'
        )
    elif result.still_joints:
        notes.append('no joint moves: the totals are over all joints and say little')
    doubt = _doubt(result)
    smallest = min(
        (each.total.rmse for each in _of_task(result, 'velocity').values()), default=np.nan
    )
    if doubt > _DOUBTFUL * smallest and result.moving.any():
        notes.append(
            f'the reference is only good to about {doubt:.2g} rad/s here; smaller differences '
            'mean nothing'
        )
    drops = _drops(result)
    return '\n'.join([*notes, *drops])


def _doubt(result: Result) -> float:
    doubt = result.reference.doubt_rad_s[result.scored_joints]
    doubt = doubt[np.isfinite(doubt)]
    return float(np.sqrt(np.mean(doubt**2))) if len(doubt) else float('nan')


def _drops(result: Result) -> Iterable[str]:
    """Name what a stream refused or reset, once for all estimators that agree."""
    by_text: dict[str, list[str]] = {}
    for name, each in result.estimators.items():
        found = [
            f'{key} {count}'
            for key, count in each.counts.items()
            if key.startswith(('drop_', 'reset_', 'value_'))
        ]
        if found:
            by_text.setdefault(', '.join(found), []).append(name)
    return [f'stream of {", ".join(names)}: {text}' for text, names in by_text.items()]


def _aligned(rows: Sequence[Sequence[str]], left: int = 1) -> str:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = []
    for row in rows:
        cells = [
            cell.ljust(width) if column < left else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths))
        ]
        lines.append('  '.join(cells).rstrip())
    return '\n'.join(lines)


def _number(value: float) -> str:
    return f'{value:.4f}' if np.isfinite(value) else '-'


def _milliseconds(value_s: float) -> str:
    return f'{round(1000 * value_s, 1) + 0.0:.1f}' if np.isfinite(value_s) else '-'
