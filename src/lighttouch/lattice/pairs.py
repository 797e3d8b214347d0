"""Rules about two features: trust, complements and substitutes, dominance, joint monotonicity.

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
from collections.abc import Iterable, Iterator
from itertools import combinations, product

from lighttouch.constraints import LinearConstraints
from lighttouch.errors import ConstraintError
from lighttouch.lattice.arguments import (
    Sizes,
    checked_interpolation,
    checked_pair,
    checked_sign,
    checked_sizes,
)
from lighttouch.lattice.nested import nested_dominance, nested_joint_monotonicity
from lighttouch.lattice.stencils import (
    Block,
    Stencil,
    constraints_from,
    require_room,
    stencil,
    steps,
)

Terms = list[tuple[int, float]]


def edgeworth(
    sizes: Sizes, main: int, conditional: int, sign: int = 1, interpolation: str = "simplex"
) -> LinearConstraints:
    """The higher `conditional` (sign 1; lower: -1), the more f rises with `main`."""
    checked_interpolation(interpolation)
    grid = checked_sizes(sizes)
    i, j = checked_pair(grid, main, conditional, ("main", "conditional"))
    return constraints_from("edgeworth", grid, [cross_difference(grid, i, j, checked_sign(sign))])


def supermodular(
    sizes: Sizes, pairs: Iterable[tuple[int, int]] | None = None, interpolation: str = "simplex"
) -> LinearConstraints:
    """The two features of every pair (None: all pairs) are complements: each raises the other's
    effect.
    """
    return _modular("supermodular", sizes, pairs, 1, interpolation)


def submodular(
    sizes: Sizes, pairs: Iterable[tuple[int, int]] | None = None, interpolation: str = "simplex"
) -> LinearConstraints:
    """The two features of every pair (None: all pairs) are substitutes: each lowers the other's
    effect.
    """
    return _modular("submodular", sizes, pairs, -1, interpolation)


def trapezoid(
    sizes: Sizes, main: int, conditional: int, sign: int = 1, interpolation: str = "simplex"
) -> LinearConstraints:
    """The higher `conditional` (sign 1; lower: -1), the wider f's range over `main`: lower at its
    low end, higher at its high end.
    """
    checked_interpolation(interpolation)
    grid = checked_sizes(sizes)
    i, j = checked_pair(grid, main, conditional, ("main", "conditional"))
    widening = float(checked_sign(sign))
    rise: Terms = [(steps(grid)[j], widening), (0, -widening)]
    fall: Terms = [(steps(grid)[j], -widening), (0, widening)]
    below = (0, grid[j] - 1)
    ends = [
        stencil(grid, {i: (0, 1), j: below}, fall),
        stencil(grid, {i: (grid[i] - 1, grid[i]), j: below}, rise),
    ]
    return constraints_from("trapezoid", grid, ends)


def dominance(
    sizes: Sizes, dominant: int, weak: int, interpolation: str = "simplex"
) -> LinearConstraints:
    """A step along `dominant` raises f at least as much as one along `weak`, everywhere; usually
    stacked with `increasing` for both.
    """
    checked_interpolation(interpolation)
    grid = checked_sizes(sizes)
    i, j = checked_pair(grid, dominant, weak, ("dominant", "weak"))
    a, b = steps(grid)[i], steps(grid)[j]

    def rows(gap: int) -> tuple[Terms, Terms]:
        dominant_first = [(a, 1.0), (0, -1.0), (gap + a + b, -1.0), (gap + a, 1.0)]
        weak_first = [(gap + a + b, 1.0), (gap + b, -1.0), (b, -1.0), (0, 1.0)]
        return dominant_first, weak_first

    stencils = []
    for block, gap in _first_and_second("dominance", grid, i, j, interpolation):
        stencils += [stencil(grid, block, terms) for terms in rows(gap)]
    count = sum(each.count for each in stencils)
    nested = nested_dominance(grid, i, j, count) if interpolation == "simplex" else ()
    return constraints_from("dominance", grid, stencils, nested)


def range_dominance(
    sizes: Sizes, dominant: int, weak: int, interpolation: str = "simplex"
) -> LinearConstraints:
    """From any point, the whole range of `dominant` raises f at least as much as the whole range of
    `weak`.
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
    """Let f never fall when both features rise by the same amount (in lattice units)."""
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

    stencils = []
    for block, gap in _first_and_second("joint_monotonicity", grid, i, j, interpolation):
        stencils += [stencil(grid, block, terms) for terms in rows(gap)]
    count = sum(each.count for each in stencils)
    nested = nested_joint_monotonicity(grid, i, j, count) if interpolation == "simplex" else ()
    return constraints_from("joint_monotonicity", grid, stencils, nested)


def cross_difference(grid: tuple[int, ...], i: int, j: int, sign: int) -> Stencil:
    """The rows sign * (theta[v + e_i + e_j] - theta[v + e_i] - theta[v + e_j] + theta[v]) >= 0."""
    a, b = steps(grid)[i], steps(grid)[j]
    terms = [(a + b, float(sign)), (a, -float(sign)), (b, -float(sign)), (0, float(sign))]
    return stencil(grid, {i: (0, grid[i] - 1), j: (0, grid[j] - 1)}, terms)


def _modular(
    name: str, sizes: Sizes, pairs: Iterable[tuple[int, int]] | None, sign: int, interpolation: str
) -> LinearConstraints:
    checked_interpolation(interpolation)
    grid = checked_sizes(sizes)
    chosen = _checked_pairs(name, grid, pairs)
    return constraints_from(name, grid, [cross_difference(grid, i, j, sign) for i, j in chosen])


def _checked_pairs(
    name: str, grid: tuple[int, ...], pairs: Iterable[tuple[int, int]] | None
) -> list[tuple[int, int]]:
    if pairs is None:
        if len(grid) < 2:
            raise ConstraintError(f"{name} needs at least two features, got a lattice of one")
        return list(combinations(range(len(grid)), 2))
    try:
        listed = [(first, second) for first, second in pairs]
    except (TypeError, ValueError):
        raise ConstraintError(
            "pairs must be a sequence of pairs of features, such as [(0, 1), (0, 2)], got "
            f"{pairs!r}"
        ) from None
    checked = [
        checked_pair(grid, first, second, ("the first", "the second")) for first, second in listed
    ]
    if len({frozenset(pair) for pair in checked}) < len(checked):
        raise ConstraintError(f"every pair may be named once, in one order, got {checked}")
    return checked


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
