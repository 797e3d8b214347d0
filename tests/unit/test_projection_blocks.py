"""Projections by blocks with exchange: the exact point, its proof, and the same bits everywhere."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import lighttouch as lt
from lighttouch.projections import orders
from lighttouch.projections.exchange import rounds
from lighttouch.projections.sets import feasible_set
from lighttouch.running import InProcess, run_task


def rising(sizes: Sequence[int], noise: float, seed: int = 0) -> np.ndarray:
    """A sum of the axes and noise."""
    rng = np.random.default_rng(seed)
    axes = np.meshgrid(*(np.linspace(0.0, rng.random(), size) for size in sizes), indexing="ij")
    return np.asarray(sum(axes) + noise * rng.normal(size=sizes)).ravel()


def bending(d: int) -> lt.LinearConstraints:
    """Convex sequences."""
    return lt.LinearConstraints(
        sparse.diags([-1.0, 2.0, -1.0], [0, 1, 2], (d - 2, d)), np.zeros(d - 2)
    )


def some_rows(d: int, rows: int, seed: int) -> lt.LinearConstraints:
    rng = np.random.default_rng(seed)
    A = sparse.random(rows, d, 3.0 / d, random_state=rng, data_rvs=rng.standard_normal)
    return lt.LinearConstraints(A.tocsr(), np.abs(rng.normal(size=rows)) * 0.1)


POINTS = np.random.default_rng(5).normal(size=150)
LOWER = np.repeat(np.arange(140), 2)
SPIKES = np.linspace(-1.0, 1.0, 80) ** 2 + 0.2 * np.isin(np.arange(80), [10, 30, 52])
PAIRS = np.stack([LOWER, LOWER + np.tile([1, 9], 140)])

LATTICES: dict[str, tuple[lt.LinearConstraints, np.ndarray, Any, int]] = {
    "2^10": (lt.lattice.increasing([2] * 10), rising([2] * 10, 0.5), lt.Everywhere(), 8),
    "2^10 noise": (lt.lattice.increasing([2] * 10), rising([2] * 10, 9.0), lt.Everywhere(), 4),
    "2^10 box": (lt.lattice.increasing([2] * 10), rising([2] * 10, 0.5), lt.Box(0.5, 2.0), 16),
    "falling": (lt.lattice.decreasing([3] * 6), -rising([3] * 6, 0.4), lt.Everywhere(), 5),
    "long axis": (lt.lattice.increasing([4, 60]), rising([4, 60], 0.3), lt.Everywhere(), 7),
    "free axes": (
        lt.lattice.increasing([5, 4, 3, 6], features=[0, 3]),
        rising([5, 4, 3, 6], 0.5),
        lt.Everywhere(),
        6,
    ),
    "one block": (lt.lattice.increasing([4, 4]), rising([4, 4], 0.5), lt.Everywhere(), 1),
    "single vertices": (lt.lattice.increasing([2, 2]), rising([2, 2], 3.0), lt.Everywhere(), 9),
}
ROWS: dict[str, tuple[Any, np.ndarray, Any, int]] = {
    "order pairs": (
        lt.order(*PAIRS, dimension=150),
        POINTS + np.arange(150) / 30,
        lt.Everywhere(),
        4,
    ),
    "margins": (
        lt.order(*PAIRS, 0.01, dimension=150),
        POINTS + np.arange(150) / 30,
        lt.Everywhere(),
        4,
    ),
    "convex": (bending(80), SPIKES, lt.Box(0.0, 0.9), 4),
    "sparse rows": (some_rows(150, 40, 0), POINTS, lt.Box(-2.0, 2.0), 5),
    "equalities": (
        lt.stack(lt.LinearEqualities(np.ones((1, 9)), [1.0]), bending(9)),
        POINTS[:9],
        lt.Everywhere(),
        2,
    ),
    "simplex": (lt.ordering(12), POINTS[:12], lt.Simplex(), 3),
}


def assert_nearest(found: lt.Projected, known: lt.Projected, v: np.ndarray) -> None:
    scale = max(1.0, np.abs(v).max())
    assert np.abs(found.w - known.w).max() <= 1e-8 * scale
    assert_proof(found, known, v)


def assert_proof(found: lt.Projected, known: lt.Projected, v: np.ndarray) -> None:
    """The gap bounds how much farther away the point is than the nearest one, and so how far the
    two are apart: the distance bends everywhere.
    """
    assert found.gap is not None and found.gap >= 0.0
    square = float((found.w - v) @ (found.w - v))
    assert 0.5 * (square - known.distance**2) <= found.gap + 1e-12 * (1.0 + square)
    assert np.linalg.norm(found.w - known.w) <= np.sqrt(2.0 * found.gap) + 1e-7


@pytest.mark.parametrize("case", LATTICES)
def test_lattices(case: str):
    rules, v, domain, blocks = LATTICES[case]
    found, known = lt.project(v, rules, domain, blocks=blocks), lt.project(v, rules, domain)
    assert_nearest(found, known, v)
    assert found.violation == 0.0
    assert np.array_equal(domain.project(found.w), found.w)
    assert found.certificate.kind == "certified" and found.gap <= 1e-16 * (1.0 + v @ v)
    assert "by groups on" in found.method


@pytest.mark.parametrize("case", ROWS)
def test_rows(case: str):
    rules, v, domain, blocks = ROWS[case]
    found, known = lt.project(v, rules, domain, blocks=blocks), lt.project(v, rules, domain)
    assert_nearest(found, known, v)
    assert found.violation <= 1e-10
    assert found.certificate.holds


def few_groups(monkeypatch: pytest.MonkeyPatch, **changes: Any) -> None:
    """Groups are never settled, so that rounds have to do all of it."""
    monkeypatch.setattr(rounds, "COSTS", replace(rounds.COSTS, group_steps=0, **changes))


@pytest.mark.parametrize(
    "case", ["2^10", "long axis", pytest.param("sparse rows", marks=pytest.mark.slow)]
)
def test_rounds_alone(case: str, monkeypatch: pytest.MonkeyPatch):
    rules, v, domain, blocks = (LATTICES | ROWS)[case]
    known = lt.project(v, rules, domain)
    few_groups(monkeypatch, exchange_gap=1e-13)
    found = lt.project(v, rules, domain, blocks=blocks)
    assert found.certificate.kind == "certified" and "rounds of accelerated Dykstra" in found.method
    assert np.linalg.norm(found.w - known.w) <= 1e-6 * (1.0 + known.distance)
    assert_proof(found, known, v)
    few_groups(monkeypatch, exchange_rounds=5)
    rough = lt.project(v, rules, domain, blocks=blocks)
    assert rough.certificate.kind == "not certified" and "not certified" in rough.method
    if case in LATTICES:
        assert rough.violation == 0.0
        assert_proof(rough, known, v)


def test_groups_after_rounds(monkeypatch: pytest.MonkeyPatch):
    """Where the first groups grow too large, rounds lead to better ones."""
    rules, v, domain, _ = LATTICES["2^10"]
    monkeypatch.setattr(rounds, "COSTS", replace(rounds.COSTS, group_steps=3))
    found = lt.project(v, rules, domain, blocks=8)
    assert "rounds of" in found.method and found.violation == 0.0
    assert_nearest(found, lt.project(v, rules, domain), v)


def test_warm_starts_settle_at_once():
    rules, v, domain, blocks = LATTICES["2^10"]
    first = lt.project(v, rules, domain, blocks=blocks)
    again = lt.project(v, rules, domain, blocks=blocks, warm=first.warm)
    assert "1 steps" in again.method
    assert np.abs(again.w - first.w).max() <= 1e-14


class Backwards(InProcess):
    """Computes tasks in another order, some of them twice, as workers that are lost would."""

    def map(
        self,
        task: Callable[..., Any],
        items: Sequence[tuple[Any, ...]],
        names: Sequence[str] | None = None,
    ) -> Iterator[Any]:
        done = [run_task(task, item) for item in (*items[::-1], *items[:1])]
        return iter(done[: len(items)][::-1])


BITS = {case: (LATTICES | ROWS)[case] for case in ("2^10", "long axis", "convex")}


@pytest.fixture(scope="module")
def known_bits() -> dict[str, bytes]:
    return {case: bits(case, None) for case in BITS}


def bits(case: str, engine: Any) -> bytes:
    rules, v, domain, blocks = BITS[case]
    found = lt.project(v, rules, domain, blocks=blocks, engine=engine)
    return found.w.tobytes() + np.float64(found.gap).tobytes()


def test_order_of_tasks_changes_nothing(known_bits: dict[str, bytes]):
    assert all(bits(case, Backwards()) == known for case, known in known_bits.items())


@pytest.mark.parametrize(
    "workers", [pytest.param(1, marks=pytest.mark.slow), 2, pytest.param(4, marks=pytest.mark.slow)]
)
def test_same_bits_in_processes(workers: int, known_bits: dict[str, bytes]):
    with lt.Processes(workers) as engine:
        assert all(bits(case, engine) == known for case, known in known_bits.items())
        if workers == 4:
            os.kill(engine._pool[0].process.pid, signal.SIGKILL)
            assert all(bits(case, engine) == known for case, known in known_bits.items())


def test_time_limits():
    rules, v = lt.lattice.increasing([2] * 14), rising([2] * 14, 9.0)
    feasible_set(rules, lt.Everywhere(), 4)
    try:
        found = lt.project(v, rules, blocks=4, time_limit=0.05)
    except lt.OutOfTimeError:
        return
    assert found.violation == 0.0
    if not found.certificate.holds:
        assert found.gap is not None
        assert_proof(found, lt.project(v, rules), v)


def test_lattices_beyond_memory_are_cut(monkeypatch: pytest.MonkeyPatch):
    sizes = [2] * 8
    rules, v = lt.lattice.increasing(sizes), rising(sizes, 0.5)
    known = lt.project(v, lt.lattice.increasing(sizes))
    monkeypatch.setattr(orders, "available_memory", lambda: 1000)
    found = lt.project(v, rules)
    assert "by groups on" in found.method
    assert_nearest(found, known, v)
    problem = lt.Problem(lt.Quadratic(np.eye(v.size), -v), rules)
    assert lt.solve(problem).violation == 0.0


def test_what_cannot_be_cut():
    curved = lt.QuadraticConstraints([np.eye(2)], np.zeros((1, 2)), [-1.0])
    with pytest.raises(lt.ConstraintError, match="blocks=3 takes orders of a lattice"):
        lt.project([2.0, 0.0], curved, blocks=3)
    with pytest.raises(ValueError, match="blocks must be"):
        lt.project([2.0, 0.0], lt.ordering(2), blocks=0)
