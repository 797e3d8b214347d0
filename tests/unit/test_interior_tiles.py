"""Products on all cores: the same bits with one core and several, and what dense rows do with
them.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest

import lighttouch as lt
from lighttouch.interior import tiles
from lighttouch.solvers.interior_rounds import model_of

SMALL = replace(
    tiles.COSTS, tiled_products=1.0, tiled_entries=1.0, tiled_scaled=1.0, tile=7, tall_tile=5
)


@pytest.fixture(params=[1, 2, 5])
def threads(request, monkeypatch):
    """Everything is cut into small tiles, on so many threads."""
    pool = ThreadPoolExecutor(request.param)
    monkeypatch.setattr(tiles, "COSTS", SMALL)
    monkeypatch.setattr(tiles, "_threads", lambda: pool)
    yield request.param
    pool.shutdown()


def products(rows, w):
    H = np.zeros((rows.shape[1],) * 2, order="F")
    tiles.add_gram(H, rows)
    return (
        tiles.gram(rows),
        np.tril(H),
        tiles.times(rows, w),
        tiles.scaled_rows(w[: len(rows)], rows),
    )


def test_products_are_right_and_the_same_bits_on_any_number_of_threads(threads, monkeypatch):
    rng = np.random.default_rng(3)
    rows, w = rng.normal(size=(23, 31)), rng.normal(size=31)
    found = products(rows, w)
    with ThreadPoolExecutor(1) as alone:
        monkeypatch.setattr(tiles, "_threads", lambda: alone)
        for several, one in zip(found, products(rows, w), strict=True):
            np.testing.assert_array_equal(several, one)
    expected = rows.T @ rows, np.tril(rows.T @ rows), rows @ w, w[:23, None] * rows
    for several, one in zip(found, expected, strict=True):
        np.testing.assert_allclose(several, one, atol=1e-12)
    np.testing.assert_array_equal(found[0], found[0].T)


def dense_problem(d=160, count=40, seed=0):
    """Least squares in a random polytope whose best point is nearly a vertex."""
    rng = np.random.default_rng(seed)
    truth = rng.normal(size=d) / np.sqrt(d)
    X = rng.normal(size=(4 * d, d))
    y = X @ truth + 0.5 * rng.normal(size=4 * d)
    A = rng.normal(size=(count * d, d))
    b = np.abs(A @ (0.7 * truth)) + 0.3 * np.abs(rng.normal(size=count * d))
    return lt.Problem(lt.EmpiricalRisk(X, y), lt.LinearConstraints(A, b), lt.Box(-2, 2))


@pytest.mark.parametrize("tolerance", [1e-2, 1e-5])
def test_a_good_point_is_moved_to_where_it_breaks_no_dense_row(tolerance):
    problem = dense_problem()
    assert model_of(problem).rows.any_dense
    result = lt.solve(problem, lt.InteriorPoint(tolerance))
    exact = lt.solve(problem, lt.InteriorPoint(1e-8))
    assert result.status is lt.Status.CONVERGED
    assert result.violation <= 1e-12
    assert result.lower_bound <= exact.objective * (1.0 + 1e-9)
    assert exact.objective * (1.0 - 1e-9) <= result.objective
    assert result.objective - result.lower_bound <= tolerance * result.objective
    if tolerance == 1e-2:  # an early round was good enough
        assert result.objective > exact.objective * (1.0 + 1e-7)
        assert result.iterations < exact.iterations
