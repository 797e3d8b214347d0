"""From rows of several seeds to one curve with its spread, and the numbers read off it."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np

Row = dict[str, Any]
AVERAGED = (
    "iteration",
    "seconds",
    "constraint_checks",
    "objective",
    "violation",
    "checks_per_iteration",
)


def label_rows(rows: list[Row], line: str, seed: int) -> list[Row]:
    return [
        {
            "line": line,
            "seed": seed,
            **row,
            "checks_per_iteration": row["constraint_checks"] / row["iteration"],
        }
        for row in rows
    ]


def averaged(rows: list[Row]) -> list[Row]:
    """One row per line and checkpoint: the mean over seeds, with smallest and largest; where seeds
    end apart, one more for their ends.
    """
    curves: list[Row] = []
    for line in dict.fromkeys(row["line"] for row in rows):
        seeds: dict[int, list[Row]] = defaultdict(list)
        for row in rows:
            if row["line"] == line:
                seeds[row["seed"]].append(row)
        curves.extend(_summed_up(line, group) for group in _groups(list(seeds.values())))
    return curves


def _groups(runs: list[list[Row]]) -> list[list[Row]]:
    by_iteration: dict[int, list[Row]] = defaultdict(list)
    for run in runs:
        for row in run:
            by_iteration[row["iteration"]].append(row)
    common = [
        by_iteration[iteration]
        for iteration in sorted(by_iteration)
        if len(by_iteration[iteration]) == len(runs)
    ]
    ends = [run[-1] for run in runs]
    return common if len({row["iteration"] for row in ends}) == 1 else [*common, ends]


def _summed_up(line: str, group: list[Row]) -> Row:
    curve: Row = {"line": line, "seeds": len(group)}
    for name in AVERAGED:
        values = np.array([row[name] for row in group], dtype=float)
        curve |= {
            name: float(values.mean()),
            f"{name}_low": float(values.min()),
            f"{name}_high": float(values.max()),
        }
    return curve


def of_line(curves: list[Row], line: str) -> list[Row]:
    return [row for row in curves if row["line"] == line]


def best_objective(curves: list[Row]) -> float:
    return min(float(row["objective_low"]) for row in curves)


def cost_to_reach(curves: list[Row], line: str, target: float, column: str) -> float | None:
    """What the mean curve first spends to be at or below the target, interpolated between
    checkpoints; None if it never is.
    """
    curve = of_line(curves, line)
    reached = next((place for place, row in enumerate(curve) if row["objective"] <= target), None)
    if reached is None:
        return None
    if reached == 0:
        return float(curve[0][column])
    before, after = curve[reached - 1], curve[reached]
    share = (before["objective"] - target) / (before["objective"] - after["objective"])
    low, high = max(1e-12, before[column]), max(1e-12, after[column])
    return float(low * (high / low) ** share)


def ratio_to_reach(
    curves: list[Row], dear: str, cheap: str, target: float, column: str
) -> float | None:
    """How many times as much `dear` spends as `cheap` to reach the target.

    Where `dear` never does, what it spent in vain counts, and the ratio is a lower bound; None
    where `cheap` never does.
    """
    first, second = (cost_to_reach(curves, line, target, column) for line in (dear, cheap))
    if first is None and of_line(curves, dear):
        first = float(of_line(curves, dear)[-1][column])
    return None if first is None or second is None else first / second


def nearest_of_both(curves: list[Row], first: str, second: str) -> float:
    """The smallest objective that both mean curves reach."""
    return max(
        min(float(row["objective"]) for row in of_line(curves, line)) for line in (first, second)
    )


def never_reached(curves: list[Row], distances: list[float]) -> list[str]:
    """In words, which lines end further than a relative distance from the best objective, so that
    ratios over them are lower bounds.
    """
    best = best_objective(curves)
    lines = dict.fromkeys(row["line"] for row in curves)
    short = [
        (line, share)
        for line in lines
        for share in distances
        if cost_to_reach(curves, line, best * (1 + share), "iteration") is None
    ]
    return [
        f"{line} did not come within {share:.0%} in "
        f"{of_line(curves, line)[-1]['iteration']:,.0f} iterations, "
        "so a ratio of its cost to another's is at least the number shown"
        for line, share in short
    ]


def stays_below(curves: list[Row], line: str, column: str, limit: float) -> float | None:
    """The iteration from which the mean curve stays at or below the limit; None if it ends
    above.
    """
    curve = of_line(curves, line)
    above = [place for place, row in enumerate(curve) if row[column] > limit]
    if not curve or (above and above[-1] == len(curve) - 1):
        return None
    return float(curve[above[-1] + 1 if above else 0]["iteration"])
