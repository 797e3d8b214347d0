"""Orders of elimination, units of the interior point, and least eigenvalues by factors."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from lighttouch.interior.balance import _least_eigenvalues
from lighttouch.interior.costs import COSTS
from lighttouch.interior.program import Program, in_units, scaled, with_rows
from lighttouch.interior.systems import factor_size, fill_reducing, is_last, is_wide


def with_long_rows(parameters: int, long: int) -> sparse.csc_matrix:
    """[I A'; A I] with dense A."""
    A = sparse.csr_matrix(np.ones((long, parameters)))
    return sparse.bmat(
        [[sparse.identity(parameters), A.T], [A, sparse.identity(long)]], format="csc"
    )


def test_a_few_long_rows_are_eliminated_last():
    matrix = with_long_rows(2_000, 3)
    order = fill_reducing(matrix)
    assert sorted(order) == list(range(2_003))
    assert set(order[-3:]) == {2_000, 2_001, 2_002}
    entries, _ = factor_size(matrix[order][:, order].tocsc())
    assert entries < 4 * 2_003  # the factor fills up in the last three rows only


def test_many_long_rows_are_not_put_aside():
    count = COSTS.free_dense_dimension + 1
    assert not is_last(with_long_rows(COSTS.long_row + 1, count)).any()


def test_long_rows_do_not_make_a_program_wide():
    d = COSTS.ordered_at_once
    none = np.zeros(0)
    free = Program(sparse.identity(d, format="csr"), np.zeros(d), (), none, none, none, none)
    long = sparse.csr_matrix(np.ones((2, d)))
    assert not is_wide(with_rows(free, (long,), np.ones(2), np.zeros(2, dtype=bool)))


def test_a_quadratic_far_from_the_origin_is_brought_into_units_of_its_size():
    """The minimum of 1e-6 x^2 / 2 - x is at 1e6; right sides say that it may go there."""
    none = np.zeros(0)
    P = sparse.csr_matrix(np.diag([1e-6, 1e-6]))
    free = Program(P, -np.ones(2), (), none, none, none, none)
    rows = sparse.csr_matrix(np.eye(2))
    program = with_rows(free, (rows,), np.full(2, 1e8), np.zeros(2, dtype=bool))
    inner, units = scaled(program, COSTS.scaling_sweeps)
    assert 0.1 <= abs(inner.q).max() / abs(inner.P).max() <= 10.0
    again, _ = in_units(program, units)
    assert np.array_equal(again.q, inner.q)


@pytest.mark.parametrize("condition", [1e2, 1e8])
def test_least_eigenvalues_of_large_matrices_are_bounded_from_below(condition):
    rng = np.random.default_rng(3)
    size = COSTS.free_dense_dimension + 20
    Q = np.linalg.qr(rng.normal(size=(size, size)))[0]
    matrix = Q * np.geomspace(1.0, 1.0 / condition, size) @ Q.T
    matrix = 0.5 * (matrix + matrix.T)
    found = _least_eigenvalues(matrix[None])[0]
    assert 0.2 / condition <= found <= 1.0 / condition
    assert _least_eigenvalues((matrix - 2.0 / condition * np.eye(size))[None])[0] <= 0.0
