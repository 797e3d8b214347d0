"""Online Frank-Wolfe: a linear program per step instead of a projection."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np

from lighttouch.arrays import Vector
from lighttouch.kernels.loops.frank_wolfe import new_examples_gradient, seen_examples_gradient
from lighttouch.kernels.state.iterate import CHECKS, ITERATION, new_gradient, put_iterate
from lighttouch.problem import Problem
from lighttouch.projections import project
from lighttouch.solvers.base import AveragingSolver, SgdState, first_state, runnable
from lighttouch.solvers.frank_wolfe_oracle import (
    LinearOracle,
    diameter,
    objection_to_oracle,
    oracle_for,
)
from lighttouch.validation import one_of, positive, positive_int


@dataclass
class FrankWolfeState(SgdState):
    """The iterate, how many linear programs were solved, and what is remembered of the past."""

    oracle_calls: int = 0
    first: Vector = field(default_factory=lambda: np.zeros(0))
    slopes: Vector = field(default_factory=lambda: np.zeros(0))  # the sum of all gradients
    squares: float = 0.0  # the sum of their squared norms
    pull: float = 0.0  # the sum of the weights that draw towards the first point
    seen: np.ndarray[tuple[int], np.dtype[np.int64]] = field(
        default_factory=lambda: np.zeros(0, np.int64)
    )


SomeWolfe = TypeVar("SomeWolfe", bound=FrankWolfeState)


class FrankWolfeSolver(AveragingSolver[SomeWolfe]):
    """What both Frank-Wolfe methods share."""

    batch: int

    def objection_to(self, problem: Problem) -> str | None:
        return objection_to_oracle(problem)

    def notes(self, state: SomeWolfe) -> tuple[str, ...]:
        return (f"{state.oracle_calls:,} linear programs over the constraints, one per step",)

    def batch_sizes(self, state: SomeWolfe) -> tuple[int, int, int]:
        return (self.batch, 0, 0)


@dataclass(frozen=True)
class OnlineFrankWolfe(FrankWolfeSolver[FrankWolfeState]):
    """The online Frank-Wolfe method of Hazan and Kale (2012).

    For stochastic, possibly non-smooth objectives. With v_t = argmin <grad F_t(w_t), v> over the
    feasible set, w_{t+1} = (1 - t^-a) w_t + t^-a v_t.
    Two ways to remember the past:

    memory="examples", their stochastic setting (Theorem 4.3, the row of the paper's Table 2): F_t
    is the mean of the t losses seen so far, each smoothed over a ball of radius smoothing * D *
    t^(-1/3) by evaluating it at a point drawn from that ball, and a = 2/3, which makes what a new
    loss adds, t^(a-1), what curvature adds, t^(1/3-a), and what smoothing adds all fall as
    t^(-1/3). An iteration evaluates every example seen. smoothing=0, for losses that are smooth
    already, takes a = 1/2.

    memory="gradients", their general setting: F_t(w) is the mean over s <= t of <g_s, w> + sigma_s
    ||w - w_1||^2, with g_s the gradient at w_s, sigma_s = (G/D) s^(-1/4) and a = 1/2. An iteration
    evaluates one batch; errors fall as T^(-1/4), not T^(-1/3).

    D is the diameter of a box around the feasible set, G the root mean square of the gradients so
    far. The feasible set must be bounded and made of linear rows and a box, or be a ball alone.
    Linear programs are solved in closed form (box, ball), by isotonic regression (orders in a box)
    or by HiGHS. Each looks at all constraints and is counted as that many checks; the result's
    notes, and `result.state.solver_state.oracle_calls`, say how many there were. The solution is
    the last iterate with memory="examples", the average with memory="gradients".

    Parameters
    ----------
    memory : {"examples", "gradients"}, default="examples"
        What is remembered of the past, as above.
    smoothing : float, default=0.01
        The radius of the ball, relative to D t^(-1/3); zero for smooth losses. Only with
        memory="examples".
    batch : int, default=1
        New examples per step.

    Raises
    ------
    ValueError
        If `memory` is unknown, or a number is not positive.

    Examples
    --------
    >>> import lighttouch as lt
    >>> objective = lt.EmpiricalRisk([[1.0, 0.0], [0.0, 1.0]], [2.0, 1.0])
    >>> problem = lt.Problem(objective, lt.ordering(2), lt.Box(-1, 1))
    >>> result = lt.solve(problem, lt.OnlineFrankWolfe(), iterations=50)
    >>> result.violation <= 1e-9
    True
    """

    memory: str = "examples"
    smoothing: float = 0.01
    batch: int = 1

    def __post_init__(self) -> None:
        one_of(self.memory, ("examples", "gradients"), "memory")
        positive(self.smoothing, "smoothing", zero=True)
        positive_int(self.batch, "batch")

    def init(self, problem: Problem, start: Vector) -> FrankWolfeState:
        begun = first_state(
            problem, np.ascontiguousarray(project(start, problem.constraints, problem.domain).w)
        )
        state = FrankWolfeState(
            begun.counters,
            begun.iterate,
            begun.visits,
            first=begun.w.copy(),
            slopes=np.zeros(problem.dimension),
        )
        if self.memory == "examples":
            state.seen = np.zeros(problem.objective.examples, np.int64)
        return state

    def advance(
        self, problem: Problem, state: FrankWolfeState, steps: int, rng: np.random.Generator
    ) -> None:
        oracle = oracle_for(problem)
        size = diameter(oracle)
        shrinking = 2 / 3 if self.memory == "examples" and self.smoothing > 0.0 else 1 / 2
        find_slope = self._seen_slope if self.memory == "examples" else self._linear_slope
        for t in range(state.iteration + 1, state.iteration + steps + 1):
            slope = find_slope(problem, state, size, rng)
            if blown_up(slope, state):
                return
            step_towards(problem, state, ask(problem, state, oracle, slope), t**-shrinking, oracle)

    def _seen_slope(
        self, problem: Problem, state: FrankWolfeState, size: float, rng: np.random.Generator
    ) -> Vector:
        objective, slope = problem.objective, np.empty(problem.dimension)
        radius = self.smoothing * size * (state.iteration + 1) ** (-1 / 3)
        runnable(seen_examples_gradient, problem)(
            objective.record, objective.l2, self.batch, state.w, radius, state.visits, state.seen,
            new_gradient(problem.dimension), state.counters, rng, slope,
        )  # fmt: skip
        return slope

    def _linear_slope(
        self, problem: Problem, state: FrankWolfeState, size: float, rng: np.random.Generator
    ) -> Vector:
        note_gradient(problem, state, self.batch, rng)
        if size > 0.0 and math.isfinite(state.squares):
            t = state.iteration + 1
            state.pull += math.sqrt(state.squares / t) / size * t ** (-1 / 4)
        return state.slopes + 2.0 * state.pull * (state.w - state.first)

    def solution(self, state: FrankWolfeState) -> Vector:
        return state.w.copy() if self.memory == "examples" else self.average(state)


def blown_up(slope: Vector, state: FrankWolfeState) -> bool:
    """Whether a slope is not finite; then the iterate is made so, for the driver to see."""
    if np.isfinite(slope).all():
        return False
    state.w[:] = np.nan
    return True


def note_gradient(
    problem: Problem, state: FrankWolfeState, batch: int, rng: np.random.Generator
) -> None:
    """Add the gradient of the next examples at the iterate to the sum."""
    objective, slope = problem.objective, np.empty(problem.dimension)
    runnable(new_examples_gradient, problem)(
        objective.record,
        objective.l2,
        batch,
        state.w,
        state.visits,
        new_gradient(problem.dimension),
        state.counters,
        rng,
        slope,
    )
    state.slopes += slope
    state.squares += float(slope @ slope)


def ask(problem: Problem, state: FrankWolfeState, oracle: LinearOracle, slope: Vector) -> Vector:
    """One linear program, counted."""
    state.oracle_calls += 1
    state.counters[CHECKS] += problem.constraints.members
    return oracle.vertex(slope)


def step_towards(
    problem: Problem, state: FrankWolfeState, vertex: Vector, share: float, oracle: LinearOracle
) -> None:
    """Iteration t ends: a share of the way to the vertex. Rounding keeps every order that both
    points keep.
    """
    t = state.iteration + 1
    put_iterate(
        state.iterate,
        np.clip((1.0 - share) * state.w + share * vertex, oracle.lower, oracle.upper),
        t,
    )
    state.counters[ITERATION] = t
