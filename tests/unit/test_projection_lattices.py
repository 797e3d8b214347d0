"""Monotone lattices are projected onto without a stored row, to the same point as with rows."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import lighttouch as lt
from lighttouch.lattice.orders import LatticeMonotonicity
from lighttouch.projections.sets import feasible_set

seeds = st.integers(0, 2**32 - 1)


def random_lattice(rng):
    sizes = [int(size) for size in rng.integers(2, 5, int(rng.integers(2, 5)))]
    features = [int(f) for f in rng.permutation(len(sizes))[: int(rng.integers(2, len(sizes) + 1))]]
    return LatticeMonotonicity(sizes, features, rng.choice([-1.0, 1.0], len(features)))


@settings(max_examples=80, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(seed=seeds)
def test_the_same_point_as_with_rows(seed):
    rng = np.random.default_rng(seed)
    rules = random_lattice(rng)
    domain = lt.Everywhere() if seed % 2 else lt.Box(-0.5, 0.4)
    v = np.round(rng.standard_normal(rules.dimension), int(rng.integers(0, 6)))
    found = lt.project(v, rules, domain)
    assert "A" not in vars(rules)
    assert feasible_set(rules, domain).without_ball.lattice_orders is not None
    assert found.violation == 0.0
    expected = lt.project(v, lt.LinearConstraints(rules.A, rules.b), domain)
    assert np.abs(found.w - expected.w).max() <= 1e-14
    if seed % 2:
        assert np.all(found.multipliers >= 0.0)
        assert np.abs(v - found.w - rules.A.T @ found.multipliers).max() <= 1e-12
        assert abs(found.multipliers @ (rules.A @ found.w)) <= 1e-12
    warmed = lt.project(v + 0.01, rules, domain, warm=found.warm)
    assert np.abs(warmed.w - lt.project(v + 0.01, rules, domain).w).max() <= 1e-14


def test_uneven_bounds_and_chains_keep_their_own_methods():
    rng = np.random.default_rng(0)
    rules = lt.lattice.increasing([3, 4])
    uneven = lt.Box(rng.random(12) - 2.0, rng.random(12) + 1.0)
    found = lt.project(rng.standard_normal(12), rules, uneven)
    assert feasible_set(rules, uneven).lattice_orders is None
    assert found.violation <= 1e-12
    assert (
        "pool adjacent violators"
        in lt.project(rng.standard_normal(12), lt.lattice.increasing([12])).method
    )


def test_in_a_ball():
    rng = np.random.default_rng(1)
    rules = lt.lattice.increasing([3, 3, 2])
    found = lt.project(3.0 * rng.standard_normal(18), rules, lt.Ball(1.0))
    assert found.violation == 0.0
    assert np.linalg.norm(found.w) <= 1.0 + 1e-12


@pytest.mark.parametrize("noise", [0.01, 1.0])
def test_two_to_the_sixteen_vertices(noise):
    """Half a million orders, exactly."""
    rng = np.random.default_rng(2)
    corners = np.indices((2,) * 16).reshape(16, -1)
    rules = lt.lattice.increasing([2] * 16)
    found = lt.project(
        rng.random(16) @ corners / 8.0 + noise * rng.standard_normal(2**16), rules, lt.Box(-10, 10)
    )
    assert "A" not in vars(rules)
    assert found.violation == 0.0
    assert found.gap <= 1e-12 * found.distance**2


def test_a_clock_changes_no_bit_and_a_short_limit_still_gives_a_feasible_point():
    sizes = [2] * 12  # 24,576 edges: enough to look at the clock on the way
    rules = lt.lattice.increasing(sizes)
    v = np.random.default_rng(0).normal(size=2**12)
    whole = lt.project(v, rules)
    assert np.array_equal(lt.project(v, rules, time_limit=1e6).w, whole.w)
    with pytest.raises(lt.projections.OutOfTimeError):
        lt.project(v, rules, time_limit=1e-9)
    near = feasible_set(rules, lt.Everywhere()).near(v)
    assert rules.violation(near) == 0.0
    assert np.linalg.norm(near - v) < 3.0 * whole.distance
    assert v.min() <= near.min() and near.max() <= v.max()


def test_a_run_that_has_no_time_to_project_ends_feasible():
    sizes, rng = [2] * 12, np.random.default_rng(0)
    features = lt.Lattice(sizes).features(rng.random((50, 12)))
    problem = lt.Problem(
        lt.EmpiricalRisk(features, rng.normal(size=50)), lt.lattice.increasing(sizes)
    )
    start = rng.normal(size=2**12)
    result = lt.solve(problem, lt.LightTouch(1.0, 0.01, 2), time_limit=1e-6, start=start)
    assert result.status is lt.Status.TIME_LIMIT and result.violation == 0.0
