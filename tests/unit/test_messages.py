"""Bad input is refused before the first iteration, with the array, the place and the count
(reliability rows 1, 2, 7, 8, 12, 17).
"""

from __future__ import annotations

import math
import re
from typing import NamedTuple

import numpy as np
import pytest
import scipy.sparse

import lighttouch as lt
from lighttouch.constraints.base import RecordConstraints
from lighttouch.kernels.state.iterate import new_example_order, next_example
from lighttouch.solvers.base import BaseSolver

X, Y = np.arange(12.0).reshape(4, 3) / 10, np.array([1.0, -1.0, 1.0, -1.0])
PROBLEM = lt.Problem(lt.EmpiricalRisk(X, Y), lt.LinearConstraints(np.eye(3), np.ones(3)))
BAD = (math.nan, math.inf, -math.inf)


def spoilt(values, places, bad=math.nan):
    array = np.array(values, dtype=float)
    for place in places:
        array[place] = bad
    return array


def sparse_spoilt(bad):
    return scipy.sparse.csr_matrix(spoilt(X + 0.1, [(1, 2), (3, 0)], bad))


def refused(error, message, call):
    with pytest.raises(
        error, match=re.escape(message) if not message.startswith("re:") else message[3:]
    ) as caught:
        call()
    assert isinstance(caught.value, ValueError | RuntimeError)
    return str(caught.value)


# ------------------------------------------------------------------------------------------------
# row 1: what is not finite


@pytest.mark.parametrize("bad", BAD)
@pytest.mark.parametrize(
    ("name", "place", "count", "build"),
    [
        (
            "X",
            "row 1, column 2",
            2,
            lambda bad: lt.EmpiricalRisk(spoilt(X, [(1, 2), (3, 0)], bad), Y),
        ),
        ("X", "row 1, column 2", 2, lambda bad: lt.EmpiricalRisk(sparse_spoilt(bad), Y)),
        ("y", "row 2", 1, lambda bad: lt.EmpiricalRisk(X, spoilt(Y, [2], bad))),
        (
            "sample_weight",
            "row 0",
            2,
            lambda bad: lt.EmpiricalRisk(X, Y, sample_weight=spoilt(np.ones(4), [0, 3], bad)),
        ),
        ("better", "row 3, column 1", 1, lambda bad: lt.PairwiseRisk(spoilt(X, [(3, 1)], bad), X)),
        ("worse", "row 0, column 0", 1, lambda bad: lt.PairwiseRisk(X, spoilt(X, [(0, 0)], bad))),
        (
            "P",
            "row 1, column 1",
            1,
            lambda bad: lt.Quadratic(spoilt(np.eye(3), [(1, 1)], bad), np.zeros(3)),
        ),
        ("q", "row 2", 1, lambda bad: lt.Quadratic(np.eye(3), spoilt(np.zeros(3), [2], bad))),
        (
            "A",
            "row 1, column 2",
            2,
            lambda bad: lt.LinearConstraints(spoilt(X, [(1, 2), (3, 0)], bad), np.zeros(4)),
        ),
        (
            "A",
            "row 1, column 2",
            2,
            lambda bad: lt.LinearConstraints(sparse_spoilt(bad), np.zeros(4)),
        ),
        ("b", "row 3", 1, lambda bad: lt.LinearConstraints(X, spoilt(np.zeros(4), [3], bad))),
        ("margin", "row 1", 1, lambda bad: lt.order([0, 1], [1, 2], margin=[0.0, bad])),
        ("margin", "row 0", 1, lambda bad: lt.canonical_examples(X, Y, bad)),
        (
            "X",
            "row 1, column 2",
            2,
            lambda bad: lt.canonical_examples(spoilt(X, [(1, 2), (3, 0)], bad), Y),
        ),
        (
            "A",
            "block 1, row 0, column 2",
            1,
            lambda bad: lt.NormConstraints(
                spoilt(np.ones((2, 2, 3)), [(1, 0, 2)], bad), np.ones((2, 2)), None, [1, 1]
            ),
        ),
        ("d", "row 1", 1, lambda bad: lt.NormConstraints(None, np.ones((2, 3)), None, [1.0, bad])),
        (
            "c",
            "row 0, column 1",
            1,
            lambda bad: lt.NormConstraints(
                None, np.ones((2, 3)), spoilt(np.ones((2, 3)), [(0, 1)], bad), [1.0, 1.0]
            ),
        ),
        (
            "r",
            "row 0",
            1,
            lambda bad: lt.QuadraticConstraints(np.eye(3), np.ones((2, 3)), [bad, 1.0]),
        ),
        ("center", "row 1", 1, lambda bad: lt.Ball(1.0, [0.0, bad])),
        (
            "start",
            "row 0",
            1,
            lambda bad: lt.solve(PROBLEM, lt.FullTouch(1.0, 0.1), start=[bad, 0.0, 0.0]),
        ),
        ("w", "row 2", 1, lambda bad: PROBLEM.objective.value([0.0, 0.0, bad])),
    ],
)
def test_arrays_are_named_with_place_and_count(name, place, count, build, bad):
    entries = f"{count} entry is" if count == 1 else f"{count} entries are"
    refused(
        ValueError,
        f"{name} must be finite: {entries} not, the first at {place} ({bad})",
        lambda: build(bad),
    )


@pytest.mark.parametrize(
    ("name", "place", "build"),
    [
        ("lower", "row 1", lambda: lt.Box([0.0, math.nan, 0.0], 1.0)),
        ("upper", "row 0", lambda: lt.Box(0.0, math.nan)),
        ("lower", "row 2", lambda: lt.bounds(3, [0.0, -math.inf, math.nan], 1.0)),
        ("upper", "row 0", lambda: lt.bounds(3, None, math.nan)),
    ],
)
def test_bounds_may_be_infinite_but_not_nan(name, place, build):
    refused(ValueError, f"{name} must be finite: 1 entry is not, the first at {place} (nan)", build)
    assert lt.bounds(3, -math.inf, [1.0, math.inf, 2.0]).count == 2
    assert lt.Box(-math.inf, math.inf).project(np.array([1e300])).tolist() == [1e300]


@pytest.mark.parametrize("bad", [*BAD, -1.0])
@pytest.mark.parametrize(
    ("name", "build"),
    [
        ("penalty", lambda bad: lt.FullTouch(bad, 0.1)),
        ("penalty", lambda bad: lt.LightTouch(bad, 0.1, 1)),
        ("penalty", lambda bad: lt.MidTouch(bad, 1.0, 10, 0.1)),
        ("penalty", lt.PracticalLightTouch),
        ("step_size", lambda bad: lt.FullTouch(1.0, bad)),
        ("step_size", lambda bad: lt.LightTouch(1.0, bad, 1)),
        ("eta", lt.InverseSqrt),
        ("eta", lt.InverseTime),
        ("eta", lt.AdaGrad),
        ("weight_step_size", lambda bad: lt.LightTouch(1.0, 0.1, 1, weight_step_size=bad)),
        ("weight_step_size", lambda bad: lt.PracticalLightTouch(weight_step_size=bad)),
        ("strong_convexity", lambda bad: lt.MidTouch(1.0, bad, 10, 0.1)),
        ("l2", lambda bad: lt.EmpiricalRisk(X, Y, l2=bad)),
        ("radius", lt.Ball),
        ("time_limit", lambda bad: lt.solve(PROBLEM, lt.FullTouch(1.0, 0.1), time_limit=bad)),
    ],
)
def test_numbers_are_named(name, build, bad):
    refused(
        ValueError,
        f"re:^{name} must be (positive|non-negative) and finite, got {re.escape(str(bad))}",
        lambda: build(bad),
    )


@pytest.mark.parametrize("bad", [0, -3, 1.5, math.nan, math.inf, "ten", None])
@pytest.mark.parametrize(
    ("name", "build"),
    [
        ("batch", lambda bad: lt.FullTouch(1.0, 0.1, batch=bad)),
        ("constraint_batch", lambda bad: lt.LightTouch(1.0, 0.1, bad)),
        ("first_phase", lambda bad: lt.MidTouch(1.0, 1.0, bad, 0.1)),
        ("dimension", lt.ordering),
        ("dimension", lambda bad: lt.bounds(bad, 0.0, 1.0)),
        ("size", lambda bad: lt.ordering(5).aggregated(bad)),
        ("dimension", lambda bad: lt.CustomObjective(bad, len, len)),
        ("examples", lambda bad: lt.CustomObjective(2, len, len, examples=bad)),
    ],
)
def test_counts_are_whole_and_named(name, build, bad):
    refused(ValueError, f"re:^{name} must be a (whole )?number", lambda: build(bad))


@pytest.mark.parametrize(
    "options",
    [{"iterations": -1}, {"iterations": 2.5}, {"record_every": 0}, {"iterations": "many"}],
)
def test_limits_are_named(options):
    refused(
        ValueError,
        f"re:^{next(iter(options))} must be a (whole )?number",
        lambda: lt.solve(PROBLEM, lt.FullTouch(1.0, 0.1), **options),
    )


# --- row 2: after a cast
def test_a_difference_that_overflows_is_refused():
    refused(
        lt.DataError,
        "better - worse must be finite: 1 entry is not, the first at row 0, column 0",
        lambda: lt.PairwiseRisk([[1e308]], [[-1e308]]),
    )


@pytest.mark.parametrize(
    ("fragment", "build"),
    [
        (
            "y must be finite: it holds a number too large for float64",
            lambda: lt.EmpiricalRisk([[1.0]], [10**400]),
        ),
        ("X must hold numbers", lambda: lt.EmpiricalRisk([["a", "b"]], [1.0])),
        ("X must be real, got complex", lambda: lt.EmpiricalRisk([[1j]], [1.0])),
        ("y must hold numbers", lambda: lt.EmpiricalRisk([[1.0]], ["no"])),
        ("A must be real, got complex", lambda: lt.LinearConstraints(np.array([[1j]]), [1.0])),
    ],
)
def test_what_is_not_a_number_is_refused(fragment, build):
    refused(ValueError, fragment, build)


# ---------------------------------------------------------------------------------------- rows 7
# and 8: empty, one, all zero


@pytest.mark.parametrize(
    ("fragment", "build"),
    [
        (
            "X must hold at least one row and one column, got shape (0, 3)",
            lambda: lt.EmpiricalRisk(np.zeros((0, 3)), []),
        ),
        (
            "X must hold at least one row and one column, got shape (3, 0)",
            lambda: lt.EmpiricalRisk(np.zeros((3, 0)), np.zeros(3)),
        ),
        (
            "X must hold at least one row and one column, got shape (0, 3)",
            lambda: lt.EmpiricalRisk(scipy.sparse.csr_matrix((0, 3)), []),
        ),
        (
            "X must be two-dimensional, got shape (3,); reshape",
            lambda: lt.EmpiricalRisk([1.0, 2.0, 3.0], [1.0]),
        ),
        ("y must have 4 entries, got 3", lambda: lt.EmpiricalRisk(X, Y[:3])),
        ("y must be one-dimensional, got shape (4, 1)", lambda: lt.EmpiricalRisk(X, Y[:, None])),
        (
            "sample_weight must not be zero everywhere",
            lambda: lt.EmpiricalRisk(X, Y, sample_weight=np.zeros(4)),
        ),
        (
            "sample_weight must not be negative, got -1.0 in row 2",
            lambda: lt.EmpiricalRisk(X, Y, sample_weight=[1, 1, -1, 1]),
        ),
        (
            "y must hold only -1 and +1 for the hinge loss, got 0.0 in row 1",
            lambda: lt.EmpiricalRisk(X, [1, 0, 1, 0], "hinge"),
        ),
        (
            (
                "re:loss must be one of hinge, logistic, squared, absolute, huber, .*"
                "Quantile.level., .* or a CustomLoss; got 'hing'"
            ),
            lambda: lt.EmpiricalRisk(X, Y, "hing"),
        ),
        ("level must lie strictly between 0 and 1, got 1.0", lambda: lt.Quantile(1.0)),
        (
            "visits must be one of permutations, independent; got 'cyclic'",
            lambda: lt.EmpiricalRisk(X, Y, visits="cyclic"),
        ),
        (
            "better and worse must have the same shape, got (4, 3) and (2, 3)",
            lambda: lt.PairwiseRisk(X, X[:2]),
        ),
        (
            "A must have at least one column",
            lambda: lt.LinearConstraints(np.zeros((2, 0)), np.zeros(2)),
        ),
        ("b must have 3 entries, got 2", lambda: lt.LinearConstraints(np.eye(3), [1.0, 2.0])),
        (
            "names must hold one name for each of the 3 rows, got 1",
            lambda: lt.LinearConstraints(np.eye(3), np.ones(3), ["a"]),
        ),
        (
            "P must be symmetric; use (P + P.T) / 2",
            lambda: lt.Quadratic([[1.0, 2.0], [0.0, 1.0]], [0.0, 0.0]),
        ),
        (
            "P must be positive semidefinite; its diagonal holds -1.0",
            lambda: lt.Quadratic(np.diag([1.0, -1.0]), [0.0, 0.0]),
        ),
        (
            "P must be positive semidefinite; it has the eigenvalue -1",
            lambda: lt.Quadratic([[1.0, 2.0], [2.0, 1.0]], [0.0, 0.0]),
        ),
        (
            "P must be square and not empty, got shape (1, 2)",
            lambda: lt.Quadratic([[1.0, 2.0]], [0.0]),
        ),
        (
            "P must be positive semidefinite; matrix 1",
            lambda: lt.QuadraticConstraints([np.eye(2), -np.eye(2)], np.ones((2, 2)), [0.0, 0.0]),
        ),
        (
            "lower must not exceed upper: at coordinate 1 lower is 2.0 and upper 1.0",
            lambda: lt.Box([0.0, 2.0], 1.0),
        ),
        (
            "lower and upper must have the same length, got 2 and 3",
            lambda: lt.Box([0.0, 0.0], [1.0, 1.0, 1.0]),
        ),
        ("lower and upper must have the same length, got 1 and 2", lambda: lt.order([0], [1, 2])),
        (
            "a parameter cannot be ordered against itself: pair 1 is (2, 2)",
            lambda: lt.order([0, 2], [1, 2]),
        ),
        ("lower must hold whole numbers", lambda: lt.order([0.5], [1])),
        ("lower must hold indices of at least 0, got -1", lambda: lt.order([-1], [1])),
        ("indices must be below the dimension 2, got 5", lambda: lt.order([0], [5], dimension=2)),
        (
            "margin must be a number or hold 2 of them, got shape (3,)",
            lambda: lt.order([0, 1], [1, 2], margin=[1.0, 2.0, 3.0]),
        ),
        (
            "y must hold only -1 and +1, got 0.0 in row 0",
            lambda: lt.canonical_examples(X, np.zeros(4)),
        ),
        ("stack needs at least one", lt.stack),
        (
            "all parts must have the same dimension, got [2, 3]",
            lambda: lt.stack(lt.ordering(2), lt.ordering(3)),
        ),
        (
            "stack the single constraints first, then aggregate",
            lambda: lt.stack(lt.ordering(3).aggregated(2), lt.ordering(3)),
        ),
        ("memory must lie between 0 and 1, got 1.5", lambda: lt.PracticalLightTouch(memory=1.5)),
        (
            "costs must be one of counted, timed; got 'guessed'",
            lambda: lt.PracticalLightTouch(costs="guessed"),
        ),
        (
            "weight_step_size must be given when step_size is not a constant",
            lambda: lt.LightTouch(1.0, lt.InverseSqrt(1.0), 2),
        ),
    ],
)
def test_shapes_and_choices(fragment, build):
    refused(ValueError, fragment, build)


@pytest.mark.parametrize(
    ("fragment", "build"),
    [
        (
            "the constraints speak of 2 parameters, the objective has 3",
            lambda o: lt.Problem(o, lt.ordering(2)),
        ),
        (
            "the box's lower must be a number or have 3 entries, got 2",
            lambda o: lt.Problem(o, domain=lt.Box([0, 0], 1)),
        ),
        (
            "the ball's center must have 3 entries, got 2",
            lambda o: lt.Problem(o, domain=lt.Ball(1.0, [0.0, 0.0])),
        ),
        (
            "objective must be an objective such as EmpiricalRisk or Quadratic, got str",
            lambda o: lt.Problem("hinge"),
        ),
        (
            "constraints must be constraints such as LinearConstraints(A, b), got ndarray",
            lambda o: lt.Problem(o, np.eye(3)),
        ),
        (
            (
                "domain must be Box, Ball, Simplex or Everywhere, got the class Everywhere instead "
                "of an instance"
            ),
            lambda o: lt.Problem(o, None, lt.Everywhere),
        ),
        (
            "start must have 3 entries, got 2",
            lambda o: lt.solve(lt.Problem(o), lt.FullTouch(1.0, 0.1), start=[0.0, 0.0]),
        ),
        (
            "constraint_batch is 5 but there are only 2 constraints; FullTouch",
            lambda o: lt.solve(lt.Problem(o, lt.ordering(3)), lt.LightTouch(1.0, 0.1, 5)),
        ),
    ],
)
def test_pieces_that_do_not_fit(fragment, build):
    refused(ValueError, fragment, lambda: build(lt.EmpiricalRisk(X, Y)))


def test_one_row_no_rule_and_one_rule():
    one = lt.EmpiricalRisk([[1.0, 0.0]], [2.0])
    free = lt.solve(lt.Problem(one), lt.FullTouch(1.0, 0.5), iterations=200)
    assert (
        free.w_last == pytest.approx([2.0, 0.0], abs=1e-6)
        and free.violation == 0.0
        and free.constraint_checks == 0
    )
    half = lt.LinearConstraints([[1.0, 0.0]], [1.0])
    ruled = lt.solve(
        lt.Problem(one, half), lt.FullTouch(0.0, 0.5), iterations=200, start=[9.0, 9.0]
    )
    assert ruled.w == pytest.approx(
        [1.0, 9.0], abs=1e-12
    )  # no penalty: only the closed form of one half-space


def test_zero_rows_of_constraints_are_allowed():
    for empty in (
        lt.LinearConstraints(np.zeros((0, 3)), []),
        lt.bounds(3),
        lt.ordering(1),
        lt.stack(lt.bounds(3), lt.bounds(3)),
    ):
        assert empty.count == 0
        problem = lt.Problem(lt.EmpiricalRisk(X[:, : empty.dimension], Y), empty)
        assert lt.solve(problem, lt.PracticalLightTouch(), iterations=5).violation == 0.0


# -------------------------------------------------------------------------------------------------
# row 12: infeasible start


def test_a_start_outside_everything_is_accepted():
    problem = lt.Problem(lt.EmpiricalRisk(X, Y), lt.ordering(3), lt.Box(-1, 1))
    result = lt.solve(
        problem, lt.LightTouch(1.0, 0.1, 2), iterations=300, start=[100.0, 0.0, -100.0]
    )
    assert result.history.violation[0] == 1.0 and result.violation == 0.0


# --- row 17: huge m
@pytest.mark.parametrize(
    ("build", "count"),
    [
        (lambda: lt.ordering(10**13), "10,000,000,000,000"),
        (lambda: lt.bounds(10**13, 0.0, 1.0), "20,000,000,000,000"),
        (
            lambda: lt.Problem(
                lt.EmpiricalRisk(X, Y),
                lt.ConvexConstraints(3, 10**13, lambda j, w: -1.0, lambda j, w: w),
            ),
            "10,000,000,000,000",
        ),
    ],
)
def test_more_constraints_than_memory_are_refused_with_an_estimate(build, count):
    message = refused(
        lt.ConstraintError, "re:needs about .* TiB of memory, .* are available; ", build
    )
    assert count in message


def test_more_weights_than_memory_are_refused_with_an_estimate(monkeypatch):
    monkeypatch.setattr("lighttouch.validation.available_memory", lambda: 10_000)
    problem = lt.Problem(
        lt.EmpiricalRisk(np.ones((1, 300)), [1.0]),
        lt.LinearConstraints(scipy.sparse.eye(300, format="csr"), np.ones(300)),
    )
    refused(
        lt.ConstraintError,
        "re:learning which of 300 constraints matter needs about .* KiB",
        lambda: lt.solve(problem, lt.LightTouch(1.0, 0.1, 3)),
    )
    assert lt.solve(problem, lt.FullTouch(1.0, 0.1), iterations=3).iterations == 3


def test_indices_are_wide_enough():
    visits, rng = new_example_order(2**40, independent=True), np.random.default_rng(0)
    assert max(next_example(visits, rng) for _ in range(20)) > 2**36


# --- what users write
@pytest.mark.parametrize("wrong", [np.zeros(2), np.zeros((3, 1)), 0.5, np.zeros(4)])
def test_user_functions_of_the_wrong_shape_are_named(wrong):
    constraints = lt.ConvexConstraints(3, 1, lambda j, w: 1.0, lambda j, w: wrong)
    problem = lt.Problem(lt.EmpiricalRisk(X, Y), constraints)
    refused(
        ValueError,
        "subgradient must return an array of 3 numbers",
        lambda: lt.solve(problem, lt.FullTouch(1.0, 0.1), iterations=2, project=False),
    )
    objective = lt.CustomObjective(3, lambda i, w: 0.0, lambda i, w: wrong)
    refused(
        ValueError,
        "gradient must return an array of 3 numbers",
        lambda: lt.solve(lt.Problem(objective), lt.FullTouch(1.0, 0.1), iterations=2),
    )


def test_a_record_must_be_a_named_tuple():
    refused_with = pytest.raises(
        TypeError, match="record must be a NamedTuple of arrays and numbers, got list"
    )
    with refused_with:
        lt.ConvexConstraints(3, 1, len, len, record=[1, 2])


def test_history_names_its_columns():
    result = lt.solve(PROBLEM, lt.FullTouch(1.0, 0.1), iterations=3)
    with pytest.raises(KeyError, match="history has the columns iteration, seconds"):
        result.history["speed"]
    with pytest.raises(AttributeError):
        _ = result.history.speed


# --- pieces of one's own that are not complete
@pytest.mark.parametrize("method", ["worst", "rows_at"])
@pytest.mark.parametrize(
    "constraints",
    [
        BALL := lt.QuadraticConstraints(np.eye(3), np.zeros((1, 3)), [-1.0]),
        lt.stack(BALL, lt.ordering(3)),
        lt.ordering(3).aggregated(2),
    ],
    ids=["curved", "stacked", "aggregated"],
)
def test_rows_are_asked_of_linear_families_only(constraints, method):
    asked = {"worst": lambda: constraints.worst(np.ones(3), 1)}
    message = refused(
        lt.ConstraintError,
        f"constraints must be linear rows for `{method}`, got {type(constraints).__name__}",
        asked.get(method, lambda: constraints.rows_at([0])),
    )
    assert "`values(w)` has every g_j(w)" in message


class BareRows(NamedTuple):
    """A record without verbs."""

    a: np.ndarray


class BareFamily(RecordConstraints):
    count, dimension, record = 2, 3, BareRows(np.ones(3))


@pytest.mark.parametrize(
    ("verb", "call"),
    [
        ("worst", lambda family: family.values(np.ones(3))),
        ("worst", lambda family: lt.solve(lt.Problem(lt.EmpiricalRisk(X, Y), family))),
        ("add_subgradient", lambda family: family.subgradient(0, np.ones(3))),
    ],
    ids=["values", "solve", "subgradient"],
)
def test_a_verb_that_is_missing_is_named(verb, call):
    with pytest.raises(TypeError) as caught:
        call(BareFamily())
    message = str(caught.value)
    assert message.startswith(f"the verb '{verb}' must be registered for BareRows")
    assert "Add a constraint family" in message


class HalfASolver:
    stops_itself = False

    def init(self, problem, start):
        return None


class WithoutAdvance(BaseSolver):
    def init(self, problem, start):
        return None


@pytest.mark.parametrize(
    ("solver", "lacking"),
    [(HalfASolver(), "objection_to, advance, finished"), (WithoutAdvance(), "advance; inherit")],
)
def test_what_a_solver_of_ones_own_lacks_is_named(solver, lacking):
    said = f"got a {type(solver).__name__}, which lacks {lacking}"
    message = refused(ValueError, said, lambda: lt.solve(PROBLEM, solver))
    assert "inherit lighttouch.solvers.base.BaseSolver" in message


def test_what_is_no_solver_at_all_lacks_nothing_in_particular():
    message = refused(ValueError, "solver must be a solver", lambda: lt.solve(PROBLEM, 3))
    assert message.endswith("got 3 (int)")


@pytest.mark.parametrize("given", [3, lt.ordering(3), lt.Problem])
def test_a_check_is_of_a_problem(given):
    message = refused(lt.DataError, "problem must be a Problem, got ", lambda: lt.check(given))
    assert message.endswith("write lt.check(lt.Problem(objective, constraints))")
