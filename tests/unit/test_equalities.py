"""Linear equalities: alone, with bounds, orders and rows, redundant, contradictory, and solved."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse

import lighttouch as lt
from lighttouch.projections.sets import feasible_set

FORMS = {"dense": np.asarray, "sparse": scipy.sparse.csr_matrix}


def system(seed: int, rows: int, dimension: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows of which the last follows from two others, right sides, and a point that has them."""
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(rows, dimension))
    A[-1] = A[0] - 2.0 * A[1]
    x = np.sort(rng.uniform(-1.0, 1.0, size=dimension))
    return A, A @ x, x


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e4])
def test_alone_they_are_an_affine_projection(form, scale):
    A, b, _ = system(1, 5, 12)
    v = scale * np.random.default_rng(2).normal(size=12)
    found = lt.project(v, lt.LinearEqualities(FORMS[form](A), b))
    expected = v - np.linalg.pinv(A) @ (A @ v - b)
    size = max(1.0, np.abs(v).max())
    np.testing.assert_allclose(found.w, expected, rtol=0, atol=1e-12 * size)
    assert found.violation <= 1e-12 * size and found.certificate.kind == "exact"
    np.testing.assert_allclose(
        v - found.w, A.T @ found.multipliers, rtol=0, atol=1e-11 * size
    )  # one multiplier per equality, of either sign


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("others", ["box", "order", "rows", "order in a box", "ball"])
@pytest.mark.parametrize("seed", range(4))
def test_with_others_they_hold_to_rounding(form, others, seed):
    A, b, x = system(seed, 4, 15)
    rng = np.random.default_rng(seed)
    G = rng.normal(size=(20, 15))
    parts = [lt.LinearEqualities(FORMS[form](A), b)]
    if "order" in others:
        parts.append(lt.ordering(15))
    if others == "rows":
        parts.insert(0, lt.LinearConstraints(FORMS[form](G), G @ x + rng.uniform(0, 0.2, size=20)))
    domain = lt.Box(-1.0, 1.0) if "box" in others else lt.Everywhere()
    domain = lt.Ball(1.5 * np.linalg.norm(x)) if others == "ball" else domain
    constraints = lt.stack(*parts)
    v = rng.normal(size=15) * 3.0
    found = lt.project(v, constraints, domain)
    assert np.abs(A @ found.w - b).max() <= 1e-12 * 20 and found.violation <= 1e-11
    assert found.certificate.holds
    for t in (0.3, 1.0):  # no point of the set is nearer
        inside = lt.project(x + t * rng.normal(size=15), constraints, domain).w
        assert (v - found.w) @ (inside - found.w) <= 1e-7


def test_multipliers_are_one_per_constraint():
    """2 w_0 + 2 w_1 = 2 between bounds written as rows, which come before it."""
    constraints = lt.stack(lt.bounds(2, lower=0.0), lt.LinearEqualities([[2.0, 2.0]], [2.0]))
    found = lt.project([3.0, -4.0], constraints)
    np.testing.assert_allclose(found.w, [1.0, 0.0], atol=1e-14)
    np.testing.assert_allclose(found.multipliers, [0.0, 6.0, 1.0], atol=1e-12)
    below = lt.project([-3.0, -3.0], constraints)
    np.testing.assert_allclose(below.multipliers, [0.0, 0.0, -1.75], atol=1e-12)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("domain", [lt.Everywhere(), lt.Box(-9.0, 9.0)])
def test_contradictory_ones_are_named_by_their_own_numbers(form, domain):
    A, b, _ = system(3, 5, 8)
    b[-1] += 1e-3
    rows = lt.LinearConstraints(FORMS[form](np.eye(8)[:2]), [8.0, 8.0])
    names = [f"equality {k}" for k in range(5)]
    together = lt.stack(rows, lt.LinearEqualities(FORMS[form](A), b, names))
    with pytest.raises(lt.InfeasibleConstraintsError, match="equality 4") as error:
        lt.project(np.zeros(8), together, domain)
    assert set(error.value.rows) == {2, 3, 6}
    with pytest.raises(lt.InfeasibleConstraintsError) as error:
        lt.project(np.zeros(8), lt.LinearEqualities(FORMS[form](A), b), domain)
    assert set(error.value.rows) == {0, 1, 4} and "w[0]" in str(error.value)
    assert " = " in str(error.value)


def test_one_coordinate_and_two():
    """w_0 = 1 is a bound, w_1 = w_2 + 2 two orders: the methods for those meet them exactly."""
    fixed = lt.LinearEqualities(scipy.sparse.csr_matrix([[2.0, 0.0, 0.0]]), [2.0])
    tied = lt.LinearEqualities(scipy.sparse.csr_matrix([[0.0, 1.0, -1.0]]), [2.0])
    order = lt.order([0], [1], dimension=3)
    found = lt.project([5.0, 0.0, 0.0], lt.stack(order, tied))
    np.testing.assert_allclose(found.w, [7 / 3, 7 / 3, 1 / 3], atol=1e-14)
    found = lt.project([5.0, 0.0, 0.0], lt.stack(order, tied, fixed))
    np.testing.assert_allclose(found.w, [1.0, 1.0, -1.0], atol=1e-14)
    with pytest.raises(lt.InfeasibleConstraintsError) as error:
        lt.project([0.0, 0.0, 0.0], lt.stack(order, fixed), lt.Box(-3.0, 0.5))
    assert error.value.rows == (1,)
    both = lt.stack(order, tied, lt.LinearEqualities([[0.0, -1.0, 1.0]], [1.0]))
    with pytest.raises(lt.InfeasibleConstraintsError) as error:
        lt.project([0.0, 0.0, 0.0], both)
    assert error.value.rows == (1, 2)


def test_beside_curved_constraints():
    ball = lt.NormConstraints(None, np.zeros((1, 3)), None, [1.0])
    plane = lt.LinearEqualities([[1.0, 1.0, 1.0]], [1.0])
    found = lt.project([5.0, 0.0, 0.0], lt.stack(ball, plane))
    np.testing.assert_allclose(found.w, [1.0, 0.0, 0.0], atol=1e-6)
    assert abs(found.w.sum() - 1.0) <= 1e-10
    far = lt.LinearEqualities([[1.0, 1.0, 1.0]], [9.0])
    with pytest.raises(lt.InfeasibleConstraintsError) as error:
        lt.project([0.0, 0.0, 0.0], lt.stack(ball, far))
    assert error.value.rows == (0, 1)


def test_stacked_ones_are_one_family_and_know_what_they_are():
    first, second = lt.LinearEqualities([[1.0, 0.0]], [1.0]), lt.LinearEqualities([[0.0, 1.0]], [2])
    both = lt.stack(first, second)
    assert isinstance(both, lt.LinearEqualities) and both.count == 2 and both.is_equality is True
    mixed = lt.stack(first, lt.ordering(2))
    assert mixed.is_equality.tolist() == [True, False]
    feasible = feasible_set(mixed, lt.Everywhere())
    assert feasible.constraint_of_row.tolist() == [0, 0, 1]


def test_an_answer_of_solve_keeps_them():
    rng = np.random.default_rng(5)
    X, y = rng.normal(size=(60, 8)), rng.normal(size=60)
    A, b, _ = system(6, 3, 8)
    problem = lt.Problem(lt.EmpiricalRisk(X, y), lt.LinearEqualities(A, b), lt.Box(-5.0, 5.0))
    result = lt.solve(problem)
    assert result.violation <= 1e-12 * 10
    P, q = X.T @ X / 60, X.T @ y / 60
    kkt = np.block([[P, A.T], [A, np.zeros((3, 3))]])
    expected = np.linalg.lstsq(kkt, np.concatenate([q, b]), rcond=None)[0][:8]
    assert result.objective <= problem.objective.value(expected) * (1 + 1e-5)


@pytest.mark.parametrize("form", FORMS)
def test_the_worst_rows_and_rows_by_number(form):
    A, b, _ = system(7, 6, 9)
    family = lt.LinearEqualities(FORMS[form](A), b)
    w = np.random.default_rng(8).normal(size=9)
    matrix, right = family.rows_at([4, 1])
    assert np.array_equal(matrix.toarray(), A[[4, 1]]) and np.array_equal(right, b[[4, 1]])
    relative = family.values(w) / family.row_scales()
    assert family.worst(w, 3).tolist() == np.argsort(-relative)[:3].tolist()
