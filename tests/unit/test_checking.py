"""`check` sees what is not convex, not its gradient or not a number, and says nothing of the rest;
`solve` looks at functions that users wrote.
"""

from __future__ import annotations

import contextlib
import time
import warnings
from typing import NamedTuple

import numpy as np
import pytest

import lighttouch as lt
from catalogue import (
    FAMILIES,
    PROBLEMS,
    compiled_examples,
    compiled_rows,
    python_examples,
    python_rows,
)
from lighttouch.checking import look_at_custom_pieces

D = 4
RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(20, D)), RNG.normal(size=20)
GOOD = lt.EmpiricalRisk(X, Y)


def objective_of(value, gradient, **options):
    return lt.Problem(lt.CustomObjective(D, value, gradient, **options))


def constrained_by(value, subgradient, count=1):
    return lt.Problem(GOOD, lt.ConvexConstraints(D, count, value, subgradient))


def square(i, w):
    return float(w @ w)


def twice(i, w):
    return 2.0 * w


def hill(i, w):
    return -float(w @ w)


def hill_slope(i, w):
    return -2.0 * w


def outside_a_ball(j, w):
    return 1.0 - float(w @ w)


class Level(NamedTuple):
    level: float


def compiled_hill(record, i, w):
    total = 0.0
    for k in range(w.size):
        total -= record.level * w[k] * w[k]
    return total


def compiled_hill_slope(record, i, w, out):
    for k in range(w.size):
        out[k] = -2.0 * record.level * w[k]


def compiled_nan(record, i, w):
    return np.nan if i == 1 else record.level


def compiled_zeros(record, i, w, out):
    out[0] = 0.0


NOT_CONVEX = {
    "hill": objective_of(hill, hill_slope),
    "outside_a_ball": constrained_by(outside_a_ball, hill_slope),
    "compiled_hill": objective_of(compiled_hill, compiled_hill_slope, record=Level(1.0)),
    "a hill among rows": lt.Problem(
        GOOD,
        lt.stack(
            lt.ordering(D),
            lt.ConvexConstraints(D, 1, outside_a_ball, hill_slope),
        ).aggregated(2),
    ),
}
WRONG_GRADIENTS = {
    "wrong sign": objective_of(square, hill_slope),
    "half of it": objective_of(square, lambda i, w: w),
    "another entry": objective_of(square, lambda i, w: 2.0 * w[::-1]),
    "of a constraint": constrained_by(lambda j, w: float(w @ w) - 1.0, hill_slope),
}
UNUSABLE = {
    "returned nan for example 0": objective_of(lambda i, w: float("nan"), twice),
    "returned nan in entry 0 for example 0": objective_of(square, lambda i, w: np.nan * w),
    "returned None for example 0": objective_of(lambda i, w: None, twice),
    "returned an array of shape (4,) for example 0": objective_of(twice, twice),
    "returned an array of shape (3,) for example 0": objective_of(square, lambda i, w: w[1:]),
    "returned nan for constraint 1": constrained_by(
        lambda j, w: np.nan if j else -1.0, lambda j, w: 0.0 * w, 2
    ),
    "returned 'much' for constraint 0": constrained_by(lambda j, w: "much", twice),
    "missing 1 required positional argument": objective_of(lambda r, i, w: 0.0, twice),
    "must not change w": objective_of(lambda i, w: float(w.fill(1.0) or 0.0), twice),
}


@pytest.mark.parametrize("name", NOT_CONVEX)
def test_what_is_not_convex_is_seen(name):
    report = lt.check(NOT_CONVEX[name])
    assert not report.ok
    assert {finding.kind for finding in report.findings} == {"convexity"}
    assert "must be convex" in str(report)


@pytest.mark.parametrize("name", WRONG_GRADIENTS)
def test_wrong_gradients_are_seen(name):
    report = lt.check(WRONG_GRADIENTS[name])
    assert {finding.kind for finding in report.findings} == {"gradient"}
    assert ("sign seems to be wrong" in str(report)) == (name in ("wrong sign", "of a constraint"))


@pytest.mark.parametrize("message", UNUSABLE)
def test_what_cannot_be_evaluated_is_named(message):
    problem = UNUSABLE[message]
    report = lt.check(problem)
    assert report.findings[0].severity == "error" and message in str(report)
    error = lt.ConstraintError if "constraint" in message else lt.DataError
    with pytest.raises(error) as raised:
        lt.solve(problem)
    assert message in str(raised.value) and "function" in str(raised.value)


@pytest.mark.parametrize("name", sorted(PROBLEMS))
def test_problems_that_are_fine_pass(name):
    report = lt.check(PROBLEMS[name]().problem)
    assert report.ok, str(report)


@pytest.mark.parametrize("name", sorted(FAMILIES))
def test_families_that_are_fine_pass(name):
    family = FAMILIES[name](np.random.default_rng(3))
    report = lt.check(lt.Problem(lt.Quadratic(np.eye(family.dimension), np.ones(5)), family))
    assert report.ok, str(report)


KINKS = {
    "absolute": (lambda i, w: float(np.abs(w).sum()), lambda i, w: np.sign(w)),
    "the other side": (lambda i, w: float(np.maximum(w, 0.0).sum()), lambda i, w: 1.0 * (w >= 0)),
    "largest": (lambda i, w: float(w.max()), lambda i, w: 1.0 * (np.arange(D) == w.argmax())),
    "infinite": (
        lambda i, w: float(-np.log(w).sum()) if (w > 0).all() else np.inf,
        lambda i, w: -1.0 / w,
    ),
    "huge": (lambda i, w: 1e12 + float(w @ w), twice),
    "tiny": (lambda i, w: 1e-12 * float(w @ w), lambda i, w: 2e-12 * w),
}


@pytest.mark.parametrize("domain", [lt.Everywhere(), lt.Box(0.0, 1.0), lt.Ball(1e-3)])
@pytest.mark.parametrize("name", KINKS)
def test_kinks_infinities_and_sizes_are_no_faults(name, domain):
    problem = lt.Problem(lt.CustomObjective(D, *KINKS[name]), None, domain)
    report = lt.check(problem, points=60)
    assert report.ok, str(report)


@pytest.mark.parametrize("make", [compiled_examples, python_examples])
@pytest.mark.parametrize("rows", [compiled_rows, python_rows])
def test_solve_says_nothing_of_good_functions(make, rows):
    A, b = np.eye(3, D), np.full(3, 0.1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ours = lt.solve(lt.Problem(make(X, Y), rows(A, b)))
    known = lt.solve(lt.Problem(GOOD, lt.LinearConstraints(A, b)))
    assert ours.objective == pytest.approx(known.objective, rel=1e-3)


def test_solve_warns_once_and_claims_nothing_of_what_is_not_convex():
    problem = objective_of(hill, hill_slope)
    with pytest.warns(UserWarning, match="'hill' for example 0: it must be convex") as seen:
        result = lt.solve(problem, time_limit=1.0)
    assert seen[0].filename == __file__
    assert result.status is not lt.Status.CONVERGED
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert lt.solve(problem, time_limit=1.0).status is not lt.Status.CONVERGED


def test_a_bound_for_convex_functions_is_not_told_of_others():
    """Within a box the solver has a bound for the hill, which would be proven if it were convex."""
    problem = lt.Problem(lt.CustomObjective(D, hill, hill_slope), domain=lt.Box(-2.0, 2.0))
    with pytest.warns(UserWarning, match="it must be convex"):
        result = lt.solve(problem, start=np.full(D, 0.5))
    assert result.lower_bound == -np.inf and "proven" not in " ".join(result.notes)


def test_solve_warns_of_a_constraint_before_it_calls_it_infeasible():
    problem = constrained_by(outside_a_ball, hill_slope)
    seen = pytest.warns(UserWarning, match="'outside_a_ball' for constraint 0: it must be convex")
    with seen, contextlib.suppress(lt.InfeasibleConstraintsError):
        lt.solve(problem, time_limit=1.0)


def test_solve_warns_of_a_gradient_of_the_wrong_sign():
    with pytest.warns(UserWarning, match="'hill_slope' for example 0.*sign seems to be wrong"):
        lt.solve(objective_of(square, hill_slope), lt.FullTouch(1.0, 0.01), iterations=3)


def nan_far_away(i, w):
    """Fine wherever the short check looks, and NaN where the run goes."""
    return float("nan") if w[0] > 20.0 else float((w[0] - 100.0) ** 2)


def slope_far_away(i, w):
    return 2.0 * (w - 100.0) * (np.arange(D) == 0)


@pytest.mark.parametrize("solver", [None, lt.FullTouch(1.0, 0.2), lt.Accelerated()])
def test_nan_in_the_middle_of_a_run_is_an_error(solver):
    with pytest.raises(lt.DataError, match="'nan_far_away' returned nan for example 0"):
        lt.solve(objective_of(nan_far_away, slope_far_away), solver, iterations=200)


def test_nan_of_a_compiled_objective_is_an_error():
    problem = objective_of(compiled_nan, compiled_zeros, examples=3, record=Level(0.5))
    for ask in (
        lambda: problem.objective.value(np.zeros(D)),
        lambda: lt.solve(problem),
        lambda: lt.solve(problem, lt.FullTouch(1.0, 0.1), iterations=3),
    ):
        with pytest.raises(lt.DataError, match="'compiled_nan' returned nan for example 1"):
            ask()


def test_the_short_version_does_not_wait_for_slow_functions():
    calls = []

    def slow(i, w):
        calls.append(i)
        time.sleep(0.02)
        return float(w @ w)

    problem = objective_of(slow, twice, examples=100)
    assert look_at_custom_pieces(problem)
    assert 1 <= len(calls) <= 12


def test_signs_and_scales_are_notes():
    beyond = lt.ConvexConstraints(D, 1, lambda j, w: float(w @ w) + 1.0, twice)
    report = lt.check(lt.Problem(lt.EmpiricalRisk(X * [1.0, 1e8, 0.0, 1.0], Y), beyond))
    assert report.ok
    assert [finding.kind for finding in report.findings] == ["sign", "scale", "scale"]
    assert "was g(w) >= 0 meant" in str(report) and "column 2 of X" in str(report)


def test_the_same_seed_tries_the_same_points():
    problem = NOT_CONVEX["hill"]
    assert lt.check(problem, seed=3) == lt.check(problem, seed=3) != lt.check(problem, seed=4)
    assert lt.check(problem, points=5).points == 5
    with pytest.raises(ValueError, match="points must be"):
        lt.check(problem, points=0)
