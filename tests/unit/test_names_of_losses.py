"""Texts name the losses of the table: every named one is accepted, every accepted one is named."""

from __future__ import annotations

import argparse
import inspect
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpydoc.docscrape import FunctionDoc

import lighttouch as lt
from lighttouch.cli.examples import predicted
from lighttouch.cli.parser import build_parser
from lighttouch.errors import DataError
from lighttouch.losses import BY_NAME, CLASSES, LOSSES, loss_of

REFERENCE = Path(__file__).parents[2] / "docs" / "reference.md"
ROWS = np.arange(12.0).reshape(-1, 1)
NAMES = (*LOSSES, "no such loss")
INSTANCES = [kind(0.5) if name == "quantile" else kind() for name, kind in CLASSES.items()]
ESTIMATORS = [
    lambda loss: lt.LatticeRegressor(loss=loss, keypoints=2, lattices=0),
    lambda loss: lt.ConstrainedLinearRegressor(loss=loss),
    lambda loss: lt.MonotoneRegressor(loss=loss),
    lambda loss: lt.LatticeClassifier(loss=loss, keypoints=2, lattices=0),
    lambda loss: lt.ConstrainedLinearClassifier(loss=loss),
    lambda loss: lt.LatticeRanker(loss=loss, keypoints=2, lattices=0),
]


def described(kind: type, parameter: str = "loss") -> tuple[str, str]:
    """The type of a parameter and its description, as the docstring says them."""
    found = FunctionDoc(kind, doc=inspect.getdoc(kind))["Parameters"]
    (row,) = [each for each in found if each.name == parameter]
    return row.type, " ".join(row.desc)


def refusal(estimator: Any) -> str:
    """What `fit` says of the loss; empty if it takes it."""
    y = np.tile([1.0, 2.0], 6)
    try:
        if isinstance(estimator, lt.LatticeRanker):
            estimator.fit(ROWS, y, qid=np.zeros(12))
        else:
            estimator.fit(ROWS, y)
    except ValueError as error:
        assert str(error).startswith("loss must be one of "), error
        return str(error)
    return ""


@pytest.mark.parametrize("make", ESTIMATORS, ids=lambda make: type(make("")).__name__)
def test_estimators_name_what_they_take(make):
    kind, default = type(make("")), type(make(""))().loss
    names, classes = re.match(r"\{(.*?)\}(.*), default", described(kind)[0]).groups()
    taken = [name for name in NAMES if not refusal(make(name))]
    assert set(re.findall(r'"(\w+)"', names)) == set(taken)
    assert names.startswith(f'"{default}"')
    for loss in INSTANCES:
        assert (type(loss).__name__ in classes) == (not refusal(make(loss)))
    listed = refusal(make("?")).removeprefix("loss must be one of ").partition(";")[0]
    assert sorted(listed.split(", ")) == sorted(taken)


def test_the_objective_names_what_it_takes():
    told = described(lt.EmpiricalRisk)[1]
    for name in NAMES:
        if f'"{name}"' in told:
            assert loss_of(name).name == name
        else:
            with pytest.raises(ValueError, match="loss must be one of"):
                loss_of(name)
    for name, kind in CLASSES.items():
        assert f"`{kind.__name__}({LOSSES[name].parameter})`" in told


def taken_by_the_command(task: str, linear: bool = False, **given: Any) -> list[str]:
    taken = []
    for name in NAMES:
        options = argparse.Namespace(
            loss=name, quantile=None, ordinal=None, output_min=None, output_max=None, exposure=None
        )
        vars(options).update(given)
        try:
            predicted(options, task, None, linear)
        except DataError:
            continue
        taken.append(name)
    return taken


def words(text: str) -> set[str]:
    """The names of a list such as "a (note), b or c"."""
    return set(re.findall(r"\w+", re.sub(r"\(.*?\)", "", text))) - {"or"}


def test_the_command_line_names_what_it_takes():
    (commands,) = (each for each in build_parser()._actions if each.dest == "command")
    told = {each.dest: each.help for each in commands.choices["train"]._actions}
    numbers, classes = told["loss"].split("; of a classifier ")
    assert words(numbers) == set(taken_by_the_command("regression"))
    assert words(classes) == set(taken_by_the_command("classification"))
    exposed = words(told["exposure"].partition("--loss ")[2])
    assert exposed == set(taken_by_the_command("regression", exposure="time"))
    assert numbers[numbers.index("poisson") :] in described(lt.LatticeRegressor)[1]


def test_estimators_and_the_command_line_take_the_same():
    for task, linear, make in (
        ("regression", False, ESTIMATORS[0]),
        ("regression", True, ESTIMATORS[1]),
        ("classification", False, ESTIMATORS[3]),
        ("ranking", False, ESTIMATORS[5]),
    ):
        assert taken_by_the_command(task, linear) == [n for n in NAMES if not refusal(make(n))]


def test_the_reference_names_every_loss():
    text = REFERENCE.read_text("utf-8")
    rows = "".join(line for line in text.splitlines() if line.startswith("| losses "))
    named = set(re.findall(r'`"(\w+)"`', rows))
    assert named == set(BY_NAME)
    assert set(re.findall(r"`(\w+)\(", rows)) == {kind.__name__ for kind in CLASSES.values()}
