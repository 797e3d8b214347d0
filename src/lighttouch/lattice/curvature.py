"""Rules about how f bends along one feature."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from lighttouch.constraints import LinearConstraints
from lighttouch.errors import ConstraintError
from lighttouch.lattice.arguments import (
    Sizes,
    checked_feature,
    checked_interpolation,
    checked_number,
    checked_sizes,
)
from lighttouch.lattice.stencils import Block, Stencil, constraints_from, stencil, steps
from lighttouch.lattice.trust import cross_difference


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
