"""Properties of every objective, constraint family and domain of the catalogue, and of the
draws.
"""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

import lighttouch as lt
from catalogue import DIMENSION, DOMAINS, FAMILIES, LOSSES, OBJECTIVES, TARGETS
from lighttouch.kernels.compiler.compiled import interpreted
from lighttouch.kernels.state.distribution import draw, learn, new_distribution, probabilities, tick
from lighttouch.kernels.state.iterate import clear, new_example_order, new_gradient, next_example
from lighttouch.kernels.verbs.constraints import add_subgradient, group_values, worst
from lighttouch.losses import loss_of

SEEDS = st.integers(0, 2**31)
SCALES = st.sampled_from([1e-3, 1.0, 30.0])


def subgradient(constraints, j: int, w: np.ndarray) -> np.ndarray:
    gradient = new_gradient(constraints.dimension)
    clear(gradient)
    add_subgradient(constraints.record, j, w, 1.0, gradient)
    return np.where(gradient.stamp == gradient.cursor[1], gradient.values, 0.0)


def slack(*numbers: float) -> float:
    """Room for rounding, in proportion to the numbers involved."""
    return 1e-9 * (1.0 + sum(abs(number) for number in numbers))


# --- subgradients
@pytest.mark.parametrize("name", OBJECTIVES)
@settings(max_examples=25)
@given(seed=SEEDS, scale=SCALES)
def test_objectives_lie_above_their_tangents(name, seed, scale):
    rng = np.random.default_rng(seed)
    objective = OBJECTIVES[name](rng)
    v, w = scale * rng.normal(size=(2, DIMENSION))
    there, here, gradient = objective.value(v), objective.value(w), objective.gradient(w)
    assert there >= here + gradient @ (v - w) - slack(there, here, np.abs(gradient) @ np.abs(v - w))


@pytest.mark.parametrize("name", FAMILIES)
@settings(max_examples=25)
@given(seed=SEEDS, scale=SCALES)
def test_constraints_lie_above_their_tangents(name, seed, scale):
    rng = np.random.default_rng(seed)
    constraints = FAMILIES[name](rng)
    v, w = scale * rng.normal(size=(2, DIMENSION))
    there, here = constraints.values(v), constraints.values(w)
    for j in range(constraints.count):
        slope = subgradient(constraints, j, w)
        assert there[j] >= here[j] + slope @ (v - w) - slack(
            there[j], here[j], np.abs(slope) @ np.abs(v - w)
        )


@pytest.mark.parametrize("name", FAMILIES)
def test_constraints_are_numbers_far_away(name):
    """Verbs run as plain Python too, where math.exp raises an error instead of returning inf."""
    rng = np.random.default_rng(0)
    constraints = FAMILIES[name](rng)
    plain = np.empty(constraints.count)
    for w in (np.full(DIMENSION, 1e4), np.full(DIMENSION, -1e4), 1e4 * rng.normal(size=DIMENSION)):
        values = constraints.values(w)
        sizes = constraints.members, constraints.group_size
        interpreted(group_values)(constraints.record, *sizes, w, plain)
        assert not np.isnan(values).any() and plain.tobytes() == values.tobytes()
        slopes = [constraints.subgradient(j, w) for j in range(constraints.count)]
        assert not np.isnan(slopes).any()


@pytest.mark.parametrize(
    "name", ["hinge", "absolute", "huber", "Quantile(level=0.2)", "squared", "logistic"]
)
def test_losses_at_their_kinks(name):
    """A subgradient where the derivative jumps: between the slopes on either side."""
    loss = lt.Quantile(0.2) if name.startswith("Q") else name
    for z in (-2.0, -1.0, 0.0, 1.0, 2.0):
        objective = lt.EmpiricalRisk([[1.0]], [1.0], loss)
        slopes = [objective.gradient([z + step])[0] for step in (-1e-9, 0.0, 1e-9)]
        assert slopes[0] - 1e-8 <= slopes[1] <= slopes[2] + 1e-8


def test_the_gradient_at_a_cones_tip_is_zero():
    constraints = lt.NormConstraints(None, np.zeros((1, 2)), None, [1.0])
    assert subgradient(constraints, 0, np.zeros(2)).tolist() == [0.0, 0.0]


@pytest.mark.parametrize("y", [-1.0, 1.0])
@pytest.mark.parametrize("z", [-800.0, -40.0, 0.0, 40.0, 800.0])
def test_the_logistic_loss_does_not_overflow(z, y):
    objective = lt.EmpiricalRisk([[1.0]], [y], "logistic")
    assert objective.value([z]) == pytest.approx(np.logaddexp(0, -y * z), rel=1e-14, abs=1e-300)
    assert objective.gradient([z])[0] == pytest.approx(
        -y * np.exp(-np.logaddexp(0, y * z)), rel=1e-14, abs=1e-300
    )


# --- projections
@pytest.mark.parametrize("name", FAMILIES)
def test_projections_are_feasible_and_nearest(name):
    found = [feasible_and_nearest(name, seed) for seed in range(24)]
    assert sum(found) >= 2, "most random sets are contradictory: make the family easier to satisfy"


def feasible_and_nearest(name, seed) -> bool:
    """For every feasible v the projection p of w has <w - p, v - p> <= 0."""
    rng = np.random.default_rng(seed)
    constraints = FAMILIES[name](rng)
    w = rng.normal(size=DIMENSION)
    try:
        p = lt.project(w, constraints, lt.Box(-3.0, 3.0)).w
    except lt.InfeasibleConstraintsError:
        return False  # another test looks at those
    assert np.maximum(0.0, constraints.values(p)).max() <= 1e-7
    for other in rng.normal(size=(5, DIMENSION)):
        v = lt.project(other, constraints, lt.Box(-3.0, 3.0)).w
        assert (w - p) @ (v - p) <= 1e-5
    return True


# --- worst of a range
@pytest.mark.parametrize("name", FAMILIES)
@settings(max_examples=15)
@given(seed=SEEDS)
def test_the_worst_of_a_range_is_the_first_maximum(name, seed):
    rng = np.random.default_rng(seed)
    constraints = FAMILIES[name](rng)
    w = rng.normal(size=DIMENSION)
    values = constraints.values(w)
    start, stop = sorted(rng.choice(constraints.count + 1, size=2, replace=False))
    value, member = worst(constraints.record, int(start), int(stop), w)
    assert value == values[start:stop].max() and member == start + values[start:stop].argmax()


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("size", [1, 2, 3, 100])
def test_aggregation_takes_maxima_of_groups(name, size):
    rng = np.random.default_rng(0)
    constraints = FAMILIES[name](rng)
    w = rng.normal(size=DIMENSION)
    values, groups = constraints.values(w), constraints.aggregated(size)
    expected = [values[start : start + size].max() for start in range(0, constraints.count, size)]
    assert (
        groups.values(w).tolist() == expected
        and groups.count == len(expected)
        and groups.members == constraints.count
    )
    again = groups.aggregated(2)
    assert again.members == constraints.count and again.values(w).max() == values.max()


# --- dense == sparse
@settings(max_examples=40)
@given(seed=SEEDS, loss=st.sampled_from(LOSSES))
def test_dense_and_sparse_examples_agree(seed, loss):
    rng = np.random.default_rng(seed)
    X = np.where(rng.random((7, DIMENSION)) < 0.5, 0.0, rng.normal(size=(7, DIMENSION)))
    y, weights, w = (
        TARGETS[loss_of(loss).targets](rng, 7),
        rng.uniform(0.1, 2, size=7),
        rng.normal(size=DIMENSION),
    )
    dense, sparse = (
        lt.EmpiricalRisk(form(X), y, loss, 0.1, weights)
        for form in (np.asarray, scipy.sparse.csr_matrix)
    )
    assert dense.value(w) == pytest.approx(sparse.value(w), rel=1e-13)
    np.testing.assert_allclose(dense.gradient(w), sparse.gradient(w), rtol=0, atol=1e-13)
    for kind in (scipy.sparse.csc_array, scipy.sparse.coo_matrix):
        assert lt.EmpiricalRisk(kind(X), y, loss, 0.1, weights).value(w) == sparse.value(w)


@settings(max_examples=40)
@given(seed=SEEDS)
def test_dense_and_sparse_rows_agree(seed):
    rng = np.random.default_rng(seed)
    A = np.where(rng.random((9, DIMENSION)) < 0.5, 0.0, rng.normal(size=(9, DIMENSION)))
    b, w = rng.normal(size=9), rng.normal(size=DIMENSION)
    dense, sparse = lt.LinearConstraints(A, b), lt.LinearConstraints(scipy.sparse.csr_matrix(A), b)
    np.testing.assert_allclose(dense.values(w), sparse.values(w), rtol=0, atol=1e-13)
    np.testing.assert_allclose(dense.values(w), A @ w - b, rtol=0, atol=1e-13)
    for j in range(9):
        assert np.array_equal(subgradient(dense, j, w), subgradient(sparse, j, w))


def test_orders_and_general_rows_are_the_same_bits():
    """An order stored as index pairs, and its rows as general ones."""
    rng = np.random.default_rng(1)
    order = lt.ordering(40)
    general = lt.stack(order, lt.LinearConstraints(scipy.sparse.csr_matrix((1, 40)), [1e9]))
    for _ in range(20):
        w = rng.normal(size=40)
        assert order.values(w).tobytes() == general.values(w)[:-1].tobytes()


def test_sparse_data_of_the_caller_is_left_alone():
    """Unsorted, duplicate and read-only entries are read, not rearranged in place."""
    data, indices, indptr = np.array([1.0, 2.0, 3.0]), np.array([2, 0, 0]), np.array([0, 3])
    matrix = scipy.sparse.csr_matrix((data, indices, indptr), shape=(1, 3))
    for array in (matrix.data, matrix.indices, matrix.indptr):
        array.flags.writeable = False
    assert lt.EmpiricalRisk(matrix, [0.0], "absolute").value([1.0, 10.0, 100.0]) == 105.0
    assert matrix.indices.tolist() == [2, 0, 0] and matrix.data.tolist() == [1.0, 2.0, 3.0]


# --- domains
@pytest.mark.parametrize("name", DOMAINS)
@given(seed=SEEDS, scale=SCALES)
def test_domains_project_to_the_nearest_point(name, seed, scale):
    rng = np.random.default_rng(seed)
    domain = DOMAINS[name](rng)
    v, w = scale * rng.normal(size=(2, DIMENSION))
    projected, other = domain.project(v), domain.project(w)
    np.testing.assert_allclose(
        domain.project(projected), projected, rtol=0, atol=1e-14 * (1 + scale)
    )
    assert np.linalg.norm(projected - other) <= np.linalg.norm(v - w) * (1 + 1e-12) + 1e-12
    assert (v - projected) @ (other - projected) <= 1e-9 * (
        1 + scale**2
    )  # what makes it the nearest point of W


@pytest.mark.parametrize("name", DOMAINS)
def test_a_kernels_step_stays_in_the_domain(name):
    rng = np.random.default_rng(2)
    domain = DOMAINS[name](rng)
    X, y = rng.normal(size=(20, DIMENSION)), rng.normal(size=20)
    seen: list[np.ndarray] = []
    problem = lt.Problem(lt.EmpiricalRisk(X, y), domain=domain)
    lt.solve(
        problem,
        lt.FullTouch(1.0, 0.5),
        iterations=50,
        record_every=1,
        callback=lambda p: seen.append(p.w),
        project=False,
    )
    for w in seen:
        np.testing.assert_allclose(domain.project(w), w, rtol=0, atol=1e-14)


# --- draws
@settings(max_examples=20)
@given(seed=SEEDS, m=st.integers(2, 40), rate=st.floats(0.01, 3.0), ticks=st.integers(0, 30))
def test_draws_match_p(seed, m, rate, ticks):
    rng = np.random.default_rng(seed)
    ours = new_distribution(np.where(rng.random(m) < 0.5, 0.0, rng.random(m)), rate)
    for _ in range(ticks):
        learn(ours, int(rng.integers(m)), float(rng.random()) * (rng.random() < 0.5), float(m))
        tick(ours)
    p = probabilities(ours)
    counts = np.bincount([draw(ours, rng) for _ in range(3000)], minlength=m)
    often = p * 3000 > 5
    observed, expected = (
        np.append(counts[often], counts[~often].sum()),
        np.append(p[often], p[~often].sum()) * 3000,
    )
    kept = expected > 1.0
    assert observed[~kept].sum() <= 12
    if kept.sum() > 1:
        assert (
            scipy.stats.chisquare(
                observed[kept], expected[kept] * observed[kept].sum() / expected[kept].sum()
            ).pvalue
            > 1e-6
        )


@given(seed=SEEDS, examples=st.integers(1, 50), passes=st.integers(1, 4))
def test_permutations_visit_every_example_once_a_pass(seed, examples, passes):
    rng, visits = np.random.default_rng(seed), new_example_order(examples, independent=False)
    for _ in range(passes):
        assert sorted(next_example(visits, rng) for _ in range(examples)) == list(range(examples))


def test_permutations_are_uniform_and_independent_draws_too():
    rng = np.random.default_rng(3)
    visits, orders = new_example_order(3, independent=False), {}
    for _ in range(3000):
        order = tuple(next_example(visits, rng) for _ in range(3))
        orders[order] = orders.get(order, 0) + 1
    assert len(orders) == 6 and scipy.stats.chisquare(list(orders.values())).pvalue > 1e-5
    visits = new_example_order(5, independent=True)
    counts = np.bincount([next_example(visits, rng) for _ in range(5000)], minlength=5)
    assert counts.size == 5 and scipy.stats.chisquare(counts).pvalue > 1e-5


# ------------------------------------------------------------------------------------------------
# weights, targets, averages


@settings(max_examples=20)
@given(seed=SEEDS, factor=st.sampled_from([1e-300, 1.0, 7.0, 1e307]))
def test_only_the_proportions_of_sample_weights_count(seed, factor):
    rng = np.random.default_rng(seed)
    X, y, weights, w = (
        rng.normal(size=(6, DIMENSION)),
        rng.normal(size=6),
        rng.uniform(0.5, 1, size=6),
        rng.normal(size=DIMENSION),
    )
    values = ((X @ w - y) ** 2) / 2
    objective = lt.EmpiricalRisk(X, y, sample_weight=factor * weights)
    assert objective.value(w) == pytest.approx(np.average(values, weights=weights), rel=1e-12)


@settings(max_examples=40)
@given(seed=SEEDS, loss=st.sampled_from(LOSSES))
def test_whole_weights_are_repetitions(seed, loss):
    rng = np.random.default_rng(seed)
    X, w = rng.normal(size=(7, DIMENSION)), rng.normal(size=DIMENSION)
    y = TARGETS[loss_of(loss).targets](rng, 7)
    times = rng.integers(0, 3, size=7)
    times[0] = 1
    again = loss
    if isinstance(loss, lt.Quantile) and np.ndim(loss.level):
        again = lt.Quantile(np.repeat(loss.level, times))
    repeated = lt.EmpiricalRisk(np.repeat(X, times, axis=0), np.repeat(y, times), again)
    weighted = lt.EmpiricalRisk(X, y, loss, sample_weight=times)
    assert weighted.value(w) == pytest.approx(repeated.value(w), rel=1e-12, abs=1e-12)
    np.testing.assert_allclose(weighted.gradient(w), repeated.gradient(w), rtol=0, atol=1e-10)


def test_pairs_are_differences_with_target_one():
    rng = np.random.default_rng(4)
    better, worse, w = rng.normal(size=(5, 3)), rng.normal(size=(5, 3)), rng.normal(size=3)
    for loss in ("hinge", "logistic"):
        pairs = lt.PairwiseRisk(better, worse, loss, l2=0.2)
        single = lt.EmpiricalRisk(better - worse, np.ones(5), loss, l2=0.2)
        sparse = lt.PairwiseRisk(
            scipy.sparse.csr_matrix(better), scipy.sparse.csr_matrix(worse), loss, l2=0.2
        )
        assert pairs.value(w) == single.value(w) == pytest.approx(sparse.value(w), rel=1e-14)
