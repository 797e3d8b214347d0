"""Every number that decides says its kind, and what it names as measured can be measured."""

from __future__ import annotations

import ast
import collections
import importlib
import inspect
import re
from pathlib import Path

import pytest

import lighttouch
from benchmarks.thresholds import EXPERIMENTS, MODULES

SOURCE = Path(lighttouch.__file__).parent
RECORDS = {
    "SolverCosts": "solvers/costs.py",
    "InteriorCosts": "interior/costs.py",
    "ProjectionCosts": "projections/costs.py",
    "TorchCosts": "torch/costs.py",
    "StructureLimits": "estimators/costs.py",
    "SmoothingCosts": "estimators/costs.py",
    "StreamingLimits": "estimators/costs.py",
    "TrainingCosts": "estimators/training.py",
    "TreeCosts": "estimators/trees.py",
    "RecordLimits": "estimators/record.py",
    "PointLimits": "estimators/points_base.py",
}
SOLVING = ("SolverCosts", "InteriorCosts", "ProjectionCosts", "TorchCosts")
KINDS = "Crossover|Tuning|Rate|Budget|Tolerance|Rounding|Memory|Convention"
MEASURED = ("Crossover", "Tuning", "Rate")


def fields(record: str) -> dict[str, str]:
    """The docstring of every field, read from the source: Python does not keep them."""
    tree = ast.parse((SOURCE / RECORDS[record]).read_text())
    (body,) = (n.body for n in tree.body if isinstance(n, ast.ClassDef) and n.name == record)
    found = {}
    for line, after in zip(body, [*body[1:], ast.Pass()], strict=True):
        if isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name):
            text = after.value if isinstance(after, ast.Expr) else None
            words = text.value if isinstance(text, ast.Constant) else ""
            found[line.target.id] = " ".join(str(words).split())
    return found


def kinds(text: str) -> set[str]:
    return set(re.findall(rf"\b({KINDS})[:.]", text))


@pytest.fixture(scope="module")
def experiments() -> set[str]:
    for name in MODULES:
        importlib.import_module(f"benchmarks.thresholds.{name}")
    return {each.field for each in EXPERIMENTS}


@pytest.mark.parametrize("record", RECORDS)
def test_every_field_states_one_kind(record):
    wrong = {name: kinds(text) for name, text in fields(record).items() if len(kinds(text)) != 1}
    assert not wrong


@pytest.mark.parametrize("record", RECORDS)
def test_what_could_be_measured_says_whether_it_was(record):
    silent = [
        name
        for name, text in fields(record).items()
        if kinds(text) & set(MEASURED) and not re.search(r"experiment `|measured", text)
    ]
    assert not silent


def test_every_experiment_that_is_named_exists_and_belongs_to_its_field(experiments):
    named = collections.defaultdict(set)
    for record in RECORDS:
        for name, text in fields(record).items():
            for experiment in re.findall(r"experiment `(\w+)`", text):
                named[experiment].add(name)
    assert set(named) == experiments
    assert all(experiment in names for experiment, names in named.items())


@pytest.mark.parametrize("record", RECORDS)
def test_every_crossover_was_measured_by_an_experiment(record, experiments):
    """Of its own name, which can be run again, and in which the choice makes a difference."""
    for name, text in fields(record).items():
        if "Crossover" in kinds(text):
            assert name in experiments
            assert f"experiment `{name}`" in text
            assert not re.search(r"not measured|measured once|\bflat\b", text), name


def test_a_name_occurs_in_one_record_of_the_solvers_only():
    count = collections.Counter(name for record in SOLVING for name in fields(record))
    assert not [name for name, times in count.items() if times > 1]


def test_every_record_of_costs_is_checked():
    """A new record joins RECORDS above."""
    for path in SOURCE.rglob("costs.py"):
        name = ".".join(path.relative_to(SOURCE.parent).with_suffix("").parts)
        if "torch" in name:
            continue  # which may not be installed
        module = importlib.import_module(name)
        own = [n for n, c in inspect.getmembers(module, inspect.isclass) if c.__module__ == name]
        assert set(own) <= set(RECORDS)
