"""Target 5: expensive constraints. Time to a feasible point within 1% of the proven optimum: ours,
FullTouch, a QP solver.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

import lighttouch as lt
from benchmarks.speed.expensive_optimum import lower_bound
from benchmarks.speed.paper_problem import Row

WITHIN = 1.01
FULL_TOUCH_STEPS = (0.02, 0.1)
MEMORY = 12 * 2**30


def dense_rows(d: int, m: int, seed: int = 0) -> lt.Problem:
    """Least squares in a random polytope, whose best point is almost a vertex: nearly d of the m
    rows bind.
    """
    rng = np.random.default_rng(seed)
    truth = rng.normal(size=d) / np.sqrt(d)
    X = rng.normal(size=(4 * d, d))
    y = X @ truth + 0.5 * rng.normal(size=4 * d)
    A = rng.normal(size=(m, d))
    b = np.abs(A @ (0.7 * truth)) + 0.3 * np.abs(rng.normal(size=m))
    return lt.Problem(
        lt.EmpiricalRisk(X, y, loss="squared"), lt.LinearConstraints(A, b), lt.Box(-2, 2)
    )


def many_balls(d: int, m: int, seed: int = 0) -> lt.Problem:
    rng = np.random.default_rng(seed)
    truth = rng.normal(size=d) / np.sqrt(d)
    X = rng.normal(size=(20 * d, d))
    y = X @ truth + 0.5 * rng.normal(size=20 * d)
    centers = 0.5 * rng.normal(size=(m, d)) / np.sqrt(d)
    radii = np.linalg.norm(centers - 0.5 * truth, axis=1) + 0.05
    return lt.Problem(
        lt.EmpiricalRisk(X, y, loss="squared"),
        lt.NormConstraints(None, -centers, None, radii),
        lt.Box(-2, 2),
    )


@dataclass(frozen=True)
class UntilGood(lt.Automatic):
    """The default solver, ended as soon as a feasible point of its own is good enough."""

    target: float = -np.inf

    def finished(self, state: Any) -> lt.Status | None:
        return lt.Status.STALLED if state.best_objective <= self.target else super().finished(state)


def our_seconds(problem: lt.Problem, target: float) -> float:
    """Everything counts: the search for a step size, the loop, and every projection."""
    result = lt.solve(problem, UntilGood(target=target))
    return result.seconds if result.objective <= target else np.inf


def full_touch_seconds(problem: lt.Problem, step: float, target: float, limit: float) -> float:
    """Its projections are off its clock: its end is looked at, then, while that is good enough,
    ends half as far away.
    """
    seconds = np.inf
    while True:
        result = lt.solve(
            problem,
            lt.FullTouch(1.0, lt.AdaGrad(step), batch=8),
            time_limit=limit,
            project=False,
            record_every=10**9,
        )
        ends = (
            lt.project(w, problem.constraints, problem.domain).w
            for w in (result.w_average, result.w)
        )
        if min(problem.objective.value(w) for w in ends) > target:
            return seconds
        seconds, limit = result.seconds, result.seconds / 2


def clarabel_seconds(kind: str, d: int, m: int, limit: float) -> float:
    """In a process of its own, which may end for want of time or memory."""
    code = (
        f"from benchmarks.speed import expensive; print(expensive.clarabel_here({kind!r}, {d}, "
        f"{m}, {limit}))"
    )
    try:
        done = subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            timeout=limit + 60,
            check=False,
        )
        return float(done.stdout.split()[-1])
    except (subprocess.TimeoutExpired, ValueError, IndexError):
        return np.inf


def clarabel_here(kind: str, d: int, m: int, limit: float) -> float:
    """Seconds that Clarabel needs for the same quadratic program; infinite where it does not solve
    it within the limit.
    """
    import clarabel

    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    problem = PROBLEMS[kind](d, m)
    X, y = problem.objective.X, problem.objective.y
    rows, right, cones = conic_rows(problem)
    settings = clarabel.DefaultSettings()
    settings.verbose, settings.time_limit, settings.direct_solve_method = False, limit, "faer"
    quadratic = sp.triu(sp.csc_matrix(X.T @ X / y.size), format="csc")
    began = time.perf_counter()
    solver = clarabel.DefaultSolver(quadratic, -X.T @ y / y.size, rows, right, cones, settings)
    solution = solver.solve()
    return time.perf_counter() - began if str(solution.status) == "Solved" else np.inf


def conic_rows(problem: lt.Problem) -> tuple[sp.csc_matrix, np.ndarray, list[Any]]:
    """The constraints as right - rows @ w in a product of cones."""
    import clarabel

    d, constraints = problem.dimension, problem.constraints
    box = sp.vstack([sp.identity(d), -sp.identity(d)])
    if isinstance(constraints, lt.LinearConstraints):
        rows = sp.vstack([sp.csr_matrix(constraints.A), box], format="csc")
        return (
            rows,
            np.concatenate([constraints.b, np.full(2 * d, 2.0)]),
            [clarabel.NonnegativeConeT(rows.shape[0])],
        )
    ball = sp.vstack([sp.csr_matrix((1, d)), -sp.identity(d)])
    rows = sp.vstack([*[ball] * constraints.count, box], format="csc")
    sides = np.column_stack([constraints.d, constraints.b]).ravel()
    cones = [clarabel.SecondOrderConeT(d + 1)] * constraints.count + [
        clarabel.NonnegativeConeT(2 * d)
    ]
    return rows, np.concatenate([sides, np.full(2 * d, 2.0)]), cones


PROBLEMS: dict[str, Callable[[int, int], lt.Problem]] = {
    "dense rows": dense_rows,
    "norm balls": many_balls,
}


def compare(kind: str, d: int, m: int) -> list[Row]:
    problem = PROBLEMS[kind](d, m)
    lt.solve(problem, time_limit=0.5)
    if kind == "dense rows":
        target = WITHIN * lower_bound(problem)
    else:
        proven = lt.solve(problem)
        target = WITHIN * proven.objective * (1.0 - lt.Automatic().tolerance)
    ours = our_seconds(problem, target)
    limit = max(30.0, 5.0 * ours)
    full = min(full_touch_seconds(problem, step, target, limit) for step in FULL_TOUCH_STEPS)
    qp = clarabel_seconds(kind, d, m, limit)
    name = f"{m:,} {kind}, d = {d:,}, to within 1%"
    return [
        Row(f"{name}: ours, every projection included", f"{ours:.2f} s", ""),
        Row(
            f"{name}: FullTouch, its projections free / ours",
            ratio(full, ours, limit),
            "> 1",
            full > ours,
        ),
        Row(f"{name}: Clarabel, to its end / ours", ratio(qp, ours, limit), "> 1", qp > ours),
    ]


def ratio(theirs: float, ours: float, limit: float) -> str:
    return (
        f"> {limit:.0f} / {ours:.2f} s"
        if np.isinf(theirs)
        else f"{theirs:.2f} / {ours:.2f} s = {theirs / ours:.1f}x"
    )


def run(quick: bool = False) -> list[Row]:
    d, m = (200, 10_000) if quick else (2_000, 100_000)
    return compare("dense rows", d, m) + compare("norm balls", 200, 2_000)
