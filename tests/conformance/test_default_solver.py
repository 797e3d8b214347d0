"""What `solve(problem)` owes when no solver is named: repeatable, feasible, truthful about what it
proved.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import scipy.optimize

import lighttouch as lt
from benchmarks.thresholds import with_values
from catalogue import PROBLEMS, Case
from lighttouch.result import Status
from lighttouch.running import OutOfTimeError
from lighttouch.solvers import automatic
from lighttouch.solvers.costs import COSTS

DEAR_PASS = 1.6e7  # operations: less than the default's own number, which wants a gigabyte


@pytest.fixture(autouse=True)
def dear_passes() -> Iterator[None]:
    with with_values(COSTS, cheap_pass=DEAR_PASS):
        yield


@cache
def many_examples() -> lt.Problem:
    """So many that a full gradient is too dear: the stochastic phase runs first."""
    rng = np.random.default_rng(0)
    examples = int(1.1 * DEAR_PASS / 100)
    X = rng.normal(size=(examples, 100))
    y = X @ np.sort(rng.normal(size=100))[::-1] + rng.normal(size=examples)
    return lt.Problem(lt.EmpiricalRisk(X, y, "huber"), lt.ordering(100), lt.Box(-3, 3))


def same(first: lt.Result, second: lt.Result) -> bool:
    return (
        first.w.tobytes() == second.w.tobytes()
        and first.iterations == second.iterations
        and first.objective == second.objective
    )


@pytest.fixture(params=PROBLEMS)
def case(request) -> Case:
    return PROBLEMS[request.param]()


def optimum(case: Case) -> float:
    """By SciPy, from a few starts; on problems this small that is the truth to 1e-6."""
    piece, best = case.piece, np.inf
    constraint = {"type": "ineq", "fun": lambda w: -piece.g(case.problem.domain.project(w))}
    for seed in range(3):
        start = case.problem.domain.project(np.random.default_rng(seed).normal(size=case.dimension))
        rules = [constraint] if piece.g(start).size else []
        found = scipy.optimize.minimize(
            lambda w: piece.objective(case.problem.domain.project(w)),
            start,
            method="SLSQP",
            constraints=rules,
            options={"maxiter": 300},
        )
        w = lt.project(
            case.problem.domain.project(found.x), case.problem.constraints, case.problem.domain
        ).w
        best = min(best, piece.objective(w))
    return best


def test_the_answer_is_feasible_and_what_is_called_converged_is_optimal(case):
    result = lt.solve(case.problem, time_limit=20.0)
    assert result.violation <= 1e-7
    assert result.violation == pytest.approx(
        max(0.0, case.piece.g(result.w).max(initial=0.0)), abs=1e-10
    )
    assert result.objective == pytest.approx(case.piece.objective(result.w), rel=1e-10)
    assert result.status in (Status.CONVERGED, Status.STALLED)
    best = optimum(case)
    assert result.objective <= best + 2e-3 * max(abs(best), 1e-3)


def test_small_problems_repeat_and_resume_bit_for_bit(case):
    whole = lt.solve(case.problem, iterations=30)
    assert same(whole, lt.solve(case.problem, iterations=30))
    if whole.iterations > 12:
        half = lt.solve(case.problem, iterations=12)
        assert same(whole, lt.solve(case.problem, iterations=30, resume=half.state))


def test_large_problems_repeat_and_resume_bit_for_bit():
    problem = many_examples()
    whole = lt.solve(problem, iterations=500, project=False)
    assert same(whole, lt.solve(problem, iterations=500, project=False, record_every=33))
    half = lt.solve(problem, iterations=150, project=False)
    assert same(whole, lt.solve(problem, iterations=500, project=False, resume=half.state))
    assert not same(whole, lt.solve(problem, iterations=500, project=False, seed=1))


def test_large_problems_end_feasible_and_within_their_limits():
    problem = many_examples()
    limited = lt.solve(problem, lt.Automatic(1e-13), time_limit=0.2)
    assert limited.violation <= 1e-7 and limited.status is Status.TIME_LIMIT
    finished = lt.solve(problem, time_limit=30)
    assert finished.status in (Status.CONVERGED, Status.STALLED)
    assert finished.violation <= 1e-7 and finished.objective <= limited.objective * (1 + 1e-3)
    stopped = lt.solve(problem, record_every=20, callback=lambda progress: progress.iteration >= 40)
    assert (
        stopped.status is Status.INTERRUPTED
        and stopped.iterations == 40
        and stopped.violation <= 1e-7
    )


def under_an_order() -> lt.Problem:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 6)) * np.geomspace(1.0, 30.0, 6)
    return lt.Problem(lt.EmpiricalRisk(X, X @ rng.normal(size=6)), lt.ordering(6), lt.Box(-9, 9))


def test_what_a_later_solver_costs_is_not_asked_before_it_is_needed(monkeypatch):
    def refuse(problem):
        raise AssertionError("asked")

    monkeypatch.setattr("lighttouch.solvers.automatic.interior_seconds", refuse)
    assert lt.solve(under_an_order()).status is Status.CONVERGED


def test_under_a_time_limit_it_is_asked_before_the_run(monkeypatch):
    asked = []
    monkeypatch.setattr(
        "lighttouch.solvers.automatic.interior_seconds", lambda given: asked.append(given) or 99.0
    )
    problem = under_an_order()
    lt.solve(problem, time_limit=20.0, iterations=0)
    assert asked == [problem]


@pytest.mark.parametrize("pieces", [(), (7,), (1, 2, 12, 13)])
def test_fista_goes_on_where_its_limit_has_ended_it_and_nothing_proves_more(monkeypatch, pieces):
    few = replace(COSTS, passes_before_proof=20)
    monkeypatch.setattr("lighttouch.solvers.automatic.COSTS", few)
    monkeypatch.setattr("lighttouch.solvers.automatic.interior_seconds", lambda given: np.inf)
    problem, solver, state = under_an_order(), lt.Automatic(1e-7), None
    alone = lt.solve(problem, lt.Accelerated(1e-7))
    assert alone.gradient_samples > 2 * 20 * problem.objective.examples
    for limit in pieces:
        state = lt.solve(problem, solver, iterations=limit, resume=state).state
    assert same(lt.solve(problem, solver, resume=state), alone)


def test_time_that_is_over_while_the_next_solver_is_chosen_is_no_ending(monkeypatch) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 6)) * np.geomspace(1.0, 30.0, 6)
    y = X @ rng.normal(size=6)

    def problem() -> lt.Problem:
        return lt.Problem(lt.EmpiricalRisk(X, y), lt.ordering(6), lt.Box(-9, 9))

    def late(_: lt.Problem) -> float:
        raise OutOfTimeError

    solver = lt.Automatic(1e-7)
    with with_values(COSTS, passes_before_proof=20):
        whole, begun = lt.solve(problem(), solver), lt.solve(problem(), solver, iterations=3)
        with monkeypatch.context() as patched:
            patched.setattr(automatic, "interior_seconds", late)
            cut = lt.solve(problem(), solver, resume=begun.state, time_limit=5.0)
        again = lt.solve(problem(), solver, resume=cut.state)
    assert cut.status is Status.TIME_LIMIT
    assert again.status is whole.status
    np.testing.assert_array_equal(again.w, whole.w)
