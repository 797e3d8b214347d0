"""The solvers the paper compares with: ProjectedSGD, ApproxSGD, OnlineFrankWolfe and LocalFrankWolfe."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
import pytest
from scipy.optimize import linprog, minimize

import lighttouch as lt
from lighttouch.kernels.approx_sgd import approx_sgd
from lighttouch.kernels.approx_sgd_heaps import new_move
from lighttouch.kernels.compiled import interpreted
from lighttouch.kernels.gradient import new_gradient
from lighttouch.kernels.iterate import INVERSE_SQRT
from lighttouch.solvers.approx_sgd import order_links
from lighttouch.solvers.frank_wolfe_oracle import BallOracle, BoxOracle, OrderOracle, RowsOracle, diameter, oracle_for
from lighttouch.solvers.local_frank_wolfe import few_weights, move_mass

Array = np.ndarray

RIVALS = {
    "ProjectedSGD": lt.ProjectedSGD(lt.InverseSqrt(0.3)),
    "ApproxSGD": lt.ApproxSGD(lt.InverseSqrt(0.3)),
    "OnlineFrankWolfe": lt.OnlineFrankWolfe(),
    "OnlineFrankWolfe, gradients": lt.OnlineFrankWolfe(memory="gradients"),
    "LocalFrankWolfe": lt.LocalFrankWolfe(),
    "LocalFrankWolfe, strongly convex": lt.LocalFrankWolfe(strong_convexity=0.2),
}


def ridge(d: int = 20, n: int = 200, loss: str = "squared", domain: lt.Box | None = None) -> lt.Problem:
    """Regression on increasing coefficients, some orders and one side of the box active at the optimum."""
    rng = np.random.default_rng(5)
    X = 0.5 * rng.normal(size=(n, d))
    slopes = np.linspace(-1.5, 1.5, d) + 0.6 * rng.normal(size=d)
    y = X @ slopes + 0.1 * rng.normal(size=n)
    if loss == "hinge":
        y = np.where(y > 0.0, 1.0, -1.0)
    return lt.Problem(lt.EmpiricalRisk(X, y, loss=loss, l2=0.1), lt.ordering(d), lt.Box(-1.0, 1.0) if domain is None else domain)


# ------------------------------------------------------------------------------------------------- one optimum for all eight


@pytest.fixture(scope="module")
def optimum() -> float:
    """Of the ridge problem, by SciPy's SLSQP, which shares nothing with the package."""
    problem = ridge()
    A = problem.constraints.A.toarray()
    objective = problem.objective
    found = minimize(
        objective.value, np.zeros(20), jac=objective.gradient, method="SLSQP", bounds=[(-1.0, 1.0)] * 20,
        constraints={"type": "ineq", "fun": lambda w: -A @ w, "jac": lambda w: -A}, options={"ftol": 1e-14, "maxiter": 500},
    )  # fmt: skip
    assert found.success
    tight = np.abs(A @ found.x) < 1e-7
    assert 3 <= tight.sum() < 19 and np.any(np.abs(np.abs(found.x) - 1.0) < 1e-7)
    return float(found.fun)


# Solver, iterations and tolerance, from a start 1.95 above the optimum. One example a step: what is left falls as 1/sqrt(T), or 1/T
# where the solver is told of strong convexity; two to three times the gaps seen over seeds. OnlineFrankWolfe looks at all examples seen.
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


# ----------------------------------------------------------------------------------------------- what every solver promises


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
    result = lt.solve(problem, RIVALS[name], iterations=40, record_every=1, callback=lambda progress: seen.append(progress.w))
    assert len(result.history) == 41 and np.all(result.history.violation == 0.0)
    assert np.all(np.abs(seen) <= 1.0)
    assert np.all(np.diff(result.history.constraint_checks) >= 0) and result.constraint_checks == result.history.constraint_checks[-1] > 0
    assert np.all(result.history.loss_batch == 1) and result.constraint_probabilities is None


@pytest.mark.parametrize("name", RIVALS)
def test_the_average_is_that_of_the_iterates(name: str) -> None:
    problem = ridge(d=8, n=30, loss="hinge")
    seen = []
    result = lt.solve(problem, RIVALS[name], iterations=25, record_every=1, callback=lambda progress: seen.append(progress.w))
    np.testing.assert_allclose(result.w_average, np.mean(seen[:-1], axis=0), atol=1e-14)


@pytest.mark.parametrize("name", RIVALS)
def test_python_objectives_run_interpreted_to_the_same_result(name: str) -> None:
    problem = ridge(d=6, n=12, loss="hinge")
    X, y = problem.objective.X, problem.objective.y
    python = lt.CustomObjective(
        6, lambda i, w: max(0.0, 1.0 - y[i] * (X[i] @ w)), lambda i, w: -y[i] * X[i] if y[i] * (X[i] @ w) < 1.0 else 0.0 * w, examples=12
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
        result = lt.solve(lt.Problem(objective, lt.ordering(3), lt.Box(0, 1)), RIVALS[name], iterations=10)
    assert result.status is lt.Status.DIVERGED and np.all(np.isfinite(result.w))


# --------------------------------------------------------------------------------------------------------------- ProjectedSGD


def test_whole_passes_of_projected_sgd_are_projected_gradient_descent() -> None:
    problem = ridge()
    result = lt.solve(problem, lt.ProjectedSGD(0.8, batch=200), iterations=40, project=False)
    w = lt.project(np.zeros(20), problem.constraints, problem.domain).w
    total = np.zeros(20)
    for _ in range(40):
        total += w
        w = lt.project(w - 0.8 * problem.objective.gradient(w), problem.constraints, problem.domain).w
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


# ------------------------------------------------------------------------------------------------------------------ ApproxSGD


def literal_move(w: Array, direction: Array, smaller: Array, larger: Array, room: Array, lower: Array, upper: Array) -> Array:
    """Section 6.1 word for word: go on until the next constraint is tight, tie its parameters, repeat. Slow, no shared code."""
    w, now = w.copy(), 0.0
    groups = [{i} for i in range(w.size)]
    held: list[set[int]] = [set() for _ in groups]  # the signs of the bounds that hold a group

    def velocity(g: int) -> float:
        mean = sum(direction[i] for i in groups[g]) / len(groups[g])
        held[g] &= {1} if mean > 0 else {-1} if mean < 0 else {1, -1}
        return 0.0 if held[g] else mean

    while True:
        speeds = [velocity(g) for g in range(len(groups))]
        where = {i: g for g, members in enumerate(groups) for i in members}
        events = []
        for row, (i, j) in enumerate(zip(smaller, larger, strict=True)):
            closing = speeds[where[i]] - speeds[where[j]]
            if where[i] != where[j] and closing > 0.0:
                events.append((now + max(0.0, room[row] - (w[i] - w[j])) / closing, -closing, row, where[i], where[j]))
        for i in range(w.size):
            speed, g = speeds[where[i]], where[i]
            wall = upper[i] if speed > 0.0 else lower[i]
            if speed != 0.0 and np.isfinite(wall):
                events.append((now + max(0.0, (wall - w[i]) / speed), -abs(speed), len(smaller) + i, g, None))
        time, _, _, g, h = min(events, default=(1.0, 0, 0, 0, 0))
        time = min(1.0, time)
        for i in range(w.size):
            w[i] += speeds[where[i]] * (time - now)
        now = time
        if now >= 1.0:
            return w
        if h is None:
            held[g].add(1 if speeds[g] > 0.0 else -1)
        else:
            groups[g] |= groups[h]
            held[g] |= held[h]
            del groups[h], held[h]


def one_step(constraints: lt.LinearConstraints, domain: lt.Box | lt.Everywhere, w: Array, direction: Array) -> Array:
    """A single step of ApproxSGD along a given direction."""
    constant = lt.Quadratic(np.zeros((w.size, w.size)), -direction)
    return lt.solve(lt.Problem(constant, constraints, domain), lt.ApproxSGD(1.0), iterations=1, start=w, project=False).w_last


def random_orders(rng: np.random.Generator, d: int, kind: str) -> tuple[Array, Array]:
    if kind == "chain":
        return np.arange(d - 1), np.arange(1, d)
    if kind == "lattice":
        rows = lt.lattice.increasing([2, 2, 2]).order_rows
        return rows.smaller.astype(int), rows.larger.astype(int)
    pairs = rng.integers(0, d, size=(2 * d, 2))
    pairs = np.sort(pairs[pairs[:, 0] != pairs[:, 1]], axis=1)
    return pairs[:, 0], pairs[:, 1]


@pytest.mark.parametrize("kind", ["chain", "lattice", "graph"])
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("margins", [False, True])
def test_approx_sgd_agrees_with_the_literal_transcription(kind: str, sparse: bool, margins: bool) -> None:
    rng = np.random.default_rng([len(kind), sparse, margins])
    moved = tied = held = 0
    for case in range(60):
        d = 8 if kind == "lattice" else int(rng.integers(2, 10))
        smaller, larger = random_orders(rng, d, kind)
        margin = rng.integers(-4, 3, size=smaller.size) / 8 if margins else np.zeros(smaller.size)
        w = tied_start(rng, d, smaller, larger, margin)
        lower, upper = np.full(d, -np.inf), np.full(d, np.inf)
        if case % 2:
            lower, upper = w - np.where(rng.random(d) < 0.2, 0.0, rng.random(d)), w + np.where(rng.random(d) < 0.2, 0.0, rng.random(d))
        direction = 2.0 * rng.normal(size=d) * (rng.random(d) < (0.3 if sparse else 1.0))
        constraints = lt.order(smaller, larger, margin=margin, dimension=d)
        expected = literal_move(w, direction, smaller, larger, -margin, lower, upper)
        found = one_step(constraints, lt.Box(lower, upper), w, direction)
        np.testing.assert_allclose(found, expected, atol=1e-11, err_msg=f"case {case}")
        assert constraints.values(found).max(initial=0.0) <= 0.0 and np.all(found >= lower) and np.all(found <= upper)
        free = np.clip(w + direction, lower, upper)
        moved += not np.allclose(found, w)
        tied += not np.allclose(found, free)
        held += not np.allclose(free, w + direction)
    assert moved >= 30 and tied >= 10 and held >= 10


def tied_start(rng: np.random.Generator, d: int, smaller: Array, larger: Array, margin: Array) -> Array:
    """A feasible point, every second parameter tied to one below it, in eighths so that ties are exact."""
    w = rng.integers(-8, 8, size=d) / 8
    for j in range(d):  # lower indices come first in every order used here
        below = [w[i] + gap for i, k, gap in zip(smaller, larger, margin, strict=True) if k == j]
        if below:
            w[j] = max(below) + (0.0 if rng.random() < 0.5 else rng.integers(1, 9) / 8)
    return w


def test_a_single_push_from_a_tie_is_projected_exactly() -> None:
    """From all zeros, one raised parameter takes everything above it along by the average: then the projection is the same."""
    constraints = lt.lattice.increasing([2] * 6)
    for vertex in (0, 5, 63, 40):
        push = np.zeros(64)
        push[vertex] = 3.0
        np.testing.assert_allclose(one_step(constraints, lt.Box(-1, 1), np.zeros(64), push), lt.project(push, constraints, lt.Box(-1, 1)).w)


@pytest.mark.parametrize(
    "constraints",
    [
        lt.lattice.increasing([2] * 6),
        lt.order(np.arange(63), np.arange(1, 64), margin=0.1 * np.sin(np.arange(63))),
        lt.stack(lt.lattice.increasing([4, 4, 4]), lt.lattice.slope([4, 4, 4], 0, 0.7), lt.bounds(64, -0.9, 1.1)),
        lt.LinearConstraints(0.3 * lt.ordering(64).A, np.zeros(63)),
        lt.lattice.increasing([4, 4, 4]).aggregated(16),
        lt.stack(lt.order([0, 5, 9], [5, 9, 0], dimension=64), lt.order([9, 1], [20, 0], dimension=64)),
    ],
    ids=["lattice", "margins", "slope and bounds", "scaled", "aggregated", "cycle"],
)
@pytest.mark.parametrize("step_size", [lt.InverseSqrt(0.3), lt.AdaGrad(0.1)], ids=["sqrt", "adagrad"])
def test_every_iterate_of_approx_sgd_is_feasible_to_the_last_bit(constraints: lt.LinearConstraints, step_size: lt.AdaGrad) -> None:
    rng = np.random.default_rng(2)
    X = rng.normal(size=(80, 64)) * (rng.random((80, 64)) < 0.1)
    y = X @ np.linspace(-1.5, 1.5, 64) + rng.normal(size=80)
    problem = lt.Problem(lt.EmpiricalRisk(X, y, loss="squared"), constraints, lt.Box(-1.0, 1.0))
    result = lt.solve(problem, lt.ApproxSGD(step_size, batch=2), iterations=400, record_every=1, project=False)
    assert np.all(result.history.violation == 0.0) and np.all(np.abs(result.w_last) <= 1.0)
    assert result.history.objective[-1] < result.history.objective[0]
    assert not np.array_equal(result.w_last, lt.project(np.zeros(64), constraints, problem.domain).w)


def test_approx_sgd_examines_only_what_could_be_violated() -> None:
    """A step that touches one of a thousand parameters looks at that one's constraints, and at those of what it ties."""
    constraints = lt.ordering(1000)
    w, push = np.arange(1000.0), np.zeros(1000)
    push[500] = 0.5
    constant = lt.Quadratic(np.zeros((1000, 1000)), -push)
    result = lt.solve(lt.Problem(constant, constraints), lt.ApproxSGD(1.0), iterations=1, start=w)
    assert result.constraint_checks == 2
    push[500] = 4.0  # meets 501 after a quarter of the step; both, now half as fast, meet 502 after three quarters
    constant = lt.Quadratic(np.zeros((1000, 1000)), -push)
    result = lt.solve(lt.Problem(constant, constraints), lt.ApproxSGD(1.0), iterations=1, start=w)
    np.testing.assert_allclose(result.w_last[499:504], [499.0, 502 + 1 / 3, 502 + 1 / 3, 502 + 1 / 3, 503.0])
    assert result.constraint_checks == 6


def test_approx_sgd_interpreted_and_compiled_are_the_same_bits() -> None:
    rng = np.random.default_rng(4)
    X = rng.normal(size=(20, 16)) * (rng.random((20, 16)) < 0.3)
    problem = lt.Problem(lt.EmpiricalRisk(X, rng.normal(size=20), loss="absolute", l2=0.01), lt.lattice.increasing([2] * 4), lt.Box(-1, 1))
    solver, links = lt.ApproxSGD(lt.InverseSqrt(2.0)), order_links(problem)
    compiled = solver.init(problem, problem.start())
    plain = compiled.copy()
    solver.advance(problem, compiled, 60, np.random.default_rng(1))
    interpreted(approx_sgd)(
        problem.objective.record, 0.01, links, INVERSE_SQRT, 2.0, 1, plain.iterate, plain.visits,
        new_gradient(16), new_move(16, links.smaller.size), plain.counters, 60, np.random.default_rng(1),
    )  # fmt: skip
    assert_same_bits(compiled, plain)


# --------------------------------------------------------------------------------------------------------------- Frank-Wolfe


def polytope(rng: np.random.Generator, d: int = 6, m: int = 30) -> lt.LinearConstraints:
    return lt.LinearConstraints(rng.normal(size=(m, d)), 0.2 + rng.random(m))


def test_oracles_are_chosen_by_structure() -> None:
    zero = lt.Quadratic(np.eye(3), np.zeros(3))
    assert isinstance(oracle_for(lt.Problem(zero, None, lt.Box(0, 1))), BoxOracle)
    assert isinstance(oracle_for(lt.Problem(zero, lt.bounds(3, -1, 1))), BoxOracle)
    assert isinstance(oracle_for(lt.Problem(zero, None, lt.Ball(2.0))), BallOracle)
    assert isinstance(oracle_for(lt.Problem(zero, lt.ordering(3), lt.Box(0, 1))), OrderOracle)
    assert isinstance(oracle_for(lt.Problem(zero, lt.order([0], [1], margin=0.1, dimension=3), lt.Box(0, 1))), RowsOracle)
    assert isinstance(oracle_for(lt.Problem(zero, lt.ordering(3), lt.Box([0, 0, 0], [1, 2, 3]))), RowsOracle)
    simplex = lt.LinearConstraints(np.vstack([-np.eye(3), np.ones(3)]), [0.0, 0.0, 0.0, 1.0])
    bounded = oracle_for(lt.Problem(zero, simplex))
    np.testing.assert_allclose(bounded.upper, 1.0)
    assert diameter(bounded) == pytest.approx(np.sqrt(3.0))


@pytest.mark.parametrize("kind", ["chain", "lattice", "polytope", "box", "ball"])
def test_oracle_vertices_are_feasible_and_optimal(kind: str) -> None:
    rng = np.random.default_rng(7)
    constraints = {"chain": lt.ordering(6), "lattice": lt.lattice.increasing([3, 2]), "polytope": polytope(rng)}.get(kind)
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
            least = linprog(direction, A_ub=A if b.size else None, b_ub=b if b.size else None, bounds=(-2.0, 1.5), method="highs-ipm").fun
        assert direction @ vertex == pytest.approx(least, abs=1e-7)


@pytest.mark.parametrize("solver", [lt.OnlineFrankWolfe(smoothing=0.0), lt.LocalFrankWolfe(), lt.LocalFrankWolfe(strong_convexity=1.0)])
def test_frank_wolfe_on_a_polytope_given_by_rows(solver: lt.LocalFrankWolfe) -> None:
    """The nearest point to an outside one, a quadratic: every oracle call is a HiGHS run, and they are counted."""
    rng = np.random.default_rng(11)
    rows, target = polytope(rng), 3.0 * rng.normal(size=6)
    problem = lt.Problem(lt.Quadratic(np.eye(6), -target), rows, lt.Box(-3.0, 3.0))
    result = lt.solve(problem, solver, iterations=400)
    exact = lt.project(target, rows, problem.domain).w
    assert result.objective - problem.objective.value(exact) <= 0.05 * abs(problem.objective.value(exact))
    calls = result.state.solver_state.oracle_calls
    assert calls == 400 and result.constraint_checks == 400 * 30 and any("400 linear programs" in note for note in result.notes)
    assert result.history.violation[1:].max() <= 1e-9


def test_frank_wolfe_in_a_ball() -> None:
    target = np.array([3.0, -4.0])
    problem = lt.Problem(lt.Quadratic(np.eye(2), -target), None, lt.Ball(1.0))
    result = lt.solve(problem, lt.OnlineFrankWolfe(smoothing=0.0), iterations=500)
    np.testing.assert_allclose(result.w, target / 5.0, atol=0.02)


def test_smoothing_settles_a_kink() -> None:
    """|w_0 - w_1 - 1| + small slopes: without smoothing the subgradient at the kink throws the iterate from side to side."""
    X, y = np.array([[1.0, -1.0], [0.1, 0.0]]), np.array([0.4, 3.0])
    problem = lt.Problem(lt.EmpiricalRisk(X, y, loss="absolute"), lt.order([1], [0]), lt.Box(-1, 1))
    best = problem.objective.value(np.array([1.0, 0.6]))
    gaps = [lt.solve(problem, lt.OnlineFrankWolfe(smoothing=s), iterations=1500, seed=3).objective - best for s in (0.0, 0.05)]
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
    """On the simplex, moving mass sqrt(d) r / 2 gives a point no worse than all within r, and at most sqrt(2) times that mass away."""
    rng = np.random.default_rng(13)
    d = 6
    problem = lt.Problem(lt.Quadratic(np.eye(d), np.zeros(d)), lt.LinearConstraints(np.ones((1, d)), [1.0]), lt.Box(0.0, 1.0))
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
        nearby = x + radius * rng.random((400, 1)) * away / np.linalg.norm(away, axis=1, keepdims=True)
        nearby = nearby[(nearby >= 0.0).all(axis=1) & (nearby.sum(axis=1) <= 1.0)]
        assert np.all(nearby @ slope >= p @ slope - 1e-12)


def test_a_long_decomposition_is_reduced_without_moving_the_point() -> None:
    rng = np.random.default_rng(17)
    vertices, weights = rng.normal(size=(40, 5)), rng.dirichlet(np.ones(40))
    few = few_weights(weights, vertices)
    assert few is not None and np.count_nonzero(few) <= 6 and np.all(few >= 0.0)
    np.testing.assert_allclose(few @ vertices, weights @ vertices, atol=1e-9)


# ------------------------------------------------------------------------------------------------------------------ refusals

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
        (lt.OnlineFrankWolfe(), lt.stack(ORDERS, lt.bounds(4, 0.0)), lt.Everywhere(), "not bounded above"),
        (lt.OnlineFrankWolfe(), ORDERS, lt.Ball(1.0), "ball together with constraints"),
        (lt.LocalFrankWolfe(), None, lt.Ball(1.0), "a ball has none"),
        (lt.LocalFrankWolfe(), SUMS, lt.Box(0, np.inf), None),
        (lt.LocalFrankWolfe(), SUMS, lt.Box(-np.inf, 1), "not bounded below"),
        (lt.ApproxSGD(0.1), None, lt.Everywhere(), None),
        (lt.ApproxSGD(0.1), lt.stack(ORDERS, lt.bounds(4, 0, 1)), lt.Everywhere(), None),
        (lt.ProjectedSGD(0.1), None, lt.Everywhere(), None),
    ],
)
def test_problems_that_cannot_be_taken_are_refused_with_an_alternative(solver, constraints, domain, reason) -> None:
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
    for solver in (lt.ProjectedSGD(0.1), lt.OnlineFrankWolfe(), lt.LocalFrankWolfe(), lt.ApproxSGD(0.1)):
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
