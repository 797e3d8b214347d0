"""Rules about one feature, or none: order, bounds, one valley or peak, slope.

Monotonicity stores no rows until somebody asks for them.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike

from lighttouch.arrays import Matrix, Vector
from lighttouch.constraints import LinearConstraints
from lighttouch.constraints.base import LatticeAxes, RecordConstraints
from lighttouch.errors import ConstraintError
from lighttouch.kernels.verbs.constraints import group_values
from lighttouch.kernels.verbs.lattice_rows import LatticeOrder
from lighttouch.lattice.model import (
    Sizes,
    checked_feature,
    checked_features,
    checked_interpolation,
    checked_number,
    checked_sizes,
)
from lighttouch.lattice.stencils import (
    Stencil,
    constraints_from,
    stencil,
    steps,
)
from lighttouch.validation import refuse_if_too_large


def increasing(
    sizes: Sizes, features: int | Iterable[int] | None = None, interpolation: str = "simplex"
) -> LinearConstraints:
    """Let f never fall when one of `features` rises.

    Parameters
    ----------
    sizes : sequence of int
        Vertices along each feature of the lattice, at least 2.
    features : int or sequence of int, optional
        Positions of the features; all by default.
    interpolation : {"simplex", "hypercube"}, default "simplex"
        How the lattice interpolates; the rows are the same for both.

    Returns
    -------
    LinearConstraints
        Rows theta[v] <= theta[v + e], grouped by feature, then in C order of the lower vertex v.
        They are not stored before somebody reads `A`.

    Raises
    ------
    ConstraintError
        If a feature does not exist or is named twice.

    Examples
    --------
    >>> import lighttouch as lt
    >>> rows = lt.lattice.increasing([2, 2], features=0)
    >>> rows.values([0.0, 1.0, 2.0, 0.5])
    array([-2. ,  0.5])
    """
    checked_interpolation(interpolation)
    return _monotone(sizes, features, 1.0)


def decreasing(
    sizes: Sizes, features: int | Iterable[int] | None = None, interpolation: str = "simplex"
) -> LinearConstraints:
    """Let f never rise when one of `features` rises.

    Parameters
    ----------
    sizes : sequence of int
        Vertices along each feature of the lattice, at least 2.
    features : int or sequence of int, optional
        Positions of the features; all by default.
    interpolation : {"simplex", "hypercube"}, default "simplex"
        How the lattice interpolates; the rows are the same for both.

    Returns
    -------
    LinearConstraints
        Rows theta[v + e] <= theta[v], in the order of `increasing`.

    Raises
    ------
    ConstraintError
        If a feature does not exist or is named twice.

    Examples
    --------
    >>> import lighttouch as lt
    >>> rows = lt.lattice.decreasing([3])
    >>> rows.values([2.0, 1.0, 1.5])
    array([-1. ,  0.5])
    """
    checked_interpolation(interpolation)
    return _monotone(sizes, features, -1.0)


def _monotone(
    sizes: Sizes, features: int | Iterable[int] | None, direction: float
) -> LinearConstraints:
    # the one place that decides how monotonicity is represented
    grid = checked_sizes(sizes)
    chosen = checked_features(grid, features)
    return LatticeMonotonicity(grid, chosen, [direction] * len(chosen))


def bounds(
    sizes: Sizes,
    lower: float | None = None,
    upper: float | None = None,
    interpolation: str = "simplex",
) -> LinearConstraints:
    """Keep lower <= f <= upper everywhere.

    Parameters
    ----------
    sizes : sequence of int
        Vertices along each feature of the lattice, at least 2.
    lower : float, optional
        The least value; None or -inf for no bound.
    upper : float, optional
        The largest value; None or inf for no bound.
    interpolation : {"simplex", "hypercube"}, default "simplex"
        How the lattice interpolates; the rows are the same for both.

    Returns
    -------
    LinearConstraints
        All lower bounds, then all upper bounds.

    Raises
    ------
    ConstraintError
        If both bounds are missing, or lower exceeds upper.

    Examples
    --------
    >>> import lighttouch as lt
    >>> rows = lt.lattice.bounds([2], lower=0.0, upper=1.0)
    >>> rows.values([-0.5, 1.5])
    array([ 0.5, -1.5, -1.5,  0.5])
    """
    checked_interpolation(interpolation)
    grid = checked_sizes(sizes)
    least, most = _one_sided(lower, -math.inf, "lower"), _one_sided(upper, math.inf, "upper")
    if least is not None and most is not None and least > most:
        raise ConstraintError(f"lower must not exceed upper, got lower {least} and upper {most}")
    if least is None and most is None:
        raise ConstraintError("bounds needs a finite lower or upper bound, got neither")
    stencils = [] if least is None else [stencil(grid, {}, [(0, 1.0)], least)]
    if most is not None:
        stencils.append(stencil(grid, {}, [(0, -1.0)], -most))
    return constraints_from("bounds", grid, stencils)


def unimodal(
    sizes: Sizes,
    feature: int,
    mode: int | None,
    shape: str = "valley",
    interpolation: str = "simplex",
) -> LinearConstraints:
    """Let f have one valley or one peak along `feature`, at a known vertex.

    Parameters
    ----------
    sizes : sequence of int
        Vertices along each feature of the lattice, at least 2.
    feature : int
        The position of the feature.
    mode : int
        The vertex where f turns. It must be known: with a learned mode the allowed parameters are
        not a convex set.
    shape : {"valley", "peak"}, default "valley"
        Whether f falls down to the mode and rises after it, or the reverse.
    interpolation : {"simplex", "hypercube"}, default "simplex"
        How the lattice interpolates; the rows are the same for both.

    Returns
    -------
    LinearConstraints
        Rows about the parameters of the lattice.

    Raises
    ------
    ConstraintError
        If the mode is missing or no vertex, or the feature has fewer than 3 vertices.

    Examples
    --------
    >>> import lighttouch as lt
    >>> rows = lt.lattice.unimodal([3], feature=0, mode=1)
    >>> rows.values([1.0, 0.0, 2.0])
    array([-1., -2.])
    """
    checked_interpolation(interpolation)
    grid = checked_sizes(sizes)
    along = checked_feature(grid, feature)
    if shape not in ("valley", "peak"):
        raise ConstraintError(f"shape must be 'valley' or 'peak', got {shape!r}")
    turn = _checked_mode(grid, along, mode)
    rising = 1.0 if shape == "valley" else -1.0
    stencils = [
        _ordered(grid, along, -rising, 0, turn),
        _ordered(grid, along, rising, turn, grid[along] - 1),
    ]
    return constraints_from("unimodal", grid, stencils)


def slope(
    sizes: Sizes, feature: int, limit: float, interpolation: str = "simplex"
) -> LinearConstraints:
    """Let f change by at most `limit` per step along `feature`.

    A step goes from a vertex to the next: |df/dx| <= limit in lattice units.

    Parameters
    ----------
    sizes : sequence of int
        Vertices along each feature of the lattice, at least 2.
    feature : int
        The position of the feature.
    limit : float
        The largest change, at least 0.
    interpolation : {"simplex", "hypercube"}, default "simplex"
        How the lattice interpolates; the rows are the same for both.

    Returns
    -------
    LinearConstraints
        Rows about the parameters of the lattice.

    Raises
    ------
    ConstraintError
        If the limit is negative or not finite.

    Examples
    --------
    >>> import lighttouch as lt
    >>> rows = lt.lattice.slope([2], feature=0, limit=1.0)
    >>> rows.values([0.0, 3.0])
    array([ 2., -4.])
    """
    checked_interpolation(interpolation)
    grid = checked_sizes(sizes)
    along = checked_feature(grid, feature)
    steepest = checked_number(limit, "limit")
    if steepest < 0.0:
        raise ConstraintError(f"limit must not be negative, got {steepest}")
    stencils = [
        _ordered(grid, along, direction, 0, grid[along] - 1, -steepest) for direction in (-1.0, 1.0)
    ]
    return constraints_from("slope", grid, stencils)


def _ordered(
    grid: tuple[int, ...], feature: int, direction: float, start: int, stop: int, least: float = 0.0
) -> Stencil:
    """The rows direction * (theta[v + e] - theta[v]) >= least, for start <= v[feature] < stop."""
    step = steps(grid)[feature]
    return stencil(grid, {feature: (start, stop)}, [(step, direction), (0, -direction)], least)


def _one_sided(bound: float | None, none: float, name: str) -> float | None:
    return None if bound is None or bound == none else checked_number(bound, name)


def _checked_mode(grid: tuple[int, ...], feature: int, mode: int | None) -> int:
    if mode is None:
        raise ConstraintError(
            "unimodal needs a known mode: with a learned mode the allowed parameters are "
            "not a convex set (the average of two valleys "
            f"can have two bottoms); fit once for each mode 0 .. {grid[feature] - 1} and "
            "keep the best, or ask for convex"
        )
    if grid[feature] < 3:
        raise ConstraintError(
            f"unimodal needs a size of at least 3 along feature {feature}, got 2; use "
            "increasing or decreasing"
        )
    try:
        turn = operator.index(mode)
    except TypeError:
        raise ConstraintError(
            f"mode must be a vertex of feature {feature}, a whole number, got {mode!r}"
        ) from None
    if not 0 <= turn < grid[feature]:
        raise ConstraintError(
            f"mode must be a vertex of feature {feature}, 0 .. {grid[feature] - 1}, got {turn}"
        )
    return turn


SCALE = float(np.sqrt(2.0))  # the norm of a row


class LatticeMonotonicity(LinearConstraints):
    """theta[v] <= theta[v + e_f] for the given features (the other way round where the direction is
    -1).

    `A` and `b` are built when they are first read; solvers do without them.
    """

    def __init__(self, sizes: Sizes, features: Sequence[int], directions: Sequence[float]) -> None:
        self.sizes = tuple(int(size) for size in sizes)
        self.features = tuple(features)
        self.dimension = int(np.prod(self.sizes, dtype=np.int64))
        strides = np.array(
            [int(np.prod(self.sizes[f + 1 :], dtype=np.int64)) for f in self.features], np.int64
        )
        lengths = np.array([self.sizes[f] for f in self.features], np.int64)
        counts = self.dimension // lengths * (lengths - 1)
        starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        self.count = int(starts[-1])
        self.record = LatticeOrder(
            starts, strides, strides * (lengths - 1), strides * lengths, np.array(directions, float)
        )
        self.names = None
        self.nested = ()
        self.sparse = True
        self.cost = 2.0

    @property
    def most_entries(self) -> int:
        return 2

    def rows_at(self, indices: ArrayLike) -> tuple[Matrix, Vector]:
        return RecordConstraints.rows_at(self, indices)  # without storing the others

    def lattice_axes(self) -> LatticeAxes:
        starts, strides, _, _, signs = self.record
        return LatticeAxes(self.sizes, self.features, signs, starts, strides)

    def pairs(
        self,
    ) -> tuple[np.ndarray[Any, np.dtype[np.int64]], np.ndarray[Any, np.dtype[np.int64]]]:
        """For every row the vertex that must not be larger, and the one that must not be
        smaller.
        """
        starts, strides, spans, jumps, signs = self.record
        smaller, larger = np.empty(self.count, np.int64), np.empty(self.count, np.int64)
        for f in range(strides.size):
            place = np.arange(starts[f + 1] - starts[f])
            low = place // spans[f] * jumps[f] + place % spans[f]
            rows = slice(starts[f], starts[f + 1])
            smaller[rows], larger[rows] = (
                (low, low + strides[f]) if signs[f] > 0 else (low + strides[f], low)
            )
        return smaller, larger

    def largest(self, w: Vector) -> float:
        """The largest g_j(w), strip by strip, so that none of the others is stored."""
        out = np.empty(1)
        group_values(self.record, self.count, self.count, w, out)
        return float(out[0])

    def largest_relative(self, w: Vector) -> float:
        return self.largest(w) / SCALE

    @cached_property
    def A(self) -> Any:
        advice = "use a smaller lattice, or a solver that does not store the rows"
        refuse_if_too_large(
            self.count * 60, f"storing {self.count:,} monotonicity rows", advice, ConstraintError
        )
        smaller, larger = self.pairs()
        columns = np.column_stack([smaller, larger])
        values = np.tile([1.0, -1.0], self.count)
        backwards = smaller > larger
        columns[backwards] = columns[backwards][:, ::-1]
        values.reshape(-1, 2)[backwards] *= -1.0
        kind = np.int32 if 2 * self.count < 2**31 else np.int64
        pointers = np.arange(0, 2 * self.count + 1, 2, dtype=kind)
        return scipy.sparse.csr_matrix(
            (values, columns.ravel().astype(kind), pointers), shape=(self.count, self.dimension)
        )

    @cached_property
    def b(self) -> Vector:  # type: ignore[override]
        return np.zeros(self.count)

    @property
    def is_bounds(self) -> bool:
        return False

    def row_scales(self) -> Vector:
        return np.full(self.count, SCALE)

    def describe(self, j: int) -> str:
        starts, _, spans, jumps, signs = self.record
        f = int(np.searchsorted(starts, j, side="right") - 1)
        place = j - starts[f]
        low = int(place // spans[f] * jumps[f] + place % spans[f])
        vertex = tuple(int(part) for part in np.unravel_index(low, self.sizes))
        word = "increasing" if signs[f] > 0 else "decreasing"
        return f"row {j}: {word} in feature {self.features[f]} at vertex {vertex}"
