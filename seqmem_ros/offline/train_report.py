"""Scores of a training in words and tables."""

from collections.abc import Mapping
from typing import Any

from seqmem_ros.core.spec import ModelSpec

_NAME_WIDTH = 14


def score_lines(spec: ModelSpec, scores: Mapping[str, Any]) -> dict[str, str]:
    """
    Say how well a model does on what was held out.

    :param spec: of the model
    :param scores: as in its card
    :returns: texts by topic
    """
    if not scores:
        return {'scores': 'none: nothing that was held out can be compared'}
    if spec.task == 'velocity':
        return {'held out': _velocity_table(scores)}
    lines = {'held out': _label_sentence(scores)}
    if 'confusion' in scores:
        lines['confusion'] = confusion_table(spec.labels, scores['confusion'])
    if scores.get('delay_median_s') is not None:
        lines['delay'] = (
            f'{1000 * scores["delay_median_s"]:.0f} ms (median), '
            f'{1000 * scores["delay_p95_s"]:.0f} ms (95th percentile) after a change; '
            f'{scores["changes_missed"]} changes missed'
        )
    return lines


def confusion_table(labels: tuple[str, ...], counts: list[list[int]]) -> str:
    """
    Lay out a confusion matrix.

    :param labels: names, L of them
    :param counts: row: truth, column: told, L by L
    :returns: lines
    """
    width = max(6, *(len(label) for label in labels))
    head = 'true \\ told'
    first = max(len(head), width)
    rows = [f'{head:<{first}}' + ''.join(f'  {label:>{width}}' for label in labels)]
    for label, row in zip(labels, counts):
        rows.append(f'{label:<{first}}' + ''.join(f'  {count:>{width}}' for count in row))
    return '\n'.join(rows)


def _velocity_table(scores: Mapping[str, float]) -> str:
    rows = [f'{"":<{_NAME_WIDTH}}RMSE, rad/s']
    rows += [f'{name:<{_NAME_WIDTH}}{value:>11.4g}' for name, value in scores.items()]
    peers = {name: value for name, value in scores.items() if name not in ('model', 'before')}
    best = min(peers, key=peers.get)
    ratio = scores['model'] / peers[best] if peers[best] else float('inf')
    rows.append(f'model: {ratio:.2f} times the RMSE of {best}, the best filter here')
    if scores['model'] > scores.get('before', float('inf')):
        rows.append('it was better before: record more and more varied motion, or keep that model')
    return '\n'.join(rows)


def _label_sentence(scores: Mapping[str, Any]) -> str:
    text = f'macro-F1 {scores["macro_f1"]:.3f}, accuracy {scores["accuracy"]:.3f}'
    if 'always_the_commonest' in scores:
        text += f' (always the commonest label: {scores["always_the_commonest"]:.3f})'
    return text
