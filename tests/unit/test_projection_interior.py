"""The interior point: ill-conditioned rows, equalities, singular quadratic forms; and projections
that must end in time.
"""

from __future__ import annotations

import time

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy import sparse

import lighttouch as lt
from lighttouch.interior.program import opposite_rows
from lighttouch.projections import OutOfTimeError
from lighttouch.projections.rows.kinds import factor_cost


def second_differences(count: int) -> lt.LinearConstraints:
    """Convexity of a sequence: 2 w[i] <= w[i - 1] + w[i + 1]."""
    return lt.LinearConstraints(
        sparse.diags([-1.0, 2.0, -1.0], [0, 1, 2], shape=(count - 2, count), format="csr"),
        np.zeros(count - 2),
    )


def optimality_error(problem: lt.Problem, w: np.ndarray) -> float:
    """How far -grad f(w) is from the cone of the active rows: zero at an optimum, by non-negative
    least squares.
    """
    from scipy.optimize import nnls

    gradient = problem.objective.P @ w + problem.objective.q
    active = problem.constraints.values(w) > -1e-6
    rows = problem.constraints.A[active]
    return nnls(np.asarray(rows.todense() if sparse.issparse(rows) else rows).T, -gradient)[1]


def test_a_concave_sequence_is_projected_onto_convex_ones_as_its_least_squares_line():
    places = np.linspace(-1.0, 1.0, 5000)
    v = -(places**2)
    found = lt.project(v, second_differences(v.size))
    line = np.polynomial.Polynomial.fit(places, v, 1)(places)
    assert "interior point" in found.method
    assert found.violation <= 1e-14
    assert np.abs(found.w - line).max() <= 1e-7
    assert found.gap <= 1e-8 * found.distance**2


def test_convex_regression_of_noise_keeps_the_multipliers_of_the_optimum():
    v = np.linspace(-1.0, 1.0, 1500) ** 2 + np.random.default_rng(0).standard_normal(1500)
    rules = second_differences(v.size)
    found = lt.project(v, rules)
    assert found.violation <= 1e-12
    assert np.all(found.multipliers >= 0.0)
    assert np.abs(v - found.w - rules.A.T @ found.multipliers).max() <= 1e-6
    assert abs(found.multipliers @ (rules.A @ found.w)) <= 1e-6 * found.distance**2


@settings(max_examples=40, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(seed=st.integers(0, 2**32 - 1))
def test_random_quadratic_programs_are_proven_and_optimal(seed):
    rng = np.random.default_rng(seed)
    n, m = int(rng.integers(2, 15)), int(rng.integers(2, 30))
    root = rng.standard_normal((int(rng.integers(1, n + 1)), n))  # often singular
    A = rng.standard_normal((m, n)) * (rng.random((m, n)) < 0.6)
    A[np.abs(A).sum(axis=1) == 0.0, 0] = 1.0
    inside = rng.standard_normal(n)
    b = A @ inside + rng.random(m)
    tied = int(rng.integers(0, min(3, n)))
    ties = rng.standard_normal((tied, n))
    rows = np.vstack([A, ties, -ties, np.eye(n), -np.eye(n)])  # a box keeps singular ones bounded
    right = np.concatenate([b, ties @ inside, -(ties @ inside), inside + 3.0, 3.0 - inside])
    problem = lt.Problem(
        lt.Quadratic(root.T @ root, rng.standard_normal(n)), lt.LinearConstraints(rows, right)
    )
    result = lt.solve(problem)
    assert result.status is lt.Status.CONVERGED
    assert any("interior point" in note for note in result.notes)
    assert problem.violation(result.w) <= 1e-9
    assert optimality_error(problem, result.w) <= 1e-4 * (1.0 + np.abs(problem.objective.q).max())


def test_opposite_rows_are_one_equality():
    rows = sparse.csr_matrix(
        [[1.0, 2.0, 0.0], [0.0, 1.0, 1.0], [-1.0, -2.0, 0.0], [0.0, -1.0, -1.0], [1.0, 2.0, 0.0]]
    )
    first, second = opposite_rows(rows, np.array([3.0, 1.0, -3.0, -2.0, 4.0]))
    assert [sorted(pair) for pair in zip(first.tolist(), second.tolist(), strict=True)] == [[0, 2]]


def test_random_sparse_rows_are_known_to_be_expensive_and_bands_to_be_cheap():
    eye = sparse.identity(4000, format="csr")
    banded = second_differences(4000).A
    scattered = sparse.random(4000, 4000, 1e-3, format="csr", rng=np.random.default_rng(0))
    assert factor_cost(eye, banded) < 1e6
    assert factor_cost(eye, scattered) > 1e9


def test_contradictory_rows_end_in_the_same_error_as_elsewhere():
    rules = lt.LinearConstraints([[1.0, 1.0, 1.0], [-1.0, -1.0, -1.0]], [0.0, -1.0])
    with pytest.raises(lt.InfeasibleConstraintsError) as caught:
        lt.solve(lt.Problem(lt.Quadratic(np.eye(3), np.ones(3)), rules))
    assert set(caught.value.rows) == {0, 1}


def test_an_objective_without_a_minimum_is_never_called_solved():
    rules = lt.LinearConstraints([[1.0, 1.0, 1.0], [1.0, -1.0, 2.0]], [1.0, 1.0])
    problem = lt.Problem(lt.Quadratic(np.diag([1.0, 1.0, 0.0]), np.ones(3)), rules)
    assert isinstance(lt.Automatic().chain(problem)[0], lt.InteriorPoint)
    assert lt.solve(problem, time_limit=2.0).status is not lt.Status.CONVERGED


def test_a_resumed_run_is_the_same_run():
    rng = np.random.default_rng(3)
    rules = lt.LinearConstraints(rng.standard_normal((30, 10)), rng.random(30))
    problem = lt.Problem(lt.Quadratic(np.eye(10), rng.standard_normal(10) * 3.0), rules)
    whole = lt.solve(problem)
    half = lt.solve(problem, iterations=5)
    assert half.status is lt.Status.ITERATION_LIMIT
    assert np.array_equal(lt.solve(problem, resume=half.state).w, whole.w)


def test_orders_keep_their_own_method():
    problem = lt.Problem(lt.Quadratic(np.eye(6), np.arange(6.0)), lt.ordering(6))
    assert isinstance(lt.Automatic().chain(problem)[0], lt.Accelerated)


def hard_rows() -> tuple[np.ndarray, lt.LinearConstraints]:
    """Dense rows, thousands of them violated: seconds of work."""
    rng = np.random.default_rng(0)
    A = rng.standard_normal((6000, 1200))
    return 3.0 * rng.standard_normal(1200), lt.LinearConstraints(
        A, 0.05 * np.linalg.norm(A, axis=1)
    )


def test_a_projection_ends_soon_after_its_time_limit():
    v, rules = hard_rows()
    lt.project(np.zeros(rules.dimension), rules)  # sorting the rows is not what the limit is about
    began = time.process_time()
    with pytest.raises(OutOfTimeError, match="time limit"):
        lt.project(v, rules, time_limit=0.05)
    assert time.process_time() - began <= 2.0


def test_a_time_limit_bounds_the_final_projection_and_keeps_the_result():
    v, rules = hard_rows()
    problem = lt.Problem(lt.EmpiricalRisk(np.eye(v.size), v, loss="squared"), rules)
    began = time.process_time()
    result = lt.solve(problem, lt.FullTouch(penalty=0.0, step_size=50.0), time_limit=0.2)
    assert time.process_time() - began <= 5.0
    if problem.violation(result.w) > 1e-6:
        assert result.status is lt.Status.NOT_PROJECTED
        assert "not projected" in result.projection or "not certified" in result.projection


def test_a_projection_that_fails_does_not_lose_the_run(monkeypatch):
    def fail(*_, **__):
        raise RuntimeError("no method came near")

    rules = lt.ordering(4)
    problem = lt.Problem(lt.EmpiricalRisk(np.eye(4), [3.0, 2.0, 1.0, 0.0], loss="squared"), rules)
    monkeypatch.setattr("lighttouch.driving.project", fail)
    result = lt.solve(problem, lt.FullTouch(penalty=0.1, step_size=0.1), iterations=200)
    assert result.status is lt.Status.NOT_PROJECTED
    assert "no method came near" in result.projection
    assert result.violation == problem.violation(result.w) > 0.0
    assert np.array_equal(result.w, result.w_average) or np.array_equal(result.w, result.w_last)
