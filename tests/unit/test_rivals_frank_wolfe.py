"""The Frank-Wolfe methods: their linear oracles, the decomposition into vertices, the local
oracle.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linprog
from test_rivals import ridge

import lighttouch as lt
from lighttouch.solvers.frank_wolfe import (
    BallOracle,
    BoxOracle,
    OrderOracle,
    RowsOracle,
    diameter,
    oracle_for,
)
from lighttouch.solvers.local_frank_wolfe import few_weights, move_mass


def polytope(rng: np.random.Generator, d: int = 6, m: int = 30) -> lt.LinearConstraints:
    return lt.LinearConstraints(rng.normal(size=(m, d)), 0.2 + rng.random(m))


def test_oracles_are_chosen_by_structure() -> None:
    zero = lt.Quadratic(np.eye(3), np.zeros(3))
    assert isinstance(oracle_for(lt.Problem(zero, None, lt.Box(0, 1))), BoxOracle)
    assert isinstance(oracle_for(lt.Problem(zero, lt.bounds(3, -1, 1))), BoxOracle)
    assert isinstance(oracle_for(lt.Problem(zero, None, lt.Ball(2.0))), BallOracle)
    assert isinstance(oracle_for(lt.Problem(zero, lt.ordering(3), lt.Box(0, 1))), OrderOracle)
    assert isinstance(
        oracle_for(lt.Problem(zero, lt.order([0], [1], margin=0.1, dimension=3), lt.Box(0, 1))),
        RowsOracle,
    )
    assert isinstance(
        oracle_for(lt.Problem(zero, lt.ordering(3), lt.Box([0, 0, 0], [1, 2, 3]))), RowsOracle
    )
    simplex = lt.LinearConstraints(np.vstack([-np.eye(3), np.ones(3)]), [0.0, 0.0, 0.0, 1.0])
    bounded = oracle_for(lt.Problem(zero, simplex))
    np.testing.assert_allclose(bounded.upper, 1.0)
    assert diameter(bounded) == pytest.approx(np.sqrt(3.0))


@pytest.mark.parametrize("kind", ["chain", "lattice", "polytope", "box", "ball"])
def test_oracle_vertices_are_feasible_and_optimal(kind: str) -> None:
    rng = np.random.default_rng(7)
    constraints = {
        "chain": lt.ordering(6),
        "lattice": lt.lattice.increasing([3, 2]),
        "polytope": polytope(rng),
    }.get(kind)
    domain = lt.Ball(2.0, np.arange(6.0)) if kind == "ball" else lt.Box(-2.0, 1.5)
    problem = lt.Problem(lt.Quadratic(np.eye(6), np.zeros(6)), constraints, domain)
    oracle = oracle_for(problem)
    for _ in range(30):
        direction = rng.normal(size=6) * (rng.random(6) < 0.7)
        vertex = oracle.vertex(direction)
        np.testing.assert_allclose(domain.project(vertex), vertex, atol=1e-12)
        assert problem.violation(vertex) <= (1e-9 if kind == "polytope" else 0.0)
        if kind == "ball":
            least = direction @ np.arange(6.0) - 2.0 * np.linalg.norm(direction)
        else:
            A, b = problem.constraints.A, problem.constraints.b
            least = linprog(
                direction,
                A_ub=A if b.size else None,
                b_ub=b if b.size else None,
                bounds=(-2.0, 1.5),
                method="highs-ipm",
            ).fun
        assert direction @ vertex == pytest.approx(least, abs=1e-7)


@pytest.mark.parametrize(
    "solver",
    [
        lt.OnlineFrankWolfe(smoothing=0.0),
        lt.LocalFrankWolfe(),
        lt.LocalFrankWolfe(strong_convexity=1.0),
    ],
)
def test_frank_wolfe_on_a_polytope_given_by_rows(solver: lt.LocalFrankWolfe) -> None:
    """The nearest point to an outside one, a quadratic: every oracle call is a HiGHS run, and they
    are counted.
    """
    rng = np.random.default_rng(11)
    rows, target = polytope(rng), 3.0 * rng.normal(size=6)
    problem = lt.Problem(lt.Quadratic(np.eye(6), -target), rows, lt.Box(-3.0, 3.0))
    result = lt.solve(problem, solver, iterations=400)
    exact = lt.project(target, rows, problem.domain).w
    assert result.objective - problem.objective.value(exact) <= 0.05 * abs(
        problem.objective.value(exact)
    )
    calls = result.state.solver_state.oracle_calls
    assert (
        calls == 400
        and result.constraint_checks == 400 * 30
        and any("400 linear programs" in note for note in result.notes)
    )
    assert result.history.violation[1:].max() <= 1e-9


def test_frank_wolfe_in_a_ball() -> None:
    target = np.array([3.0, -4.0])
    problem = lt.Problem(lt.Quadratic(np.eye(2), -target), None, lt.Ball(1.0))
    result = lt.solve(problem, lt.OnlineFrankWolfe(smoothing=0.0), iterations=500)
    np.testing.assert_allclose(result.w, target / 5.0, atol=0.02)


def test_smoothing_settles_a_kink() -> None:
    """|w_0 - w_1 - 1| + small slopes: without smoothing the subgradient at the kink throws the
    iterate from side to side.
    """
    X, y = np.array([[1.0, -1.0], [0.1, 0.0]]), np.array([0.4, 3.0])
    problem = lt.Problem(lt.EmpiricalRisk(X, y, loss="absolute"), lt.order([1], [0]), lt.Box(-1, 1))
    best = problem.objective.value(np.array([1.0, 0.6]))
    gaps = [
        lt.solve(problem, lt.OnlineFrankWolfe(smoothing=s), iterations=1500, seed=3).objective
        - best
        for s in (0.0, 0.05)
    ]
    assert gaps[1] <= 0.01 and gaps[1] < gaps[0]


@pytest.mark.parametrize("strong", [None, 0.2])
def test_the_decomposition_of_local_frank_wolfe_is_the_iterate(strong: float | None) -> None:
    problem = ridge(d=10, n=60)
    solver = lt.LocalFrankWolfe(strong_convexity=strong)
    state = solver.init(problem, problem.start())
    rng = np.random.default_rng(0)
    for _ in range(60):
        solver.advance(problem, state, 5, rng)
        assert np.all(state.weights > 0.0) and state.weights.sum() == pytest.approx(1.0, abs=1e-12)
        np.testing.assert_allclose(state.weights @ state.vertices, state.w, atol=1e-12)
        assert all(problem.violation(vertex) == 0.0 for vertex in state.vertices)
        assert len({vertex.tobytes() for vertex in state.vertices}) == state.weights.size <= 11


def test_the_local_oracle_beats_every_point_nearby() -> None:
    """On the simplex, moving mass sqrt(d) r / 2 gives a point no worse than all within r, and at
    most sqrt(2) times that mass away.
    """
    rng = np.random.default_rng(13)
    d = 6
    problem = lt.Problem(
        lt.Quadratic(np.eye(d), np.zeros(d)),
        lt.LinearConstraints(np.ones((1, d)), [1.0]),
        lt.Box(0.0, 1.0),
    )
    corners = np.vstack([np.zeros(d), np.eye(d)])
    state = lt.LocalFrankWolfe().init(problem, problem.start())
    for _ in range(30):
        weights = rng.dirichlet(np.full(d + 1, 0.5))
        slope, radius = rng.normal(size=d), 0.5 * rng.random()
        mass = min(1.0, np.sqrt(d + 1) * radius / np.sqrt(2.0))
        state.vertices, state.weights = corners.copy(), weights.copy()
        x = weights @ corners
        move_mass(state, slope, oracle_for(problem).vertex(slope), mass, 1.0, 1e-9)
        p = state.weights @ state.vertices
        assert np.linalg.norm(p - x) <= mass * np.sqrt(2.0) + 1e-12
        away = rng.normal(size=(400, d))
        nearby = x + radius * rng.random((400, 1)) * away / np.linalg.norm(
            away, axis=1, keepdims=True
        )
        nearby = nearby[(nearby >= 0.0).all(axis=1) & (nearby.sum(axis=1) <= 1.0)]
        assert np.all(nearby @ slope >= p @ slope - 1e-12)


def test_a_long_decomposition_is_reduced_without_moving_the_point() -> None:
    rng = np.random.default_rng(17)
    vertices, weights = rng.normal(size=(40, 5)), rng.dirichlet(np.ones(40))
    few = few_weights(weights, vertices)
    assert few is not None and np.count_nonzero(few) <= 6 and np.all(few >= 0.0)
    np.testing.assert_allclose(few @ vertices, weights @ vertices, atol=1e-9)
