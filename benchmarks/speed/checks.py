"""Target 4, the paper's headline: checks to within 1% of the best known projected objective, LightTouch against FullTouch."""

from __future__ import annotations

import lighttouch as lt
from benchmarks.speed.paper_problem import Row, paper_problem, projected_objective

LIGHT = lt.PracticalLightTouch(penalty=1.0, step_size=lt.InverseSqrt(16.0), weight_step_size=1 / 16)
FULL = lt.FullTouch(penalty=1.0, step_size=lt.InverseSqrt(16.0), batch=2)


def checks_to(problem: lt.Problem, solver, target: float, limit: int) -> int | None:
    found: list[int] = []

    def watch(progress: lt.Progress) -> bool:
        if projected_objective(problem, progress.w) <= target:
            found.append(progress.constraint_checks)
        return bool(found)

    lt.solve(problem, solver, iterations=limit, record_every=20_000, callback=watch, project=False)
    return found[0] if found else None


def run(quick: bool = False) -> list[Row]:
    problem = paper_problem(60_000) if quick else paper_problem()
    best = lt.solve(problem, lt.Automatic(tolerance=1e-4)).objective
    target = 1.01 * best
    limit = 400_000 if quick else 2_000_000
    light, full = checks_to(problem, LIGHT, target, limit), checks_to(problem, FULL, target, limit)
    if light is None:
        return [Row(f"LightTouch did not come within 1% of {best:.5f} in {limit:,} iterations", "", ">= 10x", False)]
    least = full if full is not None else limit * problem.constraints.count
    ratio = least / light
    shown = f"{'' if full else '> '}{least:.2e} / {light:.2e} = {ratio:.0f}x"
    return [Row(f"checks to within 1% of {best:.5f}: FullTouch / LightTouch, not aggregated", shown, ">= 10x", ratio >= 10)]
