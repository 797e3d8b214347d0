"""Which method fits which constraints."""

from __future__ import annotations

from typing import Any, Protocol
from weakref import WeakKeyDictionary

import numpy as np
from scipy import sparse

from lighttouch.arrays import Vector
from lighttouch.constraints import Aggregated, LinearConstraints, Stacked
from lighttouch.domains import Ball, Box
from lighttouch.errors import InfeasibleConstraintsError
from lighttouch.lattice.implicit import LatticeMonotonicity
from lighttouch.projections.ball_path import BallEngine
from lighttouch.projections.closed_forms import ClipEngine, HalfspaceEngine
from lighttouch.projections.curved import curved_engine
from lighttouch.projections.curved_sets import BallDomain, Part
from lighttouch.projections.cutting_planes import CutEngine
from lighttouch.projections.general_rows import RowsEngine
from lighttouch.projections.lattices import lattice_engine
from lighttouch.projections.nested import nested_engine, split
from lighttouch.projections.orders import order_engine
from lighttouch.projections.result import Nearest
from lighttouch.projections.rows import LinearSet, read_rows
from lighttouch.projections.unit_rows import all_unit_rows


class Engine(Protocol):
    """A set that knows its nearest points."""

    def nearest(self, v: Vector, warm: Any = None) -> Nearest: ...


_prepared: WeakKeyDictionary[Any, dict[Any, Engine]] = WeakKeyDictionary()


def engine_for(constraints: Any, domain: Any) -> Engine:
    """The engine of a set, prepared once and kept as long as its constraints live."""
    known = _prepared.setdefault(constraints, {})
    key = (
        (domain.lower, domain.upper)
        if isinstance(domain, Box) and np.ndim(domain.lower) == 0 == np.ndim(domain.upper)
        else domain
    )
    if key not in known:
        if len(known) >= 8:
            known.clear()
        known[key] = new_engine(constraints, domain)
    return known[key]


def new_engine(constraints: Any, domain: Any) -> Engine:
    base = constraints.base if isinstance(constraints, Aggregated) else constraints
    if isinstance(base, LatticeMonotonicity):
        rowless = lattice_engine(
            base, *((domain.lower, domain.upper) if isinstance(domain, Box) else (-np.inf, np.inf))
        )
        if rowless is not None:
            return (
                BallEngine(rowless, domain.radius, domain.center)
                if isinstance(domain, Ball)
                else rowless
            )
    families = base.parts if isinstance(base, Stacked) else (base,)
    firsts = np.cumsum([0, *(family.count for family in families)])
    linear = [k for k, family in enumerate(families) if isinstance(family, LinearConstraints)]
    box = (domain.lower, domain.upper) if isinstance(domain, Box) else (-np.inf, np.inf)
    matrix, right = one_matrix([families[k] for k in linear], base.dimension)
    nested = split(families) if len(linear) == len(families) else None
    if nested is not None:
        engine: Engine = nested_engine(matrix, right, *nested, *box)
        return (
            BallEngine(engine, domain.radius, domain.center) if isinstance(domain, Ball) else engine
        )
    rows = read_rows(matrix, right, *box)
    if len(linear) == len(families):
        engine = linear_engine(rows)
        return (
            BallEngine(engine, domain.radius, domain.center) if isinstance(domain, Ball) else engine
        )
    curved = [Part(family, int(firsts[k])) for k, family in enumerate(families) if k not in linear]
    if isinstance(domain, Ball):
        center = np.zeros(base.dimension) if domain.center is None else domain.center
        curved.append(Part(BallDomain(center, domain.radius), -1))
    number = np.concatenate(
        [np.empty(0, dtype=np.int64), *(firsts[k] + np.arange(families[k].count) for k in linear)]
    )
    return curved_engine(CutEngine(rows, all_unit_rows(rows), number, curved))


def largest_violation(constraints: Any, w: Vector) -> float:
    """The largest g_j(w), at least 0, from the constraints as the user gave them."""
    base = constraints.base if isinstance(constraints, Aggregated) else constraints
    if isinstance(base, LatticeMonotonicity):
        return max(0.0, base.largest(w))
    values = base.A @ w - base.b if isinstance(base, LinearConstraints) else base.values(w)
    return max(0.0, float(np.max(values, initial=0.0)))


def in_words(error: InfeasibleConstraintsError, constraints: Any) -> InfeasibleConstraintsError:
    """The same error with the first conflicting constraints written out."""
    base = constraints.base if isinstance(constraints, Aggregated) else constraints
    words = [base.describe(row) for row in error.rows[:6]]
    more = f"; and {len(error.rows) - 6} more" if len(error.rows) > 6 else ""
    return InfeasibleConstraintsError(
        f"{error} [{'; '.join(words)}{more}]" if words else str(error), error.rows
    )


def one_matrix(parts: Any, dimension: int) -> tuple[Any, Vector]:
    """The rows of all linear families, one after the other."""
    if not parts:
        return np.zeros((0, dimension)), np.zeros(0)
    if len(parts) == 1:
        return parts[0].A, parts[0].b
    return sparse.vstack(
        [sparse.csr_matrix(part.A) for part in parts], format="csr"
    ), np.concatenate([part.b for part in parts])


def linear_engine(rows: LinearSet) -> Engine:
    """Closed forms first, then orders, then any rows."""
    orders, general = rows.orders.source.size, rows.source.size
    if not orders and not general:
        return ClipEngine(rows.bounds)
    if orders + general == 1 and rows.bounds.trivial:
        unit = all_unit_rows(rows)
        row = unit.matrix[0].toarray().ravel() if sparse.issparse(unit.matrix) else unit.matrix[0]
        return HalfspaceEngine(row, float(unit.right[0]))
    return order_engine(rows) or RowsEngine.of(rows)
