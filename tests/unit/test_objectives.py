"""Offsets, l1 penalties and users' losses: what they add, and that methods find the optimum."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse

import lighttouch as lt
from lighttouch import losses
from lighttouch.solvers.bounds import Normal, fenchel_bound

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
    w = np.random.default_rng(1).normal(size=4)
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
    """With offset, l2 and l1, from the slopes at a point; at the optimum it touches."""
    y = COUNTS if loss == "poisson" else Y
    risk = lt.EmpiricalRisk(X, y, loss, l2=0.1, offset=OFFSET, l1=l1)
    best, nothing = lt.solve(lt.Problem(risk), lt.Accelerated(1e-6)).w, np.zeros(4)
    for w in (nothing, best):
        slopes = losses.derivatives(risk.loss_row, risk.predictions(w), y)[1]
        force = X.T @ slopes / 60
        u = -np.sign(force) * np.maximum(0.0, np.abs(force) - l1) / 0.1
        bound = fenchel_bound(risk, slopes, Normal(nothing, nothing, np.full(4, np.inf)), u)
        assert -np.inf < bound <= risk.value(best)
    if not risk.loss_row.kinked:
        assert bound >= risk.value(best) - 1e-3 * abs(risk.value(best))


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


# --- users' losses
HALF_SQUARE = (lambda z, y: 0.5 * (z - y) * (z - y), lambda z, y: z - y, lambda z, y: 1.0)


def test_a_users_loss_is_proven_where_its_conjugate_is_given():
    def answer(**more):
        risk = lt.EmpiricalRisk(X, Y, lt.CustomLoss(*HALF_SQUARE, compiled=False, **more), l2=0.1)
        return lt.solve(lt.Problem(risk, lt.ordering(X.shape[1])), lt.QuadraticSteps())

    proven = answer(conjugate=lambda s, y: 0.5 * s * s + s * y)
    assert proven.status is lt.Status.CONVERGED and proven.gap < 1e-6
    assert answer().status is lt.Status.STALLED


@pytest.mark.slow
@pytest.mark.parametrize("form", [np.asarray, scipy.sparse.csr_matrix])
@pytest.mark.parametrize("compiled", [True, False])
def test_a_users_squares_are_the_built_in_ones(form, compiled):
    own = lt.CustomLoss(*HALF_SQUARE, compiled=compiled)
    more = {"l2": 0.1, "l1": 0.05, "offset": OFFSET, "sample_weight": np.arange(60.0)}
    ours, theirs = (lt.EmpiricalRisk(form(X), Y, loss, **more) for loss in ("squared", own))
    w = np.random.default_rng(1).normal(size=4)
    assert theirs.value(w) == ours.value(w)
    assert theirs.gradient(w).tobytes() == ours.gradient(w).tobytes()
    assert theirs.interpreted is not compiled and isinstance(theirs, lt.EmpiricalRisk)
    problems = [lt.Problem(each, lt.ordering(4)) for each in (ours, theirs)]
    paper = lt.FullTouch(1.5, lt.InverseSqrt(0.2))
    points = [lt.solve(each, paper, iterations=60, project=False).w_last for each in problems]
    assert points[0].tobytes() == points[1].tobytes()
    built_in, users = (lt.solve(each, lt.Accelerated(1e-6)).objective for each in problems)
    assert users == pytest.approx(built_in, rel=1e-5)  # without conjugates it rounds |w| otherwise


def test_quadratic_steps_take_a_users_loss_with_its_curvature():
    problems = [
        lt.Problem(lt.EmpiricalRisk(X, Y, loss, l2=0.1), lt.ordering(4))
        for loss in ("squared", lt.CustomLoss(*HALF_SQUARE), lt.CustomLoss(*HALF_SQUARE[:2]))
    ]
    ours, theirs = (lt.solve(problem, lt.QuadraticSteps()) for problem in problems[:2])
    assert theirs.objective == pytest.approx(ours.objective, rel=1e-9)
    assert ours.status is lt.Status.CONVERGED and theirs.status is lt.Status.STALLED
    assert "curvature" in lt.QuadraticSteps().objection_to(problems[2])


def test_bad_losses_of_users_are_named():
    with pytest.raises(ValueError, match=r"slope must return a number.*compiled=False"):
        lt.CustomLoss(lambda z, y: 0.0, lambda z, y: z.missing)
    with pytest.raises(ValueError, match="slope must be a function"):
        lt.CustomLoss(lambda z, y: 0.0, 1.0)
    with pytest.raises(ValueError, match="targets must be one of any, labels"):
        lt.CustomLoss(*HALF_SQUARE, targets="some")
    with pytest.raises(lt.DataError, match=r"positive for the custom loss, got 0.0 in row 0"):
        lt.EmpiricalRisk([[1.0]], [0.0], lt.CustomLoss(*HALF_SQUARE, targets="positive"))
