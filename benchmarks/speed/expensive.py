"""Target 5: expensive constraints. Time to a feasible point within 1% of the optimum: ours, FullTouch, a QP solver."""

from __future__ import annotations

import time

import numpy as np

import lighttouch as lt
from benchmarks.speed.paper_problem import Row

LIMIT = 120.0


def dense_rows(d: int, m: int, seed: int = 0) -> lt.Problem:
    rng = np.random.default_rng(seed)
    truth = rng.normal(size=d) / np.sqrt(d)
    X = rng.normal(size=(4 * d, d))
    y = X @ truth + 0.5 * rng.normal(size=4 * d)
    A = rng.normal(size=(m, d))
    b = np.abs(A @ (0.7 * truth)) + 0.3 * np.abs(rng.normal(size=m))
    return lt.Problem(lt.EmpiricalRisk(X, y, loss="squared"), lt.LinearConstraints(A, b), lt.Box(-2, 2))


def many_balls(d: int, m: int, seed: int = 0) -> lt.Problem:
    rng = np.random.default_rng(seed)
    truth = rng.normal(size=d) / np.sqrt(d)
    X = rng.normal(size=(20 * d, d))
    y = X @ truth + 0.5 * rng.normal(size=20 * d)
    centers = 0.5 * rng.normal(size=(m, d)) / np.sqrt(d)
    radii = np.linalg.norm(centers - 0.5 * truth, axis=1) + 0.05
    return lt.Problem(lt.EmpiricalRisk(X, y, loss="squared"), lt.NormConstraints(None, -centers, None, radii), lt.Box(-2, 2))


def seconds_of(problem: lt.Problem, solver, target: float) -> float | None:
    """Seconds on the clock until the projected iterate (or average) is within the target, judged off the clock."""
    reached: list[float] = []

    def watch(progress: lt.Progress) -> bool:
        for w in (progress.w_average, progress.w):
            if not reached and problem.objective.value(lt.project(w, problem.constraints, problem.domain).w) <= target:
                reached.append(progress.seconds)
        return bool(reached)

    lt.solve(problem, solver, time_limit=LIMIT, callback=watch, project=False)
    return reached[0] if reached else None


def clarabel_seconds(problem: lt.Problem) -> float | None:
    """CVXPY with Clarabel; None where it is not installed or runs out of time."""
    try:
        import cvxpy as cp
    except ImportError:
        return None
    from benchmarks.suite import minimum

    constraints = problem.constraints
    began = time.perf_counter()
    try:
        if isinstance(constraints, lt.NormConstraints):
            minimum(problem, lambda _, w: [cp.norm(w + row) <= r for row, r in zip(constraints.b, constraints.d, strict=True)])
        else:
            minimum(problem)
    except Exception:
        return None
    return time.perf_counter() - began


def compare(name: str, problem: lt.Problem, quick: bool) -> list[Row]:
    lt.solve(problem, time_limit=0.5)
    began = time.perf_counter()
    ours = lt.solve(problem)
    full_time = time.perf_counter() - began
    target = 1.01 * ours.objective
    to_target = seconds_of(problem, None, target) or full_time
    full = seconds_of(problem, lt.FullTouch(1.0, lt.AdaGrad(0.05), batch=8), target)
    rows = [
        Row(f"{name}: ours to 1% / to the end ({ours.status.name})", f"{to_target:.2f} / {full_time:.2f} s", ""),
        Row(f"{name}: FullTouch to 1% / ours", _ratio(full, to_target), "> 1", (full or LIMIT) > to_target),
    ]
    if not quick:
        qp = clarabel_seconds(problem)
        what = f"{name}: CVXPY with Clarabel to the end / ours to the end"
        rows.append(Row(what, _ratio(qp, full_time), "> 1", qp is None or qp > full_time))
    return rows


def _ratio(theirs: float | None, ours: float) -> str:
    return f"> {LIMIT:.0f} s / {ours:.2f} s" if theirs is None else f"{theirs:.2f} / {ours:.2f} s = {theirs / ours:.1f}x"


def run(quick: bool = False) -> list[Row]:
    d, m = (200, 10_000) if quick else (2_000, 100_000)
    return compare(f"{m:,} dense rows, d = {d:,}", dense_rows(d, m), quick or m > 50_000) + compare(
        "2,000 norm balls, d = 200", many_balls(200, 2_000), quick
    )
