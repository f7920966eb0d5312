"""What the tests of all parts share: double precision."""

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
