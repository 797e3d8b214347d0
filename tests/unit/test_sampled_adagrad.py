"""The default solver's stochastic loop, against a literal transcription; and its two layouts of
memory against each other.
"""

from __future__ import annotations

import math
import pickle
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np
import pytest
import scipy.sparse as sp

import lighttouch as lt
from catalogue import Interpreted
from lighttouch.solvers import sampled as planning
from lighttouch.solvers.costs import COSTS
from lighttouch.solvers.sampled import SampledState
from reference import LOSSES

EXAMPLES, DIMENSION = 90, 40


def sparse_problem(
    loss: str = "hinge", l2: float = 0.0, domain: lt.Box | None = None, weighted: bool = False
) -> lt.Problem:
    rng = np.random.default_rng(5)
    X = sp.random(
        EXAMPLES, DIMENSION, 0.15, random_state=rng, format="csr", data_rvs=rng.standard_normal
    )
    y = (
        np.sign(rng.normal(size=EXAMPLES))
        if loss in ("hinge", "logistic")
        else rng.normal(size=EXAMPLES)
    )
    weight = rng.random(EXAMPLES) + 0.5 if weighted else None
    low = np.arange(0, DIMENSION - 1)
    constraints = lt.order(low, low + 1, dimension=DIMENSION)
    return lt.Problem(
        lt.EmpiricalRisk(X, y, loss=loss, l2=l2, sample_weight=weight),
        constraints,
        domain or lt.Box(-0.8, 0.7),
    )


@contextmanager
def all_far(far: bool = True) -> Iterator[None]:
    """No coordinate stays in the caches."""
    before = COSTS.near_coordinates
    object.__setattr__(COSTS, "near_coordinates", 0 if far else before)
    try:
        yield
    finally:
        object.__setattr__(COSTS, "near_coordinates", before)


@pytest.fixture
def everything_is_far():
    with all_far():
        yield


def plan_of(problem: lt.Problem) -> planning.SamplingPlan:
    return planning.sampling_plan(problem, tolerance=1e-3)


def walked(problem: lt.Problem, steps: list[int], eta: float = 0.3, seed: int = 7) -> SampledState:
    """The state after so many steps of the loop alone, a call each; between calls it is saved and
    loaded.
    """
    solver, rng = lt.SampledAdaGrad(step_size=eta), np.random.default_rng(seed)
    state = solver.init(problem, np.zeros(problem.dimension))
    for count in steps:
        solver.advance(problem, state, count, rng)
        state = pickle.loads(pickle.dumps(state.copy()))
    return state


def transcribed(
    problem: lt.Problem, loss: str, steps: int, eta: float, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """The loop in plain words: w and the mean of the recorded iterates since the last power of
    two.
    """
    pace = plan_of(problem)
    X = problem.objective.X.toarray()
    share = problem.objective.l2 * EXAMPLES / np.maximum(1, (X != 0).sum(axis=0))
    weights = (
        problem.objective.record.weights
        if problem.objective.record.weights.size
        else np.ones(EXAMPLES)
    )
    lower, upper = (
        np.broadcast_to(bound, DIMENSION) for bound in (problem.domain.lower, problem.domain.upper)
    )
    w, squares, recorded, at = np.zeros(DIMENSION), np.full(DIMENSION, 1e-16), [], 0
    blocks = shuffled(-(-EXAMPLES // pace.run), np.random.default_rng(seed))
    ahead = [next(blocks) for _ in range(pace.runs)]
    for t in range(1, steps + 1):
        for r in range(pace.runs):
            block, ahead[r] = ahead[r], next(blocks)
            for i in range(block * pace.run, min((block + 1) * pace.run, EXAMPLES)):
                gradient = (
                    weights[i] * LOSSES[loss][1](float(X[i] @ w), problem.objective.y[i]) * X[i]
                )
                for j in np.flatnonzero(X[i]):
                    squares[j] += gradient[j] ** 2
                    w[j] -= eta / math.sqrt(squares[j]) * gradient[j]
                    w[j] /= 1.0 + (
                        share[j] * eta / math.sqrt(squares[j]) if squares[j] > 1e-16 else 0.0
                    )
                w[:] = np.clip(w, lower, upper)
        if t % pace.every == 0:
            for j in range(at, min(at + pace.group, DIMENSION - 1)):
                excess = max(0.0, w[j] - w[j + 1])
                give = math.sqrt(squares[j + 1]) / (
                    math.sqrt(squares[j]) + math.sqrt(squares[j + 1])
                )
                w[[j, j + 1]] += -give * excess, (1.0 - give) * excess
                w[:] = np.clip(w, lower, upper)
            at = at + pace.group if at + pace.group < DIMENSION - 1 else 0
        recorded = [] if t & (t - 1) == 0 else recorded
        recorded += [w.copy()] if t % pace.record == 0 else []
    return w, np.mean(recorded, axis=0)


def shuffled(count: int, rng: np.random.Generator) -> Iterator[int]:
    """Permutation after permutation, each shuffled as it is read."""
    order = list(range(count))
    while True:
        for place in range(count):
            chosen = place + int(rng.random() * (count - place))
            order[place], order[chosen] = order[chosen], order[place]
            yield order[place]


@pytest.mark.parametrize("loss", ["hinge", "logistic", "squared", "absolute"])
@pytest.mark.parametrize("l2", [0.0, 0.02])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_loop_is_its_transcription(loss, l2, weighted):
    problem = sparse_problem(loss, l2, weighted=weighted)
    state = walked(problem, [83])
    w, mean = transcribed(problem, loss, 83, 0.3, 7)
    np.testing.assert_allclose(state.w, w, rtol=0, atol=1e-12)
    np.testing.assert_allclose(lt.SampledAdaGrad().average(state), mean, rtol=0, atol=1e-12)


def test_bounds_of_each_coordinate_are_kept():
    upper = np.linspace(0.05, 0.5, DIMENSION)
    problem = sparse_problem(domain=lt.Box(-upper, upper))
    state = walked(problem, [83])
    w, _ = transcribed(problem, "hinge", 83, 0.3, 7)
    np.testing.assert_allclose(state.w, w, rtol=0, atol=1e-12)
    assert np.all(np.abs(state.w) <= upper)


@pytest.mark.parametrize("l2", [0.0, 0.02])
@pytest.mark.parametrize("far", [False, True])
def test_pieces_of_a_walk_are_the_whole_walk(far, l2):
    problem = sparse_problem(l2=l2)
    with all_far(far):
        whole, pieces = walked(problem, [83]), walked(problem, [1, 30, 52])
    assert whole.plan.far == far
    np.testing.assert_array_equal(whole.adagrad.coordinates, pieces.adagrad.coordinates)
    np.testing.assert_array_equal(whole.adagrad.tail, pieces.adagrad.tail)
    assert pieces.adagrad.coordinates.flags.f_contiguous == far, (
        "copied or saved, coordinates no longer lie beside their squares"
    )


@pytest.mark.parametrize("l2", [0.0, 0.02])
def test_far_coordinates_walk_as_near_ones_to_single_precision(l2):
    problem = sparse_problem("logistic", l2)
    near = walked(problem, [40])
    with all_far():
        far = walked(problem, [40])
    assert far.adagrad.coordinates.dtype == np.float32 and far.adagrad.coordinates.strides == (4, 8)
    np.testing.assert_allclose(far.w, near.w, rtol=0, atol=2e-5)


def test_numbers_too_large_for_single_precision_stay_in_double(everything_is_far):
    problem = sparse_problem("squared")
    X, y = problem.objective.X, problem.objective.y
    huge = lt.EmpiricalRisk(X * 1e12, y * 1e12, loss="squared")
    offset = lt.EmpiricalRisk(X, y * 0.01 + 1e5, loss="squared")
    assert plan_of(problem).far
    for objective in (huge, offset):
        assert not plan_of(lt.Problem(objective, problem.constraints)).far


def slack(record, j, w):
    return record.rows[j] @ w - 1.0


def slope(record, j, w, out):
    out += record.rows[j]


class Rows(NamedTuple):
    rows: np.ndarray


@pytest.mark.slow
@pytest.mark.parametrize("compiled", [True, False])
def test_users_functions_see_double_precision(everything_is_far, compiled):
    rows = Rows(np.eye(3, DIMENSION))
    if compiled:
        constraints = lt.ConvexConstraints(DIMENSION, 3, slack, slope, record=rows)
    else:
        constraints = lt.ConvexConstraints(
            DIMENSION, 3, lambda j, w: slack(rows, j, w), lambda j, w: rows.rows[j]
        )
    problem = lt.Problem(
        sparse_problem().objective,
        lt.stack(constraints, lt.ordering(DIMENSION)) if compiled else constraints,
    )
    assert not walked(problem, [20]).plan.far


DOMAINS = {
    "box": lt.Box(-0.1, 0.1),
    "boxes": lt.Box(-np.linspace(0.1, 0.7, DIMENSION), 0.3),
    "ball": lt.Ball(0.3),
}


@pytest.mark.parametrize("domain", DOMAINS.values(), ids=DOMAINS)
def test_far_or_near_no_iterate_leaves_the_domain(everything_is_far, domain):
    state = walked(sparse_problem(domain=domain), [60])
    assert state.plan.far == (not isinstance(domain, lt.Ball))
    for w in (state.w, lt.SampledAdaGrad().average(state)):
        if isinstance(domain, lt.Ball):
            assert np.linalg.norm(w) <= domain.radius * (1 + 1e-12)
        else:
            assert np.all(w >= domain.lower) and np.all(w <= domain.upper)


def test_bounds_are_rounded_inward():
    bounds = np.array([0.1, -0.1, 1e300, -1e300, 0.5, np.inf, -np.inf])
    inside = planning.inward(
        lt.Box(np.full(7, -np.inf), np.inf).record(7)._replace(lower=bounds, upper=bounds)
    )
    assert np.all(inside.lower >= bounds) and np.all(inside.upper <= bounds)
    for side in (inside.lower, inside.upper):
        np.testing.assert_array_equal(side.astype(np.float32).astype(float), side)


def test_a_box_too_narrow_for_single_precision_stays_in_double(everything_is_far):
    assert not plan_of(sparse_problem(domain=lt.Box(1.0 + 1e-9, 1.0 + 2e-9))).far


def test_the_shares_of_the_ridge_add_up_to_it():
    problem = sparse_problem(l2=0.02)
    shares = planning.ridge_shares(problem)
    touched = problem.objective.X.toarray() != 0
    seen = touched.any(axis=0)
    np.testing.assert_allclose(
        (touched[:, seen] * shares[seen]).sum(axis=0) / EXAMPLES, 0.02, rtol=1e-12
    )
    assert np.all(np.isinf(shares[~seen]))


@pytest.mark.parametrize(
    "where",
    [
        "margins are kept",
        "no example has the column",
        "its entries are zeros",
        "its examples weigh nothing",
    ],
)
def test_the_ridge_pulls_on_coordinates_without_gradients(everything_is_far, where):
    rng = np.random.default_rng(3)
    X = np.abs(rng.normal(size=(EXAMPLES, 4))) + 0.5
    weights = np.ones(EXAMPLES)
    if where == "no example has the column":
        X[:, 3] = 0.0
    if where == "its examples weigh nothing":
        weights[: EXAMPLES // 2] = 0.0
        X[EXAMPLES // 2 :, 3] = 0.0
    X = sp.csr_matrix(X)
    if where == "its entries are zeros":
        X.data[X.indices == 3] = 0.0
    start = np.full(4, 8.0) if where == "margins are kept" else np.array([0.0, 0.0, 0.0, 8.0])
    problem = lt.Problem(
        lt.EmpiricalRisk(X, np.ones(EXAMPLES), loss="hinge", l2=0.5, sample_weight=weights)
    )
    solver, rng = lt.SampledAdaGrad(step_size=0.5), np.random.default_rng(0)
    state = solver.init(problem, start)
    while state.iteration < 4000:
        solver.advance(problem, state, 4000 - state.iteration, rng)
    assert abs(state.w[3]) < 0.3


def test_interpreted_and_compiled_walks_are_the_same_bits():
    problem = sparse_problem("logistic", 0.02, weighted=True)
    compiled, plain = walked(problem, [30]), walked(Interpreted(problem), [30])
    np.testing.assert_array_equal(compiled.adagrad.coordinates, plain.adagrad.coordinates)


def test_a_tail_is_an_average_from_the_first_stage_on():
    rng = np.random.default_rng(1)
    X = sp.csr_matrix(
        (np.ones(250_000), rng.integers(32_000, size=250_000), np.arange(250_001)),
        shape=(250_000, 32_000),
    )
    problem = lt.Problem(
        lt.EmpiricalRisk(X, rng.normal(size=250_000), loss="absolute"), lt.ordering(32_000)
    )
    pace = plan_of(problem)
    assert planning.first_stage(problem, pace) / pace.record >= 16


def test_a_far_problem_is_solved_like_a_near_one():
    rng = np.random.default_rng(0)
    lattice = lt.Lattice([2] * 6)
    better, worse = np.sort(rng.random((2, 60_000, 6)), axis=0)[::-1]
    objective = lt.PairwiseRisk(lattice.features(better), lattice.features(worse), loss="hinge")
    problem = lt.Problem(objective, lt.lattice.increasing([2] * 6), lt.Box(-1, 1))
    near = lt.solve(problem, lt.SampledAdaGrad())
    with all_far():
        far = lt.solve(problem, lt.SampledAdaGrad())
    assert any("single precision" in note for note in far.notes)
    assert far.violation <= 0.0
    assert far.objective == pytest.approx(near.objective, rel=2e-3)
