"""Which algorithm for large models: CPU seconds to 0.1% of the optimum at 2, 8 and 64 shards.

    python -m benchmarks.shards.rounds [--pairs 612587] [--shards 2 8 64] [--steps 60] [--ours]

Every method runs in this process, so that CPU seconds are those of all shards together; what a
worker needs of them is one part in `shards`, and the driver's projections.

- full gradients: FISTA from 0
- average once: every shard alone by sampled AdaGrad, then the mean
- average, then full gradients: what `solve` does
- DANE: rounds of local problems whose linear term is corrected by the whole gradient (Shamir,
  Srebro and Zhang 2014), from the average on
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

import lighttouch as lt
from benchmarks.shards.cases import PAIRS, paper_in_shards
from lighttouch.solvers.averaged import AveragedShards, solve_alone

Curve = list[tuple[float, float]]  # CPU seconds, objective


def full_gradients(problem: lt.Problem, steps: int, start: Any = None, near: bool = False) -> Curve:
    curve: Curve = []
    began = time.process_time()
    spent = 0.0

    def note(progress: lt.Progress) -> None:
        nonlocal spent
        clock = time.process_time() - spent - began
        objective = problem.objective.value(lt.project(progress.w, problem.constraints,
                                                       problem.domain).w)  # fmt: skip
        curve.append((clock, objective))
        spent = time.process_time() - began - clock

    lt.solve(
        problem,
        lt.Accelerated(1e-6, near=near),
        iterations=steps,
        start=start,
        callback=note,
        record_every=2,
    )
    return curve


def averaged(problem: lt.Problem) -> tuple[np.ndarray, float]:
    began = time.process_time()
    found = lt.solve(problem, AveragedShards(), project=False)
    return found.w_last, time.process_time() - began


def dane_part(
    part: Any, whole: np.ndarray, w: np.ndarray, constraints: Any, domain: Any, seed: int
) -> np.ndarray:
    """The minimum of f_k(v) + <whole gradient - own gradient, v>, from w."""
    d = w.size
    correction = lt.Quadratic(scipy.sparse.csr_matrix((d, d)), whole - part.gradient(w))
    local = lt.WeightedSum([part, correction])
    return solve_alone(local, constraints, domain, w, 1e-3, seed)[0]


def dane(problem: lt.Problem, start: np.ndarray, rounds: int) -> Curve:
    risk, w, spent = problem.objective, start, 0.0
    curve: Curve = []
    for k in range(rounds):
        began = time.process_time()
        arguments = (risk.gradient(w), w, problem.constraints, problem.domain, k)
        w = lt.project(risk.mean(dane_part, *arguments), problem.constraints, problem.domain).w
        spent += time.process_time() - began
        curve.append((spent, risk.value(w)))
    return curve


def shifted(curve: Curve, seconds: float) -> Curve:
    return [(seconds + clock, objective) for clock, objective in curve]


def measured(shards: int, pairs: int, steps: int, only_ours: bool) -> dict[str, Curve]:
    problem = paper_in_shards(shards, pairs)
    problem.objective.survey  # noqa: B018 - not on the clock
    mean, seconds = averaged(problem)
    first = [(seconds, problem.objective.value(mean))]
    ours = {
        "average once": first,
        "average, then full gradients": first
        + shifted(full_gradients(problem, steps, mean, near=True), seconds),
    }
    if only_ours:
        return ours
    return {
        **ours,
        "DANE from the average": first + shifted(dane(problem, mean, 3), seconds),
        "full gradients": full_gradients(problem, 2 * steps),
    }


def until(curve: Curve, target: float) -> float | None:
    return next((clock for clock, objective in curve if objective <= target), None)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--pairs", type=int, default=PAIRS)
    parser.add_argument("--shards", type=int, nargs="+", default=[2, 8, 64])
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--ours", action="store_true", help="only what `solve` does")
    parser.add_argument("--json", type=Path, default=Path("results/shard_rounds.json"))
    parser.add_argument("--picture", type=Path, default=None)
    asked = parser.parse_args()
    found: dict[int, dict[str, Curve]] = {}
    for shards in asked.shards:
        found[shards] = measured(shards, asked.pairs, asked.steps, asked.ours)
        asked.json.parent.mkdir(parents=True, exist_ok=True)
        asked.json.write_text(json.dumps(found), encoding="utf-8")
        best = min(
            value for part in found.values() for curve in part.values() for _, value in curve
        )
        for name, curve in found[shards].items():
            last = 100.0 * (min(value for _, value in curve) / best - 1.0)
            to = until(curve, 1.001 * best)
            when = "never" if to is None else f"{to:.1f} s"
            print(f"{shards:3d} shards  {name:32s} 0.1% after {when:>8s}  ends {last:.3f}% off")
    if asked.picture:
        draw(found, asked.picture)


def draw(found: dict[int, dict[str, Curve]], path: Path) -> None:
    import matplotlib.pyplot as plt

    best = min(value for part in found.values() for curve in part.values() for _, value in curve)
    figure, axes = plt.subplots(1, len(found), figsize=(4.0 * len(found), 3.2), sharey=True)
    for axis, (shards, curves) in zip(np.atleast_1d(axes), found.items(), strict=True):
        for name, curve in curves.items():
            clocks, values = zip(*curve, strict=True)
            off = 100.0 * (np.array(values) / best - 1.0)
            axis.plot(clocks, np.maximum(off, 1e-3), marker=".", label=name)
        axis.axhline(0.1, color="grey", linewidth=0.8)
        axis.set(xscale="log", yscale="log", title=f"{shards} shards", xlabel="CPU seconds")
    np.atleast_1d(axes)[0].set_ylabel("% above the best known")
    np.atleast_1d(axes)[-1].legend(fontsize=7)
    figure.tight_layout()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path)


if __name__ == "__main__":
    main()
