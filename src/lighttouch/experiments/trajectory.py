"""One solver on the ranking problem of Section 6, looked at again and again on its way."""

from __future__ import annotations

import time
from functools import lru_cache
from typing import Any

import numpy as np

import lighttouch as lt
from lighttouch.experiments.pairs import load_pairs
from lighttouch.experiments.solvers import DEFAULT, build_solver, solve_or_stop

Row = dict[str, Any]
NEVER = 10**12


def trajectory(unit: dict[str, Any]) -> list[Row]:
    """Rows at log-spaced iterations up to `iterations`, or until `seconds` of solver time are used,
    or the solver ends by itself.

    Everything in a row beyond the counters is computed off the clock.
    """
    problem = ranking_problem(unit["problem"], unit["solver"].get("aggregate", 1))
    solver, by_itself = build_solver(unit["solver"]), unit["solver"]["kind"] == DEFAULT
    spent = tuning_seconds(problem, unit["seed"]) if by_itself else 0.0
    lt.project(problem.start(), problem.constraints, problem.domain)
    rows: list[Row] = []
    state = None
    for checkpoint in checkpoints(unit["iterations"] or NEVER, unit["per_decade"]):
        if (
            rows and checkpoint <= rows[-1]["iteration"]
        ):  # the default solver may take many steps at once
            continue
        result = solve_or_stop(
            problem,
            solver,
            iterations=checkpoint,
            seed=unit["seed"],
            resume=state,
            project=by_itself,
        )
        rows.append(_row(problem, result, by_itself, spent))
        state = result.state
        if result.status is not lt.Status.ITERATION_LIMIT or rows[-1]["seconds"] >= (
            unit["seconds"] or np.inf
        ):
            break
    return rows


def checkpoints(last: int, per_decade: int) -> list[int]:
    """1, ..., last: the whole numbers nearest to a geometric grid."""
    grid = 10.0 ** (np.arange(int(per_decade * np.log10(last)) + 1) / per_decade)
    return sorted({*(round(value) for value in grid), last})


def _row(problem: lt.Problem, result: lt.Result, by_itself: bool, spent: float) -> Row:
    """The paper judges the projected iterate; the default solver is judged by the answer it would
    give.
    """
    projected = lt.project(result.w_last, problem.constraints, problem.domain)
    answer = result.w if by_itself else projected.w
    return {
        "iteration": result.iterations,
        "seconds": spent + result.state.seconds,
        "constraint_checks": result.constraint_checks,
        "gradient_samples": result.gradient_samples,
        "objective": problem.objective.value(answer),
        "objective_not_projected": problem.objective.value(result.w_last),
        "violation": problem.violation(result.w_last),
        "projection_seconds": projected.seconds,
        "status": result.status.name,
    }


def tuning_seconds(problem: lt.Problem, seed: int) -> float:
    """What the default solver spends before its clock starts, charged to it: its call less the same
    call of a solver that tunes nothing.
    """
    return max(
        0.0,
        _off_the_clock(problem, None, seed) - _off_the_clock(problem, lt.FullTouch(1.0, 1.0), seed),
    )


def _off_the_clock(problem: lt.Problem, solver: lt.FullTouch | None, seed: int) -> float:
    """Of four calls the quickest, so that compilation and other programs' work do not count."""
    quickest = np.inf
    for _ in range(4):
        began = time.perf_counter()
        result = solve_or_stop(problem, solver, iterations=1, seed=seed, project=False)
        quickest = min(quickest, time.perf_counter() - began - float(result.state.seconds))
    return quickest


def ranking_problem(settings: dict[str, Any], aggregate: int = 1) -> lt.Problem:
    """The problem of these settings (pairs, features, box, data), its constraints in groups of
    `aggregate`.
    """
    objective, constraints, domain = _pieces(
        settings["pairs"], settings["features"], settings["box"], settings["data"]
    )
    return lt.Problem(
        objective, constraints if aggregate == 1 else constraints.aggregated(aggregate), domain
    )


@lru_cache(maxsize=2)
def _pieces(pairs: int, features: int, box: float, data: str | None) -> tuple[Any, Any, Any]:
    better, worse = load_pairs(data, pairs, features)
    sizes = (2,) * better.shape[1]
    lattice = lt.Lattice(sizes)
    objective = lt.PairwiseRisk(lattice.features(better), lattice.features(worse), loss="hinge")
    return objective, lt.lattice.increasing(sizes), lt.Box(-box, box)
