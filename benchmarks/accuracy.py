"""
Make docs/accuracy.md again from a real run: ``python benchmarks/accuracy.py --help``.

Runs both suites of :mod:`velocity`, an hour of :mod:`endurance` for each model, and writes every
table of the page and its picture. What stands between the tables is written by hand.
"""

import argparse
from collections.abc import Sequence
import datetime
import json
from pathlib import Path
import re
import textwrap

from endurance import drift_report
from endurance import MINUTES
from endurance import stress_report
import jax
import numpy as np
from velocity import VELOCITY_MODELS
from velocity_bars import bars
from velocity_plot import plot
from velocity_report import as_json
from velocity_report import by
from velocity_report import cells
from velocity_report import overview
from velocity_report import unmet
from velocity_scores import MEASURES
from velocity_scores import score
from velocity_scores import Scores
from velocity_suite import real_suite
from velocity_suite import simulated_suite

from seqmem_ros import __version__
from seqmem_ros.core.estimators import FILTERS
from seqmem_ros.core.estimators import SHIPPED
from seqmem_ros.core.weights import file_digest
from seqmem_ros.core.weights import load_model

ROOT = Path(__file__).parents[1]
PAGE = ROOT / 'docs' / 'accuracy.md'
PICTURE = ROOT / 'docs' / 'images' / 'accuracy.png'
UNMET_FACTORS = {'simulated': 1.5, 'real': 1.1}


def blocks_of(scores: Scores) -> dict[str, str]:
    """
    Make the tables of one suite.

    :param scores: of :func:`velocity_scores.score`
    :returns: by the name of the block on the page
    """
    name = scores.suite.name
    groups = ('rate_hz', 'bits', 'motion')
    return {
        f'{name} overview': overview(scores),
        f'{name} bars': bars(scores),
        f'{name} groups': '\n\n'.join(by(scores, group) for group in groups),
        f'{name} above': '\n'.join(_wrapped(line) for line in unmet(scores, UNMET_FACTORS[name])),
        f'{name} cells': cells(scores),
    }


def _wrapped(line: str) -> str:
    return textwrap.fill(line, 110, subsequent_indent=11 * ' ')


def settings() -> str:
    """
    Say what was run.

    :returns: the date, the versions, the weights by their digests, the settings of the filters
    """
    lines = [
        f'{datetime.date.today()}, seqmem_ros {__version__}, jax {jax.__version__}, '
        f'numpy {np.__version__}'
    ]
    for name in VELOCITY_MODELS:
        kilobytes = SHIPPED[name].stat().st_size / 1000
        lines.append(f'{name:<15}weights {file_digest(SHIPPED[name])}, {kilobytes:.0f} kB')
    for name, make in FILTERS.items():
        values = {k: v for k, v in vars(make()).items() if not k.startswith('_')}
        text = ', '.join(f'{key} {value:g}' for key, value in values.items()) or 'no setting'
        lines.append(f'{name:<15}{text}')
    return '\n'.join(lines)


def renewed(page: str, blocks: dict[str, str]) -> str:
    """
    Replace the fenced block behind each marker ``<!-- block: NAME -->``.

    :param page: Markdown
    :param blocks: text by name
    :returns: the page with these blocks
    :raises ValueError: if the page has other markers than there are blocks
    """
    markers = re.findall(r'<!-- block: (.+?) -->', page)
    if sorted(markers) != sorted(blocks):
        raise ValueError(f'expected one marker for each of {sorted(blocks)}, got {markers}')

    def fill(match: re.Match) -> str:
        return f'{match[1]}```text\n{blocks[match[2]]}\n```\n'

    pattern = r'(<!-- block: (.+?) -->\n)```text\n.*?\n?```\n'
    return re.sub(pattern, fill, page, flags=re.DOTALL)


def main(argv: Sequence[str] | None = None) -> None:
    """
    Run everything and write the page.

    :param argv: arguments without the program's name; None: those of the process
    """
    parser = argparse.ArgumentParser(description='Make docs/accuracy.md again.')
    parser.add_argument('--page', type=Path, default=PAGE, help='(%(default)s)')
    parser.add_argument('--plot', type=Path, default=PICTURE, help='(%(default)s)')
    parser.add_argument('--json', type=Path, help='write all numbers, too')
    parser.add_argument('--cache', type=Path, help='keep the estimates of the peers beside this')
    parser.add_argument('--minutes', type=int, default=MINUTES, help='of the long stream')
    args = parser.parse_args(argv)
    models = {name: SHIPPED[name] for name in VELOCITY_MODELS}
    blocks, done = {'settings': settings()}, []
    for suite in (simulated_suite(), real_suite()):
        cache = args.cache and args.cache.with_name(f'{args.cache.name}_{suite.name}.npz')
        done.append(score(models, suite, MEASURES, cache))
        blocks |= blocks_of(done[-1])
        print(blocks[f'{suite.name} bars'], flush=True)
    long, stress = [], []
    for name in VELOCITY_MODELS:
        model = load_model(SHIPPED[name])
        long += [f'{name:<10} {line}' for line in drift_report(model, args.minutes)]
        stress += [f'{name:<10} {line}' for line in stress_report(model)]
        print(*long[-3:], sep='\n', flush=True)
    blocks |= {'hour': '\n'.join(long), 'stress': '\n'.join(stress)}
    args.page.write_text(renewed(args.page.read_text(), blocks))
    plot(done, args.plot)
    if args.json:
        content = {scores.suite.name: as_json(scores) for scores in done}
        args.json.write_text(json.dumps(content, indent=1, allow_nan=False) + '\n')


if __name__ == '__main__':
    main()
