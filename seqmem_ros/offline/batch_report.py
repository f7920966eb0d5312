"""What is left of an evaluation once its arrays are gone: what tables, files and pages need."""

from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
import csv
from dataclasses import dataclass
from dataclasses import fields
from dataclasses import replace
import json
from pathlib import Path
from typing import Any

import numpy as np

from seqmem_ros.offline.figures import Picture
from seqmem_ros.offline.figures import slug
from seqmem_ros.offline.labels import LabelScore
from seqmem_ros.offline.metrics import Score
from seqmem_ros.offline.pooled import pool
from seqmem_ros.offline.pooled import totals_by_name
from seqmem_ros.offline.result import EstimatorResult
from seqmem_ros.offline.result import plain
from seqmem_ros.offline.result import Result
from seqmem_ros.offline.tables import report as text_report

_SCORES = tuple(entry.name for entry in fields(Score))
_LABEL_SCORES = ('accuracy', 'macro_f1', 'median_delay_s', 'missed')
CSV_HEAD = ('bag', 'estimator', 'joint', 'moves', *_SCORES, *_LABEL_SCORES)


@dataclass(frozen=True, eq=False)
class BagReport:
    """
    One bag.

    :ivar name: unlike that of any other bag
    :ivar text: tables for a terminal
    :ivar content: all numbers, as JSON holds them
    :ivar estimators: scores without series, by name
    :ivar still_joints: joints that never move
    :ivar pictures: if they were asked for
    """

    name: str
    text: str
    content: Mapping[str, Any]
    estimators: Mapping[str, EstimatorResult]
    still_joints: tuple[str, ...]
    pictures: Sequence[Picture]


def make_report(
    name: str, result: Result, per_joint: bool, pictures: Sequence[Picture] = ()
) -> BagReport:
    """
    Keep what is small.

    :param name: of the bag
    :param result: of its evaluation
    :param per_joint: whether the text has a table of joints
    :param pictures: of the result
    :returns: the report
    """
    nothing = np.empty((0, 0))
    scores = {
        estimator: replace(each, outputs=nothing, expected=None)
        for estimator, each in result.estimators.items()
    }
    text = text_report(result, per_joint)
    return BagReport(name, text, result.to_json(), scores, result.still_joints, pictures)


def write_files(out: Path, reports: Sequence[BagReport], failed: Mapping[str, str]) -> list[Path]:
    """
    Write ``metrics.json``, ``metrics.csv`` and ``plots/``.

    :param out: folder that exists
    :param reports: of each bag
    :param failed: why others could not be evaluated, by name
    :returns: what was written
    """
    overall = {
        name: pool(totals)
        for name, totals in totals_by_name([one.estimators for one in reports]).items()
        if isinstance(totals[0], Score)
    }
    content = {
        'bags': {report.name: report.content for report in reports},
        'all': plain(overall),
        'failed': dict(failed),
    }
    numbers, table = out / 'metrics.json', out / 'metrics.csv'
    numbers.write_text(json.dumps(content, indent=2) + '\n')
    with table.open('w', newline='') as file:
        writer = csv.writer(file)
        writer.writerow(CSV_HEAD)
        for report in reports:
            writer.writerows(_rows(report))
        for name, total in overall.items():
            writer.writerow(('all bags', name, '', '', *_cells(total)))
    written = [numbers, table]
    for report in reports:
        folder = out / 'plots' / slug(report.name)
        if report.pictures:
            folder.mkdir(parents=True, exist_ok=True)
            written.append(folder)
        for picture in report.pictures:
            (folder / f'{picture.name}.png').write_bytes(picture.png)
    return written


def _rows(report: BagReport) -> Iterator[tuple]:
    for name, each in report.estimators.items():
        if each.total is None:
            continue
        yield report.name, name, 'all that move', '', *_cells(each.total)
        for joint, score in each.per_joint.items():
            moves = 'no' if joint in report.still_joints else 'yes'
            yield report.name, name, joint, moves, *_cells(score)


def _cells(score: Score | LabelScore) -> list[Any]:
    if isinstance(score, Score):
        values = [getattr(score, name) for name in _SCORES] + [None] * len(_LABEL_SCORES)
    else:
        values = [score.samples] + [None] * (len(_SCORES) - 1)
        values += [getattr(score, name) for name in _LABEL_SCORES]
    return ['' if value is None else plain(value) for value in values]
