"""The last step of every fit: parameters that obey every row with no violation at all."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from lighttouch.arrays import Indices
from lighttouch.constraints import LinearConstraints
from lighttouch.domains import Everywhere
from lighttouch.errors import InfeasibleConstraintsError
from lighttouch.projections import project
from lighttouch.projections.sets import feasible_set

Floats = NDArray[np.float64]
MARGINS = (1e-12, 1e-11, 1e-10, 1e-9, 1e-8)  # relative to the parameters' size


def exactly_feasible(w: Floats, rules: LinearConstraints) -> tuple[Floats, float]:
    """The nearest point without violation, and the violation that is left where rules leave no room
    to remove it. Rows that share no parameter are met apart, as those of different terms.
    """
    if rules.count == 0 or violation(w, rules) == 0.0:
        return w, 0.0
    if rules.nested or not rules.sparse:
        return _feasible_together(w, rules)
    near = _order_nearby(w, rules)
    if near is not None and violation(near, rules) == 0.0:
        return near, 0.0
    found, left = w.copy(), 0.0
    for rows, columns in _groups(rules):
        part = LinearConstraints(rules.A[rows][:, columns], rules.b[rows])
        if violation(w[columns], part) > 0.0:
            try:
                found[columns], more = _feasible_together(w[columns], part)
            except InfeasibleConstraintsError as error:
                named = [int(rows[each]) for each in error.rows]
                raise InfeasibleConstraintsError(str(error), named) from None
            left = max(left, more)
    return found, left


def _groups(rules: LinearConstraints) -> Iterator[tuple[Indices, Indices]]:
    """Rows, and the parameters that they are about, such that groups have none in common."""
    A = sparse.csr_matrix(rules.A)
    both = sparse.bmat([[None, A], [A.T, None]], format="csr")
    labels = connected_components(both, directed=False)[1]
    of_rows, of_columns = labels[: rules.count], labels[rules.count :]
    for label in np.unique(of_rows):
        yield np.flatnonzero(of_rows == label), np.flatnonzero(of_columns == label)


def _feasible_together(w: Floats, rules: LinearConstraints) -> tuple[Floats, float]:
    """Orders are projected exactly; where little is to be removed, any feasible point as near will
    do, which spares a first fit the compilation of projections. Other rows are met up to rounding
    errors. Those go when the rows are tightened by slightly more than the rounding.
    """
    scale = _scale(w)
    best = _order_nearby(w, rules)
    if best is None:
        best = project(w, rules).w
    left = violation(best, rules)
    for margin in MARGINS:
        for rows in (_not_orders(rules), np.ones(rules.count, dtype=bool)):
            if left == 0.0:
                return best, left
            try:
                asked = LinearConstraints(
                    rules.A, rules.b - np.where(rows, margin * scale * rules.row_scales(), 0.0)
                )
                closer = project(best, asked).w
            except InfeasibleConstraintsError:
                continue
            if violation(closer, rules) < left:
                best, left = closer, violation(closer, rules)
    return best, left


def feasible_nearby(w: Floats, rules: LinearConstraints) -> Floats | None:
    """The same point without rounding errors; None where it breaks a rule by more than those."""
    if violation(w, rules) > MARGINS[-1] * _scale(w):
        return None
    met, left = exactly_feasible(w, rules)
    return met if left == 0.0 else None


def _order_nearby(w: Floats, rules: LinearConstraints) -> Floats | None:
    """A point that obeys orders, where next to nothing needs to be removed; None elsewhere."""
    near = feasible_set(rules, Everywhere()).near(w)
    if near is None or float(np.abs(near - w).max()) > MARGINS[-1] * _scale(w):
        return None
    return near


def _scale(w: Floats) -> float:
    return max(float(np.abs(w).max()), 1e-300)


def violation(w: Floats, rules: LinearConstraints) -> float:
    """The largest, also when rows are added up as a user would check them: rules hold either way,
    and long rows round differently.
    """
    return max(rules.violation(w), float(np.max(rules.A @ w - rules.b, initial=0.0)))


def _not_orders(rules: LinearConstraints) -> NDArray[np.bool_]:
    if not rules.sparse:
        return np.ones(rules.count, dtype=bool)
    entries = np.diff(rules.A.indptr)
    sums = np.abs(np.asarray(rules.A.sum(axis=1)).ravel())
    bound = sparse.csr_matrix(abs(rules.A)).max(axis=1).toarray().ravel()
    return np.asarray((entries != 2) | (sums > 1e-12 * bound) | (rules.b != 0.0))
