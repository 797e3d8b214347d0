"""Smooth losses under nested rows by ADMM, made feasible at the end.

Exact projections onto nested rows cost more than everything else, so they are not made in every
step. A quadratic that lies above the loss and touches it takes its place for a few steps
(majorisation-minimisation, Hunter and Lange 2004). For squared errors it is the loss itself. ADMM
(Boyd et al. 2011, `projections/splitting.py`) minimises the quadratic, with orders kept whole.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import sparse

from lighttouch.arrays import Matrix, Vector
from lighttouch.kernels.state.iterate import CHECKS, ITERATION, SAMPLES, new_counters
from lighttouch.kernels.verbs.objectives import smooth_value_and_gradient
from lighttouch.objectives import EmpiricalRisk
from lighttouch.problem import Problem
from lighttouch.projections import OutOfTimeError
from lighttouch.projections.rows.nested import SplitRows
from lighttouch.projections.sets import feasible_set
from lighttouch.projections.splitting import SplittingState, normal_at
from lighttouch.result import Status
from lighttouch.solvers.base import BaseSolver, SolverState, runnable
from lighttouch.solvers.bounds import least_of_line
from lighttouch.solvers.costs import COSTS
from lighttouch.solvers.scales import column_sizes, natural_reach
from lighttouch.validation import positive


@dataclass
class DirectionsState(SolverState):
    """Where the copies stand, and the best feasible point with its bound."""

    start: Vector
    best: Vector
    at: SplittingState | None = None
    best_objective: float = math.inf
    bound: float = -math.inf  # proven for every feasible point
    likely_bound: float = -math.inf  # for those within reach, which is a guess
    ended: bool = False

    @property
    def w(self) -> Vector:
        return self.start if self.at is None else self.at.w

    @property
    def gap(self) -> float:
        return self.best_objective - self.bound


@dataclass(frozen=True)
class LossModel:
    """The quadratic above the mean loss that touches it at `point` with gradient `slope`."""

    risk: EmpiricalRisk
    transposed: Matrix
    point: Vector
    slope: Vector

    @cached_property
    def _weights(self) -> Vector:
        return np.asarray(self.risk.loss_row.largest_curvature * self.risk.shares)

    @cached_property
    def c(self) -> Vector:
        return self.apply(self.point) - self.slope

    @cached_property
    def diagonal(self) -> Vector:
        X = self.risk.X
        squares = X.multiply(X) if sparse.issparse(X) else np.square(X)
        weighted = np.asarray(squares.T @ self._weights).ravel()
        return np.asarray(weighted + self.risk.penalty_matrix.diagonal())

    @property
    def matrix(self) -> None:
        """Too large to be stored: ADMM applies it by conjugate gradients."""

    def apply(self, w: Vector) -> Vector:
        weighted = self._weights * np.asarray(self.risk.X @ w)
        return np.asarray(self.transposed @ weighted + self.risk.penalty_matrix @ w)


@dataclass(frozen=True)
class AlternatingDirections(BaseSolver[DirectionsState]):
    """ADMM for smooth losses under nested rows (simplex-exact dominance and joint rules).

    Parameters
    ----------
    tolerance : float, default=1e-3
        Relative gap at which the run ends.

    Raises
    ------
    ValueError
        If the tolerance is not a positive number.

    Examples
    --------
    >>> rules = lt.lattice.dominance([3] * 8, 0, 1)
    >>> X = lt.Lattice([3] * 8).features(np.random.default_rng(0).random((200, 8)))
    >>> problem = lt.Problem(lt.EmpiricalRisk(X, np.ones(200), l2=0.01), rules)
    >>> lt.AlternatingDirections().objection_to(problem) is None
    True
    """

    tolerance: float = 1e-3
    stops_itself = True

    def __post_init__(self) -> None:
        positive(self.tolerance, "tolerance")

    def objection_to(self, problem: Problem) -> str | None:
        objective = problem.objective
        if not isinstance(objective, EmpiricalRisk) or math.isinf(
            objective.loss_row.largest_curvature
        ):
            return (
                "its objective must be an EmpiricalRisk with a loss of bounded curvature (squared, "
                "huber, logistic); use Automatic"
            )
        if objective.l1 > 0.0:
            return "its objective must be smooth, without l1; use Automatic"
        if not feasible_set(problem.constraints, problem.domain).has_nested:
            return "its constraints must hold nested rows (dominance, joint monotonicity)"
        return None

    def init(self, problem: Problem, start: Vector) -> DirectionsState:
        return DirectionsState(new_counters(), start.copy(), start.copy())

    def advance(
        self, problem: Problem, state: DirectionsState, steps: int, rng: np.random.Generator
    ) -> None:
        for _ in range(steps):
            if state.ended:
                return
            self._round(problem, state)

    def _round(self, problem: Problem, state: DirectionsState) -> None:
        """Some steps on one quadratic model of the loss."""
        rows = _rows(problem)
        if state.at is None:
            state.at = rows.splitting.begin(state.start.copy())
        at, objective = state.at, problem.objective
        assert isinstance(objective, EmpiricalRisk)
        _, slope = _evaluate(problem, at.w)
        X = objective.X
        transposed = X.T.tocsr() if sparse.issparse(X) else X.T
        model = LossModel(objective, transposed, at.w, slope)
        rows.splitting.minimise(model, at, COSTS.splitting_residual, COSTS.splitting_steps)
        counted = 1, problem.constraints.members, 2 * objective.examples
        state.counters[[ITERATION, CHECKS, SAMPLES]] += counted
        _renew_bounds(problem, state)
        here = objective.value(at.w)
        done = at.settled or state.iteration >= COSTS.splitting_rounds
        if done or abs(here - state.likely_bound) <= COSTS.splitting_look * self.tolerance * abs(
            here
        ):
            _keep_feasible(problem, state, rows)
        state.ended = done or self._near(state, state.likely_bound)

    def _near(self, state: DirectionsState, bound: float) -> bool:
        left = abs(state.best_objective - bound)
        return left <= self.tolerance * abs(state.best_objective) < math.inf

    def finished(self, state: DirectionsState) -> Status | None:
        if not state.ended:
            return None
        return Status.CONVERGED if self._near(state, state.bound) else Status.STALLED

    def is_content(self, state: DirectionsState) -> bool:
        return state.ended and self._near(state, state.likely_bound)

    def solution(self, state: DirectionsState) -> Vector:
        return state.best if math.isfinite(state.best_objective) else state.w

    def lower_bound(self, state: DirectionsState) -> float:
        return state.bound

    def accuracy(self, state: DirectionsState) -> float:
        return self.tolerance * abs(state.best_objective)

    def notes(self, state: DirectionsState) -> Sequence[str]:
        steps = 0 if state.at is None else state.at.steps
        return (f"alternating directions (ADMM): {steps} steps",)


def _rows(problem: Problem) -> SplitRows:
    return feasible_set(problem.constraints, problem.domain).split


def _keep_feasible(problem: Problem, state: DirectionsState, rows: SplitRows) -> None:
    assert state.at is not None
    try:
        w = rows.with_all_rows(state.at)
    except OutOfTimeError:
        return
    if w is not None and (objective := problem.objective.value(w)) < state.best_objective:
        state.best, state.best_objective = w, objective


def _renew_bounds(problem: Problem, state: DirectionsState) -> None:
    """Lower bounds from the multipliers of the copies.

    With multipliers v that are normal to what the copies must obey at z, every feasible w' has
    v.(forms @ w') <= v.z, so that

        f(w') >= f(w) + slope.(w' - w) + (l2/2) |w' - w|^2 + v.(forms @ w') - v.z:

    what is left of slope + forms' v is bounded over the domain, with the help of the l2 term. It is
    a proof where the auxiliary numbers have come to rest (`slack` is rounding), and a guess where
    it must be said how far an optimum may be.
    """
    assert state.at is not None
    splitting, at = _rows(problem).splitting, state.at
    value, slope = _evaluate(problem, at.w)
    z, multipliers, slack = normal_at(splitting, at)
    rest = slope + np.asarray(splitting.transposed @ multipliers)
    value += float(multipliers @ (np.asarray(splitting.forms @ at.w) - z)) - slack
    reach = natural_reach(problem, state.start, column_sizes(problem))
    far = COSTS.reach_travelled * np.abs(at.w - state.start) + reach
    diameter = feasible_set(problem.constraints, problem.domain).diameter()
    state.likely_bound = value - float(np.abs(rest) @ np.minimum(far, diameter))
    if slack <= COSTS.rest_of_slack * abs(value):
        lower, upper = problem.domain.bounds(problem.dimension)
        state.bound = value + least_of_line(rest, problem.objective.l2, at.w, lower, upper)


def _evaluate(problem: Problem, w: Vector) -> tuple[float, Vector]:
    out, objective = np.empty(w.size), problem.objective
    run = runnable(smooth_value_and_gradient, problem)
    value = run(objective.record, objective.examples, objective.l2, 0.0, w, out)
    return float(value), out
