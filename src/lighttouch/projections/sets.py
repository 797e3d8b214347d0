"""A feasible set {w in W: g_j(w) <= 0} in one normal form, with the facts that choose a method.

`feasible_set(constraints, domain)` is made once per pair and kept as long as the constraints live.
The constraints are asked for their parts, their rows, their lattice and their balls; nobody else
needs to know of which class they are.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import replace
from functools import cached_property, partial
from typing import TypeVar

import numpy as np
from scipy import sparse

from lighttouch.arrays import Booleans, Floats, Indices, Matrix, Vector
from lighttouch.constraints.base import NestedForms, RecordConstraints, stacked_rows
from lighttouch.domains import Ball, Box, Domain, Everywhere, Simplex, checked_domain
from lighttouch.errors import ConstraintError, InfeasibleConstraintsError
from lighttouch.projections.costs import COSTS
from lighttouch.projections.cutting_planes import BallDomain, Part, RowsToFind
from lighttouch.projections.exchange.cuts import Cut, cut_lattice, cut_rows
from lighttouch.projections.methods import Method, choose
from lighttouch.projections.orders import (
    GraphOrders,
    LatticeOrders,
    graph_orders,
    lattice_orders,
)
from lighttouch.projections.rows.kinds import (
    LinearSet,
    Side,
    UnitRows,
    all_unit_rows,
    read_rows,
)
from lighttouch.projections.rows.nested import SplitRows, split_by_kind, split_rows, without_nested
from lighttouch.projections.splitting import Splitting
from lighttouch.result import Nearest
from lighttouch.running import prepared

Answer = TypeVar("Answer")


def feasible_set(
    constraints: RecordConstraints, domain: Domain, blocks: int | None = None
) -> FeasibleSet:
    """The set of the constraints and the domain, prepared once.

    Parameters
    ----------
    constraints : constraint family
        Any, also stacked or aggregated.
    domain : Box, Ball, Simplex or Everywhere
        The simple set W.
    blocks : int, optional
        Cut it into so many blocks; None leaves that to its size.

    Returns
    -------
    FeasibleSet
        The same object for the same arguments.

    Raises
    ------
    InfeasibleConstraintsError
        Where bounds or orders alone leave no point.
    DataError
        Where the domain is none of the four.
    ConstraintError
        Where `blocks` is given and the set cannot be cut.

    Examples
    --------
    >>> import lighttouch as lt
    >>> from lighttouch.projections.sets import feasible_set
    >>> feasible_set(lt.ordering(4), lt.Everywhere()).is_order
    True
    """
    if not isinstance(constraints, RecordConstraints):
        raise ConstraintError(
            "constraints must be constraints such as LinearConstraints(A, b), got "
            f"{type(constraints).__name__}"
        )
    checked_domain(domain, constraints.dimension)
    return in_words(
        constraints,
        lambda: prepared(
            constraints,
            ("feasible set", _key(domain), blocks),
            lambda: FeasibleSet(constraints, domain, blocks).ready(),
        ),
    )


def _key(domain: Domain) -> Hashable:
    """Boxes with the same two numbers are the same; everything with arrays is compared by
    identity.
    """
    if isinstance(domain, Box) and np.ndim(domain.lower) == 0 == np.ndim(domain.upper):
        return "box", domain.lower, domain.upper
    return domain


class FeasibleSet:
    """A set in normal form; everything is computed when it is first asked for, and once.

    Attributes
    ----------
    constraints, domain
        As they were given.
    dimension : int
        The number of parameters.
    families : tuple of constraint families
        The constraints by kind, in order; `firsts` holds the number of the first constraint of
        each, and after the last the count of all.
    """

    def __init__(
        self, constraints: RecordConstraints, domain: Domain, blocks: int | None = None
    ) -> None:
        self.constraints = constraints
        self.domain = domain
        self.blocks = blocks
        self.dimension = int(constraints.dimension)
        self.families = constraints.parts
        self.firsts: Indices = np.cumsum([0, *(family.count for family in self.families)])

    def ready(self) -> FeasibleSet:
        """The same set, with its method prepared: bounds and orders that contradict each other are
        found here.
        """
        assert self.method is not None
        return self

    # -- nearest points ---------------------------------------------------------------------

    @cached_property
    def method(self) -> Method:
        """The first method of `methods.METHODS` that takes the set."""
        return choose(self)

    def nearest(self, v: Vector, warm: object = None) -> Nearest:
        """The nearest point to v; `warm` takes the `warm` of an earlier answer."""
        return in_words(self.constraints, lambda: self._nearest(v, warm))

    def near(self, v: Vector) -> Vector | None:
        """Some point of the set near v, at once; None where only a projection finds one."""
        if not self.is_order:
            return None
        orders = self.lattice_orders if self.lattice_orders is not None else self.graph_orders
        return None if orders is None else orders.near(v)

    def _nearest(self, v: Vector, warm: object) -> Nearest:
        if self.has_curved_families:  # cutting planes speak of constraints themselves
            return self.method.nearest(v, warm)
        found = self._numbered(lambda: self.method.nearest(v, warm))
        if found.multipliers is None or self._rows_are_constraints:
            return found
        return replace(found, multipliers=partial(self._of_constraints, found.multipliers))

    # -- rows and constraints ---------------------------------------------------------------

    @cached_property
    def constraint_of_row(self) -> Indices:
        """The number, among all constraints, of each row of the linear families; -1 for rows of the
        domain. Equalities are two rows.
        """
        numbers = [self.firsts[k] + self.families[k].constraint_of_row() for k in self._linear]
        domain = np.full(self._domain_rows, -1)
        return np.concatenate([np.empty(0, dtype=np.int64), *numbers, domain])

    @cached_property
    def row_signs(self) -> Floats:
        """-1 for rows that are equalities with their signs turned, else 1."""
        signs = [self.families[k].row_signs() for k in self._linear]
        return np.concatenate([*signs, np.ones(self._domain_rows)])

    @property
    def _rows_are_constraints(self) -> bool:
        return self._only_rows and not self._domain_rows and not self.has_equalities

    @property
    def has_equalities(self) -> bool:
        """Whether some constraints are equalities."""
        return any(np.any(family.is_equality) for family in self.families)

    @property
    def simplex(self) -> Simplex | None:
        """The domain, where it is a simplex."""
        return self.domain if isinstance(self.domain, Simplex) else None

    @property
    def _domain_rows(self) -> int:
        """The sum of a simplex is two rows, after those of the constraints."""
        return 0 if self.simplex is None else 2

    def _with_domain(self, rows: tuple[Matrix, Vector]) -> tuple[Matrix, Vector]:
        """The rows of the constraints, then those of the domain."""
        if self.simplex is None:
            return rows
        total = self.simplex.total
        both = np.vstack([np.ones(self.dimension), -np.ones(self.dimension)])
        right = np.concatenate([rows[1], [total, -total]])
        if sparse.issparse(rows[0]):
            return sparse.vstack([rows[0], sparse.csr_matrix(both)], format="csr"), right
        return np.vstack([rows[0], both]), right

    def _of_constraints(self, of_rows: Callable[[], Vector]) -> Vector:
        """Multipliers of rows as those of constraints: of either sign where these are
        equalities.
        """
        number, multipliers = self.constraint_of_row, np.zeros(int(self.firsts[-1]))
        own = number >= 0
        np.add.at(multipliers, number[own], (self.row_signs * of_rows())[own])
        return multipliers

    def _numbered(self, ask: Callable[[], Answer]) -> Answer:
        """The answer, or its error about rows as one about constraints."""
        try:
            return ask()
        except InfeasibleConstraintsError as error:
            if self._rows_are_constraints:
                raise
            found = {int(self.constraint_of_row[row]) for row in error.rows}
            numbers = sorted(found - {-1})
            who = "constraints " if len(numbers) != 1 else "constraint "
            domain = " within the domain" if "domain" in str(error) or -1 in found else ""
            why = str(error).partition(": ")[2]
            named = ", ".join(map(str, numbers))
            message = f"no point satisfies {who}{named}{domain}: {why}"
            raise InfeasibleConstraintsError(message, numbers) from None

    # -- what kind of set it is -------------------------------------------------------------

    @cached_property
    def _only_rows(self) -> bool:
        """Whether every family is linear (without making rows that are never stored)."""
        return self._linear.size == len(self.families)

    @cached_property
    def _linear(self) -> Indices:
        known = [k for k, family in enumerate(self.families) if is_stored(family)]
        return np.array(known, dtype=np.int64)

    @property
    def is_linear(self) -> bool:
        """Linear constraints in a box or everywhere."""
        return self._only_rows and self.ball is None

    @property
    def is_curved(self) -> bool:
        return not self.is_linear

    @property
    def has_curved_families(self) -> bool:
        """Whether some constraints are not linear, or too many rows to store, whatever the
        domain.
        """
        return not self._only_rows

    @property
    def ball(self) -> Ball | None:
        """The domain, where it is a ball."""
        return self.domain if isinstance(self.domain, Ball) else None

    @property
    def is_simplex(self) -> bool:
        """A simplex and no constraints."""
        return self.simplex is not None and self.constraints.count == 0

    @property
    def is_box(self) -> bool:
        """Only bounds on single coordinates, or nothing at all."""
        return self._are_stored_rows and not self._count_of_rows

    @property
    def is_halfspace(self) -> bool:
        """One row and nothing else."""
        return self._are_stored_rows and self._count_of_rows == 1 and self.rows.bounds.trivial

    @property
    def is_affine(self) -> bool:
        """Equalities and nothing else."""
        return (
            isinstance(self.domain, Everywhere)
            and self.constraints.count > 0
            and all(family.is_equality is True for family in self.families)
        )

    @property
    def is_order(self) -> bool:
        """Bounds and orders that one of the order methods takes."""
        return self.lattice_orders is not None or self.graph_orders is not None

    @property
    def has_nested(self) -> bool:
        """Nested rows, so many that splitting them pays."""
        return self.is_linear and self._nested is not None

    @property
    def is_coupled(self) -> bool:
        """Rows that join parameters in other ways than orders do, stored or not."""
        if self.is_linear:
            return not (self.is_box or self.is_halfspace or self.is_order)
        return any(family.is_linear and not is_stored(family) for family in self.families)

    @property
    def is_general(self) -> bool:
        """Linear rows that need the active-set method, Newton's or the interior point."""
        return self._are_stored_rows and not (self.is_box or self.is_halfspace or self.is_order)

    @property
    def _are_stored_rows(self) -> bool:
        return self.is_linear and self.lattice_orders is None and self._nested is None

    @property
    def _count_of_rows(self) -> int:
        """Rows that are not bounds."""
        return int(self.rows.orders.source.size + self.rows.source.size)

    # -- its rows ---------------------------------------------------------------------------

    @cached_property
    def _stacked(self) -> tuple[Matrix, Vector] | None:
        if not self._only_rows:
            return None
        rows = stacked_rows(self.families)
        assert rows is not None
        return self._with_domain(rows)

    @property
    def matrix(self) -> Matrix | None:
        """All linear rows as they were given, and after them those of a simplex; None where a
        family is not linear.
        """
        return None if self._stacked is None else self._stacked[0]

    @property
    def right(self) -> Vector | None:
        return None if self._stacked is None else self._stacked[1]

    @cached_property
    def _box(self) -> tuple[Side, Side]:
        """The sides of the domain if it is a box or a simplex; a ball is no part of the rows."""
        domain = self.domain
        if self.simplex is not None:
            return 0.0, np.inf
        return (domain.lower, domain.upper) if isinstance(domain, Box) else (-np.inf, np.inf)

    @cached_property
    def rows(self) -> LinearSet:
        """The rows of the linear families and the box, by kind: bounds, orders, general rows."""
        found = self._stacked
        if found is None:
            some = stacked_rows([self.families[k] for k in self._linear])
            found = self._with_domain(some or (np.zeros((0, self.dimension)), np.zeros(0)))
        matrix, right = found
        return self._numbered(lambda: read_rows(matrix, right, *self._box))

    @cached_property
    def unit(self) -> UnitRows:
        """Orders and general rows in one matrix of rows of length one, bounds apart."""
        return all_unit_rows(self.rows)

    @cached_property
    def _bounds(self) -> tuple[Floats, Floats]:
        if self.lattice_orders is not None:
            return self.domain.bounds(self.dimension)
        if self.is_linear and self._nested is not None:  # without a copy of the many nested rows
            rest = self._nested[0]
            bounds = read_rows(self.matrix[rest], self.right[rest], *self._box).bounds  # type: ignore[index]
        else:
            bounds = self.rows.bounds
        return bounds.lower, bounds.upper

    @property
    def lower(self) -> Floats:
        """The box, narrowed by every constraint that bounds one coordinate; -inf without."""
        return self._bounds[0]

    @property
    def upper(self) -> Floats:
        return self._bounds[1]

    def diameter(self) -> Floats:
        """How far apart two points of the set can be in each coordinate, as far as bounds say."""
        lower, upper = self.domain.bounds(self.dimension)
        return np.asarray(np.minimum(self.upper, upper) - np.maximum(self.lower, lower))

    # -- what a factorisation would cost ------------------------------------------------------

    @property
    def factor_cost(self) -> float:
        """Multiplications of one factorisation of [I A'; A D]; infinite for dense rows, which have
        better methods.
        """
        return self.unit.factor_cost

    # -- its parts for the single methods -----------------------------------------------------

    @cached_property
    def lattice_orders(self) -> LatticeOrders | None:
        """Orders along the axes of a lattice, in a box: no row of them is stored."""
        if not self.is_linear or len(self.families) > 1 or self.simplex is not None:
            return None
        axes = self.families[0].lattice_axes()
        return None if axes is None else lattice_orders(axes, *self._box)

    @cached_property
    def cut(self) -> Cut | None:
        """The set in blocks, where that was asked for, or it is too large for one process."""
        lattice = self.lattice_orders
        if lattice is not None:
            count = self.blocks
            if count is None and not lattice.fits_one_process:
                count = -(-lattice.axes.count // COSTS.block_edges)
            family, box = self.families[0], (lattice.lower, lattice.upper)
            return None if count is None else cut_lattice(family, lattice.axes, *box, count)
        if self.blocks is None:
            return None
        if not self.is_linear:
            raise ConstraintError(
                f"blocks={self.blocks} takes orders of a lattice and linear rows that are stored, "
                "in a Box, a Simplex or everywhere; leave blocks out for other constraints"
            )
        assert self.matrix is not None and self.right is not None
        bounds = self.rows.bounds
        return cut_rows(self.matrix, self.right, bounds.lower, bounds.upper, self.blocks)

    @cached_property
    def graph_orders(self) -> GraphOrders | None:
        return self._numbered(lambda: graph_orders(self.rows)) if self._are_stored_rows else None

    @cached_property
    def _nested(self) -> tuple[Booleans, list[tuple[NestedForms, float]]] | None:
        """Which rows are not nested, and the forms of those that are."""
        if not self._only_rows or not any(family.nested for family in self.families):
            return None
        return without_nested(self.families, COSTS.fewest_nested_rows, self._domain_rows)

    @cached_property
    def split(self) -> SplitRows:
        """Nested rows split for alternating directions; only where `has_nested`."""
        assert self._nested is not None and self.matrix is not None and self.right is not None
        matrix, right, nested = self.matrix, self.right, self._nested
        return self._numbered(lambda: split_rows(matrix, right, *nested, *self._box))

    @cached_property
    def by_kind(self) -> Splitting:
        """One piece per kind of rule, for ADMM; only where `is_linear`."""
        assert self.matrix is not None and self.right is not None
        return split_by_kind(self.families, self.matrix, self.right, *self._box)

    @cached_property
    def curved(self) -> list[Part]:
        """The families that are not linear, and a ball."""
        parts = [
            Part(family, int(first))
            for family, first in zip(self.families, self.firsts[:-1], strict=True)
            if not family.is_linear
        ]
        if self.ball is not None:
            center = self.ball.center_in(self.dimension)
            parts.append(Part(BallDomain(center, self.ball.radius), -1))
        return parts

    @cached_property
    def unstored(self) -> list[RowsToFind]:
        """The families of linear rows that are too many to store."""
        return [
            RowsToFind(family, int(first))
            for family, first in zip(self.families, self.firsts[:-1], strict=True)
            if family.is_linear and not is_stored(family)
        ]

    @cached_property
    def without_ball(self) -> FeasibleSet:
        """The same constraints everywhere."""
        return FeasibleSet(self.constraints, Everywhere())

    def __repr__(self) -> str:
        return f"FeasibleSet({self.constraints!r}, {self.domain!r})"


def is_stored(family: RecordConstraints) -> bool:
    """Whether a family is linear and its rows are stored, or few enough to be."""
    if not family.is_linear or not family.generated:
        return family.is_linear
    return family.count * family.most_entries <= COSTS.largest_generated


def in_words(constraints: RecordConstraints, ask: Callable[[], Answer]) -> Answer:
    """The answer, or its InfeasibleConstraintsError with the first constraints written out."""
    try:
        return ask()
    except InfeasibleConstraintsError as error:
        shown = COSTS.most_rows_in_words
        words = [_described(constraints, row) for row in error.rows[:shown]]
        more = f"; and {len(error.rows) - shown} more" if len(error.rows) > shown else ""
        message = f"{error} [{'; '.join(words)}{more}]" if words else str(error)
        raise InfeasibleConstraintsError(message, error.rows) from None


def _described(constraints: RecordConstraints, row: int) -> str:
    """A single constraint in words, also where they are aggregated."""
    first = 0
    for family in constraints.parts:
        if row < first + family.count:
            return family.describe(row - first)
        first += family.count
    return f"constraint {row}"
