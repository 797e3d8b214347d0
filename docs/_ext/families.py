"""Writes the API pages: one page per family of public names, from their docstrings.

Every name shows its signature, its docstring, its methods and the gallery pieces that use it. The
build fails if a public name is in no family, or in two.
"""

from __future__ import annotations

import importlib
import inspect
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from names import public_objects
from sphinx.application import Sphinx
from sphinx.errors import ConfigError

FOLDER = "api"


@dataclass(frozen=True)
class Family:
    """One page: its file, its title, a sentence or two, and the names in order."""

    file: str
    title: str
    about: str
    names: tuple[str, ...]
    module: str = "lighttouch"


FAMILIES = (
    Family(
        "solving",
        "Problems and results",
        "State a problem, solve it, read the result. :doc:`/results` explains how to read one.",
        (
            "Problem",
            "solve",
            "Result",
            "Status",
            "History",
            "Progress",
            "check",
            "CheckReport",
            "Finding",
            "project",
            "Projected",
        ),
    ),
    Family(
        "objectives",
        "Objectives and losses",
        "What is minimised. :doc:`/problems` shows them at work.",
        (
            "EmpiricalRisk",
            "PairwiseRisk",
            "Quadratic",
            "WeightedSum",
            "CustomObjective",
            "Huber",
            "Quantile",
            "EpsilonInsensitive",
            "Tweedie",
            "CustomLoss",
        ),
    ),
    Family(
        "constraints",
        "Constraints and domains",
        "What must hold. :doc:`/own_constraints` shows how to write your own.",
        (
            "LinearConstraints",
            "LinearEqualities",
            "GeneratedRows",
            "ordering",
            "order",
            "bounds",
            "canonical_examples",
            "NormConstraints",
            "QuadraticConstraints",
            "ConvexConstraints",
            "stack",
            "Box",
            "Ball",
            "Simplex",
            "Everywhere",
        ),
    ),
    Family(
        "estimators",
        "Models for tables",
        "Estimators for scikit-learn. :doc:`/estimators` is the guide.",
        (
            "LatticeRegressor",
            "LatticeClassifier",
            "LatticeRanker",
            "ConstrainedLinearRegressor",
            "ConstrainedLinearClassifier",
            "MonotoneRegressor",
            "ConvexRegressor",
            "load",
        ),
    ),
    Family(
        "rules",
        "Rules for columns",
        "What `shape_constraints` takes. :doc:`/estimators` says on which scale each rule holds.",
        (
            "Convex",
            "Concave",
            "Unimodal",
            "SlopeBound",
            "CategoryOrder",
            "EdgeworthTrust",
            "TrapezoidTrust",
            "Dominates",
            "RangeDominates",
            "JointlyMonotonic",
            "Supermodular",
            "Submodular",
        ),
    ),
    Family(
        "lattices",
        "Lattices",
        "A table on a grid, interpolated in between. :doc:`/lattice` has the conventions.",
        ("Lattice",),
    ),
    Family(
        "lattice_rules",
        "Rules for lattices",
        "Each function returns the rows that are necessary and sufficient for its rule.",
        (
            "increasing",
            "decreasing",
            "bounds",
            "unimodal",
            "slope",
            "convex",
            "concave",
            "edgeworth",
            "trapezoid",
            "supermodular",
            "submodular",
            "dominance",
            "range_dominance",
            "joint_monotonicity",
        ),
        module="lighttouch.lattice",
    ),
    Family(
        "solvers",
        "Solvers",
        "Without a solver, :py:obj:`lighttouch.solve` runs :py:obj:`lighttouch.Automatic`. "
        ":doc:`/default_solver` explains it, :doc:`/algorithms` the paper's.",
        (
            "Automatic",
            "InteriorPoint",
            "Accelerated",
            "SampledAdaGrad",
            "AlternatingDirections",
            "QuadraticSteps",
            "CuttingPlanes",
            "FullTouch",
            "LightTouch",
            "MidTouch",
            "PracticalLightTouch",
            "ProjectedSGD",
            "ApproxSGD",
            "OnlineFrankWolfe",
            "LocalFrankWolfe",
            "InverseSqrt",
            "InverseTime",
            "AdaGrad",
        ),
    ),
    Family(
        "torch",
        "PyTorch",
        "``lighttouch.torch`` needs PyTorch. :doc:`/pytorch` is the guide.",
        (
            "LightTouch",
            "Audit",
            "Lattice",
            "Calibrator",
            "Linear",
            "LayerCertificate",
            "keep_feasible",
            "TensorRows",
        ),
        module="lighttouch.torch",
    ),
    Family(
        "theory",
        "Theory",
        "The paper's bounds and plans as functions. :doc:`/theory` shows each at work.",
        (
            "Constants",
            "plan_full",
            "plan_light",
            "plan_mid",
            "Plan",
            "full_bound",
            "light_bound",
            "mid_bound",
            "staleness_bound",
            "full_step_size",
            "light_step_size",
            "light_constraint_batch",
            "mid_weight_step_size",
            "boundary_gradient",
            "penalty_from_interior_point",
            "penalty_above",
            "distance_to_feasible",
            "box_penalty",
            "ordering_penalty",
            "linear_penalty",
            "box_boundary_gradient",
            "ordering_boundary_gradient",
            "linear_boundary_gradient",
            "PENALTY_MARGIN",
            "Sizes",
            "comparison_table",
            "iterations_table",
            "checks_table",
            "ComparisonRow",
        ),
        module="lighttouch.theory",
    ),
    Family(
        "errors",
        "Errors",
        "Each says what must hold, what was given and what to try.",
        (
            "DataError",
            "ConstraintError",
            "InfeasibleConstraintsError",
            "CheckpointMismatchError",
            "ModelFileError",
        ),
    ),
)


def missing_or_double(families: tuple[Family, ...] = FAMILIES) -> list[str]:
    """Public names that are in no family or in two, and names that are not public."""
    wanted = set(public_objects())
    given = Counter(f"{each.module}.{name}" for each in families for name in each.names)
    return sorted((wanted ^ set(given)) | {name for name, times in given.items() if times > 1})


def page(family: Family) -> str:
    """The reStructuredText of one family."""
    names = "\n".join(f"- :py:obj:`{family.module}.{name}`" for name in family.names)
    parts = [_heading(family.title, "="), family.about, f".. rst-class:: names\n\n{_indent(names)}"]
    return "\n\n".join([*parts, *(_entry(family.module, name) for name in family.names)]) + "\n"


def _entry(module: str, name: str) -> str:
    full = f"{module}.{name}"
    value = getattr(importlib.import_module(module), name)
    parts = [_heading(name, "-")]
    if inspect.isclass(value):
        members = ", ".join(_members(value))
        kind = "autoexception" if issubclass(value, Exception) else "autoclass"
        parts.append(f".. {kind}:: {full}" + (f"\n   :members: {members}" if members else ""))
    elif callable(value):
        parts.append(f".. autofunction:: {full}")
    else:
        parts.append(f".. autodata:: {full}")
    parts.append(f".. minigallery:: {full}")
    return "\n\n".join(parts)


def _members(value: type) -> list[str]:
    """Public methods and properties with a docstring that this package wrote."""
    found = []
    for each in reversed(value.__mro__):
        if not each.__module__.startswith("lighttouch"):
            continue
        for name, member in vars(each).items():
            described = callable(member) or isinstance(member, property | classmethod)
            if not name.startswith("_") and described and _documented(value, name):
                found.append(name)
    return list(dict.fromkeys(found))


def _documented(value: type, name: str) -> bool:
    member: Any = inspect.getattr_static(value, name)
    return bool(inspect.getdoc(member)) and not inspect.isclass(member)


def _heading(text: str, line: str) -> str:
    return f"{text}\n{line * len(text)}"


def _indent(text: str) -> str:
    return "\n".join(f"   {line}" for line in text.splitlines())


def write_pages(app: Sphinx) -> None:
    """Write each page that has changed."""
    if wrong := missing_or_double():
        raise ConfigError(f"docs/_ext/families.py must hold each public name once: {wrong}")
    folder = Path(app.srcdir) / FOLDER
    folder.mkdir(exist_ok=True)
    for family in FAMILIES:
        path, text = folder / f"{family.file}.rst", page(family)
        if not path.exists() or path.read_text("utf-8") != text:
            path.write_text(text, "utf-8")


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("builder-inited", write_pages, priority=900)  # after the gallery
    return {"parallel_read_safe": True, "parallel_write_safe": True}
