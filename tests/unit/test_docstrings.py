"""Public names are documented in numpydoc form, and their examples run.

Every callable of `lighttouch`, `lighttouch.lattice`, `lighttouch.theory` and `lighttouch.report`
must describe each parameter with its type, say what it returns and what it raises, and show an
example. The fields of a result may stand under Attributes.
"""

from __future__ import annotations

import doctest
import enum
import inspect
from typing import Any

import numpy as np
import pytest
from numpydoc.docscrape import FunctionDoc

import lighttouch as lt
from lighttouch import report


def public() -> dict[str, Any]:
    """Every public callable by its full name."""
    found = {}
    for module in (lt, lt.lattice, lt.theory, report):
        for name in module.__all__:
            value = getattr(module, name)
            if callable(value):
                found[f"{module.__name__}.{name}"] = value
    return found


def _is_exception(value: Any) -> bool:
    return inspect.isclass(value) and issubclass(value, Exception)


PUBLIC = public()
# What a run gives back, and pieces that take anything: their use finds what is wrong with them.
RAISE_NOTHING = {
    "Accuracy", "Audit", "CheckReport", "ComparisonRow", "Concave", "ConstraintReport", "Convex",
    "Data", "Dominates", "Everywhere", "Finding", "Findings", "History", "JointlyMonotonic",
    "LayerCertificate", "Plan", "Progress", "Projected", "RangeDominates", "Result", "RuleReport",
    "Status", "Submodular", "Supermodular", "comparison_table",
}  # fmt: skip


def faults(value: Any) -> list[str]:
    """What its docstring lacks."""
    described = FunctionDoc(value, doc=inspect.getdoc(value) or "")
    summary = " ".join(described["Summary"])
    found = [] if summary.endswith(".") else ["the summary must be a sentence"]
    if not _is_enum(value) and not _is_exception(value):
        found += _faults_of_parameters(value, described)
    if not described["Raises"] and not _is_exception(value) and value.__name__ not in RAISE_NOTHING:
        found.append("no Raises section")
    if inspect.isfunction(value) and _returns_something(value):
        found += [] if described["Returns"] else ["no Returns section"]
        found += [
            f"no type of what {each.name} returns" for each in described["Returns"] if not each.type
        ]
    if ">>>" not in "\n".join(described["Examples"]):
        found.append("no example")
    return found


def _is_enum(value: Any) -> bool:
    return inspect.isclass(value) and issubclass(value, enum.Enum)


def _faults_of_parameters(value: Any, described: FunctionDoc) -> list[str]:
    wanted = [name for name in inspect.signature(value).parameters if name != "self"]
    listed = described["Parameters"]
    names = _names(listed)
    known = names + (_names(described["Attributes"]) if inspect.isclass(value) else [])
    found = [f"{name} is not described" for name in wanted if name not in known]
    found += [f"{name} is described but no parameter" for name in names if name not in wanted]
    found += [f"{each.name} has no type" for each in listed if not each.type]
    found += [
        f"{each.name} has no description" for each in listed if not "".join(each.desc).strip()
    ]
    return found


def _names(listed: list[Any]) -> list[str]:
    return [part.strip().lstrip("*") for each in listed for part in each.name.split(",")]


def _returns_something(value: Any) -> bool:
    return inspect.signature(value).return_annotation not in (None, "None")


@pytest.mark.parametrize("name", sorted(PUBLIC))
def test_it_is_documented(name):
    found = faults(PUBLIC[name])
    assert not found


@pytest.mark.parametrize("name", sorted(PUBLIC))
def test_its_examples_run(name):
    value = PUBLIC[name]
    lines: list[str] = []
    runner = doctest.DocTestRunner(
        optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE, verbose=False
    )
    example = doctest.DocTestParser().get_doctest(
        inspect.getdoc(value) or "", {"lt": lt, "np": np}, name, None, None
    )
    with np.printoptions(precision=4, suppress=True):
        runner.run(example, out=lines.append)
    assert runner.summarize(verbose=False).failed == 0, "".join(lines)


def test_faults_are_found():
    def undocumented(a: int) -> int:  # noqa: D417
        """Half a docstring.

        Parameters
        ----------
        b
            Something else.
        """
        return a

    assert faults(undocumented) == [
        "a is not described",
        "b is described but no parameter",
        "b has no type",
        "no Raises section",
        "no Returns section",
        "no example",
    ]
