"""The benchmarks are scripts that import each other: their folder has to be on the path."""

from pathlib import Path
import sys

sys.path.insert(0, str(Path(__file__).parents[2] / 'benchmarks'))
