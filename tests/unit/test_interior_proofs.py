"""What the interior point proves, and how it ends."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

import lighttouch as lt
from lighttouch.interior import tiles
from lighttouch.interior.costs import COSTS
from lighttouch.interior.path import Point, point_again
from lighttouch.interior.program import runs_of, with_rows, with_rows_scaled
from lighttouch.interior.statement import program_of, quadratic_program
from lighttouch.solvers.bounds import minorant
from lighttouch.solvers.interior_rounds import model_of


def convex_regression(n: int, as_risk: bool) -> lt.Problem:
    """f_j >= f_i + g_i (x_j - x_i): the slopes g have no bounds, and nothing bends along them."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(n, 2))
    y = (X**2).sum(axis=1) + 0.3 * rng.normal(size=n)
    i, j = (part.ravel() for part in np.nonzero(~np.eye(n, dtype=bool)))
    A = np.zeros((i.size, 3 * n))
    rows = np.arange(i.size)
    A[rows, j], A[rows, i] = -1.0, 1.0
    for a in range(2):
        A[rows, n + 2 * i + a] = X[j, a] - X[i, a]
    f_part = sp.csr_matrix((np.ones(n), (np.arange(n), np.arange(n))), shape=(n, 3 * n))
    rules = lt.LinearConstraints(sp.csr_matrix(A), np.zeros(i.size))
    if as_risk:
        return lt.Problem(lt.EmpiricalRisk(f_part, y, loss="squared"), rules)
    return lt.Problem(lt.Quadratic(f_part.T @ f_part / n, -(f_part.T @ y) / n), rules)


@pytest.mark.parametrize("as_risk", [False, True])
@pytest.mark.parametrize("tolerance", [1e-6, 1e-8])
def test_flat_parameters_without_bounds_are_proven(as_risk: bool, tolerance: float) -> None:
    """At the corners of the data only slopes of exactly 0 balance."""
    result = lt.solve(convex_regression(40, as_risk), lt.InteriorPoint(tolerance))
    assert result.status is lt.Status.CONVERGED
    assert 0.0 <= result.gap <= tolerance * abs(result.objective)


def polytope(d: int, m: int) -> lt.Problem:
    rng = np.random.default_rng(0)
    truth = rng.normal(size=d) / np.sqrt(d)
    X = rng.normal(size=(2 * d, d))
    A = rng.normal(size=(m, d))
    b = np.abs(A @ (0.7 * truth)) + 0.3 * np.abs(rng.normal(size=m))
    y = X @ truth + 0.5 * rng.normal(size=2 * d)
    return lt.Problem(lt.EmpiricalRisk(X, y), lt.LinearConstraints(A, b), lt.Box(-2, 2))


def test_dense_rows_end_at_a_feasible_point_within_the_tolerance() -> None:
    problem = polytope(160, 20_000)
    rough = lt.solve(problem, lt.InteriorPoint(1e-2))
    fine = lt.solve(problem, lt.InteriorPoint(1e-7))
    for result, tolerance in ((rough, 1e-2), (fine, 1e-7)):
        assert result.status is lt.Status.CONVERGED
        assert result.violation <= 1e-12
        assert result.gap <= tolerance * abs(result.objective)
    assert rough.lower_bound <= fine.objective <= rough.objective * (1.0 + 1e-7)
    assert rough.iterations < fine.iterations


def test_tiles_give_the_gram_matrix_and_the_same_bits_on_one_core(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rows = np.random.default_rng(0).normal(size=(300, 150))
    monkeypatch.setattr(tiles, "COSTS", replace(COSTS, tile=64, tiled_products=0.0))
    H = np.zeros((150, 150), order="F")
    tiles.add_gram(H, rows)
    assert np.allclose(np.tril(H), np.tril(rows.T @ rows), rtol=1e-13)
    again = np.zeros((150, 150), order="F")
    with tiles.ThreadPoolExecutor(1) as alone:
        monkeypatch.setattr(tiles, "_threads", lambda: alone)
        tiles.add_gram(again, rows)
    assert np.array_equal(np.tril(H), np.tril(again))


def test_runs_are_the_same_rows() -> None:
    """Rows with the same parameters, one after the other, are taken as dense matrices."""
    rng = np.random.default_rng(0)
    parts = []
    for first in (0, 10, 30):
        block = np.zeros((300, 50))
        block[:, first : first + 10] = rng.normal(size=(300, 10))
        parts.append(block)
    dense = np.vstack(parts)
    runs = runs_of(sp.csr_matrix(dense))
    assert runs is not None
    x, s, weights = rng.normal(size=50), rng.normal(size=900), rng.uniform(size=900)
    assert np.allclose(runs.forward(x), dense @ x)
    out = np.zeros(50)
    runs.add_backward(s, out)
    assert np.allclose(out, dense.T @ s)
    H = np.zeros((50, 50), order="F")
    runs.add_gram(weights, H)
    assert np.allclose(np.tril(H), np.tril(dense.T @ (weights[:, None] * dense)))
    scattered = sp.random(900, 50, density=0.2, random_state=0, format="csr")
    assert runs_of(scattered) is None


@pytest.mark.parametrize("loss", ["hinge", "absolute", "logistic", lt.Quantile(0.3)])
def test_a_minorant_lies_below_the_objective(loss: object) -> None:
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(25, 4)), np.sign(rng.normal(size=25))
    risk = lt.EmpiricalRisk(X, y, loss, l1=0.05, l2=0.1)
    for width in (1e-6, 1e-2, 1.0):
        x = rng.normal(size=4)
        found = minorant(risk, x, width)
        assert found is not None
        value, gradient = found
        for v in x + rng.normal(size=(50, 4)) * np.logspace(-3, 1, 50)[:, None]:
            bent = 0.5 * 0.1 * float((v - x) @ (v - x))
            below = value + float(gradient @ (v - x)) + bent
            assert below <= risk.value(v) + 1e-12 * abs(risk.value(v))
    assert minorant(risk, x, 1e-6)[0] == pytest.approx(risk.value(x), rel=1e-5)


def test_rows_scaled_in_given_units_are_the_same_program() -> None:
    problem = polytope(12, 30)
    rows = problem.constraints
    program = with_rows(
        program_of(problem.objective), (rows.A * 1e3,), rows.b * 1e3, np.zeros(30, dtype=bool)
    )
    columns = np.exp2(np.arange(12) % 4 - 2.0)
    inner, units = with_rows_scaled(program, columns)
    largest = np.abs(inner.rows.toarray()).max(axis=1)
    assert np.all((largest >= 0.5) & (largest <= 2.0))
    x = np.random.default_rng(2).normal(size=12)
    u = program.forward(units.parameters(x)) - program.centre
    assert np.array_equal(inner.forward(x) - inner.centre, u * units.rows)
    assert np.array_equal(units.inner(units.parameters(x)), x)


def test_a_round_begins_where_the_last_one_was_with_room_for_new_rows() -> None:
    rng = np.random.default_rng(3)
    rows, right = rng.normal(size=(6, 3)), np.ones(6)
    program = with_rows(
        quadratic_program(np.eye(3), np.ones(3)), (rows,), right, np.zeros(6, dtype=bool)
    )
    earlier = Point(np.full(3, 2.0), *(rng.uniform(0.5, 1.5, size=6) for _ in range(5)))
    earlier.high, earlier.p = np.ones(6), np.zeros(6)
    known = np.array([True, True, False, True, False, True])
    again = point_again(program, earlier, known)
    assert np.array_equal(again.x, earlier.x)
    for part in ("s", "low", "n"):
        assert np.array_equal(getattr(again, part)[known], getattr(earlier, part)[known])
    product = np.mean((earlier.n * earlier.low)[known])
    np.testing.assert_allclose((again.n * again.low)[~known], product)
    assert np.all(again.n[~known] >= np.abs(rows @ earlier.x - right)[~known])


def test_the_best_point_without_rows_is_where_dense_rows_begin() -> None:
    problem = polytope(160, 20_000)
    model = model_of(problem)
    X, y = problem.objective.X, problem.objective.y
    expected = np.clip(np.linalg.lstsq(X, y, rcond=None)[0], -2.0, 2.0)
    np.testing.assert_allclose(model.without_rows(), expected, atol=1e-6)


def test_the_factor_of_P_leaves_P_alone():
    """A matrix of one entry is in both orders, so that LAPACK could write into it."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 1))
    problem = lt.Problem(lt.EmpiricalRisk(X, rng.normal(size=20)), domain=lt.Box(-2.0, 2.0))
    model = model_of(problem)
    assert np.asarray(model.program.P).shape == (1, 1)
    before = np.array(model.program.P)
    result = lt.solve(problem, lt.InteriorPoint())
    assert np.array_equal(model.program.P, before)
    assert result.status is lt.Status.CONVERGED
