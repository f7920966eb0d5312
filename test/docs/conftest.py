"""Load scripts by their path: examples and benchmarks are no package."""

import importlib.util
from pathlib import Path
import sys

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def load_script():
    """Give a function from a path below the project to the module that it makes."""
    loaded = []

    def load(path):
        spec = importlib.util.spec_from_file_location(f'script_{Path(path).stem}', ROOT / path)
        module = importlib.util.module_from_spec(spec)
        # Dataclasses and jitted functions look their module up while they are made.
        sys.modules[spec.name] = module
        loaded.append(spec.name)
        spec.loader.exec_module(module)
        return module

    yield load
    for name in loaded:
        sys.modules.pop(name, None)
