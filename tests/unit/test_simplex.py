"""The simplex as a domain: its projection, with constraints, in solvers, and as an oracle."""

from __future__ import annotations

import numpy as np
import pytest

import lighttouch as lt
import reference
from lighttouch.domains import checked_domain
from lighttouch.kernels.compiler.compiled import interpreted
from lighttouch.kernels.verbs.domains import put_on_simplex
from lighttouch.projections.sets import feasible_set
from lighttouch.solvers.bounds import Tangent, lower_bound
from lighttouch.solvers.frank_wolfe import diameter, oracle_for

DISTANCE = np.sqrt(2.0)


@pytest.mark.parametrize("total", [1e-2, 1.0, 300.0])
@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_the_sum_is_the_total_to_rounding(total, scale):
    rng = np.random.default_rng(0)
    for dimension in (1, 2, 7, 300):
        v = scale * rng.normal(size=dimension)
        w = lt.Simplex(total).project(v)
        assert abs(w.sum() - total) <= 1e-15 * dimension * total and w.min() >= 0.0
        np.testing.assert_allclose(
            w, reference.simplex(total)(v), rtol=0, atol=1e-13 * max(total, scale)
        )
        twin = v.copy()
        interpreted(put_on_simplex)(twin, total)
        assert twin.tobytes() == w.tobytes()


def test_ties_and_huge_numbers():
    assert lt.Simplex().project([3.0, 3.0, 3.0, -1e308]).tolist() == pytest.approx(
        [1 / 3] * 3 + [0]
    )
    assert lt.Simplex().project([1e308, -1e308]).tolist() == [1.0, 0.0]
    assert lt.Simplex(2.0).project([-7.0]).tolist() == [2.0]


def test_what_it_says_about_itself():
    simplex = lt.Simplex(3.0)
    lower, upper = simplex.bounds(2)
    assert lower.tolist() == [0.0, 0.0] and upper.tolist() == [3.0, 3.0]
    assert simplex.diameter(4) == pytest.approx(3.0 * DISTANCE) and simplex.diameter(1) == 0.0
    assert checked_domain(simplex, 9) is simplex
    for wrong in (0.0, -1.0, np.inf, np.nan):
        with pytest.raises(ValueError, match="total must be positive"):
            lt.Simplex(wrong)
    with pytest.raises(lt.DataError, match="Simplex"):
        lt.Problem(lt.Quadratic(np.eye(2), [0.0, 0.0]), domain="simplex")


CONSTRAINTS = {
    "order": lambda rng: lt.ordering(6),
    "lattice": lambda rng: lt.lattice.increasing([2, 3]),
    "rows": lambda rng: lt.LinearConstraints(rng.normal(size=(5, 6)), np.full(5, 0.4)),
    "equality": lambda rng: lt.LinearEqualities([[1.0, 0, 0, 0, 0, -2.0]], [0.1]),
    "ball": lambda rng: lt.NormConstraints(None, np.full((1, 6), -0.2), None, [0.5]),
}


@pytest.mark.parametrize("name", CONSTRAINTS)
@pytest.mark.parametrize("seed", range(5))
def test_with_constraints_it_is_an_equality_and_bounds(name, seed):
    rng = np.random.default_rng(seed)
    constraints, v = CONSTRAINTS[name](rng), rng.normal(size=6)
    rows = lt.stack(constraints, lt.LinearEqualities(np.ones((1, 6)), [1.5]))
    ours = lt.project(v, constraints, lt.Simplex(1.5))
    theirs = lt.project(v, rows, lt.Box(0.0, np.inf))
    loose = 1e-5 if name == "ball" else 1e-11
    np.testing.assert_allclose(ours.w, theirs.w, rtol=0, atol=loose)
    assert abs(ours.w.sum() - 1.5) <= (1e-9 if name == "ball" else 1e-13) and ours.w.min() >= 0.0
    if ours.multipliers is not None:
        np.testing.assert_allclose(ours.multipliers, theirs.multipliers[:-1], rtol=0, atol=1e-8)


def test_alone_it_has_a_method_of_its_own():
    found = feasible_set(lt.LinearConstraints(np.zeros((0, 3)), []), lt.Simplex())
    assert found.is_simplex and not found.is_box
    assert "simplex" in found.nearest(np.array([0.9, 0.9, 0.0])).method


def test_constraints_that_leave_no_point_are_named_with_the_domain():
    with pytest.raises(lt.InfeasibleConstraintsError, match="within the domain") as error:
        lt.project(np.zeros(3), lt.bounds(3, lower=0.5), lt.Simplex())
    assert error.value.rows == (0, 1, 2)


def test_frank_wolfe_moves_to_vertices():
    problem = lt.Problem(lt.Quadratic(np.eye(3), [0.0, 1.0, -1.0]), domain=lt.Simplex(2.0))
    oracle = oracle_for(problem)
    assert oracle.vertex(np.array([1.0, -3.0, 0.0])).tolist() == [0.0, 2.0, 0.0]
    assert diameter(oracle) == pytest.approx(2.0 * DISTANCE)
    rows = lt.Problem(problem.objective, lt.ordering(3), lt.Simplex(2.0))
    vertex = oracle_for(rows).vertex(np.array([-1.0, 0.0, 0.0]))
    np.testing.assert_allclose(vertex, [2 / 3, 2 / 3, 2 / 3], atol=1e-9)


def test_lower_bounds_use_the_vertices():
    """f = <c, w>: the tangent's least value over the simplex is the optimum itself."""
    problem = lt.Problem(lt.Quadratic(np.zeros((3, 3)), [1.0, 2.0, 4.0]), domain=lt.Simplex())
    p = np.array([0.2, 0.3, 0.5])
    gradient = np.array([1.0, 2.0, 4.0])
    x = p + gradient  # so that rho is the gradient
    at = Tangent(x, problem.objective.value(x), gradient, p, 1.0, np.ones(3))
    assert lower_bound(problem, at) == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize("constrained", [False, True])
def test_the_default_solver_proves_its_answer(constrained):
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(50, 8)), rng.normal(size=50)
    constraints = lt.ordering(8) if constrained else None
    problem = lt.Problem(lt.EmpiricalRisk(X, y), constraints, lt.Simplex())
    result = lt.solve(problem)
    exact = lt.solve(problem, lt.Accelerated(1e-9))
    assert abs(result.w.sum() - 1.0) <= 1e-13 and result.w.min() >= 0.0
    assert result.status is lt.Status.CONVERGED
    assert result.objective == pytest.approx(exact.objective, rel=1e-4)


def test_solvers_that_cannot_stay_in_it_say_so():
    problem = lt.Problem(lt.Quadratic(np.eye(2), [0.0, 0.0]), lt.ordering(2), lt.Simplex())
    assert "simplex" in lt.ApproxSGD(0.1).objection_to(problem)
    assert "simplex" in lt.FullTouch(1.0, 0.1, incremental=True).objection_to(problem)
