"""The interior point: bounds are theorems, factors agree, and rows found one by one are enough."""

from __future__ import annotations

import itertools
import time
from typing import Any

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse
from scipy.sparse.linalg import splu

import lighttouch as lt
from benchmarks.thresholds import with_values
from catalogue import DOMAINS, OBJECTIVES
from lighttouch.interior.costs import COSTS
from lighttouch.interior.path import dual_bounds
from lighttouch.interior.program import Program, bound_rows, with_rows
from lighttouch.interior.statement import program_of
from lighttouch.interior.systems import DenseSystem, SparseSystem, block_system, refined
from lighttouch.kernels.numerics.matrices import factor_counts
from lighttouch.solvers.interior_rounds import model_of, uses_working_set

D = 5
TAKEN = [
    name
    for name, make in OBJECTIVES.items()
    if lt.InteriorPoint().objection_to(lt.Problem(make(np.random.default_rng(0)))) is None
]
PROVABLE = [name for name in TAKEN if "user" not in name]  # a user's loss has no known conjugate
PLACES = ("everywhere", "box", "box of sides", "simplex")


def rows_around(rng: np.random.Generator, inside: np.ndarray) -> Any:
    """Dense and sparse rows, an equality and an opposite pair; `inside` satisfies them all."""
    d = inside.size
    A, E = rng.normal(size=(6, d)), rng.normal(size=(1, d))
    S = scipy.sparse.random(4, d, 0.4, "csr", random_state=np.random.RandomState(1))
    return lt.stack(
        lt.LinearConstraints(A, A @ inside + rng.uniform(0.0, 0.3, size=6)),
        lt.LinearConstraints(S, S @ inside + rng.uniform(0.0, 0.3, size=4)),
        lt.LinearEqualities(E, E @ inside),
    )


def example(objective: str, place: str, seed: int = 0) -> tuple[lt.Problem, np.ndarray]:
    """A problem of the catalogue's pieces, and a point that is feasible by construction."""
    rng = np.random.default_rng(seed)
    risk, domain = OBJECTIVES[objective](rng), DOMAINS[place](rng)
    inside = np.asarray(domain.project(0.5 * rng.normal(size=D)))
    return lt.Problem(risk, rows_around(rng, inside), domain), inside


def feasible_points(problem: lt.Problem, inside: np.ndarray) -> list[np.ndarray]:
    rng = np.random.default_rng(7)
    found = [
        lt.project(scale * rng.normal(size=D), problem.constraints, problem.domain).w
        for scale in (0.1, 1.0, 10.0)
    ]
    return [inside, *found]


def size_of(*values: float) -> float:
    return 1.0 + max(abs(value) for value in values)


# -- bounds ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("objective", PROVABLE)
def test_no_slopes_give_a_bound_above_a_feasible_point(objective):
    """Weak duality: of any slopes and any point, inside or outside of their ranges."""
    finite = 0
    for place in PLACES:
        problem, inside = example(objective, place)
        model = model_of(problem)
        taken = model.rows.take(model.rows.all)
        program = with_rows(model.program, taken.blocks, taken.right, taken.equal)
        least = min(problem.objective.value(v) for v in feasible_points(problem, inside))
        rng = np.random.default_rng(3)
        for scale in np.repeat([0.01, 0.1, 1.0, 10.0], 10):
            slopes = scale * rng.normal(size=program.count)
            x, ends = scale * rng.normal(size=D), (model.lower, model.upper, model.bend)
            proven, likely = dual_bounds(program, x, slopes, *ends)
            assert max(proven, likely) <= least + 1e-9 * size_of(least), place
            finite += np.isfinite(proven)
    assert finite >= 80  # a box and a simplex bound every linear form


@pytest.mark.parametrize("objective", PROVABLE)
def test_bounds_on_the_path_are_below_every_feasible_point_and_close_the_gap(objective):
    for place in PLACES:
        problem, inside = example(objective, place)
        solver, rng = lt.InteriorPoint(), np.random.default_rng(0)
        points = feasible_points(problem, inside)
        points.append(lt.solve(problem, solver).w)
        least = min(problem.objective.value(v) for v in points)
        state = solver.init(problem, inside)
        while solver.finished(state) is None:
            solver.advance(problem, state, 1, rng)
            assert solver.lower_bound(state) <= least + 1e-9 * size_of(least), place
        assert solver.finished(state) is lt.Status.CONVERGED, place
        assert least - solver.lower_bound(state) <= 2e-6 * size_of(least), place


def test_a_users_loss_is_solved_but_nothing_is_claimed():
    problem, _ = example("a user's loss", "box")
    result = lt.solve(problem, lt.InteriorPoint())
    assert result.status is lt.Status.STALLED
    assert result.lower_bound == -np.inf and result.gap == np.inf
    best = lt.solve(problem, lt.Accelerated(1e-8)).objective
    assert result.objective == pytest.approx(best, rel=1e-4)


def test_the_program_of_an_objective_has_its_values():
    for name in TAKEN:
        objective = OBJECTIVES[name](np.random.default_rng(5))
        program = program_of(objective)
        for w in np.random.default_rng(6).normal(size=(4, D)):
            assert program.value(w) == pytest.approx(objective.value(w), rel=1e-9, abs=1e-9), name


@pytest.mark.parametrize("kind", ["box", "row"])
def test_a_small_slope_beside_a_large_one_is_no_rounding(kind):
    """The optimum is -10, at (0, -1e6)."""
    objective = lt.Quadratic(np.zeros((2, 2)), [1e8, 1e-5])
    if kind == "box":
        problem = lt.Problem(objective, domain=lt.Box([0.0, -1e6], [1.0, 1e6]))
    else:
        rows = lt.LinearConstraints([[0.0, -1.0]], [1e6])
        problem = lt.Problem(objective, rows, lt.Box([0.0, -np.inf], [1.0, np.inf]))
    assert problem.objective.value([0.0, -1e6]) == pytest.approx(-10.0)
    result = lt.solve(problem, lt.InteriorPoint(), time_limit=5.0)
    assert result.lower_bound <= -10.0 + 1e-6


# -- multipliers ----------------------------------------------------------------------------------


AT_ZERO = pytest.mark.xfail(
    strict=True,
    reason="an objective of 0 has its proof at once, before the multipliers have settled at 0",
)


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("objective", PROVABLE)
def test_multipliers_are_those_of_lagrange(objective, place, request):
    """Signs, complementary slackness, and the answer minimises the Lagrangian over the domain."""
    if (objective, place) == ("EpsilonInsensitive(epsilon=0.4)", "everywhere"):
        request.applymarker(AT_ZERO)
    problem, _ = example(objective, place)
    result = lt.solve(problem, lt.InteriorPoint(1e-9))
    assert result.status is lt.Status.CONVERGED or result.gap <= 1e-6
    m, unit = result.multipliers, size_of(result.objective)
    assert m.shape == (11,) and (m[:10] >= 0.0).all()
    matrix, right = problem.constraints.rows_at(np.arange(11))
    slack = right - matrix @ result.w
    assert np.abs(m * slack).max() <= 1e-5 * unit
    rng = np.random.default_rng(1)
    for scale in np.repeat([1e-3, 1e-2, 0.1, 1.0], 8):
        v = problem.domain.project(result.w + scale * rng.normal(size=D))
        lagrangian = problem.objective.value(v) + m @ (matrix @ v - right)
        assert lagrangian >= result.objective - 1e-5 * unit


@pytest.mark.parametrize("objective", ["logistic", "squared", "quadratic", "poisson"])
def test_the_gradient_of_the_lagrangian_is_zero_where_nothing_else_holds(objective):
    problem, _ = example(objective, "everywhere")
    result = lt.solve(problem, lt.InteriorPoint(1e-9))
    matrix, _ = problem.constraints.rows_at(np.arange(11))
    rest = problem.objective.gradient(result.w) + matrix.T @ result.multipliers
    assert np.abs(rest).max() <= 1e-5 * size_of(np.abs(result.multipliers).max())


def test_opposite_rows_share_a_multiplier_of_the_right_sign():
    """min |w|^2 / 2 - w_0 with w_0 at a level, as two rows: stationary with 1 - level."""
    for sign in (1.0, -1.0):
        rows = lt.LinearConstraints(sign * np.array([[1.0, 0.0], [-1.0, 0.0]]), [3.0, -3.0])
        problem = lt.Problem(lt.Quadratic(np.eye(2), [-1.0, 0.0]), rows)
        result = lt.solve(problem, lt.InteriorPoint())
        level = 3.0 * sign
        assert result.w == pytest.approx([level, 0.0], abs=1e-6)
        assert (result.multipliers >= 0.0).all()
        assert sign * (result.multipliers[0] - result.multipliers[1]) == pytest.approx(
            1.0 - level, abs=1e-5
        )


# -- Newton's equations ---------------------------------------------------------------------------


def convex_program(points: int) -> Program:
    """Convex regression: values and slopes, whose slopes are blocks that no row joins."""
    rng = np.random.default_rng(points)
    x = np.sort(rng.uniform(size=points))
    i, j = (part.ravel() for part in np.meshgrid(range(points), range(points)))
    i, j = i[i != j], j[i != j]
    r = np.arange(i.size)
    places = np.concatenate([r, r, r]), np.concatenate([i, j, points + i])
    entries = np.concatenate([np.ones(r.size), -np.ones(r.size), x[j] - x[i]])
    rows = scipy.sparse.csr_matrix((entries, places), shape=(r.size, 2 * points))
    P = np.diag(np.r_[np.ones(points), np.full(points, 1e-3)])
    program = program_of(lt.Quadratic(P, rng.normal(size=2 * points)))
    bounds, right = bound_rows(np.full(2 * points, -9.0), np.full(2 * points, 9.0))
    program = with_rows(program, (bounds,), right, np.zeros(right.size, dtype=bool))
    return with_rows(program, (rows,), np.zeros(r.size), np.zeros(r.size, dtype=bool))


def mixed_program() -> Program:
    """Dense and sparse rows, smooth and kinked losses, equalities."""
    rng = np.random.default_rng(2)
    names = ("sparse, offset, l1", "hinge", "quadratic")
    risk = lt.WeightedSum([OBJECTIVES[name](rng) for name in names])
    inside = 0.1 * rng.normal(size=D)
    problem = lt.Problem(risk, rows_around(rng, inside), lt.Box(-1.0, 1.0))
    model = model_of(problem)
    taken = model.rows.take(model.rows.all)
    return with_rows(model.program, taken.blocks, taken.right, taken.equal)


def exact(program: Program, delta: np.ndarray, top: np.ndarray, bottom: np.ndarray) -> Any:
    B = np.vstack([np.asarray(scipy.sparse.csr_matrix(b).todense()) for b in program.blocks])
    P = np.asarray(scipy.sparse.csr_matrix(program.P).todense())
    found = np.linalg.solve(np.block([[P, B.T], [B, -np.diag(delta)]]), np.r_[top, bottom])
    return found[: top.size], found[top.size :]


@pytest.mark.parametrize("kind", ["blocks", "mixed"])
def test_every_system_solves_the_same_equations(kind):
    program = convex_program(12) if kind == "blocks" else mixed_program()
    rng = np.random.default_rng(0)
    delta = 10.0 ** rng.uniform(-3, 3, size=program.count)
    delta[program.is_equality] = 0.0
    top, bottom = rng.normal(size=program.dimension), rng.normal(size=program.count)
    systems = [DenseSystem(program), SparseSystem(program)]
    if kind == "blocks":
        by_blocks = block_system(program)
        assert by_blocks is not None and by_blocks.first.size == 12
        systems.append(by_blocks)
    else:
        assert program.is_equality.any() and program.is_smooth.any()
    wanted = exact(program, delta, top, bottom)
    for system in systems:
        *found, _ = refined(program, system.factor(delta), delta, top, bottom)
        for mine, theirs in zip(found, wanted, strict=True):
            np.testing.assert_allclose(mine, theirs, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("seed", range(6))
def test_counts_of_a_factor_are_those_of_superlu(seed):
    rng = np.random.default_rng(seed)
    d = int(rng.integers(3, 60))
    half = scipy.sparse.random(d, d, 2.0 / d, "csc", random_state=np.random.RandomState(seed))
    matrix = (half + half.T + 50.0 * scipy.sparse.identity(d)).tocsc()
    matrix.sort_indices()
    factor = splu(matrix, "NATURAL", 0.0, options={"SymmetricMode": True})
    wanted = np.diff(scipy.sparse.csc_matrix(factor.L).indptr) - 1
    counts, parent, work = (np.empty(d, dtype=np.int64) for _ in range(3))
    pattern = matrix.indptr.astype(np.int64), matrix.indices.astype(np.int64)
    assert factor_counts(*pattern, 10**9, counts, parent, work) == wanted.sum() > 0
    assert counts.tolist() == wanted.tolist()


def test_counting_stops_where_a_factor_is_too_large():
    d = 40
    full = scipy.sparse.csc_matrix(np.ones((d, d)))
    counts, parent, work = (np.empty(d, dtype=np.int64) for _ in range(3))
    pattern = full.indptr.astype(np.int64), full.indices.astype(np.int64)
    assert factor_counts(*pattern, 10**9, counts, parent, work) == d * (d - 1) // 2
    assert 100 < factor_counts(*pattern, 100, counts, parent, work) < d * (d - 1) // 2


# -- rows found one by one, and cuts --------------------------------------------------------------

FEW = dict(
    rows_per_factor=0.0,
    quick=0.0,
    first_rows=0.2,
    least_joining_rows=5,
    joining_rows_per_parameter=0.5,
)
ALL = dict(rows_per_factor=np.inf, all_rows_per_parameter=np.inf)


def many_rows(loss: Any, dense: bool = False) -> lt.Problem:
    """Sixty examples, twelve parameters and four hundred rows."""
    rng = np.random.default_rng(4)
    X = rng.normal(size=(60, 12))
    y = X @ np.linspace(-1, 1, 12) + rng.normal(size=60)
    y = np.sign(y) if loss in ("hinge", "logistic") else y
    A = rng.normal(size=(400, 12))
    rules = lt.LinearConstraints(A if dense else scipy.sparse.csr_matrix(A), np.full(400, 0.6))
    return lt.Problem(lt.EmpiricalRisk(X, y, loss, l2=1e-3), rules)


@pytest.mark.parametrize("dense", [True, False])
@pytest.mark.parametrize("loss", ["squared", "hinge", "logistic", lt.Quantile(0.3)])
def test_a_working_set_has_the_optimum_of_all_rows(loss, dense):
    results = []
    for values in (FEW, ALL):
        with with_values(COSTS, **values):
            problem = many_rows(loss, dense)
            assert uses_working_set(problem) == (values is FEW)
            results.append(lt.solve(problem, lt.InteriorPoint()))
    few, everything = results
    assert few.status is everything.status is lt.Status.CONVERGED
    assert few.objective == pytest.approx(everything.objective, rel=2e-6)
    assert max(few.lower_bound, everything.lower_bound) <= min(few.objective, everything.objective)
    assert few.violation <= 1e-9
    assert few.state.solver_state.rows.size < 400
    np.testing.assert_allclose(few.multipliers, everything.multipliers, rtol=0, atol=2e-2)


@pytest.mark.parametrize("kind", ["ball", "norms"])
@pytest.mark.parametrize("loss", ["hinge", "absolute", lt.Quantile(0.2)])
def test_cuts_find_what_projected_steps_find(loss, kind):
    rng = np.random.default_rng(8)
    X, y = rng.normal(size=(30, 4)), rng.normal(size=30)
    risk = lt.EmpiricalRisk(X, np.sign(y) if loss == "hinge" else 3.0 * y, loss, l2=0.05)
    if kind == "ball":
        problem = lt.Problem(risk, lt.ordering(4), lt.Ball(0.3))
    else:
        A = rng.normal(size=(3, 2, 4))
        norms = lt.NormConstraints(A, np.zeros((3, 2)), np.zeros((3, 4)), np.full(3, 0.2))
        problem = lt.Problem(risk, norms, lt.Box(-1.0, 1.0))
    inside = lt.solve(problem, lt.InteriorPoint(1e-5))
    steps = lt.solve(problem, lt.Accelerated(1e-3), time_limit=10.0)
    assert inside.status is lt.Status.CONVERGED and inside.violation <= 1e-8
    assert inside.lower_bound <= min(inside.objective, steps.objective) + 1e-12
    assert inside.objective == pytest.approx(steps.objective, rel=3e-3)
    assert inside.objective <= steps.objective * (1.0 + 1e-5)


# -- claims ---------------------------------------------------------------------------------------


def linear_program(
    X: np.ndarray, y: np.ndarray, loss: str, A: np.ndarray, b: np.ndarray, bounds: Any
) -> float:
    """The least mean loss, by HiGHS: errors are differences of two slacks with a price each."""
    n, d = X.shape
    up, down = {"absolute": (1.0, 1.0), "quantile": (0.3, 0.7), "hinge": (1.0, 0.0)}[loss]
    left = y[:, None] * X if loss == "hinge" else X
    right = np.ones(n) if loss == "hinge" else y
    price = np.r_[np.zeros(d), np.full(n, up / n), np.full(n, down / n)]
    found = scipy.optimize.linprog(
        price,
        A_ub=np.c_[A, np.zeros((A.shape[0], 2 * n))],
        b_ub=b,
        A_eq=np.c_[left, np.eye(n), -np.eye(n)],  # right - left w = up - down
        b_eq=right,
        bounds=[*[bounds] * d, *[(0.0, None)] * (2 * n)],
    )
    assert found.status == 0
    return float(found.fun)


@pytest.mark.parametrize("seed", [s for s in range(48) if s % 4 == 2 or (s % 4 < 2 and s % 3 < 2)])
def test_few_examples_with_kinks_are_not_claimed_wrongly(seed):
    """Found in 0.1.0: CONVERGED more than 1% above the optimum, and false bounds."""
    r = np.random.default_rng(seed)
    n, d = int(r.integers(1, 8)), int(r.integers(2, 7))
    X, f0, m = r.normal(size=(n, d)), r.normal(size=d), int(r.integers(3, 25))
    A = r.normal(size=(m, d))
    b = A @ f0 * 0.1 + 0.05 * r.random(m)
    y = X @ f0 + r.normal(size=n)
    loss = ["quantile", "absolute", "hinge"][seed % 3]
    y = np.where(y > 0, 1.0, -1.0) if loss == "hinge" else y
    low, high = [(None, None), (-2.0, None), (-2.0, 2.0)][seed % 4]
    domain = lt.Box(-np.inf if low is None else low, np.inf if high is None else high)
    best = linear_program(X, y, loss, A, b, (low, high))
    risk = lt.EmpiricalRisk(X, y, lt.Quantile(0.3) if loss == "quantile" else loss)
    result = lt.solve(lt.Problem(risk, lt.LinearConstraints(A, b), domain), time_limit=5.0)
    assert result.lower_bound <= best + 1e-9
    assert result.violation <= 1e-9
    assert result.status is lt.Status.CONVERGED
    assert result.objective <= best + max(1e-3 * abs(best), 1e-6)


@pytest.mark.parametrize("l2", [0.0, 1e-3])
def test_a_smaller_tolerance_is_never_worse_and_ends(l2):
    """In 0.1.0, 1e-6 ended above 1e-3 on the same problem, or did not end."""
    rng = np.random.default_rng(0)
    X = np.c_[rng.normal(size=(400, 10)), np.ones(400)]
    y = X @ rng.normal(size=11) + rng.normal(size=400)
    A, b = rng.normal(size=(500, 11)), np.full(500, 1.5)
    risk = lt.EmpiricalRisk(np.r_[X, X], np.r_[y - 0.5, y + 0.5], loss="absolute", l2=l2)
    problem = lt.Problem(risk, lt.LinearConstraints(A, b))
    results = []
    for tolerance in (1e-1, 1e-2, 1e-3, 1e-5, 1e-7, 1e-9):
        began = time.process_time()
        results.append(lt.solve(problem, lt.Automatic(tolerance), time_limit=60))
        taken = time.process_time() - began - results[-1].preparation_seconds
        assert taken < 5.0, tolerance
    assert all(result.status is lt.Status.CONVERGED for result in results[:5])
    for rough, fine in itertools.pairwise(results):
        assert fine.objective <= rough.objective * (1.0 + 1e-9)
        assert fine.lower_bound <= rough.objective


# -- runs -----------------------------------------------------------------------------------------


def test_a_finished_run_resumes_at_once():
    problem = many_rows("hinge")
    first = lt.solve(problem)
    assert first.status is lt.Status.CONVERGED
    again = lt.solve(problem, resume=first.state)
    assert again.iterations == first.iterations and again.status is first.status
    np.testing.assert_array_equal(again.w, first.w)
    assert (again.lower_bound, again.objective) == (first.lower_bound, first.objective)


@pytest.mark.parametrize("values", [FEW, ALL], ids=["few", "all"])
def test_an_interrupted_run_that_is_resumed_has_the_same_bits(values):
    with with_values(COSTS, **values):
        whole = lt.solve(many_rows("hinge"), lt.InteriorPoint())
        problem = many_rows("hinge")
        for cut in (1, 4, whole.iterations - 1):
            part = lt.solve(problem, lt.InteriorPoint(), iterations=cut)
            assert part.status is lt.Status.ITERATION_LIMIT and part.iterations == cut
            rest = lt.solve(problem, lt.InteriorPoint(), resume=part.state)
            assert rest.iterations == whole.iterations
            np.testing.assert_array_equal(rest.w, whole.w)
            assert rest.lower_bound == whole.lower_bound


def test_a_time_limit_is_kept_with_many_rows():
    rng = np.random.default_rng(0)
    m, d = 200_000, 1000
    places = rng.integers(0, d, 5 * m), np.arange(0, 5 * m + 1, 5)
    A = scipy.sparse.csr_matrix((rng.normal(size=5 * m), *places), shape=(m, d))
    risk = lt.EmpiricalRisk(rng.normal(size=(1500, d)), rng.normal(size=1500))
    problem = lt.Problem(risk, lt.LinearConstraints(A, np.full(m, 0.1)))
    began = time.process_time()
    result = lt.solve(problem, lt.InteriorPoint(), time_limit=1.0)
    taken = time.process_time() - began - result.preparation_seconds
    assert taken <= 5.0  # a projection may follow
    assert result.status in (lt.Status.TIME_LIMIT, lt.Status.NOT_PROJECTED)


def test_a_matrix_that_does_not_fit_is_not_made():
    """A long chain: every other parameter is eliminated, and the rest is a matrix of its own."""
    d = 400
    risk = lt.EmpiricalRisk(scipy.sparse.identity(d, format="csr"), np.arange(float(d)))
    model = model_of(lt.Problem(risk, lt.ordering(d)))
    taken = model.rows.take(model.rows.all)
    program = with_rows(model.program, taken.blocks, taken.right, taken.equal)
    assert block_system(program) is not None
    with with_values(COSTS, largest_matrix=1e5):
        assert block_system(program) is None


@pytest.mark.parametrize("dimension", [200, 500, 1500])
def test_blocks_may_hold_every_parameter(dimension: int) -> None:
    rng = np.random.default_rng(0)
    ends = np.arange(0, dimension + 1, 2)
    A = scipy.sparse.csr_matrix((rng.random(dimension) + 0.5, np.arange(dimension), ends))
    P, q = rng.random(dimension) + 0.1, rng.normal(size=dimension)
    rules = lt.LinearConstraints(A, np.full(dimension // 2, 0.1))
    problem = lt.Problem(lt.Quadratic(scipy.sparse.diags(P).tocsr(), q), rules)
    result = lt.solve(problem, lt.InteriorPoint(1e-8))
    assert result.status is lt.Status.CONVERGED and result.violation == 0.0
    free = -q / P
    for row, first in enumerate(ends[:-1]):  # each alone, by hand
        here = slice(first, first + 2)
        a, excess = A[row, here].toarray()[0], A[row, here] @ free[here] - 0.1
        step = max(0.0, float(excess[0])) / float(a @ (a / P[here]))
        np.testing.assert_allclose(result.w[here], free[here] - step * a / P[here], atol=1e-4)
