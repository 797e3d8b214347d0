"""The paper's solvers reach optima that other software finds: within 1% of the objective, feasible,
in a second or so each.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import clarabel
import numpy as np
import pytest
import scipy.optimize
import scipy.sparse
from sklearn.isotonic import IsotonicRegression

import lighttouch as lt

TOLERANCE = 0.01


@dataclass(frozen=True)
class Known:
    problem: lt.Problem
    w: np.ndarray

    @property
    def objective(self) -> float:
        return self.problem.objective.value(self.w)


def conic(P, q, A, b, cones=None) -> np.ndarray:
    """min x'Px/2 + q.x subject to b - Ax in the cones (non-negative unless given), by Clarabel."""
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-10
    P, A = scipy.sparse.csc_matrix(scipy.sparse.triu(P)), scipy.sparse.csc_matrix(A)
    return np.array(
        clarabel.DefaultSolver(P, q, A, b, cones or [clarabel.NonnegativeConeT(len(b))], settings)
        .solve()
        .x
    )


def reach(
    known: Known,
    solver,
    iterations: int,
    problem: lt.Problem | None = None,
    distance: float | None = None,
) -> lt.Result:
    """Solve, and be feasible and within the tolerance of the known optimum, from above."""
    result = lt.solve(problem or known.problem, solver, iterations=iterations)
    best = known.objective
    assert known.problem.violation(result.w) <= 1e-9
    assert result.objective >= best - 1e-6 * abs(best), (
        "better than the optimum: the optimum or the violation is wrong"
    )
    assert result.objective <= best + TOLERANCE * abs(best)
    if distance is not None:
        assert np.linalg.norm(result.w - known.w) <= distance * np.linalg.norm(known.w)
    return result


# --- isotonic regression
@cache
def isotonic() -> Known:
    rng = np.random.default_rng(0)
    y = np.sort(rng.normal(size=60)) + 0.5 * rng.normal(size=60)
    fitted = IsotonicRegression().fit(np.arange(60), y).predict(np.arange(60))
    return Known(
        lt.Problem(lt.EmpiricalRisk(scipy.sparse.eye(60, format="csr"), y), lt.ordering(60)), fitted
    )


@pytest.mark.parametrize(
    "solver",
    [
        lt.FullTouch(0.3, lt.InverseSqrt(3.0)),
        lt.FullTouch(0.3, lt.AdaGrad(0.3)),
        lt.LightTouch(0.3, lt.InverseSqrt(3.0), 5, weight_step_size=1.0),
        lt.MidTouch(0.3, 1 / 60, 20_000, 1.0),
        lt.PracticalLightTouch(0.3, lt.InverseSqrt(3.0)),
    ],
    ids=repr,
)
def test_isotonic_regression(solver):
    reach(isotonic(), solver, 200_000, distance=0.02)


# --------------------------------------------------------------------- least squares under 20,000
# random linear constraints


@cache
def least_squares() -> Known:
    rng = np.random.default_rng(1)
    X, truth = rng.normal(size=(400, 10)), rng.normal(size=10)
    y = X @ (2.0 * truth / np.linalg.norm(truth)) + 0.5 * rng.normal(size=400)
    A = rng.normal(size=(20_000, 10))
    A /= np.linalg.norm(A, axis=1)[:, None]
    b = rng.uniform(0.7, 1.5, size=20_000)
    known = Known(
        lt.Problem(lt.EmpiricalRisk(X, y), lt.LinearConstraints(A, b)),
        conic(X.T @ X / 400, -X.T @ y / 400, A, b),
    )
    free = known.problem.objective.value(np.linalg.lstsq(X, y, rcond=None)[0])
    assert known.objective > 3 * free, "the constraints should matter"
    return known


@cache
def least_squares_in_groups() -> lt.Problem:
    problem = least_squares().problem
    return lt.Problem(problem.objective, problem.constraints.aggregated(100))


def test_least_squares_by_full_touch():
    reach(least_squares(), lt.FullTouch(2.0, lt.InverseSqrt(0.1)), 4_000)


def test_least_squares_by_light_touch():
    result = reach(
        least_squares(), lt.LightTouch(2.0, lt.InverseSqrt(0.1), 20, weight_step_size=0.1), 60_000
    )
    assert result.constraint_checks == 21 * 60_000


@pytest.mark.parametrize(
    "solver",
    [
        lt.LightTouch(2.0, lt.InverseSqrt(0.1), 4, weight_step_size=0.1),
        lt.MidTouch(2.0, 0.7, 2_000, 0.1),
        lt.PracticalLightTouch(2.0, lt.InverseSqrt(0.1), 0.1),
    ],
    ids=repr,
)
def test_least_squares_with_constraints_in_groups(solver):
    reach(least_squares(), solver, 30_000, least_squares_in_groups(), distance=0.06)


# ------------------------------------------------------------------------------------ a support
# vector machine with rules


@cache
def support_vectors() -> Known:
    rng = np.random.default_rng(2)
    n, d, l2, margin = 500, 10, 0.1, 0.1
    X = rng.normal(size=(n, d))
    y = np.where(X[:, 0] + X[:, 1] + 0.8 * rng.normal(size=n) > 0, 1.0, -1.0)
    C = rng.normal(size=(40, d))
    C[:, :3] = 0.0
    c = np.where(C @ rng.normal(size=d) > 0, 1.0, -1.0)
    P = scipy.sparse.block_diag([l2 * scipy.sparse.eye(d), scipy.sparse.csc_matrix((n, n))])
    slack = scipy.sparse.eye(n)
    A = scipy.sparse.bmat([[-y[:, None] * X, -slack], [None, -slack], [-c[:, None] * C, None]])
    w = conic(
        P,
        np.r_[np.zeros(d), np.ones(n) / n],
        A,
        np.r_[-np.ones(n), np.zeros(n), -margin * np.ones(40)],
    )[:d]
    known = Known(
        lt.Problem(lt.EmpiricalRisk(X, y, "hinge", l2=l2), lt.canonical_examples(C, c, margin)), w
    )
    assert (known.problem.constraints.values(w) > -1e-6).sum() >= 3, (
        "some examples should be met with equality"
    )
    return known


@pytest.mark.parametrize(
    "solver",
    [
        lt.FullTouch(4.0, lt.AdaGrad(0.1)),
        lt.LightTouch(6.0, lt.AdaGrad(0.1), 4, weight_step_size=0.1),
        lt.MidTouch(4.0, 0.1, 20_000, 0.1),
        lt.PracticalLightTouch(6.0, lt.InverseSqrt(0.1), 0.1),
    ],
    ids=repr,
)
def test_support_vector_machine_with_canonical_examples(solver):
    known = support_vectors()
    result = reach(known, solver, 100_000)
    rows, signs = known.problem.constraints.A, known.problem.constraints.b
    assert np.all(rows @ result.w <= signs + 1e-9)


# -------------------------------------------------------------------------------------------
# logistic regression in a box


@cache
def logistic() -> tuple[Known, lt.Problem]:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(400, 15))
    y = np.where(X @ rng.normal(size=15) * 2 + rng.logistic(size=400) > 0, 1.0, -1.0)

    def value_and_gradient(w):
        margins = y * (X @ w)
        return np.logaddexp(0, -margins).mean(), -(X * (y / (1 + np.exp(margins)))[:, None]).mean(
            axis=0
        )

    options = {"ftol": 1e-15, "gtol": 1e-10}
    box = [(-0.7, 0.4)] * 15
    found = scipy.optimize.minimize(
        value_and_gradient, np.zeros(15), jac=True, method="L-BFGS-B", bounds=box, options=options
    )
    assert 3 <= np.isin(found.x, (-0.7, 0.4)).sum() <= 12
    objective = lt.EmpiricalRisk(X, y, "logistic")
    return Known(lt.Problem(objective, lt.bounds(15, -0.7, 0.4)), found.x), lt.Problem(
        objective, None, lt.Box(-0.7, 0.4)
    )


@pytest.mark.parametrize("as_domain", [False, True])
@pytest.mark.parametrize(
    "solver",
    [
        lt.FullTouch(1.0, lt.InverseSqrt(1.0)),
        lt.LightTouch(1.0, lt.InverseSqrt(1.0), 4, weight_step_size=0.1),
        lt.MidTouch(1.0, 0.02, 20_000, 0.1),
        lt.PracticalLightTouch(1.0, lt.InverseSqrt(1.0), 0.1),
    ],
    ids=repr,
)
def test_logistic_regression_in_a_box(solver, as_domain):
    known, boxed = logistic()
    reach(known, solver, 100_000, boxed if as_domain else None, distance=0.05)


# --- norm constraints
@cache
def among_balls() -> Known:
    rng = np.random.default_rng(4)
    d, m = 8, 60
    root = rng.normal(size=(d, d))
    P, q = root @ root.T / d + 0.5 * np.eye(d), 3.0 * rng.normal(size=d)
    centers = 0.5 * rng.normal(size=(m, d))
    radii = rng.uniform(1.5, 2.5, size=m) + 0.5 * np.linalg.norm(centers, axis=1)
    one = np.vstack([np.zeros((1, d)), -np.eye(d)])  # (radius, w - center) in the second-order cone
    b = np.concatenate([np.r_[radii[j], -centers[j]] for j in range(m)])
    w = conic(P, q, np.vstack([one] * m), b, [clarabel.SecondOrderConeT(d + 1)] * m)
    known = Known(
        lt.Problem(lt.Quadratic(P, q), lt.NormConstraints(None, -centers, None, radii)), w
    )
    assert known.objective > 0.8 * known.problem.objective.value(-np.linalg.solve(P, q)), (
        "the balls should matter"
    )
    return known


@pytest.mark.parametrize(
    ("solver", "iterations"),
    [
        (lt.FullTouch(25.0, lt.InverseSqrt(0.05)), 20_000),
        (lt.LightTouch(25.0, lt.InverseSqrt(0.05), 6, weight_step_size=0.1), 50_000),
        (lt.MidTouch(25.0, 0.5, 5_000, 0.1), 50_000),
        (lt.PracticalLightTouch(25.0, lt.InverseSqrt(0.05), 0.1), 5_000),
    ],
    ids=repr,
)
def test_norm_constraints(solver, iterations):
    """Before any projection the penalty alone brings the average to the optimum; the projection
    makes it feasible.
    """
    known = among_balls()
    result = lt.solve(known.problem, solver, iterations=iterations, project=False)
    assert result.violation <= 0.02
    assert abs(result.objective - known.objective) <= TOLERANCE * abs(known.objective)
    assert np.linalg.norm(result.w - known.w) <= 0.05 * np.linalg.norm(known.w)
    reach(known, solver, iterations, distance=0.05)


# --------------------------------------------------------------------------------------- quantile
# curves that do not cross


@cache
def quantile_curves() -> Known:
    """Quartiles and median at once, of one pinball level: e -> -e turns a level into its
    complement, both together make |e|.
    """
    rng = np.random.default_rng(5)
    n, degree, low, gap = 60, 6, 0.25, 0.05
    x = rng.uniform(size=n)
    y = np.sin(3 * x) + (0.2 + 0.6 * x) * rng.normal(size=n)
    B, G = (
        np.polynomial.chebyshev.chebvander(points, degree)
        for points in (2 * x - 1, np.linspace(-1, 1, 50))
    )
    Z, O = np.zeros_like(B), np.zeros_like(G)
    X = np.vstack([np.hstack(blocks) for blocks in ([B, Z, Z], [Z, Z, -B], [Z, B, Z], [Z, -B, Z])])
    Y, weights = np.r_[y, -y, y, -y], np.r_[np.ones(2 * n), np.full(2 * n, 0.5)]
    A, b = np.vstack([np.hstack([G, -G, O]), np.hstack([O, G, -G])]), np.full(100, -gap)
    slack = -np.eye(Y.size)
    rows = np.vstack(
        [
            np.hstack([-low * X, slack]),
            np.hstack([(1 - low) * X, slack]),
            np.hstack([A, np.zeros((100, Y.size))]),
        ]
    )
    costs = np.r_[np.zeros(X.shape[1]), weights / weights.sum()]
    program = scipy.optimize.linprog(
        costs, rows, np.r_[-low * Y, (1 - low) * Y, b], bounds=(None, None)
    )
    problem = lt.Problem(
        lt.EmpiricalRisk(X, Y, lt.Quantile(low), sample_weight=weights), lt.LinearConstraints(A, b)
    )
    known = Known(problem, program.x[: X.shape[1]])
    assert known.objective == pytest.approx(program.fun)
    free = scipy.optimize.linprog(
        costs, rows[:-100], np.r_[-low * Y, (1 - low) * Y], bounds=(None, None)
    )
    assert problem.violation(free.x[: X.shape[1]]) > 0.01, (
        "without the rule the curves come too close"
    )
    return known


@pytest.mark.parametrize(
    "solver",
    [
        lt.FullTouch(0.5, lt.InverseSqrt(0.5)),
        lt.LightTouch(0.5, lt.InverseSqrt(0.5), 6, weight_step_size=0.2),
        lt.PracticalLightTouch(0.5, lt.InverseSqrt(0.5), 0.2),
    ],
    ids=repr,
)
def test_quantile_curves_do_not_cross(solver):
    reach(quantile_curves(), solver, 100_000)
