"""Rows that a function writes from their numbers, and the worst of very many rows."""

from __future__ import annotations

import functools
import resource
import sys
import time
from typing import NamedTuple

import numba
import numpy as np
import pytest
import scipy.sparse

import lighttouch as lt
from catalogue import UsersPoints, compiled_pairs, pair_rows, python_pairs
from lighttouch.constraints import base
from lighttouch.projections.costs import COSTS
from lighttouch.projections.sets import feasible_set

MAKERS = {"compiled": compiled_pairs, "python": python_pairs}


@pytest.fixture
def never_stored(monkeypatch):
    """Projections find the rows of even the smallest generated family."""
    changed = type(COSTS)(largest_generated=0.0)
    monkeypatch.setattr("lighttouch.projections.sets.COSTS", changed)


@pytest.mark.parametrize("maker", MAKERS)
def test_they_do_what_stored_rows_do(maker):
    rng = np.random.default_rng(0)
    points = np.round(rng.normal(size=(6, 4)), 1)  # some differences are zero
    generated = MAKERS[maker](points)
    A, b = pair_rows(points)
    stored = lt.LinearConstraints(scipy.sparse.csr_matrix(A), b)
    w = 3.0 * rng.normal(size=4)
    np.testing.assert_allclose(generated.values(w), stored.values(w), rtol=0, atol=1e-14)
    np.testing.assert_allclose(generated.row_scales(), stored.row_scales(), rtol=1e-15)
    assert generated.largest(w) == generated.values(w).max()
    relative = generated.values(w) / generated.row_scales()
    assert generated.largest_relative(w) == pytest.approx(relative.max(), rel=1e-15)
    assert generated.interpreted == (maker == "python")
    for j in (0, 7, 29):
        assert np.array_equal(generated.subgradient(j, w), A[j])
    matrix, right = generated.linear_rows()
    assert np.array_equal(matrix.toarray(), A)
    np.testing.assert_allclose(right, b, rtol=1e-15)
    matrix, right = generated.rows_at([8, 2])
    assert np.array_equal(matrix.toarray(), A[[8, 2]])
    assert generated.aggregated(7).values(w).max() == generated.largest(w)
    assert "row 3: " in generated.describe(3) and "<=" in generated.describe(3)


def test_compiled_and_interpreted_are_the_same_bits():
    points = np.random.default_rng(1).normal(size=(9, 5))
    fast, slow = compiled_pairs(points), python_pairs(points)
    for seed in range(5):
        w = np.random.default_rng(seed).normal(size=5)
        assert fast.values(w).tobytes() == slow.values(w).tobytes()
        assert fast.worst(w, 6).tolist() == slow.worst(w, 6).tolist()


@pytest.mark.parametrize(
    "solver", [lt.FullTouch(1.2, 0.1), lt.LightTouch(1.2, 0.1, 3), lt.PracticalLightTouch(1.2, 0.1)]
)
def test_solvers_take_them_for_stored_rows(solver):
    rng = np.random.default_rng(2)
    X, y, points = rng.normal(size=(40, 4)), rng.normal(size=40) * 3, rng.normal(size=(8, 4))
    answers = []
    for constraints in (lt.LinearConstraints(*pair_rows(points)), compiled_pairs(points)):
        problem = lt.Problem(lt.EmpiricalRisk(X, y), constraints)
        answers.append(lt.solve(problem, solver, iterations=300, project=False).w)
    np.testing.assert_allclose(answers[0], answers[1], rtol=0, atol=1e-9)


@pytest.mark.parametrize("maker", MAKERS)
@pytest.mark.parametrize("domain", [lt.Everywhere(), lt.Box(-0.3, 0.2), lt.Ball(0.3)])
def test_projections_find_the_rows_that_matter(never_stored, maker, domain):
    rng = np.random.default_rng(3)
    points = rng.normal(size=(14, 5))
    generated, stored = MAKERS[maker](points), lt.LinearConstraints(*pair_rows(points))
    assert not feasible_set(generated, domain).is_linear  # none is stored
    for scale in (0.05, 1.0, 50.0):
        v = scale * rng.normal(size=5)
        ours, theirs = lt.project(v, generated, domain), lt.project(v, stored, domain)
        atol = 1e-6 if isinstance(domain, lt.Ball) else 1e-11
        np.testing.assert_allclose(ours.w, theirs.w, rtol=0, atol=atol * max(1.0, scale))
        assert ours.violation <= (1e-8 if isinstance(domain, lt.Ball) else 1e-13 * max(1.0, scale))
        again = lt.project(v + 0.01, generated, domain, warm=ours.warm)
        theirs = lt.project(v + 0.01, stored, domain)
        np.testing.assert_allclose(again.w, theirs.w, rtol=0, atol=atol * max(1.0, scale))


def test_found_rows_beside_stored_ones_and_their_multipliers(never_stored):
    rng = np.random.default_rng(4)
    points = rng.normal(size=(10, 5))
    parts = (
        lt.LinearEqualities([[1.0, 1.0, 0.0, 0.0, 0.0]], [0.1]),
        compiled_pairs(points),
        lt.ordering(5),
    )
    constraints, v = lt.stack(*parts), 2.0 * rng.normal(size=5)
    found = lt.project(v, constraints)
    A = np.vstack([[[1.0, 1.0, 0, 0, 0]], pair_rows(points)[0], np.eye(5)[:-1] - np.eye(5)[1:]])
    np.testing.assert_allclose(v - found.w, A.T @ found.multipliers, rtol=0, atol=1e-9)
    assert abs(found.w[0] + found.w[1] - 0.1) <= 1e-13 and found.violation <= 1e-13
    assert np.all(found.multipliers[1:] >= 0.0)


def test_found_rows_that_contradict_others_are_named(never_stored):
    points = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    constraints = lt.stack(lt.LinearConstraints([[-1.0, 0.0]], [-2.0]), compiled_pairs(points))
    with pytest.raises(lt.InfeasibleConstraintsError) as error:
        lt.project([0.0, 0.0], constraints)
    assert error.value.rows == (0, 3)  # w_0 >= 2 and the pair (1, 0), w_0 <= 1/2


def test_convex_regression(never_stored):
    """Row (i, k): f_k <= f_i + g_i.(x_k - x_i); the same answer with all rows stored."""
    rng = np.random.default_rng(5)
    X = rng.uniform(1, 10, size=(30, 2))
    y = np.sqrt(X[:, 0] * X[:, 1]) + 0.7 * rng.normal(size=30)
    generated = concave(X)
    v = np.concatenate([y, np.zeros(60)])
    found = lt.project(v, generated)
    stored = lt.project(v, lt.LinearConstraints(*generated.linear_rows()))
    np.testing.assert_allclose(found.w, stored.w, rtol=0, atol=1e-6)
    assert found.distance == pytest.approx(stored.distance, rel=1e-9)
    assert found.violation <= 1e-11 and found.certificate.holds


def concave(X: np.ndarray) -> lt.GeneratedRows:
    n, d = X.shape
    return lt.GeneratedRows(n * (1 + d), n * (n - 1), UsersPoints(X), concave_row, 2 + d)


def concave_row(
    record: UsersPoints, j: int, columns: np.ndarray, values: np.ndarray
) -> tuple[int, float]:
    n, d = record.X.shape
    i = j // (n - 1)
    k = j % (n - 1)
    if k >= i:
        k += 1
    columns[0], values[0] = k, 1.0
    columns[1], values[1] = i, -1.0
    for a in range(d):
        columns[2 + a] = n + i * d + a
        values[2 + a] = record.X[i, a] - record.X[k, a]
    return 2 + d, 0.0


@pytest.mark.slow
def test_convex_regression_of_300_points_takes_seconds():
    rng = np.random.default_rng(6)
    X = rng.uniform(1, 10, size=(300, 2))
    y = (X[:, 0] * X[:, 1]) ** 0.4 + 0.7 * rng.normal(size=300)
    generated = concave(X)
    lt.project(np.arange(90.0) % 7, concave(X[:30]))  # compiles
    slopes_rise = lt.Box(np.concatenate([np.full(300, -np.inf), np.zeros(600)]), np.inf)
    began = time.process_time()
    found = lt.project(np.concatenate([y, np.zeros(600)]), generated, slopes_rise)
    assert time.process_time() - began < 60.0  # 4 s on one free core
    assert found.violation <= 1e-11 and found.certificate.holds


# ------------------------------------------------------------------------------------------------
# many


def test_25_million_rows_are_checked_without_memory():
    rng = np.random.default_rng(7)
    points = rng.normal(size=(5001, 12))
    generated, w = compiled_pairs(points), rng.normal(size=12)
    assert generated.count > 25_000_000
    problem = lt.Problem(lt.Quadratic(np.eye(12), -w), generated)
    compiled_pairs(points[:5]).largest(w)  # compiles
    compiled_pairs(points[:5]).worst(w, 3)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    began = time.process_time()
    violation = problem.violation(w)
    assert time.process_time() - began < 20.0  # 1.5 s on one free core
    worst = generated.worst(w, 3)
    unit = 1024 if sys.platform != "darwin" else 1
    assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * unit < 200e6
    i, k = np.divmod(worst[0], 5000)
    difference = points[i] - points[k + (k >= i)]
    far = np.abs((points - points.mean(axis=0)) @ w)
    assert 0.0 < violation <= 2.0 * far.max()
    relative = difference @ w / np.linalg.norm(difference) - 0.5
    sample = points[:400, None] - points[None, :400]
    lengths = np.linalg.norm(sample, axis=2) + np.eye(400)
    assert relative >= (sample @ w / lengths).max() - 0.5 - 1e-12


def test_a_problem_refuses_neither_them_nor_their_groups():
    many = lt.GeneratedRows(2, 10**13, Late(-1), numba.njit(late_row), 1)
    for constraints in (many, many.aggregated(10), lt.stack(lt.ordering(2), many)):
        assert lt.Problem(lt.Quadratic(np.eye(2), [0.0, 0.0]), constraints).dimension == 2
    with pytest.raises(lt.ConstraintError, match="rows_at"):
        many.linear_rows()


def test_wrong_rows_are_refused():
    points = UsersPoints(np.eye(3))

    def too_many(record, j, columns, values):
        columns[3], values[3] = 0, 1.0
        return 4, 0.0

    def out_of_range(record, j, columns, values):
        columns[0], values[0] = 3, 1.0
        return 1, 0.0

    def twice(record, j, columns, values):
        columns[:2], values[:2] = 1, 1.0
        return 2, 0.0

    def infinite(record, j, columns, values):
        return 0, np.inf

    for row, words in (
        (too_many, "entries=3"),
        (out_of_range, "from 0 to 2"),
        (twice, "each column once"),
        (infinite, "finite"),
        (lambda record, j: (0, 0.0), "must write at most"),
    ):
        with pytest.raises(lt.ConstraintError, match=words):
            lt.GeneratedRows(3, 4, points, row, 3)


class Late(NamedTuple):
    wrong: int


def late_row(record: Late, j: int, columns: np.ndarray, values: np.ndarray) -> tuple[int, float]:
    columns[0] = 10**9 if j == record.wrong else 0
    values[0] = 1.0
    return 1, 0.0


@pytest.mark.parametrize("record", [Late(5), type("Plain", (), {"wrong": 5})()])
def test_a_wrong_row_in_the_middle_is_an_error_and_no_crash(record):
    rows = lt.GeneratedRows(3, 9, record, late_row, 1)
    for ask in (rows.values, rows.largest, rows.largest_relative):
        with pytest.raises(lt.ConstraintError, match="j=5"):
            ask(np.zeros(3))


# ------------------------------------------------------------------------------------------------
# the worst of many


def chosen_by_the_rule(family, w, most, tolerance):
    """All violated rows in order, one after the other."""
    relative = family.values(w) / family.row_scales()
    used, chosen = np.zeros(family.dimension, dtype=int), []
    for j in np.argsort(-relative, kind="stable"):
        if relative[j] <= tolerance or len(chosen) == most:
            break
        columns = family.rows_at([j])[0].indices
        if np.any(used[columns] < base.ROWS_PER_COLUMN):
            used[columns] += 1
            chosen.append(int(j))
    return chosen


def families(rng):
    sparse = scipy.sparse.random(400, 30, 0.06, "csr", random_state=rng)
    sparse.data -= 0.3
    full = sparse.getnnz(axis=1) > 0
    X = rng.uniform(size=(12, 2))
    equalities = lt.LinearEqualities(sparse[:50][full[:50]], np.zeros(int(full[:50].sum())))
    yield "sparse", lt.LinearConstraints(sparse[full], np.full(int(full.sum()), -0.1))
    yield "equalities", equalities
    yield "lattice", lt.lattice.increasing([5, 6])
    yield "order", lt.ordering(30)
    yield "generated", concave(X)
    yield "stacked", lt.stack(equalities, lt.lattice.increasing([5, 6]), lt.ordering(30))


@functools.cache
def some_families():
    """Once: each would compile its functions anew."""
    return list(families(np.random.default_rng(8)))


@pytest.mark.parametrize("most", [1, 7, 40, 1000])
@pytest.mark.parametrize("passes", [1, 50])
def test_the_worst_rows_are_spread_over_the_parameters(most, passes, monkeypatch):
    monkeypatch.setattr(base, "PASSES", 50)
    monkeypatch.setattr(base, "CANDIDATES", 1 if passes > 1 else 400)
    rng = np.random.default_rng(8)
    for name, family in some_families():
        w = rng.normal(size=family.dimension)
        if name == "lattice":
            w = np.round(w)  # many rows are equally bad
        found = family.worst(w, most, 0.05).tolist()
        assert found == chosen_by_the_rule(family, w, most, 0.05), name


def test_lattices_make_rows_without_storing_them():
    family = lt.lattice.increasing([3, 4, 2])
    expected = family.A[[5, 17]].toarray()
    fresh = lt.lattice.increasing([3, 4, 2])
    matrix, right = fresh.rows_at([5, 17])
    assert np.array_equal(matrix.toarray(), expected) and not right.any()
    assert "A" not in vars(fresh)


def test_four_million_rows_in_a_second():
    """A lattice of two features has 4 million rows; none of them is stored."""
    family = lt.lattice.increasing([1500, 1400])
    w = np.random.default_rng(9).normal(size=family.dimension)
    family.worst(w, 10)  # compiles
    began = time.process_time()
    found = family.worst(w, 5000)
    assert found.size == 5000 and time.process_time() - began < 10.0  # 0.1 s on one free core
    matrix, _ = family.rows_at(found)
    assert np.all(np.diff(matrix @ w) <= 1e-12)
    assert matrix[0] @ w == family.largest(w)
