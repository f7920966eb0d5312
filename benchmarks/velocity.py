"""
The score table of the velocity estimators: ``python benchmarks/velocity.py --help``.

Simulated joints by rate, resolution and kind of motion, and real ones through worse encoders;
every filter tuned once, a Kalman filter tuned on each recording with hindsight (the oracle), and
the shipped networks. docs/accuracy.md explains the numbers; to score a network from a script, see
:func:`velocity_scores.score`.
"""

import argparse
from collections.abc import Sequence
import json
from pathlib import Path
import time

from velocity_report import as_json
from velocity_report import report
from velocity_scores import MEASURES
from velocity_scores import QUICK
from velocity_scores import score
from velocity_suite import real_suite
from velocity_suite import simulated_suite

from seqmem_ros.core.estimators import SHIPPED

VELOCITY_MODELS = ('gru', 'lstm', 'attention')
SUITES = ('simulated', 'real')


def main(argv: Sequence[str] | None = None) -> None:
    """
    Print the tables, and write what is asked for.

    :param argv: arguments without the program's name; None: those of the process
    """
    args = _parser().parse_args(argv)
    models = {name: SHIPPED[name] for name in args.models}
    models |= {path.stem: path for path in args.weights}
    suites = {'simulated': simulated_suite, 'real': lambda: real_suite(data=args.data)}
    done = []
    for name in args.suites:
        start_s = time.monotonic()
        cache = args.cache and args.cache.with_name(f'{args.cache.name}_{name}.npz')
        done.append(score(models, suites[name](), QUICK if args.quick else MEASURES, cache))
        print(report(done[-1]))
        print(f'\n{time.monotonic() - start_s:.0f} s\n', flush=True)
    if args.json:
        content = {scores.suite.name: as_json(scores) for scores in done}
        args.json.write_text(json.dumps(content, indent=1, allow_nan=False) + '\n')
    if args.plot:
        # Only here: whoever wants numbers need not have matplotlib.
        from velocity_plot import plot

        plot(done, args.plot)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description='Score velocity estimators.')
    parser.add_argument(
        '--models', nargs='*', default=VELOCITY_MODELS, choices=VELOCITY_MODELS,
        help='shipped models (all)',
    )  # fmt: skip
    parser.add_argument(
        '--weights', nargs='*', type=Path, default=[], help='weights files to score beside them'
    )
    parser.add_argument('--suites', nargs='+', default=SUITES, choices=SUITES, help='(both)')
    parser.add_argument('--data', type=Path, help='a folder of bags to be taken as real, too')
    parser.add_argument('--quick', action='store_true', help='without the lag')
    parser.add_argument('--cache', type=Path, help='keep the estimates of the peers beside this')
    parser.add_argument('--json', type=Path, help='write all numbers')
    parser.add_argument('--plot', type=Path, help='draw the picture')
    return parser


if __name__ == '__main__':
    main()
