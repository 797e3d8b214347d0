"""Rules of linear models as rows about (intercept, coefficients)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from lighttouch.arrays import Floats, Matrix
from lighttouch.constraints import LinearConstraints
from lighttouch.errors import ConstraintError
from lighttouch.estimators.rules.base import LinearRow, Shapes
from lighttouch.estimators.rules.reading import monotone_label, read_shapes
from lighttouch.estimators.rules.rows import RuleRows
from lighttouch.estimators.tables import Columns

Rows = LinearConstraints | tuple[Matrix, ArrayLike]


def linear_rules(
    columns: Columns,
    monotonic: dict[int, int],
    shapes: Shapes,
    constraints: Rows | None,
    ranges: Floats,
) -> list[RuleRows]:
    """Signs, shape constraints and the user's own rows."""
    count = len(columns)
    bound = read_shapes(shapes, columns, monotonic)
    found = []
    for column, sign in monotonic.items():
        label = monotone_label(columns[column].name, sign)
        found.append(_rule(label, [({column: -float(sign)}, 0.0)], count, True))
    for shape in bound:
        rows = shape.linear_rows(ranges)
        found.append(_rule(shape.label(columns.names), rows, count, shape.shape.about_order))
    if constraints is not None:
        found.append(_given(constraints, count))
    return found


def _rule(label: str, rows: list[LinearRow], count: int, about_order: bool) -> RuleRows:
    A = sparse.lil_matrix((len(rows), count + 1))
    for place, (terms, _) in enumerate(rows):
        for column, value in terms.items():
            A[place, column + 1] = value
    b = np.array([right for _, right in rows])
    return RuleRows(label, sparse.csr_matrix(A), b, about_order=about_order)


def _given(constraints: Rows, count: int) -> RuleRows:
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
    no_intercept = sparse.csr_matrix((constraints.count, 1))
    wide = sparse.hstack([no_intercept, sparse.csr_matrix(constraints.A)], format="csr")
    return RuleRows("given rows", wide, constraints.b)
