"""One-shot averaging: every shard is solved alone, and the solutions are averaged once.

Zhang, Duchi and Wainwright 2013, "Communication-efficient algorithms for statistical optimization".
The mean of feasible points is feasible, and it is off by what the shards lack in examples: 0.3% on
eight parts of the paper's problem, 1.7% on 64. More rounds of the same gain nothing (averaging runs
that restart their AdaGrad sums gets worse from round to round), so full gradients finish
(`Accelerated`): `benchmarks/shards` draws the curves.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lighttouch.arrays import Indices, Vector
from lighttouch.constraints.base import RecordConstraints
from lighttouch.domains import Domain
from lighttouch.kernels.state.iterate import CHECKS, ITERATION, SAMPLES, new_counters
from lighttouch.objectives import ShardedRisk
from lighttouch.problem import Problem
from lighttouch.projections import project
from lighttouch.result import Status
from lighttouch.running import check_deadline
from lighttouch.solvers.base import BaseSolver, SolverState
from lighttouch.solvers.costs import COSTS
from lighttouch.solvers.sampled import SampledAdaGrad
from lighttouch.validation import positive


@dataclass
class AveragedState(SolverState):
    """The point, and how many shards it is the mean of: 0 before the only step."""

    w: Vector
    shards: int = 0


@dataclass(frozen=True)
class AveragedShards(BaseSolver[AveragedState]):
    """Sampled AdaGrad on every shard alone; the mean of the solutions, projected, is the answer."""

    tolerance: float = 1e-3
    stops_itself = True
    takes_shards = True

    def __post_init__(self) -> None:
        positive(self.tolerance, "tolerance")

    def objection_to(self, problem: Problem) -> str | None:
        if not isinstance(problem.objective, ShardedRisk):
            return "its examples must be in shards (ShardedRisk); use Automatic"
        return None

    def init(self, problem: Problem, start: Vector) -> AveragedState:
        return AveragedState(new_counters(), start.copy())

    def advance(
        self, problem: Problem, state: AveragedState, steps: int, rng: np.random.Generator
    ) -> None:
        """The only step."""
        if steps == 0 or state.shards:
            return
        risk = problem.objective
        assert isinstance(risk, ShardedRisk)
        seed = int(rng.integers(2**31))
        arguments = (problem.constraints, problem.domain, state.w, self.tolerance, seed)
        total, counted = np.zeros(problem.dimension), np.zeros_like(state.counters)
        solved = 0
        for share, found in zip(
            risk.survey.shares, risk.each(solve_alone, *arguments), strict=True
        ):
            if found is not None:
                total += share * found[0]
                counted += found[1]
                solved += 1
        state.w = project(total, problem.constraints, problem.domain).w
        state.shards = solved
        state.counters[[CHECKS, SAMPLES]] += counted[[CHECKS, SAMPLES]]
        state.counters[ITERATION] += 1

    def finished(self, state: AveragedState) -> Status | None:
        return Status.STALLED if state.shards else None

    def notes(self, state: AveragedState) -> Sequence[str]:
        return (f"the mean of the solutions of {state.shards} shards",) if state.shards else ()


def solve_alone(
    objective: Any,
    constraints: RecordConstraints,
    domain: Domain,
    start: Vector,
    tolerance: float,
    seed: int,
) -> tuple[Vector, Indices]:
    """The solution of one shard, and what was counted on the way.

    A shard may have fewer examples than parameters, and its loss fall to 0, where no gain is small:
    a few passes are enough for the mean.
    """
    problem, solver = Problem(objective, constraints, domain), SampledAdaGrad(tolerance)
    rng = np.random.default_rng(seed)
    state = solver.init(problem, start)
    per_step = state.plan.run * state.plan.runs
    most = COSTS.shard_passes * objective.examples / per_step
    while solver.finished(state) is None and (state.stages == 0 or state.iteration < most):
        check_deadline()
        with np.errstate(over="ignore", invalid="ignore"):
            solver.advance(problem, state, state.stage_end, rng)
        if not (np.isfinite(state.w).all() and math.isfinite(state.best_objective)):
            return start, state.counters  # it ran away: the others decide
    return state.best, state.counters
