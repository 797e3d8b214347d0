"""Runs the four lines of Figure 1 and reads the claims' numbers off them."""

from __future__ import annotations

from typing import Any

from lighttouch.experiments.curves import (
    averaged,
    best_objective,
    cost_to_reach,
    label_rows,
    nearest_of_both,
    never_reached,
    ratio_to_reach,
)
from lighttouch.experiments.setting import Measured, Setting
from lighttouch.experiments.solvers import is_available

PAPER = ("LightTouch", "FullTouch", "ApproxSGD")


def units_of(setting: Setting) -> list[dict[str, Any]]:
    """One unit per line and seed."""
    config, scale = setting.config, setting.config[setting.scale]
    seeds = range(setting.seeds or scale["seeds"])
    return [
        {
            "kind": "trajectory",
            "line": line,
            "problem": setting.problem,
            "solver": solver,
            "seed": seed,
            "iterations": scale["iterations_of"].get(line, scale["iterations"]),
            "seconds": None,
            "per_decade": scale["per_decade"],
        }
        for seed in seeds
        for line, solver in config["lines"].items()
        if is_available(solver["kind"])
    ]


def run(setting: Setting) -> Measured:
    """Rows, mean curves, and how much each line spends to come near the best objective known."""
    units = units_of(setting)
    rows: list[dict[str, Any]] = []
    for unit, found in zip(units, setting.laboratory.rows(units), strict=True):
        rows += label_rows(found, unit["line"], unit["seed"])
    curves = averaged(rows)
    distances = setting.config["near_optimal"]
    return Measured(
        units,
        {"rows": rows, "curves": curves},
        _findings(curves, distances),
        never_reached(curves, distances),
    )


def _findings(curves: list[dict[str, Any]], distances: list[float]) -> dict[str, float | None]:
    best = best_objective(curves)
    both = nearest_of_both(curves, "FullTouch", "LightTouch")
    found: dict[str, float | None] = {
        "best objective": best,
        "how near FullTouch and LightTouch both come": both / best - 1,
        "FullTouch checks / LightTouch checks as near as both come": ratio_to_reach(
            curves, "FullTouch", "LightTouch", both, "constraint_checks"
        ),
    }
    for distance in distances:
        target, words = best * (1 + distance), f"to {distance:.0%}"
        for dear, cheap in (("FullTouch", "LightTouch"), ("LightTouch", "default solver")):
            found[f"{dear} checks / {cheap} checks {words}"] = ratio_to_reach(
                curves, dear, cheap, target, "constraint_checks"
            )
        for slow, fast in (("FullTouch", "ApproxSGD"), ("LightTouch", "FullTouch")):
            found[f"{slow} iterations / {fast} iterations {words}"] = ratio_to_reach(
                curves, slow, fast, target, "iteration"
            )
        found[f"FullTouch checks / LightTouch checks {words}, searched steps"] = ratio_to_reach(
            curves, "FullTouch, searched", "LightTouch, searched", target, "constraint_checks"
        )
        found[f"slowest / fastest iterations {words}"] = _apart(
            [cost_to_reach(curves, line, target, "iteration") for line in PAPER]
        )
    return found


def _apart(costs: list[float | None]) -> float | None:
    reached = [cost for cost in costs if cost is not None]
    return max(reached) / min(reached) if len(reached) == len(costs) else None
