"""
All measurements of speed and size, as text, JSON, a picture and a page: ``./run bench``.

``--breakdown`` prints where the time of a message goes, and nothing else; ``--page`` writes
docs/performance.md from what was measured.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path
import subprocess
import sys

import breakdown
from performance_page import write_page

FOLDER = Path(__file__).resolve().parent
PARTS = ('step', 'breakdown', 'node', 'start', 'memory', 'offline')


def main(argv: Sequence[str] | None = None) -> int:
    """
    Run the benchmarks, each in a process of its own.

    :param argv: arguments without the program's name; None: those of the process
    :returns: exit code
    """
    parser = argparse.ArgumentParser(description='Measure speed and size against peers.')
    parser.add_argument('--breakdown', action='store_true', help='only where a message spends')
    parser.add_argument('--only', nargs='+', choices=PARTS, default=PARTS, help='some of them')
    parser.add_argument('--quick', action='store_true', help='few iterations, for a try')
    parser.add_argument('--page', action='store_true', help='write docs/performance.md as well')
    parser.add_argument('--out', type=Path, default=Path('bench'), help='folder (bench)')
    args = parser.parse_args(argv)
    if args.breakdown:
        breakdown.main([])
        return 0
    for name in args.only:
        print(f'\n== {name}', flush=True)
        command = [sys.executable, str(FOLDER / f'{name}.py'), '--out', str(args.out)]
        code = subprocess.call(command + ['--quick'] * args.quick)
        if code:
            return code
    if args.page:
        write_page(args.out, FOLDER.parent / 'docs')
    return 0


if __name__ == '__main__':
    sys.exit(main())
