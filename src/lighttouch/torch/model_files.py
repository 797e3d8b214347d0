"""A lattice layer as a model of the core, and back: `lt.load` reads its file, and the command line
predicts with it, checks its rules and shows where it comes from.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from scipy import sparse

from lighttouch.arrays import Floats
from lighttouch.errors import ConstraintError, DataError
from lighttouch.estimators import LatticeRegressor
from lighttouch.estimators.explaining import even_background
from lighttouch.estimators.model import AdditiveModel, InputMap, Term
from lighttouch.estimators.outputs import OneScore
from lighttouch.estimators.proof import ConstraintReport, check_rule
from lighttouch.estimators.regression import OutputLimits
from lighttouch.estimators.rules import RuleRows
from lighttouch.estimators.tables import Column, Columns
from lighttouch.lattice import Lattice as Grid

STATUS = "trained elsewhere"  # no run of the core ended, so none converged
LABEL = "the layer's rules"


def model_of(
    grid: Grid, theta: Floats, rules: Any, maps: list[InputMap], names: Sequence[str] | None
) -> LatticeRegressor:
    """A fitted regressor of one lattice over all columns."""
    count = len(grid.sizes)
    if names is not None and len(set(names)) != count:
        raise DataError(
            f"names must be {count} different names, one per feature, got {list(names)}"
        )
    listed = [f"x{place}" for place in range(count)] if names is None else [str(n) for n in names]
    model = LatticeRegressor(interpolation=grid.interpolation, lattices=[listed])
    model.n_features_in_ = count
    if names is not None:
        model.feature_names_in_ = np.asarray(listed, dtype=object)
    model.columns_ = Columns(tuple(Column(name) for name in listed), names is not None)
    if count == 1:  # a curve has a vertex of its own for missing cells
        grid = Grid((grid.sizes[0] + 1,), grid.interpolation)
        theta = np.append(theta, theta.mean())
        maps = [replace(maps[0], missing=float(grid.sizes[0] - 1))]
    model.model_ = AdditiveModel([Term(tuple(range(count)), tuple(maps), grid)])
    model._take(np.concatenate([[0.0], theta]), OneScore())
    model._rules = ({}, [], _rows(rules, model.model_.dimension))
    model.trees_ = None
    model._limits = OutputLimits.from_state(None)
    model.smoothing_ = (0.0, 0.0)
    model._background, model.importances_ = even_background(model.model_), {}
    model.n_iter_, model.status_ = 1, STATUS
    checked = tuple(check_rule(rule, model.parameters_) for rule in model._rules[2])
    model.constraint_report_ = ConstraintReport(checked, float("nan"), None)
    return model


def _rows(rules: Any, dimension: int) -> list[RuleRows]:
    """The rules of the layer as rows about the model's parameters, behind its intercept."""
    if rules is None or not rules.count:
        return []
    found = rules.linear_rows()
    if found is None:
        raise ConstraintError("a model file holds linear rules; this layer has others")
    A = sparse.coo_matrix(found[0])
    wide = sparse.csr_matrix((A.data, (A.row, A.col + 1)), shape=(A.shape[0], dimension))
    return [RuleRows(LABEL, wide, np.asarray(found[1], dtype=np.float64))]


def whole_number_maps(sizes: Sequence[int]) -> list[InputMap]:
    """The positions themselves; a missing cell counts as the middle of its axis."""
    return [
        InputMap(np.arange(float(size)), np.arange(float(size)), 0.5 * (size - 1)) for size in sizes
    ]


def calibrated_maps(keypoints: Floats, positions: Floats, sizes: Sequence[int]) -> list[InputMap]:
    """The curves of a calibrator that comes before the lattice, clamped as the lattice clamps."""
    keypoints, positions = np.atleast_2d(keypoints), np.atleast_2d(positions)
    if keypoints.shape[0] != len(sizes):
        raise DataError(
            f"the calibrator must have a curve of its own for each of the {len(sizes)} features, "
            f"got {keypoints.shape[0]}: give Calibrator one sequence of keypoints per feature, "
            "also where the sequences are the same"
        )
    tops = np.asarray(sizes, dtype=np.float64) - 1.0
    if (positions < 0.0).any() or (positions > tops[:, None]).any():
        raise DataError(
            "the calibrator must lead into the lattice, from 0 to its size less 1 along each "
            "feature: give it lower=0 and upper=size - 1"
        )
    return [
        InputMap(np.ascontiguousarray(k), np.ascontiguousarray(p), 0.5 * float(top))
        for k, p, top in zip(keypoints, positions, tops, strict=True)
    ]


def parts_of(model: Any) -> tuple[Term, Floats, Any]:
    """The one lattice of a model, its parameters with the intercept, and its rules."""
    terms: Any = getattr(getattr(model, "model_", None), "terms", ())
    trees = getattr(model, "trees_", None)
    if len(terms) != 1 or not model._has_one_score or trees is not None:
        others = "" if trees is None else f" and {trees.count} trees"
        raise DataError(
            "a layer is made of a model with one lattice and one output, such as "
            f"Lattice.to_model() gives; got {type(model).__name__} with {len(terms)} terms{others}"
        )
    term, w = terms[0], model.parameters_
    theta = w[1:] + w[0]
    if term.calibrator:
        term = replace(term, lattice=Grid(term.grid, term.lattice.interpolation))
        theta = theta[:-1]
    rows = [rule for rule in model._rules[2] if rule.label == LABEL]
    return term, theta, rows[0] if rows else None
