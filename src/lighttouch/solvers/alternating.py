"""Smooth losses under nested rows, whose exact projections cost more than all else: alternating
directions, made feasible at the end.

A quadratic that lies above the loss and touches it where the method stands takes its place for a
few steps at a time (for squared errors it is the loss). The multipliers of the copies bound what is
left to gain.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from lighttouch.arrays import Vector
from lighttouch.constraints import LinearConstraints
from lighttouch.domains import Box, Everywhere
from lighttouch.errors import InfeasibleConstraintsError
from lighttouch.kernels.verbs.objectives import smooth_value_and_gradient
from lighttouch.objectives import EmpiricalRisk
from lighttouch.problem import Problem
from lighttouch.projections import OutOfTimeError
from lighttouch.projections.engines import engine_for
from lighttouch.projections.nested import NestedEngine
from lighttouch.projections.splitting import SplittingState, normal_at
from lighttouch.solvers.accelerated import natural_reach
from lighttouch.solvers.state import runnable

MOST_CURVED = {
    "squared": 1.0,
    "logistic": 0.25,
    "huber": 1.0,
}  # the largest second derivative of each smooth loss
STEPS_AT_ONCE = 20
MOST_ROUNDS = 100
FINEST = 1e-9  # residuals beyond which steps change nothing


@dataclass
class Alternation:
    """Where the copies stand, and the best feasible point with its bound."""

    at: SplittingState
    start: Vector
    reach: Vector
    rounds: int = 0
    best: Vector = field(default_factory=lambda: np.zeros(0))
    best_objective: float = math.inf
    lower_bound: float = -math.inf

    def copy(self) -> Alternation:
        return replace(self, at=self.at.copy(), best=self.best.copy())

    @property
    def gap(self) -> float:
        return self.best_objective - self.lower_bound


@dataclass(frozen=True)
class RiskBowl:
    """The quadratic above the mean loss that touches it at `point`, where its gradient is
    `slope`.
    """

    risk: EmpiricalRisk
    transposed: Any
    point: Vector
    slope: Vector

    @cached_property
    def _weights(self) -> Vector:
        given = self.risk.sample_weight
        shares = (
            np.full(self.risk.examples, 1.0 / self.risk.examples)
            if given is None
            else given / given.sum()
        )
        return np.asarray(MOST_CURVED[str(self.risk.loss)] * shares)

    @cached_property
    def c(self) -> Vector:
        return self.apply(self.point) - self.slope

    @cached_property
    def diagonal(self) -> Vector:
        X = self.risk.X
        squares = X.multiply(X) if sparse.issparse(X) else np.square(X)
        return np.asarray(squares.T @ self._weights).ravel() + self.risk.l2

    @property
    def matrix(self) -> None:
        return None

    def apply(self, w: Vector) -> Vector:
        return (
            np.asarray(self.transposed @ (self._weights * np.asarray(self.risk.X @ w)))
            + self.risk.l2 * w
        )


def fits(problem: Problem) -> bool:
    """Whether projections need alternating directions anyway, and the loss is smooth."""
    objective: Any = problem.objective
    if (
        not isinstance(objective, EmpiricalRisk)
        or not isinstance(objective.loss, str)
        or objective.loss not in MOST_CURVED
        or objective.roughness.shape[0]
    ):
        return False
    if (
        problem.interpreted
        or not isinstance(problem.domain, Box | Everywhere)
        or not isinstance(problem.constraints, LinearConstraints)
    ):
        return False
    try:
        return isinstance(engine_for(problem.constraints, problem.domain), NestedEngine)
    except InfeasibleConstraintsError:
        return False  # the first projection will say so in words


def begin(problem: Problem, start: Vector) -> Alternation:
    return Alternation(
        _engine(problem).splitting.begin(start), start.copy(), natural_reach(problem, start)
    )


def advance(problem: Problem, run: Alternation, tolerance: float) -> bool:
    """Some steps; returns whether a feasible point is proven good enough, or no further progress is
    to be expected.
    """
    engine, at = _engine(problem), run.at
    _, slope = _evaluate(problem, at.w)
    X = problem.objective.X  # type: ignore[attr-defined]
    bowl = RiskBowl(problem.objective, X.T.tocsr() if sparse.issparse(X) else X.T, at.w, slope)  # type: ignore[arg-type]
    engine.splitting.minimise(bowl, at, FINEST, STEPS_AT_ONCE)
    run.rounds += 1
    run.lower_bound = lower_bound(problem, run)
    here = problem.objective.value(at.w)
    done = at.settled or run.rounds >= MOST_ROUNDS
    if done or abs(here - run.lower_bound) <= 0.3 * tolerance * abs(here):
        _keep_feasible(problem, run, engine)
    return done or proven(run, tolerance)


def proven(run: Alternation, tolerance: float) -> bool:
    return math.isfinite(run.best_objective) and run.gap <= tolerance * abs(run.best_objective)


def _keep_feasible(problem: Problem, run: Alternation, engine: NestedEngine) -> None:
    try:
        w = engine.exactly(run.at)
    except OutOfTimeError:
        return
    if w is not None and (objective := problem.objective.value(w)) < run.best_objective:
        run.best, run.best_objective = w, objective


def lower_bound(problem: Problem, run: Alternation) -> float:
    """No feasible point within reach has a smaller objective.

    With multipliers v that are normal to what the copies must obey at z, every feasible w' has
    v.(forms @ w') <= v.z, so that f(w') >= f(w) + slope.(w' - w) + v.(forms @ w') - v.z: what is
    left of slope + forms' v counts against the reach.
    """
    splitting, at = _engine(problem).splitting, run.at
    value, slope = _evaluate(problem, at.w)
    z, multipliers, slack = normal_at(splitting, at)
    rest = slope + np.asarray(splitting.transposed @ multipliers)
    against = float(multipliers @ (np.asarray(splitting.forms @ at.w) - z))
    far = 10.0 * np.abs(at.w - run.start) + run.reach
    if isinstance(problem.domain, Box):
        far = np.minimum(far, np.subtract(problem.domain.upper, problem.domain.lower))
    return value + against - float(np.abs(rest) @ far) - slack


def _engine(problem: Problem) -> NestedEngine:
    engine = engine_for(problem.constraints, problem.domain)
    assert isinstance(engine, NestedEngine)
    return engine


def _evaluate(problem: Problem, w: Vector) -> tuple[float, Vector]:
    out = np.empty(w.size)
    objective = problem.objective
    value = runnable(smooth_value_and_gradient, problem)(
        objective.record, objective.examples, objective.l2, 0.0, w, out
    )
    return float(value), out
