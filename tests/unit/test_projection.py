"""Projections where the answer is known, and where numbers are nasty."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

import lighttouch as lt
from lighttouch.constraints import (
    ConvexConstraints,
    LinearConstraints,
    NormConstraints,
    QuadraticConstraints,
    order,
    ordering,
    stack,
)
from lighttouch.constraints import bounds as bounds_on
from lighttouch.domains import Ball, Box, Everywhere
from lighttouch.errors import DataError
from lighttouch.kernels.compiler.compiled import interpreted
from lighttouch.kernels.orders.project import project_order, vector_runs
from lighttouch.projections import project
from lighttouch.projections.costs import COSTS
from lighttouch.projections.orders import prepare_order


def hypercube(dimensions):
    places = np.arange(2**dimensions)
    lower = np.concatenate([places[(places >> k) & 1 == 0] for k in range(dimensions)])
    upper = np.concatenate([places[(places >> k) & 1 == 0] | (1 << k) for k in range(dimensions)])
    return lower, upper


def test_closed_forms_are_named():
    v = np.array([3.0, -2.0])
    nothing = LinearConstraints(np.zeros((0, 2)), np.zeros(0))
    assert project(v, nothing).method == "closed form: no constraints"
    assert np.array_equal(project(v, nothing).w, v)
    boxed = project(v, nothing, Box(-1, 1))
    assert boxed.method == "closed form: clipped to bounds"
    assert np.array_equal(boxed.w, [1.0, -1.0])
    one = project(v, LinearConstraints([[1.0, 1.0]], [0.0]))
    assert one.method == "closed form: one row"
    assert np.allclose(one.w, [2.5, -2.5], atol=1e-15)
    assert project(np.arange(5.0)[::-1], ordering(5)).method == "pool adjacent violators"
    assert np.array_equal(project(np.arange(5.0)[::-1], ordering(5)).w, np.full(5, 2.0))
    assert np.allclose(project([6.0, 8.0], nothing, Ball(5.0)).w, [3.0, 4.0])


def test_a_point_that_is_already_feasible_is_returned_as_it_is():
    rng = np.random.default_rng(0)
    v = np.sort(rng.standard_normal(200))
    for constraints in (
        ordering(200),
        LinearConstraints(rng.standard_normal((50, 200)), np.full(50, 1e3)),
    ):
        found = project(v, constraints)
        assert np.array_equal(found.w, v)
        assert found.distance == 0.0


@pytest.mark.parametrize("noise", [0.01, 1.0, 50.0])
def test_the_papers_lattice_is_projected_onto_exactly(noise):
    lower, upper = hypercube(12)
    rng = np.random.default_rng(1)
    v = 4.0 * np.tanh(
        ((np.arange(4096)[:, None] >> np.arange(12)) & 1) @ rng.random(12) - 3.0
    ) + noise * rng.standard_normal(4096)
    found = project(v, order(lower, upper), Box(-10, 10))
    assert found.violation == 0.0
    assert np.all(found.w[lower] <= found.w[upper])
    assert found.w.min() >= -10.0
    assert found.w.max() <= 10.0
    assert found.gap <= 1e-12 * found.distance**2
    again = project(found.w, order(lower, upper), Box(-10, 10))
    assert np.array_equal(again.w, found.w)


def test_deep_orders_are_exact():
    rng = np.random.default_rng(2)
    n = 2000
    places = np.arange(n - 1)
    v = -np.linspace(0, 10, n) + rng.standard_normal(n)
    chain = project(v, ordering(n)).w
    redundant = project(
        v,
        order(np.concatenate([places, places[:-1]]), np.concatenate([places + 1, places[:-1] + 2])),
    )
    assert "maximum flow" in redundant.method
    assert np.abs(chain - redundant.w).max() <= 1e-12
    assert redundant.violation == 0.0


def test_cycles_merge_to_equality_and_say_so():
    found = project([1.0, 2.0, 6.0, 0.0], order([0, 1, 2, 2], [1, 2, 0, 3]))
    assert np.allclose(found.w, [2.25, 2.25, 2.25, 2.25])
    assert "3 coordinates on cycles merged to equalities" in found.method
    apart = project([1.0, 2.0, 6.0, 5.0], order([0, 1, 2, 2], [1, 2, 0, 3]))
    assert np.allclose(apart.w, [3.0, 3.0, 3.0, 5.0])
    assert apart.violation == 0.0


def test_margins_and_bounds_together():
    constraints = order([0, 1], [1, 2], margin=1.0)
    found = project([0.0, 0.0, 0.0], constraints)
    assert np.allclose(found.w, [-1.0, 0.0, 1.0])
    squeezed = project([0.0, 0.0, 0.0], constraints, Box(0, 10))
    assert np.allclose(squeezed.w, [0.0, 1.0, 2.0])
    assert squeezed.violation <= 1e-15


def test_bounds_that_differ_by_coordinate_are_not_just_clipped():
    found = project([2.0, 0.0], stack(ordering(2), bounds_on(2, [-np.inf, 1.5], None)))
    assert np.allclose(found.w, [1.5, 1.5])


def test_scales_repeats_and_zero_rows_change_nothing():
    rng = np.random.default_rng(3)
    A, b = rng.standard_normal((12, 6)), rng.random(12) * 0.2
    v = rng.standard_normal(6) * 2.0
    plain = project(v, LinearConstraints(A, b))
    scale = np.where(np.arange(12) % 2, 1e8, 1e-8)
    messy_A = np.vstack([A * scale[:, None], np.repeat(A[:1], 50, axis=0), np.zeros((3, 6))])
    messy_b = np.concatenate([b * scale, np.repeat(b[:1], 50), [0.0, 1.0, 5.0]])
    for matrix in (messy_A, sparse.csr_matrix(messy_A)):
        rows = LinearConstraints(matrix, messy_b)
        messy = project(v, rows)
        assert np.allclose(messy.w, plain.w, atol=1e-12)
        assert messy.violation == max(0.0, rows.values(messy.w).max())
        given = max(0.0, (matrix @ messy.w - messy_b).max())
        assert messy.violation == pytest.approx(given, abs=1e-15 * 1e8)  # another order of sums
        assert messy.violation <= 1e-9 * 1e8
    pairs = order([0, 1, 2], [1, 2, 3])
    rows = sparse.vstack(
        [pairs.A * 1e-8, pairs.A * 1e8, *[pairs.A] * 50, sparse.csr_matrix((2, 4))], format="csr"
    )
    repeated = project([4.0, 1.0, 3.0, 2.0], LinearConstraints(rows, np.zeros(rows.shape[0])))
    assert np.allclose(repeated.w, project([4.0, 1.0, 3.0, 2.0], pairs).w, atol=1e-15)
    assert repeated.violation == 0.0


@pytest.mark.parametrize("size", [1e-9, 1.0, 1e9])
def test_projection_commutes_with_scaling(size):
    rng = np.random.default_rng(4)
    A, b, v = rng.standard_normal((20, 8)), rng.random(20), rng.standard_normal(8) * 3.0
    expected = project(v, LinearConstraints(A, b)).w
    assert np.allclose(
        project(v * size, LinearConstraints(A, b * size)).w / size, expected, atol=1e-11
    )


def test_many_rows_take_the_augmented_lagrangian_and_are_certified():
    rng = np.random.default_rng(5)
    m, d = 4000, 120
    A = sparse.random(m, d, 0.05, format="csr", random_state=6, data_rvs=rng.standard_normal)
    inside = rng.standard_normal(d)
    b = A @ inside + 0.3 * rng.random(m)
    v = inside + rng.standard_normal(d)
    results = [project(v, LinearConstraints(matrix, b)) for matrix in (A, A.toarray())]
    for found in results:
        assert "augmented Lagrangian" in found.method
        assert "not certified" not in found.method
        assert found.violation <= 1e-9
        assert found.gap <= 1e-9 * found.distance**2
        assert np.all(found.multipliers >= 0.0)
        assert np.allclose(v - found.w, A.T @ found.multipliers, atol=1e-9)
    assert np.allclose(results[0].w, results[1].w, atol=1e-9)


def test_warm_starts_give_the_same_point():
    rng = np.random.default_rng(7)
    lower, upper = hypercube(8)
    A = rng.standard_normal((60, 256))
    centers = rng.standard_normal((40, 256)) * 0.1
    sets = [
        order(lower, upper),
        LinearConstraints(A, rng.random(60)),
        NormConstraints(None, -centers, None, np.full(40, 3.0)),
    ]
    for constraints in sets:
        v = rng.standard_normal(256)
        warm = project(v, constraints).warm
        nearby = v + 1e-3 * rng.standard_normal(256)
        cold, warmed = project(nearby, constraints), project(nearby, constraints, warm=warm)
        assert np.allclose(cold.w, warmed.w, atol=1e-9)
        assert np.allclose(project(nearby, constraints, warm="from somewhere else").w, cold.w)


def test_convex_constraints_are_cut_down_to():
    def value(j, w):
        return float(np.exp(w).sum() - 4.0) if j == 0 else float(np.abs(w).sum() - 2.0)

    def subgradient(j, w):
        return np.exp(w) if j == 0 else np.sign(w)

    constraints = ConvexConstraints(3, 2, value, subgradient)
    found = project([1.0, 2.0, -0.5], constraints)
    assert "cutting planes" in found.method
    assert found.violation <= 1e-8
    rng = np.random.default_rng(8)
    others = found.w + 0.05 * rng.standard_normal((4000, 3))
    feasible = [w for w in others if constraints.values(w).max() <= 0.0]
    assert len(feasible) > 50
    assert min(np.linalg.norm(w - [1.0, 2.0, -0.5]) for w in feasible) >= found.distance - 1e-8


def test_quadratics_that_are_balls_and_those_that_are_not():
    center = np.array([1.0, 2.0, 3.0])
    ball = QuadraticConstraints(2.0 * np.eye(3), -2.0 * center[None], [center @ center - 1.0])
    found = project(np.zeros(3), ball)
    assert np.allclose(found.w, center * (1.0 - 1.0 / np.linalg.norm(center)))
    stretched = QuadraticConstraints(np.diag([2.0, 0.02, 2e-4])[None], np.zeros((1, 3)), [-1.0])
    found = project([3.0, 30.0, 5.0], stretched)
    slope = stretched.P[0] @ found.w
    away = np.array([3.0, 30.0, 5.0]) - found.w
    assert abs(stretched.values(found.w)[0]) <= 1e-9
    assert np.linalg.norm(away / np.linalg.norm(away) - slope / np.linalg.norm(slope)) <= 1e-5


def test_lattice_runs_are_recognised_and_other_graphs_are_not():
    lower, upper = hypercube(6)
    order_of = np.lexsort((lower, upper - lower))
    runs = vector_runs(lower[order_of], upper[order_of], COSTS.shortest_edge_run)
    assert list(runs.stride) == [1, 2, 4, 8, 16, 32]
    assert int((runs.chunk * runs.repeats).sum()) == lower.size
    rng = np.random.default_rng(9)
    a, b = np.sort(rng.choice(200, (2, 300)), axis=0)
    assert vector_runs(a[a < b], b[a < b], COSTS.shortest_edge_run).first.size == 0


def test_interpreted_and_compiled_order_projections_are_the_same_bits():
    lower, upper = hypercube(5)
    prepared = prepare_order(32, lower, upper)
    v = np.random.default_rng(10).standard_normal(32)
    answers = []
    for run in (project_order, interpreted(project_order)):
        ties = np.zeros(lower.size)
        answers.append((run(prepared.graph, prepared.runs, v, ties, 10, 160, 8, 1e-13)[0], ties))
    assert np.array_equal(answers[0][0], answers[1][0])
    assert np.array_equal(answers[0][1], answers[1][1])


def test_multipliers_of_orders_explain_the_move():
    lower, upper = hypercube(7)
    v = np.random.default_rng(11).standard_normal(128)
    constraints = LinearConstraints(order(lower, upper).A * 3.0, np.zeros(lower.size))
    found = project(v, constraints)
    assert np.all(found.multipliers >= 0.0)
    assert np.allclose(v - found.w, constraints.A.T @ found.multipliers, atol=1e-12)


def test_bad_points_and_domains_are_refused():
    with pytest.raises(DataError, match="finite"):
        project([1.0, np.nan], ordering(2))
    with pytest.raises(DataError, match="2 entries"):
        project([1.0, 2.0, 3.0], ordering(2))
    with pytest.raises(DataError, match="box"):
        project([1.0, 2.0], ordering(2), Box(np.zeros(3), np.ones(3)))


def test_public_name():
    assert lt.project is project
    assert project([2.0, 1.0], ordering(2), Everywhere()).violation == 0.0
