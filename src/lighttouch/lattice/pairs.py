"""Rules that compare the effects of two features: dominance and joint monotonicity.

With simplex interpolation a gradient is constant on the simplex of a cell's vertex v and an order
of the features, and its part along a feature is theta[v + S + that feature] - theta[v + S], S the
features before it. Rules that compare the gradient's parts along i and j at one point therefore
need a row for every two sets S <= T that can stand before the first and the second of the two: with
u = v + S and W = T - S, a row for every W without i and j and every u from which W, i and j can all
be stepped. Rules that look at one part only, or at ends of a range, need no more than the plain
rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import numpy as np
from scipy import sparse

from lighttouch.arrays import Indices
from lighttouch.constraints import LinearConstraints
from lighttouch.constraints.base import NestedForms, NestedRows
from lighttouch.lattice.model import (
    Sizes,
    checked_interpolation,
    checked_pair,
    checked_sizes,
)
from lighttouch.lattice.stencils import (
    Block,
    constraints_from,
    require_room,
    stencil,
    steps,
)

Terms = list[tuple[int, float]]


def dominance(
    sizes: Sizes, dominant: int, weak: int, interpolation: str = "simplex"
) -> LinearConstraints:
    """Let a step along `dominant` raise f at least as much as one along `weak`.

    Usually stacked with `increasing` for both.

    Parameters
    ----------
    sizes : sequence of int
        Vertices along each feature of the lattice, at least 2.
    dominant : int
        The feature with the larger effect.
    weak : int
        The feature with the smaller effect.
    interpolation : {"simplex", "hypercube"}, default "simplex"
        How the lattice interpolates; the rows depend on it.

    Returns
    -------
    LinearConstraints
        Rows about the parameters of the lattice.

    Raises
    ------
    ConstraintError
        If the features do not exist or are the same, or the rows would not fit into memory.

    Examples
    --------
    >>> import lighttouch as lt
    >>> rows = lt.lattice.dominance([2, 2], dominant=0, weak=1)
    >>> rows.values([0.0, 1.0, 2.0, 3.0])
    array([-1., -1.])
    """
    checked_interpolation(interpolation)
    grid = checked_sizes(sizes)
    i, j = checked_pair(grid, dominant, weak, ("dominant", "weak"))
    a, b = steps(grid)[i], steps(grid)[j]

    def rows(gap: int) -> tuple[Terms, Terms]:
        dominant_first = [(a, 1.0), (0, -1.0), (gap + a + b, -1.0), (gap + a, 1.0)]
        weak_first = [(gap + a + b, 1.0), (gap + b, -1.0), (b, -1.0), (0, 1.0)]
        return dominant_first, weak_first

    return _pairwise("dominance", grid, (i, j), interpolation, rows, nested_dominance)


def range_dominance(
    sizes: Sizes, dominant: int, weak: int, interpolation: str = "simplex"
) -> LinearConstraints:
    """Let the whole range of `dominant` raise f at least as much as that of `weak`.

    From any point.

    Parameters
    ----------
    sizes : sequence of int
        Vertices along each feature of the lattice, at least 2.
    dominant : int
        The feature with the larger effect.
    weak : int
        The feature with the smaller effect.
    interpolation : {"simplex", "hypercube"}, default "simplex"
        How the lattice interpolates; the rows are the same for both.

    Returns
    -------
    LinearConstraints
        Rows about the parameters of the lattice.

    Raises
    ------
    ConstraintError
        If the features do not exist or are the same, or the rows would not fit into memory.

    Examples
    --------
    >>> import lighttouch as lt
    >>> rows = lt.lattice.range_dominance([2, 2], dominant=0, weak=1)
    >>> rows.values([0.0, 1.0, 2.0, 3.0])
    array([-1., -1., -1.])
    """
    checked_interpolation(interpolation)
    grid = checked_sizes(sizes)
    i, j = checked_pair(grid, dominant, weak, ("dominant", "weak"))
    a, b = steps(grid)[i], steps(grid)[j]
    last_i, last_j = grid[i] - 1, grid[j] - 1
    stencils = []
    for at_i, at_j in product(range(grid[i]), range(grid[j])):
        if (at_i, at_j) != (last_i, last_j):  # the same row as at (0, 0)
            to_i, to_j = (last_i - at_i) * a, (last_j - at_j) * b
            terms = [(to_i, 1.0), (-at_i * a, -1.0), (to_j, -1.0), (-at_j * b, 1.0)]
            stencils.append(stencil(grid, {i: (at_i, at_i + 1), j: (at_j, at_j + 1)}, terms))
    return constraints_from("range_dominance", grid, stencils)


def joint_monotonicity(
    sizes: Sizes, first: int, second: int, interpolation: str = "simplex"
) -> LinearConstraints:
    """Let f never fall when both features rise by the same amount, in lattice units.

    Parameters
    ----------
    sizes : sequence of int
        Vertices along each feature of the lattice, at least 2.
    first : int
        One of the features.
    second : int
        The other feature.
    interpolation : {"simplex", "hypercube"}, default "simplex"
        How the lattice interpolates; the rows depend on it.

    Returns
    -------
    LinearConstraints
        Rows about the parameters of the lattice.

    Raises
    ------
    ConstraintError
        If the features do not exist or are the same, or the rows would not fit into memory.

    Examples
    --------
    >>> import lighttouch as lt
    >>> rows = lt.lattice.joint_monotonicity([2, 2], first=0, second=1)
    >>> rows.values([0.0, -1.0, 2.0, 1.0])
    array([-1., -1.])
    """
    checked_interpolation(interpolation)
    grid = checked_sizes(sizes)
    i, j = checked_pair(grid, first, second, ("first", "second"))
    a, b = steps(grid)[i], steps(grid)[j]

    def rows(gap: int) -> tuple[Terms, Terms]:
        if interpolation == "hypercube":
            return [(a + b, 2.0), (a, -1.0), (b, -1.0)], [(a, 1.0), (b, 1.0), (0, -2.0)]
        first_first = [(a, 1.0), (0, -1.0), (gap + a + b, 1.0), (gap + a, -1.0)]
        second_first = [(b, 1.0), (0, -1.0), (gap + a + b, 1.0), (gap + b, -1.0)]
        return first_first, second_first

    return _pairwise(
        "joint_monotonicity", grid, (i, j), interpolation, rows, nested_joint_monotonicity
    )


def _pairwise(
    name: str,
    grid: tuple[int, ...],
    pair: tuple[int, int],
    interpolation: str,
    rows: Callable[[int], tuple[Terms, Terms]],
    nested: Callable[[tuple[int, ...], int, int, int], tuple[NestedRows, ...]],
) -> LinearConstraints:
    """A rule that compares the parts of the gradient along two features: `rows(gap)` for every W
    with step `gap` (see the top of the file).
    """
    stencils = []
    for block, gap in _first_and_second(name, grid, *pair, interpolation):
        stencils += [stencil(grid, block, terms) for terms in rows(gap)]
    count = sum(each.count for each in stencils)
    auxiliary = nested(grid, *pair, count) if interpolation == "simplex" else ()
    return constraints_from(name, grid, stencils, auxiliary)


def _first_and_second(
    name: str, grid: tuple[int, ...], i: int, j: int, interpolation: str
) -> Iterator[tuple[Block, int]]:
    """The block of vertices u and the step to u + W, for every W (hypercube: the empty one
    only).
    """
    block = {feature: (0, grid[feature] - 1) for feature in (i, j)}
    if interpolation == "hypercube":
        yield block, 0
        return
    others = [feature for feature in range(len(grid)) if feature not in (i, j)]
    rows = (
        2 * (grid[i] - 1) * (grid[j] - 1) * math.prod(2 * grid[feature] - 1 for feature in others)
    )
    require_room(
        name, grid, rows, 4 * rows, ", or interpolation='hypercube', which needs fewer rows"
    )
    for chosen in product((False, True), repeat=len(others)):
        between = [feature for feature, taken in zip(others, chosen, strict=True) if taken]
        gap = sum(steps(grid)[feature] for feature in between)
        yield block | {feature: (0, grid[feature] - 1) for feature in between}, gap


# -------------------------------------------------------------------------------------------------
# Simplex-exact dominance and joint monotonicity with few rows: 3^(D-2) pairs of sets S <= T become
# 2^(D-2) nodes and their edges.
#
# With a(u) = theta[u + i] - theta[u] and so on, the rows of `pairs.py` read c(T) <= a(S) or c(S) <=
# a(T) for all S <= T of one cell.


Form = tuple[int, int]  # theta[u + first] - theta[u + second]


def nested_dominance(grid: tuple[int, ...], i: int, j: int, rows: int) -> tuple[NestedRows, ...]:
    """theta[T+i+j] - theta[T+i] <= theta[S+i] - theta[S] and theta[S+j] - theta[S] <= theta[T+i+j]
    - theta[T+j].
    """
    a, b = steps(grid)[i], steps(grid)[j]
    nodes = _Nodes(grid, i, j)
    falling = nodes.forms(below=(a + b, a), above=(a, 0), rising=False)
    rising = nodes.forms(below=(b, 0), above=(a + b, b), rising=True)
    return (NestedRows(0, rows, (falling, rising)),)


def nested_joint_monotonicity(
    grid: tuple[int, ...], i: int, j: int, rows: int
) -> tuple[NestedRows, ...]:
    """theta[T+a] - theta[T+i+j] <= theta[S+a] - theta[S] for both features a."""
    a, b = steps(grid)[i], steps(grid)[j]
    nodes = _Nodes(grid, i, j)
    families = tuple(
        nodes.forms(below=(first, a + b), above=(first, 0), rising=False) for first in (a, b)
    )
    return (NestedRows(0, rows, families),)


class _Nodes:
    """One node for every cell and every set of the other features, and the vertex it stands for."""

    def __init__(self, grid: tuple[int, ...], i: int, j: int) -> None:
        others = [feature for feature in range(len(grid)) if feature not in (i, j)]
        strides = steps(grid)
        cells = np.zeros(1, dtype=np.int64)
        for feature in range(len(grid)):
            cells = (cells[:, None] + strides[feature] * np.arange(grid[feature] - 1)).ravel()
        subsets = product((False, True), repeat=len(others))
        other_strides = np.array([strides[feature] for feature in others], dtype=np.int64)
        sets = np.array(list(subsets), dtype=np.int64) @ other_strides
        self.vertex: Indices = (cells[:, None] + sets).ravel()
        self.parameters = math.prod(grid)
        self.smaller, self.larger = _inclusions(len(others), cells.size)

    def forms(self, below: Form, above: Form, rising: bool) -> NestedForms:
        place = np.arange(self.vertex.size)
        lower, upper = (self.smaller, self.larger) if rising else (self.larger, self.smaller)
        return NestedForms(
            self._form(*below), self._form(*above), place, place, place.size, lower, upper
        )

    def _form(self, plus: int, minus: int) -> Any:
        count = self.vertex.size
        columns = np.column_stack([self.vertex + plus, self.vertex + minus]).ravel()
        rows = np.repeat(np.arange(count), 2)
        return sparse.csr_matrix(
            (np.tile([1.0, -1.0], count), (rows, columns)), shape=(count, self.parameters)
        )


def _inclusions(features: int, cells: int) -> tuple[Indices, Indices]:
    """For every cell, the nodes of each set and of that set with one more feature."""
    sets = np.arange(2**features)
    without = [sets[(sets >> bit) & 1 == 0] for bit in range(features)]
    smaller = np.concatenate([np.empty(0, dtype=np.int64), *without])
    larger = np.concatenate(
        [np.empty(0, dtype=np.int64), *(each | (1 << bit) for bit, each in enumerate(without))]
    )
    first = 2**features * np.arange(cells)[:, None]
    return (first + smaller).ravel(), (first + larger).ravel()
