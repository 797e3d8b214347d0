"""Shared settings of all tests: property tests repeat the same examples and never fail for being
slow on a busy machine; files that compile the same loops share a worker.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from lighttouch import signals

settings.register_profile(
    "repeatable",
    deadline=None,
    derandomize=True,
    max_examples=60,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("repeatable")
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:  # as in jobs in the background
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def forget_signals():
    """A SIGTERM that a test sent to itself was not meant for the tests after it."""
    yield
    signals._told_to_end.clear()


# Most of the time goes into compiling. A process compiles what a problem of the catalogue needs
# once, for all loops; two would do it twice. So these files are one group: one worker has it.
SAME_LOOPS = (
    "conformance/test_checkpoints.py",
    "conformance/test_solvers.py",
    "conformance/test_without_compiler.py",
    "conformance/test_default_solver.py",
    "unit/test_against_the_paper.py",
    "unit/test_custom_pieces.py",
    "unit/test_generated_rows.py",
    "unit/test_sums.py",
    "property/test_core.py",
)
LONG_FIRST = ("conformance", "end_to_end", "outside", "property")
HERE = Path(__file__).parent


def group_of(name: str) -> str:
    """What goes to one worker: the files that share their loops, or one file."""
    return "catalogue" if name in SAME_LOOPS else name.removesuffix(".py")


def turn_of(name: str) -> tuple[int, int]:
    """Long files first: a long one at the end would leave the other worker without work."""
    if name in SAME_LOOPS:
        return 0, SAME_LOOPS.index(name)
    folder = name.split("/", maxsplit=1)[0]
    return 1, LONG_FIRST.index(folder) if folder in LONG_FIRST else len(LONG_FIRST)


def pytest_addoption(parser):
    parser.addoption("--all", action="store_true", help="slow tests too, as make test-all does")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    """Slow tests are left out unless they are asked for. `make test` runs pytest with
    `--dist loadgroup`; in one process only the order changes.
    """
    if not config.getoption("--all"):
        slow = [item for item in items if item.get_closest_marker("slow")]
        if slow:
            config.hook.pytest_deselected(items=slow)
            items[:] = [item for item in items if not item.get_closest_marker("slow")]
    names = {item: Path(os.path.relpath(item.path, HERE)).as_posix() for item in items}
    items.sort(key=lambda item: turn_of(names[item]))
    for item in items:
        item.add_marker(pytest.mark.xdist_group(group_of(names[item])))
