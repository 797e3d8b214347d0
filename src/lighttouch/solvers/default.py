"""Which solver `solve(problem)` uses."""

from __future__ import annotations

from lighttouch.problem import Problem
from lighttouch.solvers.light_touch import PracticalLightTouch


def default_solver(problem: Problem) -> PracticalLightTouch:
    return PracticalLightTouch()
