"""
The score table of the velocity estimators: ``python benchmarks/velocity.py --help``.

Simulated joints by rate, resolution and kind of motion, and real ones through worse encoders;
every filter tuned once, a Kalman filter tuned on each recording with hindsight (the oracle), and
the shipped networks. docs/accuracy.md explains the numbers; to score a network from a script, see
:func:`velocity_scores.score`.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path
import time

from velocity_report import bars
from velocity_report import cells
from velocity_report import overview
from velocity_scores import MEASURES
from velocity_scores import QUICK
from velocity_scores import score
from velocity_suite import real_suite
from velocity_suite import simulated_suite

from seqmem_ros.core.estimators import SHIPPED

VELOCITY_MODELS = ('gru', 'lstm', 'attention')


def main(argv: Sequence[str] | None = None) -> None:
    """
    Print the tables.

    :param argv: arguments without the program's name; None: those of the process
    """
    args = _parser().parse_args(argv)
    models = {name: SHIPPED[name] for name in args.models}
    models |= {path.stem: path for path in args.weights}
    measures = QUICK if args.quick else MEASURES
    suites = {'simulated': simulated_suite, 'real': lambda: real_suite(data=args.data)}
    for name in args.suites:
        start_s = time.monotonic()
        cache = args.cache and args.cache.with_name(f'{args.cache.name}_{name}.npz')
        scores = score(models, suites[name](), measures, cache)
        print(f'{name}: {len(scores.suite.recordings)} recordings, rad/s\n')
        print(overview(scores), cells(scores), bars(scores), sep='\n\n')
        print(f'\n{time.monotonic() - start_s:.0f} s\n', flush=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description='Score velocity estimators.')
    parser.add_argument(
        '--models', nargs='*', default=VELOCITY_MODELS, choices=VELOCITY_MODELS,
        help='shipped models (all)',
    )  # fmt: skip
    parser.add_argument(
        '--weights', nargs='*', type=Path, default=[], help='weights files to score beside them'
    )
    parser.add_argument(
        '--suites', nargs='+', default=['simulated', 'real'], choices=('simulated', 'real')
    )
    parser.add_argument('--data', type=Path, help='a folder of bags to be taken as real, too')
    parser.add_argument('--quick', action='store_true', help='without the lag')
    parser.add_argument('--cache', type=Path, help='keep the estimates of the peers beside this')
    return parser


if __name__ == '__main__':
    main()
