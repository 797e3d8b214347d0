"""The paper's problem on generated data, shared by the benchmarks."""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np

import lighttouch as lt
from lighttouch.datasets import ranking_pairs

PAIRS = 612_587
SIZES = [2] * 12


@dataclass(frozen=True)
class Row:
    """One line of the closing table; the picture draws `ratio` as a bar, and `point` (line, x, y)
    on a line of costs.
    """

    what: str
    measured: str
    target: str
    good: bool | None = None
    ratio: float | None = None
    point: tuple[str, float, float] | None = None

    def __str__(self) -> str:
        mark = {True: "yes", False: "NO", None: "-"}[self.good]
        return f"{self.what:74s} {self.measured:>26s} {self.target:>14s}  {mark}"


@functools.cache
def paper_problem(pairs: int = PAIRS, constrained: bool = True) -> lt.Problem:
    better, worse = ranking_pairs(pairs)
    lattice = lt.Lattice(SIZES)
    objective = lt.PairwiseRisk(lattice.features(better), lattice.features(worse), loss="hinge")
    return lt.Problem(
        objective, lt.lattice.increasing(SIZES) if constrained else None, lt.Box(-10, 10)
    )


def without_constraints(problem: lt.Problem) -> lt.Problem:
    return lt.Problem(problem.objective, None, problem.domain)


def projected_objective(problem: lt.Problem, w: np.ndarray) -> float:
    return problem.objective.value(lt.project(w, problem.constraints, problem.domain).w)
