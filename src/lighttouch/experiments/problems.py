"""The ranking problem of Section 6: pairs, lattice, monotonicity, box."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import lighttouch as lt
from lighttouch.experiments.pairs import load_pairs


def ranking_problem(settings: dict[str, Any], aggregate: int = 1) -> lt.Problem:
    """The problem of these settings (pairs, features, box, data), its constraints in groups of
    `aggregate`.
    """
    objective, constraints, domain = _pieces(
        settings["pairs"], settings["features"], settings["box"], settings["data"]
    )
    return lt.Problem(
        objective, constraints if aggregate == 1 else constraints.aggregated(aggregate), domain
    )


@lru_cache(maxsize=2)
def _pieces(pairs: int, features: int, box: float, data: str | None) -> tuple[Any, Any, Any]:
    better, worse = load_pairs(data, pairs, features)
    sizes = (2,) * better.shape[1]
    lattice = lt.Lattice(sizes)
    objective = lt.PairwiseRisk(lattice.features(better), lattice.features(worse), loss="hinge")
    return objective, lt.lattice.increasing(sizes), lt.Box(-box, box)
