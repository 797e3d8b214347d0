"""Estimators, shape constraints and lattice builders: every parameter is documented, every example
is of a public name, which is what `test_docstrings.py` runs.
"""

from __future__ import annotations

import doctest
import importlib
import inspect
import re

import pytest

import lighttouch as lt
from lighttouch.estimators.rules.shapes import KINDS

ESTIMATORS = [
    lt.LatticeRegressor,
    lt.LatticeClassifier,
    lt.LatticeRanker,
    lt.ConstrainedLinearRegressor,
    lt.ConstrainedLinearClassifier,
    lt.MonotoneRegressor,
    lt.ConvexRegressor,
]
METHODS = [
    getattr(kind, name)
    for kind in ESTIMATORS
    for name in ("fit", "predict", "save", "check_constraints")
]
BUILDERS = [getattr(lt.lattice, name) for name in lt.lattice.__all__]
MODULES = [
    f"lighttouch.{name}"
    for name in (
        "estimators.convex",
        "estimators.isotonic",
        "estimators.lattice_classifier",
        "estimators.lattice_models",
        "estimators.linear",
        "estimators.ranking",
        "estimators.rules.shapes",
        "estimators.saving",
        "lattice.curvature",
        "lattice.model",
        "lattice.orders",
        "lattice.pairs",
    )
]


def documented(thing) -> set[str]:
    """The names of a Parameters section, "a, b : float" being two."""
    text = inspect.getdoc(thing) or ""
    section = re.search(r"Parameters\n-+\n(.*?)(\n\n\w|\Z)", text, re.S)
    lines = re.findall(r"(?m)^(\w[\w, ]*) : \S", section[1] if section else "")
    return {name.strip() for line in lines for name in line.split(",")}


@pytest.mark.parametrize(
    "thing",
    [*ESTIMATORS, *METHODS, *KINDS.values(), *BUILDERS, lt.load],
    ids=lambda thing: thing.__qualname__,
)
def test_every_parameter_is_documented(thing):
    wanted = set(inspect.signature(thing).parameters) - {"self"}
    assert documented(thing) == wanted
    assert "{" + "parameters}" not in inspect.getdoc(thing)


@pytest.mark.parametrize("name", MODULES)
def test_every_example_is_one_that_runs(name):
    module = importlib.import_module(name)
    public = [getattr(lt, each) for each in lt.__all__] + BUILDERS
    found = [test for test in doctest.DocTestFinder().find(module) if test.examples]
    assert found
    for test in found:
        path = test.name.removeprefix(f"{name}.")
        assert "." not in path and any(getattr(module, path) is each for each in public), test.name
