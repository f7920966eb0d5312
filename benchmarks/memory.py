"""What the package takes on disk: ``python benchmarks/memory.py``; start.py has the rest."""

import argparse
from collections.abc import Sequence
from pathlib import Path
import subprocess
import sys
import tempfile

from measure import write_result

ROOT = Path(__file__).resolve().parents[1]


def main(argv: Sequence[str] | None = None) -> dict:
    """
    Build the wheel and weigh it.

    :param argv: arguments without the program's name; None: those of the process
    :returns: sizes in KiB
    """
    parser = argparse.ArgumentParser(description='Weigh the wheel and the weights.')
    parser.add_argument('--quick', action='store_true', help='weights only, for a try')
    parser.add_argument('--out', type=Path, help='folder for the result as JSON')
    args = parser.parse_args(argv)
    weights = sorted((ROOT / 'seqmem_ros' / 'weights').glob('*.safetensors'))
    sizes = {path.name: _kib(path) for path in weights}
    if not args.quick:
        sizes['wheel'] = wheel_kib()
    for name, kib in sizes.items():
        print(f'{name:<34}{kib:>8} KiB', flush=True)
    if args.out:
        write_result(args.out, 'memory', {'sizes_kib': sizes})
    return sizes


def wheel_kib() -> float:
    """
    Build the wheel from a copy of the tracked files.

    :returns: its size in KiB
    """
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder, 'copy')
        subprocess.run(['git', 'clone', '-q', str(ROOT), str(copy)], check=True)
        subprocess.run(
            [sys.executable, '-m', 'pip', 'wheel', '-q', '--no-deps', '-w', folder, str(copy)],
            check=True,
        )
        return _kib(next(Path(folder).glob('*.whl')))


def _kib(path: Path) -> float:
    return round(path.stat().st_size / 1024, 1)


if __name__ == '__main__':
    main()
