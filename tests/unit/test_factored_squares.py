"""Squared errors known by their sums: the same objective, optimum and proof as from the examples;
and the factors and pages that they are made of.
"""

from __future__ import annotations

import multiprocessing
import pickle

import numpy as np
import pytest
from scipy import sparse

import lighttouch as lt
from lighttouch import cholesky
from lighttouch.cholesky import LARGE, Cholesky, Scratch, zeros
from lighttouch.objectives import FactoredSquares
from lighttouch.result import Status
from lighttouch.solvers import quadratic_steps
from lighttouch.solvers.bounds import Normal, fenchel_bound
from lighttouch.solvers.quadratic_steps import QuadraticSteps

EXAMPLES, KNOWN, DIMENSION, L2 = 300, 20, 24, 1e-7


def both(
    spread: float = 1.0, seed: int = 0, l2: float = L2
) -> tuple[lt.EmpiricalRisk, FactoredSquares]:
    """The mean over examples, and the same from their sums; the last columns have no entries."""
    rng = np.random.default_rng(seed)
    X = rng.random((EXAMPLES, KNOWN)) * np.logspace(0.0, -np.log10(spread), KNOWN)
    y = X @ rng.normal(size=KNOWN) + 0.1 * rng.normal(size=EXAMPLES)
    weights = rng.random(EXAMPLES)
    weights /= weights.sum()
    D = sparse.csr_matrix(0.1 * np.diff(np.eye(DIMENSION), axis=0))
    wide = np.pad(X, ((0, 0), (0, DIMENSION - KNOWN)))
    whole = lt.EmpiricalRisk(wide, y, sample_weight=weights, l2=l2, roughness=D)
    squares, moment = X.T @ (weights[:, None] * X), X.T @ (weights * y)
    energy = float(weights @ np.square(y))
    return whole, FactoredSquares(squares, moment, energy, EXAMPLES, D, l2)


def test_the_objective_is_that_of_the_examples_with_its_penalties():
    whole, summed = both()
    for w in np.random.default_rng(1).normal(size=(5, DIMENSION)):
        assert summed.value(w) == pytest.approx(whole.value(w), rel=1e-12)
        np.testing.assert_allclose(summed.gradient(w), whole.gradient(w), atol=1e-12)
    again = pickle.loads(pickle.dumps(summed))
    assert again.value(w) == summed.value(w) and again.least_curvature == summed.least_curvature


@pytest.mark.parametrize("l2", [L2, 1e-14])
def test_its_rows_are_the_factor_of_its_matrix(l2):
    """A penalty that is less than rounding proves no curvature; the factor's inverse does."""
    whole, summed = both(1e2, l2=l2)
    assert (summed.from_penalty > 0.0) == (l2 == L2)
    H = whole.X.T @ (whole.shares[:, None] * whole.X) + whole.penalty_matrix.toarray()
    right = np.arange(DIMENSION, dtype=float)
    np.testing.assert_allclose(H @ summed.factor.solved(right), right, atol=1e-6)
    root = np.linalg.cholesky(H)
    half = summed.factor.half_solved(np.asfortranarray(np.eye(DIMENSION)))
    np.testing.assert_allclose(root @ half, np.eye(DIMENSION), atol=1e-9)
    assert np.may_share_memory(summed.factor.lower, summed.X)
    least = float(np.linalg.eigvalsh(H)[0])
    expected = 0.9 * l2 if l2 == L2 else 0.01 * least
    assert expected <= summed.least_curvature <= least * (1.0 + 1e-6)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("spread", [1.0, 1e3])
def test_the_same_optimum_is_found_and_proven_under_rules(spread, seed):
    whole, summed = both(spread, seed)
    rules = lt.ordering(DIMENSION)
    expected = lt.solve(lt.Problem(whole, rules), QuadraticSteps(1e-9))
    found = lt.solve(lt.Problem(summed, rules), QuadraticSteps(1e-9))
    assert found.status is Status.CONVERGED and rules.violation(found.w) <= 1e-12
    assert found.objective == pytest.approx(expected.objective, rel=1e-9)
    assert found.lower_bound <= min(found.objective, whole.value(expected.w)) * (1.0 + 1e-12)
    assert found.lower_bound >= found.objective * (1.0 - 1e-8)


@pytest.mark.parametrize("seed", range(10))
def test_the_bound_holds_for_any_force_and_not_without_the_curvature(seed):
    """Whatever the multipliers of the rules: no ordered point lies below it."""
    rng = np.random.default_rng(seed)
    _, summed = both(1e2, seed)
    rules = lt.ordering(DIMENSION)
    best = lt.solve(lt.Problem(summed, rules), QuadraticSteps(1e-10)).objective
    moment = -summed.gradient(np.zeros(DIMENSION))
    for size in (0.0, 1e-3, 1.0):
        force = rules.A.T @ (size * rng.random(DIMENSION - 1))
        u = summed.factor.solved(moment - force)
        slopes = summed.X @ u - summed.y
        far = np.full(DIMENSION, np.inf)
        normal = Normal(force, np.zeros(DIMENSION), far, 1e-16)
        bound = fenchel_bound(summed, slopes, normal, u, bend=summed.least_curvature)
        assert -np.inf < bound <= best
        assert fenchel_bound(summed, slopes, normal, u) == -np.inf


def test_a_singular_matrix_has_a_little_more_of_its_diagonal():
    D = sparse.csr_matrix((0, 2))
    ones = np.ones((2, 2))
    summed = FactoredSquares(ones, np.ones(2), 1.0, 4, D, 0.0)
    assert summed.value([0.5, 0.5]) == pytest.approx(0.0, abs=1e-9)
    assert 0.0 < summed.least_curvature < 1e-8


def test_a_factor_solves_with_its_matrix_and_may_keep_the_rest_of_it():
    rng = np.random.default_rng(0)
    root = rng.normal(size=(7, 7))
    H = root @ root.T + np.eye(7)
    kept = H.copy()
    factor = Cholesky.of(kept, clean=False)
    assert np.may_share_memory(factor.lower, kept)
    np.testing.assert_array_equal(np.triu(factor.lower, 1), np.triu(H, 1))
    np.testing.assert_allclose(np.tril(factor.lower), np.linalg.cholesky(H), atol=1e-12)
    np.testing.assert_array_equal(np.triu(Cholesky.of(H.copy()).lower, 1), 0.0)
    right = rng.normal(size=7)
    np.testing.assert_allclose(
        Cholesky(factor.lower, 4.0).solved(right) * 4.0, factor.solved(right)
    )
    np.testing.assert_allclose(H @ factor.solved(right), right, atol=1e-12)
    assert Cholesky.of(-H.copy()) is None
    assert Cholesky.of(np.empty((0, 0))).solved(np.empty(0)).size == 0


def test_rounding_in_a_sum_of_many_penalties_is_not_taken_for_curvature():
    """A sum of 100,000 squares may be off by more than so small a penalty: then the inverse of the
    factor says how much there is.
    """
    rng = np.random.default_rng(0)
    D = sparse.csr_matrix(rng.normal(size=(100_000, 1)) * [1.0, 1.0])
    nothing = np.zeros((2, 2))
    trace = float((D.T @ D).trace())
    summed = FactoredSquares(nothing, np.zeros(2), 1.0, 1, D, 1e-13 * trace)
    assert summed.from_penalty <= 0.0 < summed.least_curvature
    rows = summed.X[:-1] / np.sqrt(summed.examples)
    assert summed.least_curvature <= np.linalg.svd(rows, compute_uv=False)[-1] ** 2 * (1.0 + 1e-3)


def test_an_interior_point_takes_over_where_pivots_fail(monkeypatch):
    whole, summed = both()
    rules = lt.ordering(DIMENSION)
    expected = lt.solve(lt.Problem(whole, rules), QuadraticSteps(1e-9))
    monkeypatch.setattr(quadratic_steps, "pivoted_minimum", lambda *given: None)
    found = lt.solve(lt.Problem(summed, rules), QuadraticSteps(1e-9))
    assert found.objective == pytest.approx(expected.objective, rel=1e-9)
    assert found.status is Status.CONVERGED and rules.violation(found.w) <= 1e-9


def test_a_lack_of_memory_is_told_as_numpy_tells_it(monkeypatch):
    def refused(*given, **options):
        raise OSError(12, "Cannot allocate memory")

    monkeypatch.setattr(cholesky.mmap, "mmap", refused)
    assert zeros(1000, 1000).shape == (1000, 1000)
    with pytest.raises(MemoryError):
        zeros(10**8, 10**8)


def _write_into(matrix: np.ndarray) -> None:
    matrix.fill(1.0)


def test_large_matrices_are_like_any_others():
    large = zeros(400, LARGE // 8 // 400 + 1)
    assert large.flags.c_contiguous and large.flags.writeable and not large.any()
    large[3, 4] = 2.0
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(large)), large)
    assert zeros(2, 3).shape == (2, 3) and zeros(0).size == 0
    if "fork" in multiprocessing.get_all_start_methods():
        child = multiprocessing.get_context("fork").Process(target=_write_into, args=(large,))
        child.start()
        child.join()
        assert child.exitcode == 0 and large.sum() == 2.0


def test_scratch_is_used_again_and_grows():
    scratch = Scratch()
    first = scratch.matrix(400)
    assert np.may_share_memory(first, scratch.matrix(300))
    assert not np.may_share_memory(first, scratch.matrix(500))
    np.testing.assert_array_equal(scratch.copied(np.eye(5)), np.eye(5))
