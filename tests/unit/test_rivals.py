"""The solvers the paper compares with: ProjectedSGD, ApproxSGD, OnlineFrankWolfe and
LocalFrankWolfe.
"""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
import pytest
from scipy.optimize import minimize

import lighttouch as lt

Array = np.ndarray

RIVALS = {
    "ProjectedSGD": lt.ProjectedSGD(lt.InverseSqrt(0.3)),
    "ApproxSGD": lt.ApproxSGD(lt.InverseSqrt(0.3)),
    "OnlineFrankWolfe": lt.OnlineFrankWolfe(),
    "OnlineFrankWolfe, gradients": lt.OnlineFrankWolfe(memory="gradients"),
    "LocalFrankWolfe": lt.LocalFrankWolfe(),
    "LocalFrankWolfe, strongly convex": lt.LocalFrankWolfe(strong_convexity=0.2),
}


def ridge(
    d: int = 20, n: int = 200, loss: str = "squared", domain: lt.Box | None = None
) -> lt.Problem:
    """Regression on increasing coefficients, some orders and one side of the box active at the
    optimum.
    """
    rng = np.random.default_rng(5)
    X = 0.5 * rng.normal(size=(n, d))
    slopes = np.linspace(-1.5, 1.5, d) + 0.6 * rng.normal(size=d)
    y = X @ slopes + 0.1 * rng.normal(size=n)
    if loss == "hinge":
        y = np.where(y > 0.0, 1.0, -1.0)
    return lt.Problem(
        lt.EmpiricalRisk(X, y, loss=loss, l2=0.1),
        lt.ordering(d),
        lt.Box(-1.0, 1.0) if domain is None else domain,
    )


# -------------------------------------------------------------------------------------------------
# one optimum for all eight


@pytest.fixture(scope="module")
def optimum() -> float:
    """Of the ridge problem, by SciPy's SLSQP, which shares nothing with the package."""
    problem = ridge()
    A = problem.constraints.A.toarray()
    objective = problem.objective
    found = minimize(
        objective.value,
        np.zeros(20),
        jac=objective.gradient,
        method="SLSQP",
        bounds=[(-1.0, 1.0)] * 20,
        constraints={"type": "ineq", "fun": lambda w: -A @ w, "jac": lambda w: -A},
        options={"ftol": 1e-14, "maxiter": 500},
    )
    assert found.success
    tight = np.abs(A @ found.x) < 1e-7
    assert 3 <= tight.sum() < 19 and np.any(np.abs(np.abs(found.x) - 1.0) < 1e-7)
    return float(found.fun)


# Solver, iterations and tolerance, from a start 1.95 above the optimum. One example per step: what
# is left falls as 1/sqrt(T), or 1/T where the solver is told of strong convexity; two to three
# times the gaps seen over seeds.
# OnlineFrankWolfe looks at all examples seen.
REACHED = {
    "FullTouch": (lt.FullTouch(1.0, lt.InverseSqrt(0.1)), 20_000, 8e-3),
    "LightTouch": (lt.LightTouch(1.0, lt.InverseSqrt(0.1), 4, weight_step_size=0.05), 20_000, 6e-3),
    "MidTouch": (lt.MidTouch(1.0, 0.1, 2_000, 0.01), 20_000, 3e-3),
    "PracticalLightTouch": (lt.PracticalLightTouch(step_size=lt.InverseSqrt(0.1)), 20_000, 6e-3),
    "ProjectedSGD": (lt.ProjectedSGD(lt.InverseTime(4.0), batch=4), 4_000, 3e-3),
    "ApproxSGD": (lt.ApproxSGD(lt.InverseSqrt(0.1)), 20_000, 8e-3),
    "OnlineFrankWolfe": (lt.OnlineFrankWolfe(), 2_000, 1e-3),
    "LocalFrankWolfe": (lt.LocalFrankWolfe(), 6_000, 1.5e-2),
    "LocalFrankWolfe, strongly convex": (lt.LocalFrankWolfe(strong_convexity=0.1), 6_000, 1.5e-2),
}


@pytest.mark.parametrize("name", REACHED)
def test_all_eight_reach_the_same_optimum(name: str, optimum: float) -> None:
    solver, iterations, tolerance = REACHED[name]
    result = lt.solve(ridge(), solver, iterations=iterations, seed=1)
    assert result.violation == 0.0
    assert -1e-9 <= result.objective - optimum <= tolerance


# -----------------------------------------------------------------------------------------------
# what every solver promises


def assert_same_bits(first: object, second: object) -> None:
    for part in fields(first):  # type: ignore[arg-type]
        a, b = getattr(first, part.name), getattr(second, part.name)
        pairs = zip(a, b, strict=True) if isinstance(a, tuple) else [(a, b)]
        for x, y in pairs:
            np.testing.assert_array_equal(x, y, err_msg=part.name)


@pytest.mark.parametrize("name", RIVALS)
def test_chunks_and_copies_never_change_a_run(name: str) -> None:
    solver, problem = RIVALS[name], ridge(d=8, n=30, loss="hinge")
    whole = solver.init(problem, problem.start(np.linspace(1.0, 0.0, 8)))
    chunked = whole.copy()
    solver.advance(problem, whole, 70, np.random.default_rng(3))
    rng = np.random.default_rng(3)
    for steps in (1, 2, 30, 1, 36):
        abandoned = chunked.copy()
        solver.advance(problem, chunked, steps, rng)
        solver.advance(problem, abandoned, 2, np.random.default_rng(0))
    assert whole.iteration == chunked.iteration == 70
    assert_same_bits(whole, chunked)


@pytest.mark.parametrize("name", RIVALS)
def test_the_same_seed_gives_the_same_bits_and_resuming_goes_on(name: str) -> None:
    solver, problem = RIVALS[name], ridge(d=8, n=30, loss="hinge")
    once, again, other = (lt.solve(problem, solver, iterations=50, seed=seed) for seed in (1, 1, 2))
    assert np.array_equal(once.w, again.w) and np.array_equal(once.w_average, again.w_average)
    assert not np.array_equal(once.w_average, other.w_average)
    half = lt.solve(problem, solver, iterations=20, seed=1)
    resumed = lt.solve(problem, solver, iterations=50, resume=half.state)
    assert np.array_equal(once.w, resumed.w) and once.constraint_checks == resumed.constraint_checks


@pytest.mark.parametrize("name", RIVALS)
def test_iterates_are_feasible_and_the_history_is_the_common_one(name: str) -> None:
    problem = ridge(d=8, n=30, loss="hinge")
    seen = []
    result = lt.solve(
        problem,
        RIVALS[name],
        iterations=40,
        record_every=1,
        callback=lambda progress: seen.append(progress.w),
    )
    assert len(result.history) == 41 and np.all(result.history.violation == 0.0)
    assert np.all(np.abs(seen) <= 1.0)
    assert (
        np.all(np.diff(result.history.constraint_checks) >= 0)
        and result.constraint_checks == result.history.constraint_checks[-1] > 0
    )
    assert np.all(result.history.loss_batch == 1) and result.constraint_probabilities is None


@pytest.mark.parametrize("name", RIVALS)
def test_the_average_is_that_of_the_iterates(name: str) -> None:
    problem = ridge(d=8, n=30, loss="hinge")
    seen = []
    result = lt.solve(
        problem,
        RIVALS[name],
        iterations=25,
        record_every=1,
        callback=lambda progress: seen.append(progress.w),
    )
    np.testing.assert_allclose(result.w_average, np.mean(seen[:-1], axis=0), atol=1e-14)


@pytest.mark.parametrize("name", RIVALS)
def test_python_objectives_run_interpreted_to_the_same_result(name: str) -> None:
    problem = ridge(d=6, n=12, loss="hinge")
    X, y = problem.objective.X, problem.objective.y
    python = lt.CustomObjective(
        6,
        lambda i, w: max(0.0, 1.0 - y[i] * (X[i] @ w)),
        lambda i, w: -y[i] * X[i] if y[i] * (X[i] @ w) < 1.0 else 0.0 * w,
        examples=12,
    )
    plain = lt.Problem(lt.EmpiricalRisk(X, y, loss="hinge"), problem.constraints, problem.domain)
    users = lt.Problem(python, problem.constraints, problem.domain)
    solver = replace(RIVALS[name], batch=12)  # whole passes: the two draw examples differently
    if name == "OnlineFrankWolfe":
        solver = replace(solver, smoothing=0.0)  # so that it draws nothing
    first, second = (lt.solve(p, solver, iterations=5, project=False) for p in (plain, users))
    np.testing.assert_allclose(first.w, second.w, atol=1e-9)


@pytest.mark.parametrize("name", RIVALS)
def test_an_infinite_gradient_is_called_divergence(name: str) -> None:
    objective = lt.CustomObjective(3, lambda i, w: 0.0, lambda i, w: np.full(3, 1e308) * 10.0)
    with np.errstate(over="ignore"):
        result = lt.solve(
            lt.Problem(objective, lt.ordering(3), lt.Box(0, 1)), RIVALS[name], iterations=10
        )
    assert result.status is lt.Status.DIVERGED and np.all(np.isfinite(result.w))


# --- ProjectedSGD
def test_whole_passes_of_projected_sgd_are_projected_gradient_descent() -> None:
    problem = ridge()
    result = lt.solve(problem, lt.ProjectedSGD(0.8, batch=200), iterations=40, project=False)
    w = lt.project(np.zeros(20), problem.constraints, problem.domain).w
    total = np.zeros(20)
    for _ in range(40):
        total += w
        w = lt.project(
            w - 0.8 * problem.objective.gradient(w), problem.constraints, problem.domain
        ).w
    np.testing.assert_allclose(result.w_last, w, atol=1e-12)
    np.testing.assert_allclose(result.w_average, total / 40, atol=1e-12)


def test_any_projection_can_be_plugged_in() -> None:
    problem, calls = ridge(), []

    def own(w: Array, constraints: lt.LinearConstraints, domain: lt.Box) -> Array:
        calls.append(w)
        return np.clip(np.sort(w), domain.lower, domain.upper)  # feasible, not nearest

    result = lt.solve(problem, lt.ProjectedSGD(0.1, projection=own), iterations=30)
    state = result.state.solver_state
    assert state.projections == 30 and len(calls) >= 31 and result.constraint_checks == 30 * 19
    assert any("30 projections" in note for note in result.notes)
    assert np.all(np.diff(result.w_last) >= 0.0) and "own" in repr(result.solver)
    nearest = lt.ProjectedSGD(0.1, projection=lt.project)
    default = lt.solve(problem, lt.ProjectedSGD(0.1), iterations=30)
    np.testing.assert_allclose(lt.solve(problem, nearest, iterations=30).w, default.w, atol=1e-12)
    with pytest.raises(TypeError, match="callable"):
        lt.ProjectedSGD(0.1, projection="nearest")


def test_projected_sgd_takes_any_rows_and_balls() -> None:
    rng = np.random.default_rng(0)
    rows = lt.LinearConstraints(rng.normal(size=(40, 5)), rng.random(40))
    problem = lt.Problem(lt.Quadratic(np.eye(5), -10.0 * rng.normal(size=5)), rows, lt.Ball(2.0))
    result = lt.solve(problem, lt.ProjectedSGD(0.5), iterations=100)
    assert result.violation <= 1e-9 and np.linalg.norm(result.w) <= 2.0 + 1e-9
    exact = lt.project(-problem.objective.q, rows, problem.domain).w
    np.testing.assert_allclose(result.w_last, exact, atol=1e-6)


# --- refusals
ORDERS = lt.ordering(4)
SUMS = lt.LinearConstraints([[1.0, 1.0, 1.0, 1.0]], [1.0])
CONES = lt.NormConstraints(None, np.zeros((1, 4)), None, [1.0])


@pytest.mark.parametrize(
    ("solver", "constraints", "domain", "reason"),
    [
        (lt.ApproxSGD(0.1), ORDERS, lt.Ball(1.0), "ball"),
        (lt.ApproxSGD(0.1), SUMS, lt.Box(0, 1), "neither orders"),
        (lt.ApproxSGD(0.1), lt.stack(ORDERS, SUMS).aggregated(2), lt.Box(0, 1), "neither orders"),
        (lt.ApproxSGD(0.1), CONES, lt.Box(0, 1), "linear"),
        (lt.OnlineFrankWolfe(), CONES, lt.Box(0, 1), "not linear"),
        (lt.OnlineFrankWolfe(), ORDERS, lt.Everywhere(), r"w\[0\] is not bounded below"),
        (
            lt.OnlineFrankWolfe(),
            lt.stack(ORDERS, lt.bounds(4, 0.0)),
            lt.Everywhere(),
            "not bounded above",
        ),
        (lt.OnlineFrankWolfe(), ORDERS, lt.Ball(1.0), "ball together with constraints"),
        (lt.LocalFrankWolfe(), None, lt.Ball(1.0), "a ball has none"),
        (lt.LocalFrankWolfe(), SUMS, lt.Box(0, np.inf), None),
        (lt.LocalFrankWolfe(), SUMS, lt.Box(-np.inf, 1), "not bounded below"),
        (lt.ApproxSGD(0.1), None, lt.Everywhere(), None),
        (lt.ApproxSGD(0.1), lt.stack(ORDERS, lt.bounds(4, 0, 1)), lt.Everywhere(), None),
        (lt.ProjectedSGD(0.1), None, lt.Everywhere(), None),
    ],
)
def test_problems_that_cannot_be_taken_are_refused_with_an_alternative(
    solver, constraints, domain, reason
) -> None:
    problem = lt.Problem(lt.Quadratic(np.eye(4), np.arange(4.0)), constraints, domain)
    if reason is None:
        assert solver.objection_to(problem) is None
        assert np.isfinite(lt.solve(problem, solver, iterations=3).objective)
        return
    with pytest.raises(ValueError, match=reason) as refused:
        lt.solve(problem, solver, iterations=3)
    assert "ProjectedSGD" in str(refused.value)


def test_contradictions_are_found_before_the_first_step() -> None:
    impossible = lt.LinearConstraints([[1.0, 0.0], [-1.0, 1.0], [0.0, -1.0]], [0.0, 0.0, -1.0])
    problem = lt.Problem(lt.Quadratic(np.eye(2), np.zeros(2)), impossible, lt.Box(-5, 5))
    for solver in (
        lt.ProjectedSGD(0.1),
        lt.OnlineFrankWolfe(),
        lt.LocalFrankWolfe(),
        lt.ApproxSGD(0.1),
    ):
        with pytest.raises(lt.InfeasibleConstraintsError):
            lt.solve(problem, solver, iterations=3)


@pytest.mark.parametrize(
    "make",
    [
        lambda: lt.ProjectedSGD(-1.0),
        lambda: lt.ApproxSGD(0.1, batch=0),
        lambda: lt.OnlineFrankWolfe(memory="all"),
        lambda: lt.OnlineFrankWolfe(smoothing=-1.0),
        lambda: lt.LocalFrankWolfe(oracle_ratio=0.0),
        lambda: lt.LocalFrankWolfe(strong_convexity=np.nan),
        lambda: lt.LocalFrankWolfe(step_size=lt.AdaGrad(1.0)),
    ],
)
def test_bad_hyperparameters_are_refused(make) -> None:
    with pytest.raises(ValueError, match="must be"):
        make()
