"""Every lower bound is a theorem: no feasible point lies below it, wherever it comes from."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.sparse
from scipy import sparse

import lighttouch as lt
from lighttouch import losses
from lighttouch.interior.balance import balanced_value, balancing_moves
from lighttouch.interior.path import dual_bounds
from lighttouch.interior.program import with_rows
from lighttouch.interior.statement import program_of
from lighttouch.result import certified, not_certified
from lighttouch.solvers.bounds import (
    Normal,
    Tangent,
    bound_by_slopes,
    fenchel_bound,
    lower_bound,
    minorant,
)
from lighttouch.solvers.scales import least_bends

LOSSES = ["squared", "absolute", "hinge", "logistic", "huber", lt.Quantile(0.2), "poisson"]
DOMAINS = [lt.Everywhere(), lt.Box(-1.0, 2.0), lt.Box(-1.0, np.inf), lt.Ball(1.5), lt.Simplex()]


def targets(loss: object, z: np.ndarray) -> np.ndarray:
    if loss in ("hinge", "logistic"):
        return np.where(z > 0.0, 1.0, -1.0)
    return np.round(np.exp(np.minimum(z, 2.0))) if loss == "poisson" else z


def drawn(seed: int, loss: object, domain: object, l2: float) -> lt.Problem:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(12, 3))
    y = targets(loss, X @ rng.normal(size=3) + 0.5 * rng.normal(size=12))
    return lt.Problem(lt.EmpiricalRisk(X, y, loss, l2=l2), lt.ordering(3), domain)


def feasible_points(problem: lt.Problem, rng: np.random.Generator) -> list[np.ndarray]:
    """Near and far, and the optimum as far as it is known."""
    found = [lt.solve(problem, lt.InteriorPoint(1e-9)).w]
    for size in (0.1, 1.0, 10.0, 100.0):
        point = found[0] + size * rng.normal(size=3)
        found.append(lt.project(point, problem.constraints, problem.domain).w)
    return found


def tangent(problem: lt.Problem, x: np.ndarray, length: float) -> Tangent:
    gradient = problem.objective.gradient(x)
    found = lt.project(x - length * gradient, problem.constraints, problem.domain)
    value = problem.objective.value(x)
    return Tangent(x, value, gradient, found.w, length, np.ones(x.size), found.certificate)


@pytest.mark.parametrize("l2", [0.0, 0.1])
@pytest.mark.parametrize("domain", DOMAINS, ids=lambda domain: repr(domain)[:20])
@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_no_feasible_point_lies_below_a_bound(loss, domain, l2):
    problem = drawn(0, loss, domain, l2)
    rng = np.random.default_rng(1)
    points = feasible_points(problem, rng)
    least = min(problem.objective.value(w) for w in points)
    for x in points:
        for length in (1e-30, 1e-8, 1e-2, 1.0, 1e4, 1e12):
            at = tangent(problem, x, length)
            assert lower_bound(problem, at) <= least + 1e-12 * abs(least)
            assert bound_by_slopes(problem, at, 0.0) <= least + 1e-12 * abs(least)


def test_a_bound_touches_the_optimum():
    """The test above would pass with minus infinity everywhere."""
    for loss in LOSSES:
        problem = drawn(0, loss, lt.Box(-1.0, 2.0), 0.1)
        optimum = feasible_points(problem, np.random.default_rng(1))[0]
        value = problem.objective.value(optimum)
        bounds = [
            bound(problem, tangent(problem, optimum, 1.0))
            for bound in (lower_bound, lambda p, at: bound_by_slopes(p, at, 0.0))
        ]
        if not problem.objective.loss_row.kinked:
            assert max(bounds) >= value - 1e-6


@pytest.mark.parametrize("length", [0.0, 1e-30])
def test_a_step_too_short_to_move_proves_nothing(length):
    """p = x: rho would be 0, and any point an optimum."""
    problem = drawn(0, "squared", lt.Box(-1.0, 2.0), 0.0)
    optimum = feasible_points(problem, np.random.default_rng(1))[0]
    x = problem.start() + 0.5
    assert problem.objective.value(x) > problem.objective.value(optimum) + 0.01
    at = Tangent(
        x, problem.objective.value(x), problem.objective.gradient(x), x, length, np.ones(3)
    )
    assert lower_bound(problem, at) < problem.objective.value(optimum)
    assert bound_by_slopes(problem, at, 0.0) < problem.objective.value(optimum)
    if length == 0.0:
        assert lower_bound(problem, at) == bound_by_slopes(problem, at, 0.0) == -math.inf


def test_what_a_projection_is_off_is_charged():
    """A point that is only nearly the nearest gives a lower bound, one not certified none."""
    problem = drawn(0, "squared", lt.Box(-1.0, 2.0), 0.1)
    optimum = feasible_points(problem, np.random.default_rng(1))[0]
    exact = tangent(problem, optimum, 1.0)
    worse = Tangent(*vars(exact).values()).__dict__ | {"certificate": certified(1e-4)}
    never = vars(exact) | {"certificate": not_certified(1e-4)}
    bounds = [lower_bound(problem, Tangent(**each)) for each in (vars(exact), worse, never)]
    assert bounds[0] - 1.0 < bounds[1] < bounds[0] - 1e-3
    assert bounds[2] == -math.inf


def test_projections_of_far_points_do_not_prove_too_much():
    """Seeds 9 and 98 of `benchmarks.coupled.random`: steps of 1e8 in a set that is not a box, where
    projections are off by 1e-12 of the step.
    """
    c, center = np.array([1.0, -2.0, 0.5]), np.array([0.2, 0.1, 0.0])
    rows = lt.LinearConstraints([[1.0, 1.0, 1.0], [1.0, -1.0, 0.3]], [0.1, 0.2])
    problem = lt.Problem(lt.Quadratic(np.zeros((3, 3)), c), rows, lt.Ball(1.8, center))
    best = lt.solve(problem, lt.CuttingPlanes(1e-9)).objective
    x = lt.project(np.zeros(3), rows, problem.domain).w
    for length in (1e4, 1e6, 1e8, 1e10):
        assert lower_bound(problem, tangent(problem, x, length)) <= best + 1e-9


# -- slopes of the interior point ---------------------------------------------------------------


def interior_program(problem: lt.Problem, rows: np.ndarray, right: np.ndarray) -> tuple:
    program = program_of(problem.objective)
    program = with_rows(program, (rows,), right, np.zeros(right.size, dtype=bool))
    lower, upper = problem.domain.bounds(problem.dimension)
    return program, lower, upper, least_bends(problem.objective)


@pytest.mark.parametrize("domain", [lt.Everywhere(), lt.Box(-1.0, 2.0), lt.Box(-1.0, np.inf)])
@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_no_feasible_point_lies_below_the_bound_of_any_slopes(loss, domain):
    rng = np.random.default_rng(0)
    rows, right = rng.normal(size=(6, 3)), rng.random(6)
    risk = drawn(0, loss, domain, 0.0).objective
    problem = lt.Problem(risk, lt.LinearConstraints(rows, right), domain)
    program, lower, upper, bend = interior_program(problem, rows, right)
    least = min(problem.objective.value(w) for w in feasible_points(problem, rng))
    for size in (1e-3, 1.0, 30.0):
        for _ in range(20):
            x, s = size * rng.normal(size=3), size * rng.normal(size=program.count)
            proven, likely = dual_bounds(program, x, s, lower, upper, bend)
            assert proven <= likely
            assert proven <= least + 1e-12 * abs(least)


def test_what_nothing_bounds_needs_slopes_with_room():
    """min |x - 1| + |x + 1| with slopes 1/2 and -1/2 + 1e-16: there are slopes nearby that leave
    nothing over, so that 1 is proven; with slopes at their ends there are none.
    """
    risk = lt.EmpiricalRisk([[1.0], [1.0]], [1.0, -1.0], "absolute")
    program, free = program_of(risk), np.array([np.inf])
    nothing, bend = np.zeros(1), np.zeros(1)
    slopes = np.array([-0.25, 0.25 + 1e-16])
    proven, _ = dual_bounds(program, nothing, slopes, -free, free, bend)
    assert 1.0 - 1e-12 <= 0.5 * proven / 0.25 <= 1.0
    stuck = np.array([-0.5, 0.5 - 1e-16])
    rest = program.backward(stuck)
    assert rest != 0.0
    left, ends = (rest, nothing), (-free, free)
    found = balanced_value(program, nothing, stuck, left, ends, bend, balancing_moves)
    assert found == -math.inf or found <= 1.0


def test_flat_directions_of_rounded_data_are_not_called_proven():
    """A form of rank 1 in two parameters: in doubles it may bend down, so nothing is proven."""
    root = np.array([[0.1, 0.3]])
    problem = lt.Problem(lt.Quadratic(root.T @ root, -root[0]))
    result = lt.solve(problem)
    assert result.objective == pytest.approx(-0.5)
    assert result.status is lt.Status.STALLED and result.lower_bound == -math.inf
    boxed = lt.Problem(problem.objective, domain=lt.Box(-1e6, 1e6))
    assert lt.solve(boxed).status is lt.Status.CONVERGED


@pytest.mark.parametrize("loss", ["logistic", "squared", "huber", "poisson"])
def test_fista_proves_without_rules_bounds_and_l2(loss):
    """By slopes that balance exactly, not within a radius."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(50, 4))
    y = targets(loss, X @ rng.normal(size=4) + rng.normal(size=50))
    result = lt.solve(lt.Problem(lt.EmpiricalRisk(X, y, loss)), lt.Accelerated(1e-6))
    assert result.status is lt.Status.CONVERGED


def test_fenchels_bound_needs_distances_l2_or_room():
    rng = np.random.default_rng(0)
    risk = lt.EmpiricalRisk(rng.normal(size=(8, 2)), rng.normal(size=8), "huber")
    slopes = losses.derivatives(risk.loss_row, risk.predictions(np.zeros(2)), risk.y)[1]
    nothing, far = np.zeros(2), np.full(2, np.inf)
    assert fenchel_bound(risk, slopes, Normal(nothing, nothing, far), nothing) == -math.inf
    near = fenchel_bound(risk, slopes, Normal(nothing, nothing, np.full(2, 10.0)), nothing)
    assert math.isfinite(near)


# -- claims of the issue ------------------------------------------------------------------------


def result_problem(C: np.ndarray) -> lt.Problem:
    """The square of the norm, over 10, as squared losses of five examples."""
    return lt.Problem(lt.EmpiricalRisk(C, np.ones(5)), lt.ordering(4))


@pytest.mark.parametrize("seed", range(12))
def test_kinks_of_custom_objectives_are_solved(seed):
    """`ill_conditioned.py`: these were up to 170% off, and called CONVERGED."""
    rng = np.random.default_rng(seed)
    C, order = rng.normal(size=(5, 4)), [1.0, np.inf, 2.0][seed % 3]

    def value(i: int, w: np.ndarray) -> float:
        return float(np.linalg.norm(C @ w - 1.0, order))

    def gradient(i: int, w: np.ndarray) -> np.ndarray:
        z = C @ w - 1.0
        if order == 1.0:
            return C.T @ np.sign(z)
        if order == 2.0:
            return C.T @ z / np.linalg.norm(z)
        return np.sign(z[np.abs(z).argmax()]) * C[np.abs(z).argmax()]

    result = lt.solve(lt.Problem(lt.CustomObjective(4, value, gradient), lt.ordering(4)))
    if order == 2.0:  # round: not all of them are proven
        best = lt.solve(result_problem(C), lt.InteriorPoint(1e-9)).objective
        assert result.objective**2 == pytest.approx(10.0 * best, rel=2e-3)
        return
    assert result.status is lt.Status.CONVERGED
    # the same as a linear program: epigraphs of the pieces
    signs = np.array(np.meshgrid(*[[-1.0, 1.0]] * 5)).reshape(5, -1).T
    pieces = signs @ C if order == 1.0 else np.vstack([C, -C])
    offset = signs.sum(axis=1) if order == 1.0 else np.repeat([1.0, -1.0], 5)
    rows = np.column_stack([pieces, -np.ones(len(pieces))])
    chain = np.column_stack([np.eye(4)[:-1] - np.eye(4)[1:], np.zeros(3)])
    from scipy.optimize import linprog

    free = [(None, None)] * 5
    A, b = np.vstack([rows, chain]), np.concatenate([offset, np.zeros(3)])
    best = linprog([0, 0, 0, 0, 1], A, b, bounds=free).fun
    assert best - 1e-7 <= result.objective <= best * (1.0 + 1e-3) + 1e-7
    assert result.lower_bound <= best + 1e-9


def test_one_example_with_a_hinge_is_not_claimed_wrongly():
    """One example is no loss without kinks: FISTA ended CONVERGED at the start."""
    rng = np.random.default_rng(0)
    for seed in range(5):
        rng = np.random.default_rng(seed)
        X, A = rng.normal(size=(1, 4)), rng.normal(size=(10, 4))
        risk = lt.EmpiricalRisk(X, [1.0], "hinge", l2=0.01)
        problem = lt.Problem(risk, lt.LinearConstraints(A, 0.1 * rng.random(10)))
        exact = lt.solve(problem, lt.InteriorPoint(1e-9)).objective
        for solver in (lt.Automatic(), lt.Accelerated()):
            result = lt.solve(problem, solver)
            assert result.lower_bound <= exact + 1e-9
            if result.status is lt.Status.CONVERGED:
                assert result.objective <= exact * (1.0 + 1e-3) + 1e-9


def test_a_row_far_away_does_not_mislead():
    """A row with a right side of 1e12 was where the path began; from there 1e-6 of what was gained
    was more than the optimum, so that anything was CONVERGED.
    """
    rng = np.random.default_rng(2)
    X = rng.normal(size=(60, 3)) @ np.diag([1.0, 0.1, 0.01])
    y = X @ np.array([1.0, 2.0, -3.0]) + 0.01 * rng.normal(size=60)
    risk = lt.EmpiricalRisk(X, y, "absolute")
    free = lt.solve(lt.Problem(risk), lt.InteriorPoint(1e-9)).objective
    result = lt.solve(lt.Problem(risk, lt.LinearConstraints([[1.0, -2.0, 0.5]], [1e12])))
    assert result.status is lt.Status.CONVERGED
    assert result.objective <= free * (1.0 + 1e-3)


@pytest.mark.parametrize("loss", ["huber", "poisson", "hinge", "absolute"])
def test_ill_conditioned_data_are_solved_in_another_basis(loss):
    """Condition 1e6 in a turned basis, with rows: Newton's equations square it."""
    rng = np.random.default_rng(5)
    U, A = rng.normal(size=(30, 4)), rng.normal(size=(6, 4))
    T = np.logspace(0.0, -6.0, 4)[:, None] * np.linalg.qr(rng.normal(size=(4, 4)))[0]
    inside = 0.3 * rng.normal(size=4)
    y = targets(loss, U @ inside + 0.3 * rng.normal(size=30))
    right = A @ inside + 0.1
    plain, turned = (
        lt.Problem(lt.EmpiricalRisk(U @ M, y, loss), lt.LinearConstraints(A @ M, right))
        for M in (np.eye(4), T)
    )
    best = lt.solve(plain, lt.InteriorPoint(1e-9)).objective
    found = lt.solve(turned)
    assert found.objective == pytest.approx(best, rel=1e-3, abs=1e-6)
    assert found.lower_bound <= best + 1e-6 * abs(best)


@pytest.mark.parametrize(("l1", "width"), [(0.0, 0.0), (0.02, 0.5)])
def test_the_curvature_of_single_parameters_counts(l1, width):
    """Squared losses are not rounded, so that their line is a tangent beside an l1 term too."""
    rng = np.random.default_rng(3)
    d, w = 6, rng.normal(size=6)
    risk = lt.EmpiricalRisk(sparse.identity(d, format="csr"), rng.normal(size=d), l1=l1)
    problem, best = lt.Problem(risk), np.sign(risk.y) * np.maximum(np.abs(risk.y) - d * l1, 0.0)
    least, (value, gradient) = risk.value(best), minorant(risk, w, width)
    for length in (0.1, 1.0, 10.0):
        at = Tangent(w, value, gradient, w - length * gradient, length, np.ones(d))
        assert -math.inf < lower_bound(problem, at) <= least + 1e-12
        assert l1 > 0.0 or lower_bound(problem, at) > least - 1e-9


@pytest.mark.parametrize("seed", range(6))
def test_cutting_planes_leave_the_start_under_plain_rows(seed):
    """A path that gave up early was taken for the least value of the model: above the best
    objective, so that nothing moved.
    """
    rng = np.random.default_rng(seed)
    X, A = rng.normal(size=(200, 8)), rng.normal(size=(40, 8))
    y = np.where(X @ rng.normal(size=8) + rng.normal(size=200) > 0.0, 1.0, -1.0)
    rows = lt.LinearConstraints(A, rng.uniform(0.1, 1.0, size=40))
    problem = lt.Problem(lt.EmpiricalRisk(X, y, "logistic"), rows)
    found, best = (lt.solve(problem, by) for by in (lt.CuttingPlanes(), lt.InteriorPoint(1e-8)))
    assert found.status is lt.Status.CONVERGED
    assert found.objective <= best.objective * (1.0 + 1e-3)


def test_what_the_interior_point_is_told_to_curve_at_least_is_in_its_program():
    """Fewer examples than a third of the parameters, with one entry each."""
    rng = np.random.default_rng(0)
    entries = np.ones(8), (np.arange(8), 5 * np.arange(8))
    risk = lt.EmpiricalRisk(scipy.sparse.csr_matrix(entries, shape=(8, 40)), rng.normal(size=8))
    program = program_of(risk)
    assert np.linalg.eigvalsh(program.P.toarray() - np.diag(least_bends(risk))).min() >= -1e-15
    free = np.full(40, np.inf)
    for _ in range(50):
        x, s = rng.normal(size=40), 0.2 * rng.normal(size=program.count)
        assert dual_bounds(program, x, s, -free, free, least_bends(risk))[0] <= 1e-12
