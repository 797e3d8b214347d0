"""The theory's promises on small problems: penalties, the coupon lemma, planned runs."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import numpy as np
import pytest
from scipy.optimize import isotonic_regression, linprog, nnls

import lighttouch as lt
from lighttouch import theory
from lighttouch.theory import Constants

# Penalties: the boundary subgradients of small problems, and minimizers of their relaxed
# objectives.


def least_subgradient_norm(active_gradients: np.ndarray) -> float:
    """The least norm over all convex combinations, which are the subgradients of the maximum of the
    active constraints.
    """
    weight = 1e5
    sum_to_one = np.full((1, len(active_gradients)), weight)
    p, _ = nnls(
        np.vstack([active_gradients.T, sum_to_one]),
        np.r_[np.zeros(active_gradients.shape[1]), weight],
    )
    return float(np.linalg.norm(active_gradients.T @ (p / p.sum())))


def ordering_rows(dimension: int) -> np.ndarray:
    return (np.eye(dimension)[:-1] - np.eye(dimension)[1:]) / math.sqrt(2)


def relaxed_minimizer(
    slope: np.ndarray, A: np.ndarray, b: np.ndarray, penalty: float, half_width: float
) -> np.ndarray:
    """The minimizer of slope.w + penalty max(0, max(A w - b)) in a box around 0, by linear
    programming.
    """
    dimension = len(slope)
    bounds = [(-half_width, half_width)] * dimension + [(0, None)]
    answer = linprog(np.r_[slope, penalty], A_ub=np.c_[A, -np.ones(len(A))], b_ub=b, bounds=bounds)
    return answer.x[:dimension]


def unit(vector: np.ndarray) -> np.ndarray:
    return vector / np.linalg.norm(vector)


@pytest.mark.parametrize("dimension", [1, 2, 3, 4])
def test_no_boundary_subgradient_of_a_box_is_shorter_than_rho(dimension: int) -> None:
    rho = theory.box_boundary_gradient(dimension)
    norms = []
    for side in itertools.product((-1, 0, 1), repeat=dimension):
        active = np.diag(side)[np.array(side) != 0].astype(float)
        if len(active):
            norms.append(least_subgradient_norm(active))
    assert min(norms) == pytest.approx(rho, rel=1e-6)
    assert theory.box_penalty(dimension, 3.0, margin=1e-9) == pytest.approx(
        3 * math.sqrt(dimension), rel=1e-8
    )


@pytest.mark.parametrize("dimension", [2, 3, 4, 6, 9])
def test_no_boundary_subgradient_of_an_ordering_is_shorter_than_rho(dimension: int) -> None:
    rho, rows = theory.ordering_boundary_gradient(dimension), ordering_rows(dimension)
    subsets = itertools.product((False, True), repeat=dimension - 1)
    norms = [least_subgradient_norm(rows[np.array(active)]) for active in subsets if any(active)]
    assert min(norms) == pytest.approx(rho, rel=1e-6)
    assert rho <= 1 / (dimension - 1) + 1e-12


def test_no_boundary_subgradient_of_a_polytope_is_shorter_than_rho() -> None:
    rng = np.random.default_rng(0)
    for _ in range(20):
        A, b = np.array([unit(row) for row in rng.normal(size=(8, 3))]), rng.uniform(0.3, 1, size=8)
        radius = 3.0
        rho = theory.linear_boundary_gradient(radius, b.min())
        assert rho == pytest.approx(b.min() / 6)
        corners = (
            np.linalg.solve(A[list(rows)], b[list(rows)])
            for rows in itertools.combinations(range(8), 3)
        )
        boundary = [w for w in corners if np.all(b + 1e-9 >= A @ w) and np.linalg.norm(w) <= radius]
        for w in boundary:
            assert least_subgradient_norm(A[A @ w >= b - 1e-9]) >= rho


@pytest.mark.parametrize("dimension", [2, 5, 9])
def test_with_these_penalties_a_relaxed_minimizer_is_feasible(dimension: int) -> None:
    rng = np.random.default_rng(dimension)
    box = np.vstack([-np.eye(dimension), np.eye(dimension)]), np.ones(2 * dimension)
    ordering = ordering_rows(dimension), np.zeros(dimension - 1)
    rows = np.array([unit(row) for row in rng.normal(size=(3 * dimension, dimension))])
    linear = rows, rng.uniform(0.2, 1, size=len(rows))
    half_width = 2.0
    diameter = 2 * half_width * math.sqrt(dimension)
    for _ in range(10):
        lipschitz = rng.uniform(0.1, 10)
        slope = lipschitz * unit(rng.normal(size=dimension))
        for (A, b), penalty in (
            (box, theory.box_penalty(dimension, lipschitz)),
            (ordering, theory.ordering_penalty(dimension, lipschitz)),
            (linear, theory.linear_penalty(diameter / 2, linear[1].min(), lipschitz)),
            (
                linear,
                theory.penalty_from_interior_point(float(np.max(-linear[1])), diameter, lipschitz),
            ),
        ):
            assert np.max(A @ relaxed_minimizer(slope, A, b, penalty, half_width) - b) <= 1e-7


def test_the_norm_of_the_average_gradient_is_no_sufficient_rho_for_an_ordering() -> None:
    """The paper's Section 2.2 sets gamma just above (d - 1) L_f; here is an f for which that is too
    small and ours is not.
    """
    dimension = 11
    rows, m = ordering_rows(dimension), dimension - 1
    slope = -unit(rows.T @ (np.arange(1, m + 1) * np.arange(m, 0, -1)))
    averaged = relaxed_minimizer(slope, rows, np.zeros(m), 1.01 * m, 1.0)
    ours = relaxed_minimizer(slope, rows, np.zeros(m), theory.ordering_penalty(dimension, 1.0), 1.0)
    assert np.max(rows @ averaged) > 0.1
    assert np.max(rows @ ours) <= 1e-9


def test_the_distance_to_the_feasible_set_is_within_its_bound() -> None:
    rng = np.random.default_rng(1)
    dimension, lipschitz = 6, 2.0
    rows = ordering_rows(dimension)
    rho, penalty = (
        theory.ordering_boundary_gradient(dimension),
        theory.ordering_penalty(dimension, lipschitz, margin=0.5),
    )
    for _ in range(200):
        w, slope = rng.normal(size=dimension), lipschitz * unit(rng.normal(size=dimension))
        nearest = isotonic_regression(w).x
        excess = slope @ w + penalty * max(0.0, np.max(rows @ w)) - slope @ nearest
        assert (
            np.linalg.norm(w - nearest)
            <= theory.distance_to_feasible(excess, penalty, rho, lipschitz) + 1e-12
        )


# The coupon lemma, simulated.


def longest_gap(rng: np.random.Generator, constraints: int, batch: int, iterations: int) -> int:
    last, longest = np.zeros(constraints, dtype=int), 0
    for t in range(1, iterations + 1):
        longest = max(longest, t - int(last.min()))
        last[rng.choice(constraints, size=batch, replace=False)] = t
    return longest


@pytest.mark.parametrize(("constraints", "batch"), [(12, 3), (30, 1), (5, 5)])
def test_no_index_waits_longer_than_the_coupon_bound(constraints: int, batch: int) -> None:
    rng = np.random.default_rng(constraints)
    iterations, failure, runs = 300, 0.2, 100
    bound = theory.staleness_bound(constraints, batch, iterations, failure)
    gaps = np.array([longest_gap(rng, constraints, batch, iterations) for _ in range(runs)])
    assert np.mean(gaps > bound) <= failure
    if batch < constraints:
        assert np.median(gaps) >= bound / 6
    else:
        assert set(gaps) == {1}


# A planned run keeps its promise.


def absolute_problem() -> tuple[lt.Problem, Constants, float]:
    """Mean of |w_i - target_i| with both targets outside the box w_i <= 1/4, in the unit ball; the
    optimum is (1/4, 1/4).
    """
    targets = np.array([0.6, 0.5])
    objective = lt.EmpiricalRisk(np.eye(2), targets, loss="absolute")
    problem = lt.Problem(objective, lt.bounds(2, -0.25, 0.25), lt.Ball(1.0))
    constants = Constants(
        constraints=4,
        diameter=2.0,
        objective_gradient=1.0,
        constraint_gradient=1.0,
        constraint_lipschitz=1.0,
        objective_lipschitz=math.sqrt(0.5),
        boundary_gradient=theory.box_boundary_gradient(2),
    )
    return problem, constants, float(np.mean(np.abs(0.25 - targets)))


@pytest.mark.parametrize(
    ("plan_for", "epsilon"), [(theory.plan_full, 0.05), (theory.plan_light, 8.0)]
)
def test_a_planned_run_keeps_its_promise(
    plan_for: Callable[[Constants, float], theory.Plan], epsilon: float
) -> None:
    """The start is 0.25 from the optimum; LightTouch's plan for 8 runs long enough to do as well as
    FullTouch's for 0.05.
    """
    problem, constants, optimum = absolute_problem()
    plan = plan_for(constants, epsilon)
    result = lt.solve(problem, plan.solver(), iterations=plan.iterations, seed=3)
    relaxed = problem.objective.value(result.w_average) + plan.penalty * problem.violation(
        result.w_average
    )
    assert result.objective - optimum <= relaxed - optimum + 1e-9 <= 0.05
    assert problem.violation(result.w) <= 1e-9
    assert result.constraint_checks == plan.expected_checks
    moved = np.linalg.norm(result.w_average - result.w)
    rho = theory.box_boundary_gradient(2)
    assert moved <= theory.distance_to_feasible(
        relaxed - result.objective + 1e-9, plan.penalty, rho, math.sqrt(0.5)
    )
