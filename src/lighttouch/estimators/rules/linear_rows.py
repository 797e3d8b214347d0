"""Rules of linear models as rows about (intercept, coefficients)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from lighttouch.constraints import LinearConstraints
from lighttouch.errors import ConstraintError
from lighttouch.estimators.rules.lattice_rows import BoundShape, RuleRows
from lighttouch.estimators.rules.reading import read_shapes
from lighttouch.estimators.tables import Columns

Floats = NDArray[np.float64]


def linear_rules(
    columns: Columns, monotonic: dict[int, int], shapes: Any, constraints: Any, ranges: Floats
) -> list[RuleRows]:
    """Signs, shape constraints and the user's own rows."""
    count = len(columns)
    bound = read_shapes(shapes, columns, monotonic)
    found = []
    for column, sign in monotonic.items():
        word = "increasing" if sign > 0 else "decreasing"
        found.append(
            _rule(f"{word} in {columns[column].name}", [({column: -float(sign)}, 0.0)], count)
        )
    for shape in bound:
        label = f"{shape.kind}({', '.join(columns[place].name for place in shape.places)})"
        found.append(_rule(label, _shape_rows(shape, ranges), count))
    if constraints is not None:
        found.append(_given(constraints, count))
    return found


def _shape_rows(bound: BoundShape, ranges: Floats) -> list[tuple[dict[int, float], float]]:
    first, second = bound.places if len(bound.places) == 2 else (bound.places[0], bound.places[0])
    if bound.kind == "Dominates":
        return [({second: 1.0, first: -1.0}, 0.0)]
    if bound.kind == "RangeDominates":
        return [({second: float(ranges[second]), first: -float(ranges[first])}, 0.0)]
    if bound.kind == "JointlyMonotonic":
        return [({first: -1.0, second: -1.0}, 0.0)]
    if bound.kind == "SlopeBound":
        limit = float(bound.shape.limit)  # type: ignore[attr-defined]
        return [({first: 1.0}, limit), ({first: -1.0}, limit)]
    raise ConstraintError(
        f"{bound.shape} says nothing about a linear model; use a lattice model, or "
        "Dominates, RangeDominates, SlopeBound"
    )


def _rule(label: str, rows: list[tuple[dict[int, float], float]], count: int) -> RuleRows:
    A = sparse.lil_matrix((len(rows), count + 1))
    for place, (terms, _) in enumerate(rows):
        for column, value in terms.items():
            A[place, column + 1] = value
    return RuleRows(label, sparse.csr_matrix(A), np.array([b for _, b in rows]))


def _given(constraints: Any, count: int) -> RuleRows:
    if not isinstance(constraints, LinearConstraints):
        try:
            A, b = constraints
        except (TypeError, ValueError):
            raise ConstraintError(
                f"constraints must be (A, b) or LinearConstraints, got {type(constraints).__name__}"
            ) from None
        constraints = LinearConstraints(A, b)
    if constraints.dimension != count:
        raise ConstraintError(
            f"constraints must have one column for each of the {count} columns of X, got "
            f"{constraints.dimension}"
        )
    wide = sparse.hstack(
        [sparse.csr_matrix((constraints.count, 1)), sparse.csr_matrix(constraints.A)], format="csr"
    )
    return RuleRows("given rows", wide, constraints.b)
