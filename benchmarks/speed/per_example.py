"""Target 1: what the constraints add to the time of an example."""

from __future__ import annotations

import statistics

import lighttouch as lt
from benchmarks.speed.paper_problem import Row, paper_problem, without_constraints

ROUNDS = 5
ITERATIONS = 76_000


def nanoseconds_per_example(problem: lt.Problem) -> float:
    result = lt.solve(problem, iterations=ITERATIONS, project=False, record_every=10**9)
    return 1e9 * result.seconds / result.gradient_samples


def run(quick: bool = False) -> list[Row]:
    problem = paper_problem()
    free = without_constraints(problem)
    ratios, with_rules, without = [], [], []
    for _ in range(2 if quick else ROUNDS):
        without.append(nanoseconds_per_example(free))
        with_rules.append(nanoseconds_per_example(problem))
        ratios.append(with_rules[-1] / without[-1])
    ratio = statistics.median(ratios)
    shown = f"{min(with_rules):.0f} / {min(without):.0f} ns = {ratio:.2f}"
    return [
        Row(
            "time per example, with 24,576 constraints / without, same loop",
            shown,
            "<= 1.5",
            ratio <= 1.5,
        )
    ]
