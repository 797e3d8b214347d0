"""Objective, constraints and domain together, checked once."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike

from lighttouch.arrays import Vector
from lighttouch.constraints import ConvexConstraints, LinearConstraints
from lighttouch.constraints.base import RecordConstraints
from lighttouch.domains import Domain, Everywhere, checked_domain
from lighttouch.errors import ConstraintError, DataError
from lighttouch.interfaces import Objective
from lighttouch.objectives.custom import CustomObjective
from lighttouch.objectives.sharded import ShardedRisk
from lighttouch.validation import finite_vector, refuse_if_too_large


class Problem:
    """Minimise an objective over w in a domain, subject to g_j(w) <= 0 for every constraint.

    Parameters
    ----------
    objective : objective
        What to minimise, for example `lt.EmpiricalRisk(X, y)`.
    constraints : constraint family, default=None
        What w must satisfy, for example `lt.ordering(d)`; None is nothing.
    domain : Box, Ball, Simplex or Everywhere, default=None
        The simple set that w lives in; None is everywhere.

    Raises
    ------
    DataError, ConstraintError
        If a piece is of the wrong kind, or the pieces speak of different numbers of parameters.

    Examples
    --------
    >>> lt.Problem(lt.Quadratic(np.eye(2), [0.0, 0.0]), lt.ordering(2), lt.Box(-1, 1)).dimension
    2
    """

    def __init__(
        self,
        objective: Objective,
        constraints: RecordConstraints | None = None,
        domain: Domain | None = None,
    ) -> None:
        # asking the protocol would ask every attribute, and so read all shards
        if not (isinstance(objective, ShardedRisk) or _is_a(objective, Objective)):
            raise DataError(
                "objective must be an objective such as EmpiricalRisk or Quadratic, got "
                f"{_kind(objective)}"
            )
        self.objective: Objective = objective
        self.dimension = objective.dimension
        self.constraints: RecordConstraints = (
            _none(self.dimension) if constraints is None else constraints
        )
        if not isinstance(self.constraints, RecordConstraints):
            raise ConstraintError(
                "constraints must be constraints such as LinearConstraints(A, b), got "
                f"{_kind(self.constraints)}"
            )
        if self.constraints.dimension != self.dimension:
            raise ConstraintError(
                f"the constraints speak of {self.constraints.dimension} parameters, the "
                f"objective has {self.dimension}; they must agree"
            )
        count = self.constraints.count
        refuse_if_too_large(
            0 if self.constraints.generated else 8 * count,
            f"checking {count:,} constraints",
            "aggregate them: constraints.aggregated(size)",
            ConstraintError,
        )
        self.domain = checked_domain(Everywhere() if domain is None else domain, self.dimension)

    @property
    def interpreted(self) -> bool:
        """Whether a Python callable takes part, so that loops run interpreted."""
        return bool(self.objective.interpreted or self.constraints.interpreted)

    def start(self, start: ArrayLike | None = None) -> Vector:
        """A point of the domain to start from: the projection of the given one, or of 0. It need
        not satisfy the constraints.
        """
        point = (
            np.zeros(self.dimension)
            if start is None
            else finite_vector(start, "start", self.dimension)
        )
        return np.ascontiguousarray(self.domain.project(point), dtype=np.float64)

    def violation(self, w: Any) -> float:
        """max(0, max_j g_j(w)), recomputed over all constraints."""
        return self.constraints.violation(finite_vector(w, "w", self.dimension))

    def relative_violation(self, w: Any) -> float:
        """The same in units of each row's scale, for linear rows their norm."""
        if not self.constraints.count:
            return 0.0
        found = self.constraints.largest_relative(finite_vector(w, "w", self.dimension))
        return math.inf if math.isnan(found) else max(0.0, found)

    def __repr__(self) -> str:
        return (
            f"Problem({type(self.objective).__name__} of {self.dimension} parameters, "
            f"{self.constraints!r}, {self.domain!r})"
        )


def is_custom(problem: Problem) -> bool:
    """Whether an objective or constraints made of a user's own functions take part."""
    return _holds_custom(problem.objective) or any(
        isinstance(part, ConvexConstraints) for part in problem.constraints.parts
    )


def _holds_custom(objective: object) -> bool:
    """Also within a sum."""
    parts = getattr(objective, "objectives", ())
    return isinstance(objective, CustomObjective) or any(_holds_custom(part) for part in parts)


def _is_a(piece: object, protocol: type) -> bool:
    return isinstance(piece, protocol) and not isinstance(piece, type)


def _kind(piece: object) -> str:
    return (
        f"the class {piece.__name__} instead of an instance of it"
        if isinstance(piece, type)
        else type(piece).__name__
    )


def _none(dimension: int) -> LinearConstraints:
    return LinearConstraints(scipy.sparse.csr_matrix((0, dimension)), np.zeros(0))
