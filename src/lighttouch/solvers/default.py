"""Which solver `solve(problem)` uses."""

from __future__ import annotations

from lighttouch.problem import Problem
from lighttouch.solvers.automatic import Automatic


def default_solver(problem: Problem) -> Automatic:
    return Automatic()
