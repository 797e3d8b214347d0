"""Projections against an independent solver (Clarabel) on random sets, and what every projection
must do: stay put, never spread.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy import sparse

from lighttouch.constraints import (
    LinearConstraints,
    NormConstraints,
    QuadraticConstraints,
    order,
    ordering,
    stack,
)
from lighttouch.domains import Ball, Box, Everywhere
from lighttouch.errors import InfeasibleConstraintsError
from lighttouch.lattice import increasing
from lighttouch.projections import project

clarabel = pytest.importorskip(
    "clarabel", reason="the independent solver of these tests; install lighttouch[conic]"
)

many = settings(
    max_examples=60, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck)
)
few = settings(
    max_examples=12, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck)
)
seeds = st.integers(0, 2**32 - 1)


def outside_answer(v, A, b, cones=(), lower=-np.inf, upper=np.inf):
    """Clarabel's nearest point, and its status; cones are (matrix, shift) with matrix @ (w - v) +
    shift in a second-order cone.
    """
    d = v.size
    low, high = (np.broadcast_to(np.asarray(x, dtype=float), d) for x in (lower, upper))
    eye = sparse.identity(d, format="csr")
    keep_low, keep_high = np.isfinite(low), np.isfinite(high)
    rows = sparse.vstack([sparse.csr_matrix(A), eye[keep_high], -eye[keep_low]], format="csr")
    right = np.concatenate([b, high[keep_high], -low[keep_low]]) - rows @ v
    matrix = sparse.vstack([rows, *(sparse.csr_matrix(-m) for m, _ in cones)], format="csc")
    shift = np.concatenate([right, *(s for _, s in cones)])
    kinds = ([clarabel.NonnegativeConeT(right.size)] if right.size else []) + [
        clarabel.SecondOrderConeT(s.size) for _, s in cones
    ]
    for tolerance in (1e-12, 1e-10, 1e-8):
        options = clarabel.DefaultSettings()
        options.verbose = False
        options.tol_gap_abs = options.tol_gap_rel = options.tol_feas = tolerance
        answer = clarabel.DefaultSolver(
            sparse.identity(d, format="csc"), np.zeros(d), matrix, shift, kinds, options
        ).solve()
        if str(answer.status) in ("Solved", "PrimalInfeasible"):
            break
    return v + np.array(answer.x), str(answer.status), tolerance


def agree(v, found, expected, tolerance):
    """The same distance to 1e-6, and the same point as far as the other solver's gap pins it
    down.
    """
    size = max(1.0, float(np.abs(v).max()))
    distance = np.linalg.norm(expected - v)
    assert abs(found.distance**2 - distance**2) <= 2e-6 * distance**2 + 10.0 * tolerance * size**2
    assert np.linalg.norm(found.w - expected) <= max(2e-6, 5.0 * np.sqrt(tolerance)) * size


def check_order(v, lower, upper, domain, margin=0.0):
    constraints = order(lower, upper, margin, dimension=v.size)
    box = (domain.lower, domain.upper) if isinstance(domain, Box) else (-np.inf, np.inf)
    expected, _, tolerance = outside_answer(v, constraints.A, constraints.b, (), *box)
    found = project(v, constraints, domain)
    agree(v, found, expected, tolerance)
    return found


def random_graph(kind, rng):
    """Edges (lower, upper) of an acyclic graph, and the number of nodes."""
    n = int(rng.integers(2, 40))
    if kind == "tree":
        child = np.arange(1, n)
        return (rng.random(n - 1) * child).astype(int), child, n
    if kind == "grid":
        shape = tuple(int(rng.integers(2, 5)) for _ in range(int(rng.integers(1, 4))))
        return *grid_edges(shape), int(np.prod(shape))
    count = int(rng.integers(1, 4 * n))
    a, b = rng.integers(0, n, count), rng.integers(0, n, count)
    rank = rng.permutation(n)
    a, b = a[a != b], b[a != b]
    up = rank[a] < rank[b]
    return np.where(up, a, b), np.where(up, b, a), n


def grid_edges(shape):
    places = np.arange(np.prod(shape)).reshape(shape)
    lower = [np.take(places, range(size - 1), axis).ravel() for axis, size in enumerate(shape)]
    upper = [np.take(places, range(1, size), axis).ravel() for axis, size in enumerate(shape)]
    return np.concatenate(lower), np.concatenate(upper)


@many
@given(seed=seeds)
def test_chains(seed):
    rng = np.random.default_rng(seed)
    v = rng.standard_normal(int(rng.integers(1, 60))) * 10.0 ** rng.integers(-3, 4)
    found = check_order(v, np.arange(v.size - 1), np.arange(1, v.size), Everywhere())
    assert found.violation == 0.0
    assert np.array_equal(project(v, ordering(v.size)).w, found.w)


@pytest.mark.parametrize("kind", ["tree", "grid", "graph"])
@many
@given(seed=seeds)
def test_orders_on_acyclic_graphs(kind, seed):
    rng = np.random.default_rng(seed)
    lower, upper, n = random_graph(kind, rng)
    v = np.round(rng.standard_normal(n), int(rng.integers(0, 6)))
    domain = Everywhere() if seed % 2 else Box(-0.4, 0.7)
    found = check_order(v, lower, upper, domain)
    assert found.violation == 0.0
    assert np.all(found.w[lower] <= found.w[upper])


@few
@given(seed=seeds, dimensions=st.integers(2, 10), noise=st.sampled_from([0.02, 0.5, 5.0]))
def test_lattices(seed, dimensions, noise):
    rng = np.random.default_rng(seed)
    lower, upper = grid_edges((2,) * dimensions)
    vertices = np.indices((2,) * dimensions).reshape(dimensions, -1)
    v = rng.random(dimensions) @ vertices + noise * rng.standard_normal(2**dimensions)
    found = check_order(v, lower, upper, Box(-1.0, 3.0))
    assert found.violation == 0.0
    assert np.all(found.w[lower] <= found.w[upper])


@many
@given(seed=seeds)
def test_orders_with_margins_and_uneven_bounds(seed):
    rng = np.random.default_rng(seed)
    lower, upper, n = random_graph(("tree", "grid", "graph")[seed % 3], rng)
    height = np.sort(rng.random(n) * 3.0)[np.argsort(np.argsort(longest_path(lower, upper, n)))]
    margin = 0.3 * (height[upper] - height[lower]) if seed % 5 else 0.01
    v = rng.standard_normal(n)
    slack = rng.random(n)
    domain = Everywhere() if seed % 2 else Box(height - slack - 0.1 * n, height + slack + 0.1 * n)
    found = check_order(v, lower, upper, domain, margin)
    assert found.violation <= 1e-14 * n
    assert np.all(found.w[lower] + margin <= found.w[upper] + 1e-13)


def longest_path(lower, upper, n):
    depth = np.zeros(n, dtype=int)
    for _ in range(n):
        deeper = depth.copy()
        np.maximum.at(deeper, upper, depth[lower] + 1)
        if np.array_equal(deeper, depth):
            break
        depth = deeper
    return depth


@many
@given(seed=seeds)
def test_linear_rows(seed):
    rng = np.random.default_rng(seed)
    n, m = int(rng.integers(1, 25)), int(rng.integers(1, 80))
    A = (
        rng.standard_normal((m, n))
        * (rng.random((m, n)) < rng.choice([0.15, 0.5, 1.0]))
        * 10.0 ** rng.integers(-2, 3, (m, 1))
    )
    inside = rng.standard_normal(n)
    b = A @ inside + rng.choice([0.0, 1.0]) * rng.random(m) * np.linalg.norm(A, axis=1)
    v = inside + rng.choice([0.1, 3.0]) * rng.standard_normal(n)
    domain = (
        Everywhere()
        if seed % 3
        else Box(inside - 0.5, np.where(rng.random(n) < 0.5, np.inf, inside + 0.5))
    )
    box = (-np.inf, np.inf) if seed % 3 else (domain.lower, domain.upper)
    constraints = LinearConstraints(sparse.csr_matrix(A) if seed % 2 else A, b)
    expected, _, tolerance = outside_answer(v, A, b, (), *box)
    found = project(v, constraints, domain)
    scale = np.maximum(np.linalg.norm(A, axis=1), 1e-300)
    assert np.max((A @ found.w - b) / scale) <= 1e-9
    agree(v, found, expected, tolerance)
    if found.multipliers is not None and seed % 3:
        assert np.all(found.multipliers >= 0.0)
        assert np.linalg.norm(v - found.w - A.T @ found.multipliers) <= 1e-9 * max(
            1.0, np.abs(v).max()
        )


@few
@given(seed=seeds)
def test_ill_conditioned_sparse_rows(seed):
    """Sequences with second or third differences of one sign, some with fixed ends: beyond other
    solvers, so proven by duality instead.
    """
    rng = np.random.default_rng(seed)
    n = int(rng.integers(200, 400))
    stencil = [-1.0, 2.0, -1.0] if seed % 2 else [1.0, -3.0, 3.0, -1.0]
    A = sparse.diags(stencil, range(len(stencil)), shape=(n - len(stencil) + 1, n), format="csr")
    ends = sparse.csr_matrix(
        ([1.0, -1.0, 1.0], ([0, 1, 2], [0, 0, n - 1])), shape=(3, n)
    )  # the first is fixed, the last bounded
    rows = sparse.vstack([A, ends], format="csr") if seed % 3 else A
    b = np.concatenate([np.zeros(A.shape[0]), [0.3, -0.3, 0.5]])[: rows.shape[0]]
    v = np.linspace(-1.0, 1.0, n) ** 2 + rng.choice([0.1, 1.0]) * rng.standard_normal(n)
    found = project(v, LinearConstraints(rows, b))
    assert np.max(rows @ found.w - b) <= 1e-9
    pushed = rows.T @ found.multipliers
    dual = (
        found.multipliers @ (rows @ v - b) - 0.5 * pushed @ pushed
    )  # no feasible point is nearer than this says
    assert np.all(found.multipliers >= 0.0)
    assert 0.5 * found.distance**2 - dual <= 1e-8 * found.distance**2


@many
@given(seed=seeds)
def test_contradictory_rows_are_refused_and_feasible_ones_are_not(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 8))
    m = int(rng.integers(n + 1, 5 * n + 3))
    A, b = rng.standard_normal((m, n)), rng.standard_normal(m) * 0.5 + 0.25
    _, status, _ = outside_answer(rng.standard_normal(n), A, b)
    try:
        found = project(rng.standard_normal(n) * 2, LinearConstraints(A, b))
        assert "Infeasible" not in status
        assert found.violation <= 1e-9
    except InfeasibleConstraintsError as error:
        assert "Infeasible" in status
        rows = list(error.rows)
        assert "Infeasible" in outside_answer(np.zeros(n), A[rows], b[rows])[1]
        assert len(rows) <= n + 1


@many
@given(seed=seeds)
def test_norm_balls(seed):
    rng = np.random.default_rng(seed)
    n, m = int(rng.integers(1, 12)), int(rng.integers(1, 20))
    inside = rng.standard_normal(n)
    centers = inside + rng.standard_normal((m, n))
    radii = np.linalg.norm(centers - inside, axis=1) * (
        1.0 + rng.choice([0.01, 0.5]) * rng.random(m)
    )
    v = inside + 3.0 * rng.standard_normal(n)
    cones = [
        (np.vstack([np.zeros(n), np.eye(n)]), np.concatenate([[r], v - c]))
        for c, r in zip(centers, radii, strict=True)
    ]
    constraints = NormConstraints(None, -centers, None, radii)
    domain = Everywhere() if seed % 2 else Box(inside - 0.3, inside + 0.3)
    box = (-np.inf, np.inf) if seed % 2 else (domain.lower, domain.upper)
    expected, _, tolerance = outside_answer(v, np.zeros((0, n)), np.zeros(0), cones, *box)
    found = project(v, constraints, domain)
    assert found.violation <= 1e-9 * max(1.0, np.abs(v).max())
    agree(v, found, expected, tolerance)


@few
@given(seed=seeds)
def test_cones_quadratics_and_rows_together(seed):
    rng = np.random.default_rng(seed)
    n, m = int(rng.integers(2, 8)), int(rng.integers(1, 6))
    A, shift = rng.standard_normal((m, 3, n)), rng.standard_normal((m, 3)) * 0.3
    slope = rng.standard_normal((m, n)) * 0.2
    inside = rng.standard_normal(n) * 0.1
    level = np.linalg.norm(A @ inside + shift, axis=1) - slope @ inside + 0.2
    root = rng.standard_normal((m, n, n))
    bend = np.einsum("mij,mik->mjk", root, root)
    q = rng.standard_normal((m, n)) * 0.1
    r = -0.5 * np.einsum("i,mij,j->m", inside, bend, inside) - q @ inside - 0.3
    rows = rng.standard_normal((m, n))
    right = rows @ inside + 0.1
    v = 2.0 * rng.standard_normal(n)
    cones = [
        (
            np.vstack([slope[j], A[j]]),
            np.concatenate([[slope[j] @ v + level[j]], A[j] @ v + shift[j]]),
        )
        for j in range(m)
    ]
    for j in range(m):
        here, value = bend[j] @ v + q[j], 0.5 * v @ bend[j] @ v + q[j] @ v + r[j]
        cones.append(
            (
                np.vstack([-2 * here, 2 * root[j], -2 * here]),
                np.concatenate([[1 - 2 * value], np.zeros(n), [-1 - 2 * value]]),
            )
        )
    constraints = stack(
        NormConstraints(A, shift, slope, level),
        LinearConstraints(rows, right),
        QuadraticConstraints(bend, q, r),
    )
    expected, _, tolerance = outside_answer(v, rows, right, cones)
    found = project(v, constraints)
    assert found.violation <= 1e-8
    agree(v, found, expected, tolerance)


@few
@given(seed=seeds)
def test_a_ball_domain_with_rows(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 15))
    center = rng.standard_normal(n)
    A = rng.standard_normal((3 * n, n))
    b = A @ center + rng.random(3 * n) * 0.5
    radius = 0.5 + rng.random()
    v = center + 4.0 * rng.standard_normal(n)
    cone = (np.vstack([np.zeros(n), np.eye(n)]), np.concatenate([[radius], v - center]))
    expected, _, tolerance = outside_answer(v, A, b, [cone])
    found = project(v, LinearConstraints(A, b), Ball(radius, center))
    assert np.linalg.norm(found.w - center) <= radius * (1 + 1e-12)
    assert found.violation <= 1e-9
    agree(v, found, expected, tolerance)


def random_set(kind, rng, n):
    if kind == "lattices":
        return increasing([2] * int(np.log2(n)))
    if kind == "orders":
        lower, upper = np.sort(rng.integers(0, n, (2, 3 * n)), axis=0)
        apart = lower != upper
        return order(lower[apart], upper[apart], dimension=n)
    if kind == "rows":
        A = rng.standard_normal((3 * n, n))
        return LinearConstraints(A, rng.random(3 * n))
    centers = rng.standard_normal((5, n)) * 0.5
    return NormConstraints(None, -centers, None, np.linalg.norm(centers, axis=1) + 0.1)


@pytest.mark.parametrize("kind", ["orders", "lattices", "rows", "balls"])
@few
@given(seed=seeds)
def test_projections_stay_put_and_never_spread(kind, seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 30))
    constraints = random_set(kind, rng, n)
    v, u = rng.standard_normal((2, constraints.dimension)) * 3.0
    first, second = project(v, constraints, Box(-1.0, 1.0)), project(u, constraints, Box(-1.0, 1.0))
    assert np.linalg.norm(first.w - second.w) <= np.linalg.norm(v - u) * (1 + 1e-9)
    again = project(first.w, constraints, Box(-1.0, 1.0))
    assert np.linalg.norm(again.w - first.w) <= 1e-9
    warmed = project(u, constraints, Box(-1.0, 1.0), warm=first.warm)
    assert np.linalg.norm(warmed.w - second.w) <= 1e-8
