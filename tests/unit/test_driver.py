"""solve() itself: limits, the clock, progress, timed costs and what a result shows."""

from __future__ import annotations

import itertools
import math
import re
import time

import numpy as np
import pytest

import lighttouch as lt
from catalogue import PROBLEMS
from lighttouch.result import Status

CASE = PROBLEMS["dense rows in a box"]()


def test_without_limits_a_solver_runs_a_few_passes():
    result = lt.solve(CASE.problem, lt.FullTouch(1.0, 0.1))
    assert result.status is Status.ITERATION_LIMIT and result.iterations == 20_000


def test_every_status_says_what_to_do():
    """A new member needs its advice here."""
    advice = {
        Status.CONVERGED: "proven",
        Status.STALLED: "smaller tolerance",
        Status.ITERATION_LIMIT: "allow more iterations",
        Status.TIME_LIMIT: "allow more time",
        Status.INTERRUPTED: "resume from result.state",
        Status.DIVERGED: "smaller step size",
        Status.UNBOUNDED: "add a bound",
        Status.NOT_PROJECTED: "the violation is in the result",
    }
    assert set(advice) == set(Status)
    assert all(words in str(status) for status, words in advice.items())


@pytest.mark.parametrize("rows", [None, [[0.0, 1.0]]])
@pytest.mark.filterwarnings("error")
def test_an_objective_without_a_minimum_is_named(rows):
    constraints = None if rows is None else lt.LinearConstraints(rows, [1.0])
    result = lt.solve(lt.Problem(lt.Quadratic(np.zeros((2, 2)), [-1.0, 0.0]), constraints))
    assert result.status is Status.UNBOUNDED
    assert any("falls without end along (w[0]: +1" in note for note in result.notes)


def test_a_constraint_that_stops_the_fall_is_seen():
    rows = lt.LinearConstraints([[1.0, 1.0], [1.0, -1.0]], [1e6, 1e6])
    result = lt.solve(lt.Problem(lt.Quadratic(np.zeros((2, 2)), [-1.0, 0.0]), rows))
    assert result.status is Status.CONVERGED
    np.testing.assert_allclose(result.objective, -1e6, rtol=1e-5)


def test_only_a_proof_is_called_converged():
    for solver in (
        lt.FullTouch(5.0, lt.InverseSqrt(0.1)),
        lt.LightTouch(5.0, 0.01, 3),
        lt.PracticalLightTouch(5.0),
    ):
        assert lt.solve(CASE.problem, solver, iterations=5000).status is not Status.CONVERGED


def test_recording_is_off_the_clock(monkeypatch):
    """On a clock that only callbacks move, the run takes no time at all."""
    now = [0.0]
    monkeypatch.setattr(time, "perf_counter", lambda: now[0])

    def slow(progress):
        now[0] += 0.2

    result = lt.solve(
        CASE.problem,
        lt.FullTouch(1.0, 0.1),
        iterations=40,
        record_every=10,
        callback=slow,
        project=False,
    )
    assert now[0] > 0.5 and result.seconds == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize("what", ["objective", "constraints"])
def test_slow_functions_keep_a_time_limit(what):
    """One more evaluation of the objective, to say what was reached, is all that may come late."""
    calls = []

    def value(i, w):
        calls.append(i)
        time.sleep(0.002)
        return float(w @ w) - 0.1

    if what == "objective":
        given = lt.Problem(lt.CustomObjective(5, value, lambda i, w: 2 * w, examples=50))
    else:
        X = np.random.default_rng(0).normal(size=(60, 5))
        rows = lt.ConvexConstraints(5, 50, value, lambda i, w: 2 * w)
        given = lt.Problem(lt.EmpiricalRisk(X, X[:, 0]), rows)
    lt.solve(given, time_limit=0.01)  # compiled
    calls.clear()
    result = lt.solve(given, time_limit=0.3, start=np.ones(5))
    assert result.status in (Status.TIME_LIMIT, Status.CONVERGED, Status.NOT_PROJECTED)
    assert len(calls) * 0.002 <= 0.3 + 1.0 and np.isfinite(result.objective)


def test_compilation_is_off_the_clock_in_both_phases(monkeypatch):
    """Every call of a loop of MidTouch compiles for five seconds, on a clock that stands still
    otherwise.
    """
    now, advance = [0.0], lt.MidTouch.advance
    monkeypatch.setattr(time, "perf_counter", lambda: now[0])
    monkeypatch.setattr("lighttouch.running.compile_seconds", lambda: now[0])

    def compiling(*given):
        now[0] += 5.0
        return advance(*given)

    monkeypatch.setattr(lt.MidTouch, "advance", compiling)
    result = lt.solve(
        PROBLEMS["one constraint"]().problem,
        lt.MidTouch(1.0, 1.0, 50, 0.1),
        iterations=100,
        project=False,
    )
    assert now[0] >= 10.0 and result.seconds == pytest.approx(0.0, abs=1e-9)
    assert f"preparation took {now[0]:.2f} s" in "".join(result.notes)


def test_progress_is_one_line_on_the_error_stream(capsys, monkeypatch):
    lt.solve(CASE.problem, lt.FullTouch(1.0, 0.1), iterations=100, progress=True)
    assert "\r" not in capsys.readouterr().err  # no terminal: plain lines, and few
    monkeypatch.setattr("lighttouch.running._is_terminal", lambda stream: True)
    lt.solve(CASE.problem, lt.FullTouch(1.0, 0.1), iterations=100, progress=True)
    captured = capsys.readouterr()
    assert captured.out == "" and "100%" in captured.err and captured.err.count("\n") == 1
    assert re.search(r"\rFullTouch \[=+\]", captured.err)
    lt.solve(CASE.problem, lt.FullTouch(1.0, 0.1), iterations=100)
    assert capsys.readouterr().err == ""


def test_timed_costs_are_measured_and_used(monkeypatch):
    """The three samples take 1, 2 and 4 us here, each time they are measured."""
    clock = itertools.cycle([1e-6, 2e-6, 4e-6])
    monkeypatch.setattr("lighttouch.solvers.light_touch._seconds", lambda run: next(clock))
    problem = CASE.problem
    solver = lt.PracticalLightTouch(1.5, lt.InverseSqrt(0.4), costs="timed")
    result = lt.solve(problem, solver, iterations=300, project=False)
    costs = result.state.solver_state.batches.costs
    np.testing.assert_allclose(costs, [1e-6, 2e-6, 4e-6], rtol=1e-12)
    counted = lt.PracticalLightTouch(1.5, lt.InverseSqrt(0.4))
    other = lt.solve(problem, counted, iterations=300, project=False)
    assert other.constraint_checks != result.constraint_checks, "other costs, other batch sizes"
    assert np.isfinite(result.w).all() and result.objective == pytest.approx(
        CASE.piece.objective(result.w), rel=1e-10
    )


def test_a_larger_penalty_brings_the_average_closer_to_feasible():
    violations = [
        lt.solve(
            CASE.problem, lt.FullTouch(g, lt.InverseSqrt(0.05)), iterations=4000, project=False
        ).violation
        for g in (0.01, 0.1, 3)
    ]
    assert violations[0] > violations[1] > violations[2]
    note = lt.solve(CASE.problem, lt.FullTouch(0.01, 0.01), iterations=500).notes[-1]
    assert "a larger penalty brings it closer" in note


@pytest.mark.parametrize("seed", range(4))
def test_nothing_is_proven_of_a_point_that_breaks_constraints(seed):
    """Its objective may lie below the optimum."""
    rng = np.random.default_rng(seed)
    X, A = rng.normal(size=(60, 6)), rng.normal(size=(30, 6))
    objective = lt.EmpiricalRisk(X, 3.0 * X @ rng.normal(size=6), "huber")
    rows = lt.LinearConstraints(A, rng.uniform(0.1, 0.5, size=30))
    problem = lt.Problem(objective, rows, lt.Box(-10.0, 10.0))
    outside = lt.solve(problem, iterations=1, project=False)
    best = lt.solve(problem)
    assert outside.violation > 0.01 and outside.objective < best.objective
    assert outside.gap == np.inf and "proven within" not in str(outside)
    assert outside.lower_bound <= best.objective and math.isfinite(outside.lower_bound)
    assert best.gap == best.objective - best.lower_bound and "proven within" in str(best)


def test_results_print_what_matters():
    result = lt.solve(CASE.problem, lt.LightTouch(1.0, 0.1, 2), iterations=50)
    text = str(result)
    for word in (
        "objective",
        "violation",
        "iterations",
        "constraint checks",
        "seconds",
        "ITERATION_LIMIT",
    ):
        assert word in text
    assert repr(result).startswith("Result(objective=") and "records of iteration" in repr(
        result.history
    )
    assert "9 constraints" in repr(CASE.problem) and "6 parameters" in repr(CASE.problem)


def test_a_result_survives_pickling():
    import pickle

    result = lt.solve(CASE.problem, lt.LightTouch(1.0, 0.1, 2), iterations=50)
    twin = pickle.loads(pickle.dumps(result))
    assert (
        twin.w.tobytes() == result.w.tobytes()
        and twin.history.objective.tolist() == result.history.objective.tolist()
    )
    again = lt.solve(CASE.problem, lt.LightTouch(1.0, 0.1, 2), iterations=90, resume=twin.state)
    assert (
        again.w.tobytes()
        == lt.solve(CASE.problem, lt.LightTouch(1.0, 0.1, 2), iterations=90).w.tobytes()
    )


def test_adagrad_ignores_gradients_whose_squares_vanish():
    """1e-170 squared is 0 in floating point: a division by its root would be infinite."""
    problem = lt.Problem(lt.Quadratic(np.zeros((2, 2)), [1e-170, 1.0]))
    result = lt.solve(problem, lt.FullTouch(0.0, lt.AdaGrad(0.5)), iterations=3, project=False)
    assert (
        result.status is Status.ITERATION_LIMIT
        and np.isfinite(result.w_last).all()
        and result.w_last[0] == 0.0
    )


def test_an_objective_may_be_huge_without_becoming_nan():
    objective = lt.EmpiricalRisk([[1.0]], [0.0], "absolute")
    assert objective.value([1e200]) == 1e200
    assert math.isinf(lt.EmpiricalRisk([[1.0]], [0.0]).value([1e200]))


def test_descriptions_in_words():
    named = lt.LinearConstraints(np.eye(2), [1.0, 2.0], names=["age", "income"])
    assert named.describe(1) == "income" and len(named) == 2
    assert lt.LinearConstraints(np.eye(2), [1.0, 2.0]).describe(1) == "row 1: +1 w[1] <= 2"
    assert lt.ordering(9).aggregated(3).describe(2) == "the worst of constraints 6 to 7"
    both = lt.stack(lt.ordering(2), lt.NormConstraints(None, np.zeros((1, 2)), None, [3.0]))
    assert both.describe(0).startswith("row 0") and both.describe(1).startswith("norm constraint 0")
    together = lt.stack(named, lt.ordering(2))
    assert [together.describe(j) for j in range(3)] == [
        "age",
        "income",
        "row 0: +1 w[0] -1 w[1] <= 0",
    ]
    assert "quadratic constraint 0" in lt.QuadraticConstraints(
        np.eye(2), np.ones((1, 2)), [1.0]
    ).describe(0)


def test_stacking_flattens_and_keeps_the_order():
    rng = np.random.default_rng(0)
    linear, balls = (
        lt.LinearConstraints(rng.normal(size=(3, 2)), np.ones(3)),
        lt.NormConstraints(None, rng.normal(size=(2, 2)), None, [1, 1]),
    )
    nested = lt.stack(lt.stack(linear, balls), linear, lt.ordering(2))
    w = rng.normal(size=2)
    expected = np.concatenate([part.values(w) for part in (linear, balls, linear, lt.ordering(2))])
    assert nested.count == 9 and np.array_equal(nested.values(w), expected)
    assert lt.stack(linear) is linear
    assert type(lt.stack(linear, lt.ordering(2))) is lt.LinearConstraints
