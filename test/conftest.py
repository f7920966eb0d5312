"""What the tests of all parts share: double precision, and a process that stays small."""

import gc

import jax
import pytest


def _enable_x64():
    if hasattr(jax, 'enable_x64'):
        return jax.enable_x64(True)
    from jax.experimental import enable_x64

    return enable_x64()


@pytest.fixture
def x64():
    """Compute in float64 during one test."""
    with _enable_x64():
        yield


@pytest.fixture(autouse=True, scope='module')
def _forget_programs():
    """
    Drop what a module compiled.

    Each compiled program maps pieces of memory, of which a process may have 65,530 on Linux;
    beyond them the next compilation crashes it.
    """
    yield
    jax.clear_caches()
    gc.collect()
