"""What `make demo-ranking` runs: the paper's kind of model under 24,576 rules, and without any."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass

import numpy as np

import lighttouch as lt
from lighttouch.arrays import Vector
from lighttouch.datasets import ranking_pairs, utility

LABEL, COLUMN = 44, 19  # widths
TEST_CANDIDATES = 50_000


@dataclass(frozen=True)
class Point:
    """What a parameter vector is worth, measured afresh."""

    objective: float
    violation: float
    broken: int
    agreement: float


@dataclass(frozen=True)
class Trained:
    """A run, and its model before and after the projection onto the rules."""

    result: lt.Result
    before: Point
    after: Point
    projection_seconds: float


def main(pairs: int = 612_587, features: int = 12, seconds: float = 3.0, seed: int = 0) -> int:
    """Train on `pairs` generated examples for `seconds` with the rules, then without them."""
    grid = lt.Lattice((2,) * features)
    rules = lt.lattice.increasing(grid.sizes)
    introduce(pairs, features, grid, rules)
    ruled = lt.Problem(ranking_objective(pairs, grid, seed), rules, lt.Box(-10, 10))
    free = lt.Problem(ruled.objective, None, ruled.domain)
    print("Compiling (slow only the first time)", end=" ", flush=True)
    began = time.perf_counter()
    for problem in (ruled, free):
        lt.solve(problem, iterations=1)
    compilation = time.perf_counter() - began
    print(f"{compilation:.1f} s")
    trained = []
    for name, problem in ((f"under {rules.count:,} constraints", ruled), ("without any", free)):
        print(f"Training {name}", flush=True)
        result = lt.solve(problem, time_limit=seconds, seed=seed, progress=True)
        if result.status is lt.Status.INTERRUPTED:
            print(f"\nInterrupted. The best so far:\n\n{result}")
            return 130
        trained.append(measure(result, ruled, grid, seed + 1))
    report(*trained, constraints=rules.count)
    conclude(*trained, compilation=compilation)
    return 0


def introduce(pairs: int, features: int, grid: lt.Lattice, rules: lt.LinearConstraints) -> None:
    print(
        f"lighttouch {lt.__version__}: learning to rank under {rules.count:,} rules\n\n"
        f"The data: {pairs:,} generated choices, each a clicked candidate and the one shown above\n"
        f"it, described by {features} similarities in [0, 1]. The model: a lattice of "
        f"{grid.parameter_count:,} parameters.\n"
        "The rules: a larger similarity must never lower the score, which takes "
        f"{rules.count:,} constraints.\n",
        flush=True,
    )


def ranking_objective(pairs: int, grid: lt.Lattice, seed: int) -> lt.PairwiseRisk:
    better, worse = (grid.features(side) for side in ranking_pairs(pairs, len(grid.sizes), seed))
    return lt.PairwiseRisk(better, worse, loss="hinge")


def measure(result: lt.Result, ruled: lt.Problem, grid: lt.Lattice, seed: int) -> Trained:
    """The run with rules hands over a projected point, so what it was before is its last iterate;
    the other run is projected here.
    """
    constrained = result.constraint_checks > 0
    raw = result.w_last if constrained else result.w
    projected = lt.project(raw, ruled.constraints, ruled.domain)
    before, after = (
        point(w, ruled, grid, seed) for w in (raw, result.w if constrained else projected.w)
    )
    return Trained(result, before, after, projected.seconds)


def point(w: Vector, ruled: lt.Problem, grid: lt.Lattice, seed: int) -> Point:
    broken = int((ruled.constraints.values(w) > 0).sum())
    return Point(ruled.objective.value(w), ruled.violation(w), broken, agreement(grid, w, seed))


def agreement(grid: lt.Lattice, w: Vector, seed: int) -> float:
    """The share of random pairs of new candidates that w puts in the order of their utility."""
    first, second = ranking_pairs(TEST_CANDIDATES, len(grid.sizes), seed)
    second = np.roll(second, 1, axis=0)  # candidates of different users, so of no common list
    learnt = grid.evaluate(first, w) - grid.evaluate(second, w)
    return float(np.mean(learnt * (utility(first) - utility(second)) > 0))


def report(ruled: Trained, free: Trained, constraints: int) -> None:
    both = (ruled, free)
    heading("", "with the rules", "unconstrained SGD")
    for when, points in (
        ("Before", [each.before for each in both]),
        ("After", [each.after for each in both]),
    ):
        heading(f"{when} the projection onto the rules")
        row("objective (mean hinge loss)", *(f"{each.objective:.5f}" for each in points))
        row("worst violation", *(f"{each.violation:.3g}" for each in points))
        row(f"rules broken, of {constraints:,}", *(f"{each.broken:,}" for each in points))
        row("new pairs put in the users' true order", *(f"{each.agreement:.1%}" for each in points))
    heading("What it took")
    runs = [each.result for each in both]
    row("constraint checks", *(f"{run.constraint_checks:,}" for run in runs))
    row("examples seen", *(f"{run.gradient_samples:,}" for run in runs))
    row("seconds of training", *(f"{run.seconds:.2f}" for run in runs))
    row("nanoseconds per example", *(f"{nanoseconds(run):,.0f}" for run in runs))
    row("ms of one projection", *(f"{1e3 * each.projection_seconds:.1f}" for each in both))
    row("ended by", *(run.status.name.lower().replace("_", " ") for run in runs))


def nanoseconds(run: lt.Result) -> float:
    return 1e9 * run.seconds / max(1, run.gradient_samples)


def heading(label: str, *cells: str) -> None:
    print()
    row(label, *cells, indent="")


def row(label: str, *cells: str, indent: str = "  ") -> None:
    print((f"{indent + label:<{LABEL}}" + "".join(f"{cell:>{COLUMN}}" for cell in cells)).rstrip())


def conclude(ruled: Trained, free: Trained, compilation: float) -> None:
    cost = ruled.after.objective - free.before.objective
    slower = nanoseconds(ruled.result) / nanoseconds(free.result)
    print(
        f"\nObeying every rule cost {cost:.4f} of training loss, and {slower:.2f} times the time "
        f"per example.\nCompilation ({compilation:.1f} s) is not in these times; its result stays "
        "in this clone for the next run.\n\n"
        "Next\n"
        "  README.md             a quick start of 15 lines\n"
        "  docs/README.md        how to state your own rules\n"
        "  examples/ranking.py   what ran here, to change\n"
        "  make test             check that all is well"
    )


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        print("\nInterrupted.")
        sys.exit(130)
