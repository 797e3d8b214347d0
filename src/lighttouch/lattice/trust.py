"""Rules about how one feature changes the effect of another: trust, complements, substitutes.

Their rows are cross differences theta[v + e_i + e_j] - theta[v + e_i] - theta[v + e_j] + theta[v],
or differences along one feature at the ends of the other; they suffice for both interpolations.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations

from lighttouch.constraints import LinearConstraints
from lighttouch.errors import ConstraintError
from lighttouch.lattice.arguments import (
    Sizes,
    checked_interpolation,
    checked_pair,
    checked_sign,
    checked_sizes,
)
from lighttouch.lattice.stencils import Stencil, constraints_from, stencil, steps

Terms = list[tuple[int, float]]


def edgeworth(
    sizes: Sizes, main: int, conditional: int, sign: int = 1, interpolation: str = "simplex"
) -> LinearConstraints:
    """Let f rise the more with `main`, the higher `conditional` is.

    Parameters
    ----------
    sizes : sequence of int
        Vertices along each feature of the lattice, at least 2.
    main : int
        The feature whose effect is meant.
    conditional : int
        The feature that changes it.
    sign : {1, -1}, default 1
        With -1 it is a lower `conditional` that does.
    interpolation : {"simplex", "hypercube"}, default "simplex"
        How the lattice interpolates; the rows are the same for both.

    Returns
    -------
    LinearConstraints
        Rows about the parameters of the lattice.

    Raises
    ------
    ConstraintError
        If the features do not exist or are the same, or the sign is neither 1 nor -1.

    Examples
    --------
    >>> import lighttouch as lt
    >>> rows = lt.lattice.edgeworth([2, 2], main=0, conditional=1)
    >>> rows.values([0.0, 0.0, 1.0, 3.0])
    array([-2.])
    """
    checked_interpolation(interpolation)
    grid = checked_sizes(sizes)
    i, j = checked_pair(grid, main, conditional, ("main", "conditional"))
    return constraints_from("edgeworth", grid, [cross_difference(grid, i, j, checked_sign(sign))])


def trapezoid(
    sizes: Sizes, main: int, conditional: int, sign: int = 1, interpolation: str = "simplex"
) -> LinearConstraints:
    """Let the range of f over `main` be the wider, the higher `conditional` is.

    f falls with `conditional` at the low end of `main` and rises at its high end.

    Parameters
    ----------
    sizes : sequence of int
        Vertices along each feature of the lattice, at least 2.
    main : int
        The feature whose effect is meant.
    conditional : int
        The feature that changes it.
    sign : {1, -1}, default 1
        With -1 it is a lower `conditional` that does.
    interpolation : {"simplex", "hypercube"}, default "simplex"
        How the lattice interpolates; the rows are the same for both.

    Returns
    -------
    LinearConstraints
        Rows about the parameters of the lattice.

    Raises
    ------
    ConstraintError
        If the features do not exist or are the same, or the sign is neither 1 nor -1.

    Examples
    --------
    >>> import lighttouch as lt
    >>> rows = lt.lattice.trapezoid([2, 2], main=0, conditional=1)
    >>> rows.values([0.0, -1.0, 1.0, 3.0])
    array([-1., -2.])
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


def supermodular(
    sizes: Sizes, pairs: Iterable[tuple[int, int]] | None = None, interpolation: str = "simplex"
) -> LinearConstraints:
    """Make the two features of every pair complements: each raises the other's effect.

    Parameters
    ----------
    sizes : sequence of int
        Vertices along each feature of the lattice, at least 2.
    pairs : sequence of (int, int), optional
        Pairs of features; all pairs by default.
    interpolation : {"simplex", "hypercube"}, default "simplex"
        How the lattice interpolates; the rows are the same for both.

    Returns
    -------
    LinearConstraints
        Rows about the parameters of the lattice.

    Raises
    ------
    ConstraintError
        If a pair is named twice, or a feature does not exist.

    Examples
    --------
    >>> import lighttouch as lt
    >>> rows = lt.lattice.supermodular([2, 2])
    >>> rows.values([0.0, 1.0, 1.0, 3.0])
    array([-1.])
    """
    return _modular("supermodular", sizes, pairs, 1, interpolation)


def submodular(
    sizes: Sizes, pairs: Iterable[tuple[int, int]] | None = None, interpolation: str = "simplex"
) -> LinearConstraints:
    """Make the two features of every pair substitutes: each lowers the other's effect.

    Parameters
    ----------
    sizes : sequence of int
        Vertices along each feature of the lattice, at least 2.
    pairs : sequence of (int, int), optional
        Pairs of features; all pairs by default.
    interpolation : {"simplex", "hypercube"}, default "simplex"
        How the lattice interpolates; the rows are the same for both.

    Returns
    -------
    LinearConstraints
        Rows about the parameters of the lattice.

    Raises
    ------
    ConstraintError
        If a pair is named twice, or a feature does not exist.

    Examples
    --------
    >>> import lighttouch as lt
    >>> rows = lt.lattice.submodular([2, 2])
    >>> rows.values([0.0, 1.0, 1.0, 3.0])
    array([1.])
    """
    return _modular("submodular", sizes, pairs, -1, interpolation)


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
