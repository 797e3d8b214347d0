"""How fine each lattice is."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from lighttouch.estimators.structure.plan import Plan

ROOM = 1600  # parameters of all lattices of an ensemble together
EXAMPLES_PER_CELL = 40.0  # of a lattice over two columns
COARSEST_PAIR, FINEST_PAIR = 3, 20  # vertices per axis of a lattice over two columns
LARGEST_OF_MANY = 4  # vertices per axis of a lattice over more columns


def promises(
    chosen: list[tuple[int, ...]], gains: dict[tuple[int, int], float]
) -> list[tuple[tuple[int, ...], float]]:
    """Each subset with the largest gain of its pairs (1 where nothing was measured)."""
    return [
        (subset, max([gains.get((a, b), 0.0) for a, b in combinations(subset, 2)] + [1.0]))
        for subset in chosen
    ]


def lattice_sizes(
    plan: Plan, examples: int, chosen: list[tuple[tuple[int, ...], float]]
) -> list[tuple[tuple[int, ...], int]]:
    """How fine each lattice is: finer with more examples and where it promises more, as long as all
    of them have room.
    """
    if plan.lattice_size != "auto" or plan.single:
        size = 2 if plan.lattice_size == "auto" else int(plan.lattice_size)
        return [(subset, size) for subset, _ in chosen]
    finest = float(np.clip(np.sqrt(examples / EXAMPLES_PER_CELL), COARSEST_PAIR, FINEST_PAIR))
    best = max((gain for _, gain in chosen), default=1.0)
    while True:
        sizes = [(subset, _size(subset, finest * (gain / best) ** 0.25)) for subset, gain in chosen]
        if sum(size ** len(subset) for subset, size in sizes) <= ROOM or finest <= 2.0:
            return sizes
        finest *= 0.9


def _size(subset: tuple[int, ...], wanted: float) -> int:
    """Vertices per axis, as a whole number that suits the number of columns."""
    if len(subset) == 2:
        return int(np.clip(round(wanted), COARSEST_PAIR, FINEST_PAIR))
    return int(max(2, min(LARGEST_OF_MANY, wanted / 2.0)))
