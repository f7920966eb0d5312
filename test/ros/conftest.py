"""Fixtures of the tests that run the real node over the real middleware."""

import pytest


@pytest.fixture
def ros_domain(monkeypatch):
    """Give one test a ROS domain of its own, on this machine alone."""
    from ros_harness import Domain

    from seqmem_ros.ros.process import environment_on_this_machine

    domain = Domain()
    for name, value in environment_on_this_machine(domain.number).items():
        monkeypatch.setenv(name, value)
    yield domain.number
    domain.release()


@pytest.fixture
def harness(ros_domain):
    """Make a node of the test; processes started with it end with the test."""
    from ros_harness import Harness

    harness = Harness(ros_domain)
    yield harness
    harness.close()
