"""The same problem written three ways: built in, as a user's compiled loops, as a user's Python
functions.
"""

from __future__ import annotations

import numba
import numpy as np
import pytest

import lighttouch as lt
from catalogue import (
    UsersRows,
    compiled_examples,
    compiled_rows,
    python_examples,
    python_rows,
    users_subgradient,
    users_value,
)

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(20, 4)), RNG.normal(size=20)
A, B = RNG.normal(size=(7, 4)), RNG.uniform(-0.2, 0.3, size=7)
X_AND_Y = lt.EmpiricalRisk(X, Y)

OBJECTIVES = {
    "built in": lambda: lt.EmpiricalRisk(X, Y),
    "compiled": lambda: compiled_examples(X, Y),
    "python": lambda: python_examples(X, Y),
}
CONSTRAINTS = {
    "built in": lambda: lt.LinearConstraints(A, B),
    "compiled": lambda: compiled_rows(A, B),
    "python": lambda: python_rows(A, B),
}
SOLVERS = {
    "full": lt.FullTouch(1.2, lt.InverseSqrt(0.2)),
    "light": lt.LightTouch(1.2, lt.InverseSqrt(0.2), 3, weight_step_size=0.5),
    "practical": lt.PracticalLightTouch(1.2, lt.InverseSqrt(0.2), 0.5),
}


def solved(objective: str, constraints: str, solver: str) -> lt.Result:
    problem = lt.Problem(OBJECTIVES[objective](), CONSTRAINTS[constraints](), lt.Box(-1, 1))
    return lt.solve(problem, SOLVERS[solver], iterations=150, seed=4, project=False)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize(
    ("objective", "constraints"),
    [
        ("compiled", "compiled"),
        ("python", "python"),
        ("built in", "python"),
        ("python", "built in"),
    ],
)
def test_three_ways_to_write_a_problem_agree(objective, constraints, solver):
    ours, theirs = solved("built in", "built in", solver), solved(objective, constraints, solver)
    np.testing.assert_allclose(theirs.w, ours.w, rtol=0, atol=1e-9)
    np.testing.assert_allclose(theirs.w_last, ours.w_last, rtol=0, atol=1e-9)
    assert theirs.objective == pytest.approx(ours.objective, rel=1e-9)
    assert theirs.violation == pytest.approx(ours.violation, abs=1e-9)
    assert theirs.constraint_checks == ours.constraint_checks
    if ours.constraint_probabilities is not None:
        np.testing.assert_allclose(
            theirs.constraint_probabilities, ours.constraint_probabilities, rtol=0, atol=1e-9
        )


def test_values_and_subgradients_agree():
    w = np.random.default_rng(1).normal(size=4)
    for family in CONSTRAINTS.values():
        np.testing.assert_allclose(family().values(w), A @ w - B, rtol=0, atol=1e-14)
    for family in ("compiled", "python"):
        constraints = CONSTRAINTS[family]()
        for j in range(7):
            assert np.array_equal(constraints.subgradient(j, w), A[j])
            assert constraints.value(j, w) == pytest.approx(A[j] @ w - B[j], abs=1e-14)
    values = [make().value(w) for make in OBJECTIVES.values()]
    assert values == pytest.approx([values[0]] * 3, rel=1e-13)
    for make in OBJECTIVES.values():
        np.testing.assert_allclose(make().gradient(w), X.T @ (X @ w - Y) / 20, rtol=0, atol=1e-13)


def test_a_users_family_in_a_stack_and_in_groups():
    half = lt.LinearConstraints(A[:4], B[:4]), compiled_rows(A[4:], B[4:])
    stacked, whole = lt.stack(*half).aggregated(3), lt.LinearConstraints(A, B).aggregated(3)
    w = np.random.default_rng(1).normal(size=4)
    np.testing.assert_allclose(stacked.values(w), whole.values(w), rtol=0, atol=1e-14)
    objective = lt.EmpiricalRisk(X, Y)
    ours, theirs = (
        lt.solve(lt.Problem(objective, c), SOLVERS["full"], iterations=100, project=False)
        for c in (whole, stacked)
    )
    np.testing.assert_allclose(ours.w, theirs.w, rtol=0, atol=1e-10)


def test_functions_the_user_compiled_already_are_taken():
    jitted = lt.ConvexConstraints(
        4, 7, numba.njit(users_value), numba.njit(users_subgradient), record=UsersRows(A, B)
    )
    w = np.random.default_rng(1).normal(size=4)
    np.testing.assert_allclose(jitted.values(w), A @ w - B, rtol=0, atol=1e-14)


def test_functions_that_do_not_take_the_record_are_refused_at_once():
    with pytest.raises(lt.ConstraintError, match=r"value must take \(record, j, w\), got wrong\(j"):

        def wrong(j, w):
            return 0.0

        lt.ConvexConstraints(4, 7, wrong, users_subgradient, record=UsersRows(A, B))
    with pytest.raises(lt.DataError, match=r"gradient must take \(record, i, w, out\), got"):
        lt.CustomObjective(4, users_value, users_value, record=UsersRows(A, B))


def test_what_numba_cannot_compile_is_said_in_our_words():
    def unknown(record, j, w):
        return record.nothing[j]

    family = lt.ConvexConstraints(4, 7, unknown, users_subgradient, record=UsersRows(A, B))
    asked = (lambda: family.values(np.zeros(4)), lambda: lt.solve(lt.Problem(X_AND_Y, family)))
    for ask in asked:
        with pytest.raises(lt.ConstraintError, match=r"'unknown'.*compile.*nothing") as told:
            ask()
        assert isinstance(told.value.__cause__, numba.core.errors.NumbaError)
    finding = lt.check(lt.Problem(X_AND_Y, family)).findings[0]
    assert finding.kind == "error" and "must compile" in finding.message


def test_a_curved_constraint_of_the_users_own():
    """log-sum-exp <= 0, by Python functions: nothing built in is like it."""

    def value(j, w):
        return float(np.logaddexp.reduce(w) - 1.0)

    def subgradient(j, w):
        weights = np.exp(w - w.max())
        return weights / weights.sum()

    target = np.array([2.0, 0.0, -1.0])
    problem = lt.Problem(
        lt.Quadratic(np.eye(3), -target), lt.ConvexConstraints(3, 1, value, subgradient)
    )
    result = lt.solve(
        problem, lt.FullTouch(4.0, lt.InverseSqrt(0.1)), iterations=4000, project=False
    )
    multiplier = (
        (target - result.w) @ subgradient(0, result.w) / np.sum(subgradient(0, result.w) ** 2)
    )
    assert abs(value(0, result.w)) < 0.01 and multiplier > 0
    np.testing.assert_allclose(target - result.w, multiplier * subgradient(0, result.w), atol=0.02)


def test_a_new_array_in_the_same_record_is_a_new_problem():
    """The compiled code is shared, the numbers are not."""
    w = np.ones(4)
    assert compiled_rows(A, B).values(w)[0] != compiled_rows(A + 1.0, B).values(w)[0]
    assert type(compiled_rows(A, B).record) is type(compiled_rows(A + 1.0, B).record)


def test_no_learning_without_a_penalty():
    for penalty in (0.0, 1.0):
        result = lt.solve(
            lt.Problem(OBJECTIVES["built in"](), CONSTRAINTS["built in"]()),
            lt.LightTouch(penalty, 0.1, 2),
            iterations=50,
        )
        assert (np.ptp(result.constraint_probabilities) > 0) == (penalty > 0)
