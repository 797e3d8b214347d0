"""Frank-Wolfe with a local linear oracle: the rates of projected SGD from one linear program per
step.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
import scipy  # scipy.optimize is slow to import: only where it is used

from lighttouch.arrays import Vector
from lighttouch.domains import Ball
from lighttouch.kernels.loops.frank_wolfe import combination
from lighttouch.kernels.state.iterate import ITERATION, put_iterate, step_length
from lighttouch.problem import Problem
from lighttouch.solvers.base import first_state
from lighttouch.solvers.frank_wolfe import (
    INSTEAD,
    FrankWolfeSolver,
    FrankWolfeState,
    LinearOracle,
    ask,
    blown_up,
    diameter,
    note_gradient,
    oracle_for,
)
from lighttouch.solvers.steps import InverseSqrt, StepSize, rule_and_eta
from lighttouch.validation import positive, positive_int

NEGLIGIBLE = 1e-12  # a weight below it leaves the decomposition
SAME = 1e-9  # vertices nearer than this, relative to the diameter, are one


@dataclass
class DecomposedState(FrankWolfeState):
    """The iterate as sum of weights[k] vertices[k], and the sum of all iterates."""

    vertices: np.ndarray[tuple[int, int], np.dtype[np.float64]] = field(
        default_factory=lambda: np.zeros((0, 0))
    )
    weights: Vector = field(default_factory=lambda: np.zeros(0))
    visited: Vector = field(default_factory=lambda: np.zeros(0))


@dataclass(frozen=True)
class LocalFrankWolfe(FrankWolfeSolver[DecomposedState]):
    """The conditional gradient method with a local linear oracle (the paper's LLO-FW).

    Garber and Hazan (2013).
    The iterate is kept as a convex combination of vertices. The oracle moves a mass of at most rho
    r / D from the vertices the slope likes least to the one it likes best: a point at least as good
    as any within r, and at most rho r away. A step goes 1/(2 rho^2) of the way there, along the
    slope of what has been seen (the derivations follow their Theorems 2 and 3):

    convex: F_t(w) = eta_t <sum of gradients, w> + ||w - w_1||^2 and r = 4 rho^2 G eta_t, with eta_t
    the `step_size` (a constant for a known horizon; None is D / (G sqrt(t)), where their proof
    divides by 2 rho more, too timid in practice); with `strong_convexity` lambda: F_t(w) = sum over
    s <= t of <g_s, w> + lambda/2 ||w - w_s||^2, and r = 16 rho^2 (G + lambda D) / (lambda t).

    rho = max(1, sqrt(d) * oracle_ratio), where theory asks for the oracle_ratio (the paper's nu) of
    the polytope, rarely known and large; 1 is the value for a simplex and works well on orders in a
    box. G is `gradient_bound`, or the root mean square of the gradients so far; D is as in
    OnlineFrankWolfe, which also describes the linear programs and their counts. The solution is the
    average iterate.

    Parameters
    ----------
    step_size : float or InverseSqrt, optional
        eta_t of the convex case; None, the default, is D / (G sqrt(t)).
    strong_convexity : float, optional
        lambda of the strongly convex case; None, the default, is the convex case.
    oracle_ratio : float, default=1.0
        The paper's nu, from which rho follows.
    gradient_bound : float, optional
        G; None, the default, is measured along the way.
    batch : int, default=1
        Examples per step.

    Raises
    ------
    ValueError
        For parameters out of their range, and for a `step_size` of another kind.

    Examples
    --------
    >>> import lighttouch as lt
    >>> objective = lt.EmpiricalRisk([[1.0, 0.0], [0.0, 1.0]], [2.0, 1.0])
    >>> problem = lt.Problem(objective, lt.ordering(2), lt.Box(-1, 1))
    >>> result = lt.solve(problem, lt.LocalFrankWolfe(), iterations=50)
    >>> result.violation <= 1e-9
    True
    """

    step_size: StepSize | None = None
    strong_convexity: float | None = None
    oracle_ratio: float = 1.0
    gradient_bound: float | None = None
    batch: int = 1

    def __post_init__(self) -> None:
        if self.step_size is not None:
            rule_and_eta(self.step_size)
            if not isinstance(self.step_size, float | int | InverseSqrt):
                raise ValueError(
                    "step_size must be a constant or InverseSqrt here, got "
                    f"{self.step_size}; or give strong_convexity"
                )
        for name in ("strong_convexity", "gradient_bound"):
            if getattr(self, name) is not None:
                positive(getattr(self, name), name)
        positive(self.oracle_ratio, "oracle_ratio")
        positive_int(self.batch, "batch")

    def objection_to(self, problem: Problem) -> str | None:
        if isinstance(problem.domain, Ball):
            return (
                "it keeps its iterate as a combination of vertices, and a ball has none; give "
                f"domain=Box(lower, upper), or {INSTEAD}"
            )
        return super().objection_to(problem)

    def init(self, problem: Problem, start: Vector) -> DecomposedState:
        """A state at the vertex that lies furthest in the direction of the start."""
        vertex = oracle_for(problem).vertex(-start)
        begun = first_state(problem, vertex)
        zeros = np.zeros((2, problem.dimension))
        return DecomposedState(
            begun.counters, begun.iterate, begun.visits, first=vertex.copy(),
            slopes=zeros[0], visited=zeros[1], vertices=vertex[None].copy(), weights=np.ones(1),
        )  # fmt: skip

    def advance(
        self, problem: Problem, state: DecomposedState, steps: int, rng: np.random.Generator
    ) -> None:
        oracle = oracle_for(problem)
        size, ratio = diameter(oracle), max(1.0, math.sqrt(problem.dimension) * self.oracle_ratio)
        for _ in range(steps):
            note_gradient(problem, state, self.batch, rng)
            if blown_up(state.slopes, state):
                return
            state.visited += state.w
            slope, radius = self._slope_and_radius(state, ratio, size)
            vertex = ask(problem, state, oracle, slope)
            mass = min(1.0, ratio * radius / size) if size > 0.0 else 0.0
            move_mass(state, slope, vertex, mass, 0.5 / ratio**2, SAME * size)
            self._end_iteration(state, oracle)

    def _slope_and_radius(
        self, state: DecomposedState, ratio: float, size: float
    ) -> tuple[Vector, float]:
        """The gradient of F_t at the iterate, and how far away its minimiser can be."""
        t = state.iteration + 1
        steepness = (
            math.sqrt(state.squares / t) if self.gradient_bound is None else self.gradient_bound
        )
        if self.strong_convexity is None:
            eta = self._eta(t, steepness, size)
            return eta * state.slopes + 2.0 * (
                state.w - state.first
            ), 4.0 * ratio**2 * steepness * eta
        bend = self.strong_convexity
        slope = state.slopes + bend * (t * state.w - state.visited)
        return slope, 16.0 * ratio**2 * (steepness + bend * size) / (bend * t)

    def _eta(self, t: int, steepness: float, size: float) -> float:
        if self.step_size is None:
            return size / (steepness * math.sqrt(t)) if steepness > 0.0 else 0.0
        rule, eta = rule_and_eta(self.step_size)
        return float(step_length(rule, eta, t))

    def _end_iteration(self, state: DecomposedState, oracle: LinearOracle) -> None:
        w = np.empty(state.w.size)
        combination(state.weights, state.vertices, w)
        t = state.iteration + 1
        put_iterate(state.iterate, np.clip(w, oracle.lower, oracle.upper), t)
        state.counters[ITERATION] = t


def move_mass(
    state: DecomposedState, slope: Vector, vertex: Vector, mass: float, share: float, same: float
) -> None:
    """Take `mass` from the vertices with the largest inner product with the slope, and move a share
    of it to the given vertex.
    """
    worst_first = np.argsort(-(state.vertices @ slope), kind="stable")
    weights = state.weights[worst_first]
    before = np.cumsum(weights) - weights
    taken = share * np.clip(mass - before, 0.0, weights)
    state.weights[worst_first] -= taken
    give(state, vertex, float(taken.sum()), same)
    forget_negligible(state)


def give(state: DecomposedState, vertex: Vector, weight: float, same: float) -> None:
    """Add weight to a vertex, old or new."""
    known = np.flatnonzero(np.abs(state.vertices - vertex).max(axis=1) <= same)
    if known.size:
        state.weights[known[0]] += weight
    elif weight > 0.0:
        state.vertices = np.vstack([state.vertices, vertex])
        state.weights = np.append(state.weights, weight)


def forget_negligible(state: DecomposedState) -> None:
    """Drop vertices without weight, and bring the rest down to d + 1 when there are twice as many
    (Caratheodory).
    """
    kept = state.weights > NEGLIGIBLE
    if not kept.all():
        state.vertices, state.weights = state.vertices[kept], state.weights[kept]
    if state.weights.size > 2 * (state.w.size + 1):
        few = few_weights(state.weights, state.vertices)
        if few is not None:
            state.vertices, state.weights = state.vertices[few > 0.0], few[few > 0.0]
    state.weights /= state.weights.sum()


def few_weights(weights: Vector, vertices: Vector) -> Vector | None:
    """Other weights of the same point, at most d + 1 of them positive: a basic solution; None where
    HiGHS finds none.
    """
    equations = np.vstack([vertices.T, np.ones(weights.size)])
    found = scipy.optimize.linprog(
        -weights, A_eq=equations, b_eq=equations @ weights, bounds=(0, None), method="highs-ds"
    )
    return np.maximum(0.0, found.x) if found.status == 0 else None
