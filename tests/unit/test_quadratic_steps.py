"""QuadraticSteps against the default solver and against its own bound; roughness everywhere."""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np
import pytest
from scipy import sparse

import lighttouch as lt
from lighttouch.kernels.verbs.steps import step_on_penalty
from lighttouch.solvers import quadratic_model, quadratic_steps
from lighttouch.solvers.quadratic_model import blocks_of

LOSSES = ["squared", "huber", "logistic", "absolute", "hinge", lt.Quantile(0.2)]
COUNT, DIMENSION = 150, 12


def risk(loss="squared", dense: bool = False, weighted: bool = False, **options):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(COUNT, DIMENSION))
    z = X @ rng.normal(size=DIMENSION) + 0.5 * rng.normal(size=COUNT)
    y = np.where(z > 0, 1.0, -1.0) if loss in ("hinge", "logistic") else z
    weights = rng.integers(0, 3, COUNT).astype(float) if weighted else None
    table = X if dense else sparse.csr_matrix(X)
    return lt.EmpiricalRisk(table, y, loss, sample_weight=weights, **options)


def differences(scale: float = 0.3):
    return sparse.csr_matrix(scale * np.diff(np.eye(DIMENSION), axis=0))


def rules(kind: str):
    rng = np.random.default_rng(1)
    if kind == "order":
        return lt.ordering(DIMENSION)
    if kind == "rows":
        return lt.LinearConstraints(rng.normal(size=(30, DIMENSION)), np.full(30, 0.5))
    return None


@pytest.fixture(params=["factored", "by products"])
def size(request, monkeypatch):
    """Both ways to take a step in w."""
    if request.param == "by products":
        factor_nothing(monkeypatch)
    return request.param


def factor_nothing(monkeypatch):
    costs = dataclasses.replace(quadratic_steps.COSTS, largest_factored=0)
    for module in (quadratic_steps, quadratic_model):
        monkeypatch.setattr(module, "COSTS", costs)


@pytest.mark.parametrize("kind", ["none", "order", "rows"])
@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_it_finds_what_the_default_solver_finds(loss, kind, size):
    objective = risk(loss, l2=1e-3, roughness=differences())
    domain = None if kind == "none" else lt.Box(-1.0, 0.8)
    problem = lt.Problem(objective, rules(kind), domain)
    ours = lt.solve(problem, lt.QuadraticSteps(1e-8))
    theirs = lt.solve(problem, lt.Automatic(1e-6), time_limit=20)
    assert ours.violation <= 1e-9
    assert ours.objective == pytest.approx(theirs.objective, rel=5e-5)


@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_the_proven_gap_is_a_bound_and_converged_means_proven(loss):
    objective = risk(loss, l2=1e-2, weighted=True, roughness=(differences(), np.ones(11)))
    problem = lt.Problem(objective, rules("rows"))
    rough = lt.solve(problem, lt.QuadraticSteps(1e-2))
    best = lt.solve(problem, lt.QuadraticSteps(1e-9)).objective
    gap = rough.state.solver_state.gap
    assert gap >= rough.objective - best - 1e-9
    assert (rough.status is lt.Status.CONVERGED) == (gap <= 1e-2 * rough.objective)
    fine = lt.solve(problem, lt.QuadraticSteps(1e-9))
    assert fine.status is (
        lt.Status.CONVERGED if loss in ("squared", "logistic") else lt.Status.STALLED
    )


def test_without_a_factor_nothing_is_claimed(monkeypatch):
    factor_nothing(monkeypatch)
    result = lt.solve(lt.Problem(risk(l2=0.1), rules("order")), lt.QuadraticSteps())
    assert result.status is lt.Status.STALLED and result.state.solver_state.gap == np.inf


def test_what_it_does_not_take_it_refuses_with_advice():
    solver = lt.QuadraticSteps()
    quadratic = lt.Problem(lt.Quadratic(np.eye(2), np.zeros(2)))
    ball = lt.Problem(risk(), rules("order"), lt.Ball(1.0))
    for problem in (quadratic, ball):
        assert "use Automatic" in solver.objection_to(problem)
    with pytest.raises(ValueError, match="tolerance"):
        lt.QuadraticSteps(0.0)


@pytest.mark.parametrize("dense", [False, True])
def test_roughness_is_part_of_value_and_gradient(dense):
    D, t = differences(), np.linspace(-1, 1, DIMENSION - 1)
    smooth, plain = risk("huber", dense, roughness=(D, t)), risk("huber", dense)
    w = np.random.default_rng(3).normal(size=DIMENSION)
    rest = D @ w - t
    assert smooth.value(w) == pytest.approx(plain.value(w) + 0.5 * rest @ rest, rel=1e-12)
    np.testing.assert_allclose(smooth.gradient(w), plain.gradient(w) + D.T @ rest, atol=1e-12)
    with pytest.raises(lt.DataError, match="12 columns"):
        risk(roughness=np.eye(3))


@pytest.mark.parametrize("dense", [False, True])
def test_stochastic_methods_minimise_the_roughness_too(dense):
    """It pulls far away from the optimum without it: none may leave it out."""
    pull = (2.0 * sparse.identity(DIMENSION, format="csr"), np.full(DIMENSION, 6.0))
    problem = lt.Problem(risk(dense=dense, roughness=pull))
    best = lt.solve(problem, lt.QuadraticSteps(1e-9))
    far = problem.objective.value(lt.solve(lt.Problem(risk(dense=dense))).w) - best.objective
    assert far > 10.0
    for solver in (lt.FullTouch(1.0, lt.InverseSqrt(0.05)), lt.LightTouch(1.0, 0.05, 3)):
        found = lt.solve(problem, solver, iterations=4000)
        assert found.objective - best.objective < 0.01 * far, type(solver).__name__


@pytest.mark.parametrize("dense", [False, True])
def test_a_step_on_a_row_of_the_roughness_is_its_proximal_step(dense):
    objective = risk(dense=dense, roughness=(differences(), np.arange(11.0)))
    rng = np.random.default_rng(4)
    w, squares, eta, weight, row = rng.normal(size=DIMENSION), rng.random(DIMENSION), 0.3, 7.0, 5
    domain = lt.Box(-100.0, 100.0).record(DIMENSION)
    D, t = objective.roughness.toarray()[row], float(row)
    moves = np.diag(np.sqrt(squares) / eta)
    expected = np.linalg.solve(moves + weight * np.outer(D, D), moves @ w + weight * t * D)
    step_on_penalty(objective.record, row, weight, w, squares, domain, eta)
    np.testing.assert_allclose(w, expected, rtol=1e-10)


def test_models_that_share_no_parameter_are_factored_one_by_one():
    """A Hessian of blocks gives the answers of each model alone, and of one dense matrix."""
    rng = np.random.default_rng(0)
    parts = [sparse.csr_matrix(rng.normal(size=(60, size))) for size in (5, 7)]
    y, penalty = rng.normal(size=120), 0.01 * sparse.identity(12, format="csr")
    risk = lt.EmpiricalRisk(
        sparse.block_diag(parts, format="csr"), y, lt.Quantile(0.3), roughness=penalty
    )
    assert [here for _, here in blocks_of(risk)] == [slice(0, 5), slice(5, 12)]
    rules = lt.order(np.arange(11), np.arange(1, 12))
    together = lt.solve(lt.Problem(risk, rules), lt.QuadraticSteps(1e-9))
    assert together.violation == 0.0
    mixed = lt.EmpiricalRisk(
        risk.X,
        y,
        lt.Quantile(0.3),
        roughness=sparse.vstack([penalty, 1e-12 * sparse.csr_matrix(np.ones((1, 12)))]),
    )
    assert len(blocks_of(mixed)) == 1, "a penalty that couples the models makes one block"
    dense = lt.solve(lt.Problem(mixed, rules), lt.QuadraticSteps(1e-9))
    np.testing.assert_allclose(together.objective, dense.objective, rtol=1e-5)
    for k, part in enumerate(parts):
        free = lt.solve(lt.Problem(risk), lt.QuadraticSteps(1e-9)).w[[slice(0, 5), slice(5, 12)][k]]
        alone = lt.EmpiricalRisk(
            part,
            y[60 * k : 60 * k + 60],
            lt.Quantile(0.3),
            roughness=np.sqrt(2.0) * 0.01 * sparse.identity(part.shape[1], format="csr"),
        )
        best = lt.solve(lt.Problem(alone), lt.QuadraticSteps(1e-9))
        assert alone.value(free) < best.objective + 1e-4


def test_models_that_rules_couple_are_minimised_together(monkeypatch):
    """ADMM, block by block, would project onto rows that are no orders, again and again."""
    rng = np.random.default_rng(0)
    parts = [sparse.csr_matrix(rng.normal(size=(60, 6))) for _ in range(2)]
    risk = lt.EmpiricalRisk(
        sparse.block_diag(parts, format="csr"),
        rng.normal(size=120),
        lt.Quantile(0.3),
        roughness=0.01 * sparse.identity(12, format="csr"),
    )
    bends = 100.0 * np.eye(12)[:4] - 200.0 * np.eye(12)[1:5] + 100.0 * np.eye(12)[2:6]
    problem = lt.Problem(
        risk, lt.LinearConstraints(np.vstack([bends, np.ones((1, 12))]), [0.0] * 5)
    )
    by_admm = lt.solve(problem, lt.Automatic(1e-8))
    monkeypatch.setattr(quadratic_steps, "_alternated", None)
    together = lt.solve(problem, lt.QuadraticSteps(1e-9))
    assert together.violation <= 200.0 * 1e-14, "rounding, in rows with entries of 200"
    np.testing.assert_allclose(together.objective, by_admm.objective, rtol=1e-4)


def many_labels():
    """So many examples that a matrix takes longer than a minimum under rules."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(800, 6))
    y = np.where(X @ np.arange(6.0) + rng.logistic(size=800) > 0.0, 1.0, -1.0)
    return lt.Problem(lt.EmpiricalRisk(X, y, "logistic", l2=1e-3), lt.bounds(6, -0.5, 2.0))


def test_a_matrix_serves_for_several_models_and_the_answer_is_the_same(monkeypatch):
    formed = []
    plain = quadratic_model.gram
    monkeypatch.setattr(quadratic_model, "gram", lambda *a: formed.append(1) or plain(*a))
    kept = lt.solve(many_labels(), lt.QuadraticSteps(1e-9), record_every=1)
    count, formed[:] = len(formed), []
    never = dataclasses.replace(quadratic_model.COSTS, model_stale=0.0)
    monkeypatch.setattr(quadratic_model, "COSTS", never)
    anew = lt.solve(many_labels(), lt.QuadraticSteps(1e-9), record_every=1)
    assert count < kept.iterations, "every model had a matrix of its own"
    assert len(formed) == anew.iterations
    assert kept.status is anew.status is lt.Status.CONVERGED
    assert kept.objective == pytest.approx(anew.objective, rel=1e-8)


def in_shards(problem):
    risk, cuts = problem.objective, (0, 100, 450, 800)
    shards = [
        lt.EmpiricalRisk(risk.X[first:last], risk.y[first:last], "logistic", l2=risk.l2)
        for first, last in itertools.pairwise(cuts)
    ]
    return lt.Problem(lt.ShardedRisk(shards), problem.constraints)


@pytest.mark.parametrize("make", [many_labels, lambda: in_shards(many_labels())])
def test_a_run_that_keeps_a_matrix_can_be_stopped_and_resumed(make):
    whole = lt.solve(make(), lt.QuadraticSteps(1e-9), record_every=1)
    part = lt.solve(make(), lt.QuadraticSteps(1e-9), iterations=2, record_every=1)
    rest = lt.solve(make(), lt.QuadraticSteps(1e-9), resume=part.state, record_every=1)
    np.testing.assert_array_equal(rest.w, whole.w)


def test_shards_keep_a_matrix_too_and_take_one_pass_per_step(monkeypatch):
    together = lt.solve(many_labels(), lt.QuadraticSteps(1e-9), record_every=1)
    passes = []
    plain = lt.ShardedRisk.mean
    monkeypatch.setattr(
        lt.ShardedRisk, "mean", lambda *given: passes.append(given[1].__name__) or plain(*given)
    )
    problem = in_shards(many_labels())
    apart = lt.solve(problem, lt.QuadraticSteps(1e-9), record_every=1)
    assert apart.status is lt.Status.CONVERGED
    assert apart.iterations == together.iterations
    np.testing.assert_allclose(apart.w, together.w, rtol=1e-9)
    assert apart.objective == problem.objective.value(apart.w)
    matrices = [name for name in passes if "matrix" in name]
    assert len(matrices) < apart.iterations, "every model had a matrix of its own"
    looks = [name for name in passes if name != "matrix_part"]
    assert len(looks) <= 3 + apart.iterations, "the start, every step, the bound, the answer"


def test_a_start_that_breaks_rules_is_where_the_first_model_is_made():
    """Its minimum under the rules is far better than the nearest feasible point."""
    objective, order = risk("logistic", l2=0.01), lt.ordering(DIMENSION)
    free = lt.solve(lt.Problem(objective), lt.QuadraticSteps()).w
    problem = lt.Problem(objective, order)
    assert problem.violation(free) > 0.1
    nearest = lt.project(free, order).w
    steps = [
        lt.solve(problem, lt.QuadraticSteps(), start=each, iterations=1) for each in (free, nearest)
    ]
    assert steps[0].objective < steps[1].objective
    whole = lt.solve(problem, lt.QuadraticSteps(), start=free)
    assert whole.status is lt.Status.CONVERGED
    assert whole.objective == pytest.approx(
        lt.solve(problem, lt.Automatic(1e-7)).objective, rel=1e-5
    )


def test_slow_steps_end_too():
    """Labels that a plane separates: steps gain less and less."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 3))
    separated = lt.EmpiricalRisk(X, np.sign(X[:, 0]), "logistic", l2=1e-6)
    problem = lt.Problem(separated, lt.bounds(3, -100.0, 100.0))
    result = lt.solve(problem, lt.QuadraticSteps(1e-3), iterations=100)
    assert result.status in (lt.Status.CONVERGED, lt.Status.STALLED)
