"""How fine each lattice is."""

from __future__ import annotations

import numpy as np

from lighttouch.estimators.structure.limits import LIMITS
from lighttouch.estimators.structure.plan import Plan

Subset = tuple[int, ...]


def rows_to_search(columns: int) -> int:
    """On how many rows a model of a table of so many columns is looked for."""
    wanted = LIMITS.searched_cells // columns
    return max(LIMITS.least_searched, min(LIMITS.searched, wanted))


def room_for(examples: float, curves: int) -> int:
    """Parameters of all lattices together: the more, the more examples there are, and the fewer the
    curves have.
    """
    wanted, most = LIMITS.parameters_per_row * examples, LIMITS.most_parameters - curves
    return int(max(LIMITS.least_parameters, min(wanted, most)))


def room_while_searching(lattices: int, known: int) -> int:
    """Parameters of so many new lattices, beside those that are known."""
    left = (LIMITS.most_parameters - known) // lattices
    return lattices * max(LIMITS.least_cells, min(left, LIMITS.searched_parameters))


def lattice_sizes(
    plan: Plan,
    examples: float,
    chosen: dict[Subset, float],
    levels: list[int],
    room: int,
    held: dict[Subset, float],
) -> list[tuple[Subset, tuple[int, ...]]]:
    """Vertices along each axis: finer with more examples and where a subset is worth more, as long
    as all of them have room; never more than a column has levels, or than the degrees of freedom
    that a coarser fit `held` ask for.
    """
    if plan.lattice_size != "auto" or plan.single:
        size = 2 if plan.lattice_size == "auto" else int(plan.lattice_size)
        return [(subset, (size,) * len(subset)) for subset in chosen]
    cells = max(examples / LIMITS.examples_per_cell, float(LIMITS.least_cells))
    best = max([*chosen.values(), 1.0])
    asked = [
        (
            subset,
            (max(worth, 1.0) / best) ** 0.5,
            max(LIMITS.cells_per_freedom * held.get(subset, np.inf), LIMITS.least_cells),
        )
        for subset, worth in chosen.items()
    ]
    while True:
        sizes = [
            (subset, _sizes(plan, subset, min(cells * share, most), levels))
            for subset, share, most in asked
        ]
        parameters = sum(int(np.prod(size)) for _, size in sizes)
        if parameters <= room or cells <= 1.0:
            return sizes
        cells *= LIMITS.narrowing


def _sizes(plan: Plan, subset: Subset, cells: float, levels: list[int]) -> tuple[int, ...]:
    """Axes of equal size, but for columns of few levels, which leave room to the others."""
    cells = max(cells, 1.0)
    if any(plan.has_axis_kind(column, "common unit") for column in subset):
        size = int(np.clip(round(cells ** (1.0 / len(subset))), 2, LIMITS.finest))
        return (size,) * len(subset)
    sizes: dict[int, int] = {}
    for place, column in enumerate(sorted(subset, key=lambda c: (levels[c], c))):
        even = cells ** (1.0 / (len(subset) - place))
        most = min(levels[column], LIMITS.finest)
        sizes[column] = max(2, min(most, round(even)))
        cells = max(1.0, cells / sizes[column])
    return tuple(sizes[column] for column in subset)
