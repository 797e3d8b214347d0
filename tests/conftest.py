"""Shared settings of all tests: property tests repeat the same examples and never fail for being
slow on a busy machine.
"""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, settings

from lighttouch import running

settings.register_profile(
    "repeatable",
    deadline=None,
    derandomize=True,
    max_examples=60,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("repeatable")


@pytest.fixture(autouse=True)
def forget_signals():
    """A SIGTERM that a test sent to itself was not meant for the tests after it."""
    yield
    running._told_to_end.clear()
