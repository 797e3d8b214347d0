"""How fine each lattice is."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from lighttouch.estimators.structure.plan import Plan

ROOM = 1600  # parameters of all lattices of an ensemble together


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
        return [
            (subset, 2 if plan.lattice_size == "auto" else int(plan.lattice_size))
            for subset, _ in chosen
        ]
    finest = float(np.clip(np.sqrt(examples / 40.0), 3.0, 20.0))
    best = max((gain for _, gain in chosen), default=1.0)
    while True:
        wanted = [(subset, finest * (gain / best) ** 0.25) for subset, gain in chosen]
        sizes = [
            (
                subset,
                int(
                    max(2, np.clip(round(size), 3, 20) if len(subset) == 2 else min(4, size / 2.0))
                ),
            )
            for subset, size in wanted
        ]
        if sum(size ** len(subset) for subset, size in sizes) <= ROOM or finest <= 2.0:
            return sizes
        finest *= 0.9
