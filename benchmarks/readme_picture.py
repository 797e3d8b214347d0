"""The picture in the README: what each solver would hand back after so many seconds, on the paper's
problem.

    python -m benchmarks.readme_picture             measure (docs/figures/against_time.csv), then
    draw python -m benchmarks.readme_picture --draw      draw again from the rows measured before

A point of a curve is the better of two feasible models: the projected last iterate and the
projected average. Seconds are those of the solver's loop and of its set-up (the default solver
tries out step sizes); compilation, projecting and evaluating are off the clock.
"""

from __future__ import annotations

import argparse
import csv
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import lighttouch as lt
from lighttouch.datasets import ranking_pairs

PAIRS, FEATURES, SECONDS = 612_587, 12, 10.0
FOLDER = Path(__file__).parents[1] / "docs" / "figures"
ROWS = FOLDER / "against_time.csv"
PICTURE = FOLDER / "against_time.png"
STEPS = lt.InverseSqrt(
    16.0
)  # the paper's tuned step; gamma 1 and eta_p 1/16 are the defaults of PracticalLightTouch


def problems() -> tuple[lt.Problem, lt.Problem]:
    """The paper's problem, with single constraints and with 96 groups of 256."""
    grid = lt.Lattice((2,) * FEATURES)
    better, worse = (grid.features(side) for side in ranking_pairs(PAIRS, FEATURES))
    objective, rules, domain = (
        lt.PairwiseRisk(better, worse),
        lt.lattice.increasing(grid.sizes),
        lt.Box(-10, 10),
    )
    return lt.Problem(objective, rules, domain), lt.Problem(
        objective, rules.aggregated(256), domain
    )


def answers(problem: lt.Problem, solver: Any) -> Iterator[dict[str, float]]:
    """One run, stopped and resumed at doubling iterations."""
    state, iterations = None, 1000
    begun = set_up_seconds(problem, lt.solve(problem, solver, iterations=1).solver)
    while True:
        result = lt.solve(problem, solver, iterations=iterations, resume=state)
        seconds = begun + float(result.history.seconds[-1])
        last = lt.project(result.w_last, problem.constraints, problem.domain)
        yield {
            "seconds": seconds,
            "iterations": result.iterations,
            "objective": min(result.objective, problem.objective.value(last.w)),
            "violation": problem.violation(result.w_last),
        }
        if result.status is not lt.Status.ITERATION_LIMIT or seconds > SECONDS:
            return
        state, iterations = result.state, 3 * result.iterations // 2


def set_up_seconds(problem: lt.Problem, solver: Any) -> float:
    """What the solver does before its first iteration."""
    begun = time.perf_counter()
    solver.init(problem, problem.start())
    return time.perf_counter() - begun


def measure() -> None:
    single, grouped = problems()
    runs = (
        ("lighttouch, default solver", single, None),
        ("PracticalLightTouch, 96 groups", grouped, lt.PracticalLightTouch(step_size=STEPS)),
        ("PracticalLightTouch", single, lt.PracticalLightTouch(step_size=STEPS)),
        ("FullTouch", single, lt.FullTouch(penalty=1.0, step_size=STEPS, batch=2)),
    )
    ROWS.parent.mkdir(parents=True, exist_ok=True)
    with ROWS.open("w", newline="") as file:
        writer = csv.DictWriter(file, ["solver", "seconds", "iterations", "objective", "violation"])
        writer.writeheader()
        for name, problem, solver in runs:
            for row in answers(problem, solver):
                writer.writerow({"solver": name, **row})
                print(
                    f"{name:<34}"
                    + "  ".join(f"{column} {value:,.5g}" for column, value in row.items()),
                    flush=True,
                )


def draw() -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    with ROWS.open(newline="") as file:
        rows = list(csv.DictReader(file))
    figure, axes = pyplot.subplots(figsize=(7.5, 3.8), layout="constrained")
    for name, color in zip(
        dict.fromkeys(row["solver"] for row in rows),
        ("#c1272d", "#0b6e99", "#7aa6c2", "#555555"),
        strict=True,
    ):
        points = [
            (float(row["seconds"]), float(row["objective"]))
            for row in rows
            if row["solver"] == name
        ]
        axes.plot(
            *zip(*points, strict=True),
            color=color,
            marker=".",
            linewidth=2.2 if "default" in name else 1.4,
        )
        below = "groups" in name  # there the line of FullTouch is close above
        where = {"xytext": (-3, -12), "ha": "right"} if below else {"xytext": (5, 4)}
        axes.annotate(
            name,
            points[len(points) // 2],
            textcoords="offset points",
            color=color,
            fontsize=9,
            **where,
        )
    lowest = min(float(row["objective"]) for row in rows)
    axes.set(
        xscale="log",
        xlim=(0.01, 20),
        ylim=(lowest - 0.002, None),
        xlabel="seconds of training, one core",
    )
    axes.xaxis.set_major_formatter("{x:g}")
    axes.set_ylabel("mean hinge loss of the feasible model")
    axes.set_title(f"{PAIRS:,} pairs, 4,096 parameters, 24,576 constraints", fontsize=10)
    axes.grid(alpha=0.25)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    figure.savefig(PICTURE, dpi=150)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--draw", action="store_true", help="only draw, from the rows measured before"
    )
    if not parser.parse_args().draw:
        measure()
    draw()
