"""Rules about second differences: how f bends along one feature, and how one feature changes the
effect of another.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations, pairwise

from lighttouch.constraints import LinearConstraints
from lighttouch.errors import ConstraintError
from lighttouch.lattice.model import (
    Sizes,
    checked_feature,
    checked_interpolation,
    checked_number,
    checked_pair,
    checked_sign,
    checked_sizes,
)
from lighttouch.lattice.stencils import (
    Block,
    Stencil,
    constraints_from,
    stencil,
    steps,
)


def convex(
    sizes: Sizes,
    feature: int,
    keypoints: Sequence[float] | None = None,
    interpolation: str = "simplex",
) -> LinearConstraints:
    """Make f convex along `feature`.

    Parameters
    ----------
    sizes : sequence of int
        Vertices along each feature of the lattice, at least 2.
    feature : int
        The position of the feature.
    keypoints : sequence of float, optional
        Where the vertices of the feature lie, ascending; evenly spaced by default.
    interpolation : {"simplex", "hypercube"}, default "simplex"
        How the lattice interpolates; the rows depend on it.

    Returns
    -------
    LinearConstraints
        Rows about the parameters of the lattice.

    Raises
    ------
    ConstraintError
        If the feature has fewer than 3 vertices, or the keypoints are not ascending.

    Examples
    --------
    >>> import lighttouch as lt
    >>> rows = lt.lattice.convex([3], feature=0)
    >>> rows.values([0.0, 1.0, 1.0])
    array([1.])
    """
    return _curved("convex", sizes, feature, keypoints, interpolation, 1)


def concave(
    sizes: Sizes,
    feature: int,
    keypoints: Sequence[float] | None = None,
    interpolation: str = "simplex",
) -> LinearConstraints:
    """Make f concave along `feature`.

    Parameters
    ----------
    sizes : sequence of int
        Vertices along each feature of the lattice, at least 2.
    feature : int
        The position of the feature.
    keypoints : sequence of float, optional
        Where the vertices of the feature lie, ascending; evenly spaced by default.
    interpolation : {"simplex", "hypercube"}, default "simplex"
        How the lattice interpolates; the rows depend on it.

    Returns
    -------
    LinearConstraints
        Rows about the parameters of the lattice.

    Raises
    ------
    ConstraintError
        If the feature has fewer than 3 vertices, or the keypoints are not ascending.

    Examples
    --------
    >>> import lighttouch as lt
    >>> rows = lt.lattice.concave([3], feature=0)
    >>> rows.values([0.0, 1.0, 1.0])
    array([-1.])
    """
    return _curved("concave", sizes, feature, keypoints, interpolation, -1)


def _curved(
    name: str,
    sizes: Sizes,
    feature: int,
    keypoints: Sequence[float] | None,
    interpolation: str,
    sign: int,
) -> LinearConstraints:
    checked_interpolation(interpolation)
    grid = checked_sizes(sizes)
    along = checked_feature(grid, feature)
    if grid[along] < 3:
        raise ConstraintError(_too_small(name, along, interpolation, sign))
    spacings = _spacings(keypoints, grid[along])
    others = (
        [other for other in range(len(grid)) if other != along]
        if interpolation == "simplex"
        else []
    )
    # inside a cell, a rising x passes the other features one by one and leaves the set that stands
    # before it
    inside_cells = [cross_difference(grid, along, other, -sign) for other in others]
    return constraints_from(
        name, grid, inside_cells + _from_cell_to_cell(grid, along, others, spacings, float(sign))
    )


def _from_cell_to_cell(
    grid: tuple[int, ...], along: int, others: list[int], spacings: list[float], sign: float
) -> list[Stencil]:
    """The slope at the start of a cell is at least the slope at the end of the one before; simplex
    cells start with all others stepped.
    """
    step = steps(grid)[along]
    stepped = sum(steps(grid)[other] for other in others)
    block: dict[int, tuple[int, int]] = {other: (0, grid[other] - 1) for other in others}
    if len(set(spacings)) == 1:
        return [
            _slope_rise(
                grid,
                block | {along: (0, grid[along] - 2)},
                step,
                stepped,
                sign / spacings[0],
                sign / spacings[0],
            )
        ]
    return [
        _slope_rise(
            grid,
            block | {along: (cell, cell + 1)},
            step,
            stepped,
            sign / spacings[cell],
            sign / spacings[cell + 1],
        )
        for cell in range(grid[along] - 2)
    ]


def _slope_rise(
    grid: tuple[int, ...], block: Block, step: int, stepped: int, before: float, after: float
) -> Stencil:
    terms = [(2 * step + stepped, after), (step + stepped, -after), (step, -before), (0, before)]
    return stencil(grid, block, terms)


def _spacings(keypoints: Sequence[float] | None, size: int) -> list[float]:
    if keypoints is None:
        return [1.0] * (size - 1)
    points = [checked_number(point, "every keypoint") for point in keypoints]
    if len(points) != size:
        raise ConstraintError(
            f"keypoints must be {size} numbers, one per vertex of the feature, got {len(points)}"
        )
    spacings = [after - before for before, after in pairwise(points)]
    if min(spacings) <= 0.0:
        raise ConstraintError(f"keypoints must be strictly ascending, got {points}")
    return spacings


def _too_small(name: str, along: int, interpolation: str, sign: int) -> str:
    needs = f"{name} needs a size of at least 3 along feature {along}, got 2"
    if interpolation == "hypercube":
        return (
            f"{needs}: f is a straight line along it, convex and concave already; use a larger "
            "size or leave the rule out"
        )
    rule = "submodular" if sign > 0 else "supermodular"
    return (
        f"{needs}; use a larger size, or {rule} with pairs ({along}, every other feature), "
        "which is all it takes at size 2"
    )


# -------------------------------------------------------------------------------------------------
# Rules about how one feature changes the effect of another: trust, complements, substitutes.
#
# Their rows are cross differences theta[v + e_i + e_j] - theta[v + e_i] - theta[v + e_j] +
# theta[v], or differences along one feature at the ends of the other; they suffice for both
# interpolations.


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
