"""How fine each lattice is."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from lighttouch.estimators.structure.limits import LIMITS
from lighttouch.estimators.structure.plan import Plan


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
    affordable = np.sqrt(examples / LIMITS.examples_per_cell)
    finest = float(np.clip(affordable, LIMITS.coarsest_pair, LIMITS.finest_pair))
    best = max((gain for _, gain in chosen), default=1.0)
    shares = [(subset, (gain / best) ** LIMITS.gain_power) for subset, gain in chosen]
    while True:
        sizes = [(subset, _size(subset, finest * share)) for subset, share in shares]
        parameters = sum(size ** len(subset) for subset, size in sizes)
        if parameters <= LIMITS.lattice_parameters or finest <= 2.0:
            return sizes
        finest *= LIMITS.narrowing


def _size(subset: tuple[int, ...], wanted: float) -> int:
    """Vertices per axis, as a whole number that suits the number of columns."""
    if len(subset) == 2:
        return int(np.clip(round(wanted), LIMITS.coarsest_pair, LIMITS.finest_pair))
    return int(max(2, min(LIMITS.finest_of_many, wanted / 2.0)))
