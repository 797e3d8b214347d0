"""Weighted sums: values and gradients add up, examples count right, every solver takes them."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse

import lighttouch as lt
from catalogue import OBJECTIVES, SOLVERS, Interpreted, compiled_examples, python_examples
from lighttouch.kernels.state.iterate import clear, new_gradient
from lighttouch.kernels.verbs.objectives import add_gradient

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(40, 5)), RNG.normal(size=40)
LABELS = np.sign(RNG.normal(size=15))
PARTS = (
    lt.EmpiricalRisk(X, Y, "huber", l2=0.1, l1=0.05),
    lt.EmpiricalRisk(scipy.sparse.csr_matrix(X[:15]), LABELS, "logistic", roughness=np.eye(5)[:2]),
    lt.Quadratic(np.diag([1.0, 2.0, 3.0, 4.0, 5.0]), [0.1, -0.2, 0.3, 0.0, 0.0]),
)
WEIGHTS = (1.0, 0.5, 0.2)
SUM = lt.WeightedSum(PARTS, WEIGHTS)


def test_values_and_gradients_add_up():
    for w in np.random.default_rng(1).normal(size=(5, 5)):
        pairs = list(zip(PARTS, WEIGHTS, strict=True))
        value = sum(weight * part.value(w) for part, weight in pairs)
        gradient = sum(weight * part.gradient(w) for part, weight in pairs)
        assert SUM.value(w) == pytest.approx(value, rel=1e-12)
        np.testing.assert_allclose(SUM.gradient(w), gradient, rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", ["sum", "sum with a user's"])
def test_the_mean_over_examples_is_the_gradient_of_the_whole(name):
    rng = np.random.default_rng(2)
    objective = OBJECTIVES[name](rng)
    w, gradient = rng.normal(size=5), new_gradient(5)
    clear(gradient)
    for example in range(objective.examples):
        objective._run(add_gradient)(
            objective.record, example, w, 1.0 / objective.examples, gradient
        )
    mean = np.where(gradient.stamp == gradient.cursor[1], gradient.values, 0.0)
    np.testing.assert_allclose(mean + objective.l2 * w, objective.gradient(w), rtol=0, atol=1e-10)


def test_parts_of_one_term_take_part_in_every_step():
    assert SUM.examples == 55
    twice = lt.WeightedSum([PARTS[2], PARTS[2]])
    assert twice.examples == 1
    assert twice.value(np.ones(5)) == pytest.approx(2.0 * PARTS[2].value(np.ones(5)))


def test_sums_of_sums_are_flat():
    nested = lt.WeightedSum([lt.WeightedSum(PARTS[:2], [2.0, 1.0]), PARTS[2]], [0.5, 0.2])
    assert nested.objectives == PARTS and nested.weights.tolist() == [1.0, 0.5, 0.2]
    assert nested.value(np.ones(5)) == SUM.value(np.ones(5))


def test_weights_are_repetitions():
    repeated = lt.WeightedSum([PARTS[0], PARTS[1], PARTS[1], PARTS[2]])
    weighted, w = lt.WeightedSum(PARTS, [1.0, 2.0, 1.0]), np.linspace(-1, 1, 5)
    assert repeated.value(w) == pytest.approx(weighted.value(w), rel=1e-12)
    assert lt.WeightedSum(PARTS, [1.0, 0.0, 0.0]).value(w) == pytest.approx(PARTS[0].value(w))


OFTEN = ("full touch", "light touch", "sampled adagrad", "accelerated", "automatic")


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=() if name in OFTEN else pytest.mark.slow) for name in SOLVERS],
)
def test_every_solver_takes_a_sum_or_says_why_not(name):
    problem = lt.Problem(SUM, lt.ordering(5), lt.Box(-2.0, 2.0))
    solver = SOLVERS[name].build(problem)
    if solver.objection_to(problem) is not None:
        assert name in ("interior point", "alternating directions", "quadratic steps")
        return
    start = SUM.value(np.ones(5))
    found = lt.solve(problem, solver, iterations=1500, start=np.ones(5), seed=0)
    best = lt.solve(problem, lt.Accelerated(1e-7)).objective
    assert best - 1e-6 <= found.objective < best + 0.2 * (start - best)
    alike = lt.solve(Interpreted(problem), solver, iterations=10, seed=0, project=False)
    same = lt.solve(problem, solver, iterations=10, seed=0, project=False)
    assert alike.w_last.tobytes() == same.w_last.tobytes()


def test_a_users_parts_run_compiled_or_interpreted():
    compiled = lt.WeightedSum([compiled_examples(X, Y), PARTS[2]])
    plain = lt.WeightedSum([python_examples(X, Y), PARTS[2]])
    built_in = lt.WeightedSum([lt.EmpiricalRisk(X, Y), PARTS[2]])
    assert plain.interpreted and not compiled.interpreted
    solver = lt.FullTouch(1.0, lt.InverseSqrt(0.1))
    points = [
        lt.solve(lt.Problem(each, lt.ordering(5)), solver, iterations=60, project=False).w_last
        for each in (compiled, plain, built_in)
    ]
    np.testing.assert_allclose(points[0], points[2], rtol=0, atol=1e-9)
    np.testing.assert_allclose(points[1], points[2], rtol=0, atol=1e-9)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (([],), "at least one objective"),
        (([PARTS[0], 3.0],), "got float at place 1"),
        (([PARTS[0], lt.Quadratic([[1.0]], [0.0])],), r"same dimension, got \[1, 5\]"),
        ((PARTS, [1.0, -1.0, 0.0]), "not be negative, got -1.0 at place 1"),
        ((PARTS, [1.0]), "weights must have 3 entries, got 1"),
    ],
)
def test_bad_sums_are_refused(arguments, words):
    with pytest.raises(lt.DataError, match=words):
        lt.WeightedSum(*arguments)
