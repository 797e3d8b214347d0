"""What `make demo-ranking` runs: the paper's kind of model, trained on generated data, beside the
same model without constraints.
"""

from __future__ import annotations

import argparse
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

import lighttouch as lt
from lighttouch.arrays import Vector
from lighttouch.datasets import ranking_pairs, utility
from lighttouch.result import Result, Status

LABEL = 44
COLUMN = 19
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

    result: Result
    before: Point
    after: Point
    projection_seconds: float


def main(arguments: Sequence[str] | None = None) -> int:
    options = _options(arguments)
    try:
        return _run(options)
    except KeyboardInterrupt:
        print("\nInterrupted.")
        return 130


def _run(options: argparse.Namespace) -> int:
    grid = lt.Lattice((2,) * options.features)
    rules = lt.lattice.increasing(grid.sizes)
    _introduce(options, grid, rules)
    ruled = lt.Problem(_objective(options, grid), rules, lt.Box(-10, 10))
    free = lt.Problem(ruled.objective, None, ruled.domain)
    with _step("Compiling (slow only the first time)") as compilation:
        for problem in (ruled, free):
            lt.solve(problem, iterations=1)
    trained = {}
    for name, problem in (
        (f"Training under {rules.count:,} constraints", ruled),
        ("Training without any (the yardstick)", free),
    ):
        print(name, flush=True)
        result = lt.solve(problem, time_limit=options.seconds, seed=options.seed, progress=True)
        if result.status is Status.INTERRUPTED:
            print(f"\nInterrupted. The best so far:\n\n{result}")
            return 130
        trained[problem] = _measure(result, problem is ruled, ruled, grid, options.seed + 1)
    _report(trained[ruled], trained[free], rules.count)
    _conclude(trained[ruled], trained[free], compilation.seconds)
    return 0


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m lighttouch.demo", description=__doc__)
    parser.add_argument(
        "--pairs",
        type=int,
        default=612_587,
        help="examples to generate (default: as many as in the paper)",
    )
    parser.add_argument(
        "--features",
        type=int,
        default=12,
        help="features of a candidate; the lattice has 2^features parameters",
    )
    parser.add_argument(
        "--seconds", type=float, default=3.0, help="time limit of each of the two trainings"
    )
    parser.add_argument("--seed", type=int, default=0, help="draws other users and another run")
    options = parser.parse_args(arguments)
    if options.pairs < 1 or not 1 <= options.features <= 16 or not options.seconds > 0:
        parser.error(
            "pairs must be at least 1, features lie between 1 and 16, and seconds be positive"
        )
    return options


def _introduce(options: argparse.Namespace, grid: lt.Lattice, rules: lt.LinearConstraints) -> None:
    print(
        f"lighttouch {lt.__version__}: learning to rank under {rules.count:,} rules\n\n"
        f"The data: {options.pairs:,} generated choices, each a clicked candidate and the "
        "one shown above it,\n"
        f"described by {options.features} similarities in [0, 1]. The model: a lattice of "
        f"{grid.parameter_count:,} parameters.\n"
        "The rules: a larger similarity must never lower the score, which takes "
        f"{rules.count:,} constraints.\n",
        flush=True,
    )


def _objective(options: argparse.Namespace, grid: lt.Lattice) -> lt.PairwiseRisk:
    with _step(f"Generating {options.pairs:,} pairs"):
        pairs = ranking_pairs(options.pairs, options.features, options.seed)
    with _step(f"Interpolating on the 2^{options.features} lattice"):
        better, worse = (grid.features(side) for side in pairs)
    with _step("Stating the problem"):
        return lt.PairwiseRisk(better, worse, loss="hinge")


class _Watch:
    seconds = 0.0


@contextmanager
def _step(name: str) -> Iterator[_Watch]:
    """Name the step, count its seconds while it runs (on a terminal), and leave the total."""
    began, watch, done = time.perf_counter(), _Watch(), threading.Event()
    shown = f"{name:<{LABEL}} "
    again = f"\r{shown}" if sys.stdout.isatty() else ""

    def tick() -> None:
        while again and not done.wait(0.2):
            print(f"{again}{time.perf_counter() - began:6.1f} s ...", end="", flush=True)

    print(shown, end="", flush=True)
    ticker = threading.Thread(target=tick, daemon=True)
    ticker.start()
    try:
        yield watch
    finally:
        done.set()
        ticker.join()
        watch.seconds = time.perf_counter() - began
        print(f"{again}{watch.seconds:6.1f} s{'    ' if again else ''}", flush=True)


def _measure(
    result: Result, constrained: bool, ruled: lt.Problem, grid: lt.Lattice, seed: int
) -> Trained:
    """The constrained run hands over a projected point, so what it was before is its last iterate;
    the other run is projected here.
    """
    raw = result.w_last if constrained else result.w
    projected = lt.project(raw, ruled.constraints, ruled.domain)
    final = result.w if constrained else projected.w
    return Trained(
        result, _point(raw, ruled, grid, seed), _point(final, ruled, grid, seed), projected.seconds
    )


def _point(w: Vector, ruled: lt.Problem, grid: lt.Lattice, seed: int) -> Point:
    broken = int((ruled.constraints.values(w) > 0).sum())
    return Point(ruled.objective.value(w), ruled.violation(w), broken, _agreement(grid, w, seed))


def _agreement(grid: lt.Lattice, w: Vector, seed: int) -> float:
    """The share of random pairs of new candidates that w puts in the order of their true
    utility.
    """
    first, second = ranking_pairs(TEST_CANDIDATES, len(grid.sizes), seed)
    second = np.roll(
        second, 1, axis=0
    )  # candidates of different users: no list, no old ranker between them
    learnt = grid.evaluate(first, w) - grid.evaluate(second, w)
    return float(np.mean(learnt * (utility(first) - utility(second)) > 0))


def _report(ruled: Trained, free: Trained, constraints: int) -> None:
    _heading("", "with the rules", "unconstrained SGD")
    for when, points in (
        ("Before", (ruled.before, free.before)),
        ("After", (ruled.after, free.after)),
    ):
        _heading(f"{when} the projection onto the rules")
        _row("objective (mean hinge loss)", *(f"{point.objective:.5f}" for point in points))
        _row("worst violation", *(f"{point.violation:.3g}" for point in points))
        _row(f"rules broken, of {constraints:,}", *(f"{point.broken:,}" for point in points))
        _row(
            "new pairs put in the users' true order",
            *(f"{point.agreement:.1%}" for point in points),
        )
    _heading("What it took")
    runs = (ruled.result, free.result)
    _row("constraint checks", *(f"{run.constraint_checks:,}" for run in runs))
    _row("examples seen", *(f"{run.gradient_samples:,}" for run in runs))
    _row("seconds of training", *(f"{run.seconds:.2f}" for run in runs))
    _row("nanoseconds an example", *(f"{_pace(run):,.0f}" for run in runs))
    _row(
        "milliseconds of one projection",
        *(f"{1e3 * run.projection_seconds:.1f}" for run in (ruled, free)),
    )
    _row("ended by", *(run.status.name.lower().replace("_", " ") for run in runs))


def _pace(run: Result) -> float:
    return 1e9 * run.seconds / max(1, run.gradient_samples)


def _heading(label: str, *cells: str) -> None:
    print()
    _row(label, *cells, indent="")


def _row(label: str, *cells: str, indent: str = "  ") -> None:
    print((f"{indent + label:<{LABEL}}" + "".join(f"{cell:>{COLUMN}}" for cell in cells)).rstrip())


def _conclude(ruled: Trained, free: Trained, compilation: float) -> None:
    cost, slower = (
        ruled.after.objective - free.before.objective,
        _pace(ruled.result) / _pace(free.result),
    )
    print(
        f"\nObeying every rule cost {cost:.4f} of training loss, and {slower:.2f} times "
        "the time an example.\n"
        f"Compilation ({compilation:.1f} s) is not in these times; its result stays in "
        "this clone for the next run.\n\n"
        "Next\n"
        "  README.md                                  a quick start of 15 lines\n"
        "  docs/README.md                             how to state your own rules\n"
        "  .venv/bin/python -m lighttouch.demo --help the same at other sizes\n"
        "  make test                                  check that all is well"
    )


if __name__ == "__main__":
    sys.exit(main())
