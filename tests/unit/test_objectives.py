"""Offsets and l1 penalties: what they add, and that every method finds the same optimum."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse

import lighttouch as lt
from lighttouch.solvers.bounds import fenchel_bound

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 4))
Y = X @ [1.0, 0.0, 0.2, -1.0] + 0.3 * RNG.normal(size=60)
OFFSET = RNG.normal(size=60)
COUNTS = RNG.poisson(np.exp(0.5 * Y + OFFSET)).astype(float)


def lasso(l1: float) -> np.ndarray:
    """The optimum of squared errors with l1, by coordinates, in NumPy."""
    w = np.zeros(4)
    for _ in range(2000):
        for j in range(4):
            left = Y - X @ w + X[:, j] * w[j]
            pull = X[:, j] @ left / 60
            w[j] = np.sign(pull) * max(0.0, abs(pull) - l1) / (X[:, j] @ X[:, j] / 60)
    return w


def test_offsets_are_shifted_targets_for_losses_of_errors():
    w = RNG.normal(size=4)
    for loss in (
        "squared",
        "absolute",
        lt.Huber(0.3),
        lt.Quantile(0.2),
        lt.EpsilonInsensitive(0.1),
    ):
        for form in (np.asarray, scipy.sparse.csr_matrix):
            moved = lt.EmpiricalRisk(form(X), Y, loss, offset=OFFSET)
            shifted = lt.EmpiricalRisk(form(X), Y - OFFSET, loss)
            assert moved.value(w) == pytest.approx(shifted.value(w), rel=1e-12)
            np.testing.assert_allclose(moved.gradient(w), shifted.gradient(w), rtol=0, atol=1e-12)
    assert lt.EmpiricalRisk(X, Y).offset is None


def test_an_offset_of_exposures_scales_counts():
    """e^(z + log E) - y (z + log E): the optimum explains counts per exposure."""
    risk = lt.EmpiricalRisk(np.ones((3, 1)), [2.0, 4.0, 6.0], "poisson", offset=np.log([1, 2, 3]))
    assert np.exp(lt.solve(lt.Problem(risk), lt.Automatic(1e-9)).w[0]) == pytest.approx(2.0, 1e-4)


def test_l1_adds_the_sum_of_absolute_values():
    w = np.array([1.0, -2.0, 0.0, 0.5])
    for form in (np.asarray, scipy.sparse.csr_matrix):
        plain, lasso_ = (lt.EmpiricalRisk(form(X), Y, l1=l1) for l1 in (0.0, 0.3))
        assert lasso_.value(w) == pytest.approx(plain.value(w) + 0.3 * 3.5, rel=1e-12)
        added = lasso_.gradient(w) - plain.gradient(w)
        np.testing.assert_allclose(added, [0.3, -0.3, 0.0, 0.3], rtol=0, atol=1e-12)
        assert lasso_.l1 == 0.3 and plain.record.l1.size == 0


@pytest.mark.parametrize("form", [np.asarray, scipy.sparse.csr_matrix])
@pytest.mark.parametrize(
    ("solver", "iterations", "accuracy"),
    [
        (lt.Automatic(1e-6), None, 1e-5),
        (lt.Accelerated(1e-6), None, 1e-5),
        (lt.SampledAdaGrad(1e-6), 4000, 3e-3),
        (lt.FullTouch(1.0, lt.InverseSqrt(0.3)), 20000, 1e-2),
        (lt.PracticalLightTouch(1.0, lt.AdaGrad(0.1)), 20000, 1e-2),
    ],
    ids=lambda value: type(value).__name__,
)
def test_every_method_finds_the_lasso(form, solver, iterations, accuracy):
    best = lt.EmpiricalRisk(X, Y, l1=0.25).value(lasso(0.25))
    assert abs(lasso(0.25)[1]) == 0.0
    problem = lt.Problem(lt.EmpiricalRisk(form(X), Y, l1=0.25), None, lt.Box(-5.0, 5.0))
    found = lt.solve(problem, solver, iterations=iterations, seed=0)
    assert best - 1e-12 <= found.objective <= best + accuracy


def test_fista_proves_the_lasso_everywhere():
    problem = lt.Problem(lt.EmpiricalRisk(X, Y, l1=0.25))
    assert lt.solve(problem, lt.Accelerated(1e-5)).status is lt.Status.CONVERGED


@pytest.mark.parametrize("l1", [0.0, 0.2])
@pytest.mark.parametrize("loss", ["squared", "poisson", lt.EpsilonInsensitive(0.2), "huber"])
def test_fenchels_bound_lies_below_and_can_touch(loss, l1):
    """With offset, l2 and l1, at the optimum's own slopes."""
    y = COUNTS if loss == "poisson" else Y
    risk = lt.EmpiricalRisk(X, y, loss, l2=0.1, offset=OFFSET, l1=l1)
    best = lt.solve(lt.Problem(risk), lt.Accelerated(1e-10)).w
    nothing = np.zeros(4)
    for w in (best, nothing):
        slopes = risk.gradient(w) - 0.1 * w - l1 * np.sign(w)  # X'(a s)
        s = np.linalg.lstsq(X.T / 60, slopes, rcond=None)[0]
        left = np.sign(slopes) * np.maximum(0.0, np.abs(X.T @ s / 60) - l1)
        bound = fenchel_bound(risk, s, nothing, nothing, -left / 0.1)
        assert bound <= risk.value(best) + 1e-9


def test_quadratic_steps_take_offsets_and_log_links_and_refuse_l1():
    for loss, y in (("squared", Y), ("poisson", COUNTS), (lt.Tweedie(1.5), COUNTS)):
        risk = lt.EmpiricalRisk(X, y, loss, l2=0.01, offset=OFFSET)
        problem = lt.Problem(risk, lt.ordering(4))
        found = lt.solve(problem, lt.QuadraticSteps(1e-8))
        other = lt.solve(problem, lt.Accelerated(1e-8))
        assert found.objective == pytest.approx(other.objective, rel=1e-6)
        assert found.status is lt.Status.CONVERGED
    with pytest.raises(ValueError, match="without l1"):
        lt.solve(lt.Problem(lt.EmpiricalRisk(X, Y, l1=0.1)), lt.QuadraticSteps())


@pytest.mark.parametrize(("loss", "y"), [("poisson", COUNTS), ("gamma", COUNTS + 0.5)])
def test_log_links_without_constraints_agree_with_scipy(loss, y):
    risk = lt.EmpiricalRisk(X, y, loss, offset=OFFSET)
    best = scipy.optimize.minimize(risk.value, np.zeros(4), jac=risk.gradient, tol=1e-12).fun
    assert lt.solve(lt.Problem(risk), lt.Automatic(1e-8)).objective == pytest.approx(best, rel=1e-7)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"offset": [1.0]}, "offset must have 60 entries, got 1"),
        ({"l1": -0.1}, "l1 must be non-negative and finite, got -0.1"),
    ],
)
def test_bad_offsets_and_penalties_are_named(arguments, words):
    with pytest.raises(ValueError, match=words):
        lt.EmpiricalRisk(X, Y, **arguments)
