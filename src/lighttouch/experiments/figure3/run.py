"""Searches on power-of-four grids, then the best of each algorithm against the clock."""

from __future__ import annotations

from typing import Any

import numpy as np

from lighttouch.experiments.curves import (
    averaged,
    best_objective,
    cost_to_reach,
    label_rows,
    never_reached,
    ratio_to_reach,
)
from lighttouch.experiments.setting import Measured, Setting
from lighttouch.experiments.solvers import is_available
from lighttouch.experiments.units import Unit

PAPER = ("LightTouch", "FullTouch", "ApproxSGD")


def run(setting: Setting) -> Measured:
    """The searches' rows, the timed rows, and the claims' numbers."""
    lines = {
        line: dict(solver)
        for line, solver in setting.config["lines"].items()
        if is_available(solver["kind"])
    }
    units: list[Unit] = []
    searches: list[dict[str, Any]] = []
    for search in setting.config["searches"]:
        if search["line"] in lines:
            searches += _search(setting, search, lines[search["line"]], units)
    timed = [
        _unit(setting, line, solver, seed)
        for seed in _seeds(setting)
        for line, solver in lines.items()
    ]
    rows: list[dict[str, Any]] = []
    for unit, found in zip(timed, setting.laboratory.rows(timed, timed=True), strict=True):
        rows += label_rows(found, unit["line"], unit["seed"])
    curves = averaged(rows)
    findings = (
        _findings(curves, setting.config["near_optimal"])
        | _chosen(lines, setting)
        | _projection(rows)
    )
    short = never_reached(curves, setting.config["near_optimal"])
    return Measured(
        units + timed, {"rows": rows, "curves": curves, "searches": searches}, findings, short
    )


def _seeds(setting: Setting) -> range:
    return range(setting.seeds or setting.config[setting.scale]["seeds"])


def _unit(setting: Setting, line: str, solver: dict[str, Any], seed: int, by: str = "") -> Unit:
    scale = setting.config[setting.scale]
    seconds = (
        scale["search_seconds"]
        if by == "seconds"
        else scale["default_seconds" if solver["kind"] == "default" else "seconds"]
    )
    return {
        "kind": "trajectory",
        "line": line,
        "problem": setting.problem,
        "solver": dict(solver),
        "seed": seed,
        "iterations": scale["search_iterations"] if by == "iterations" else None,
        "seconds": None if by == "iterations" else seconds,
        "per_decade": {"iterations": 1, "seconds": 3}.get(by, scale["per_decade"]),
    }


def _search(
    setting: Setting, search: dict[str, Any], solver: dict[str, Any], units: list[Unit]
) -> list[dict[str, Any]]:
    """One grid: a row a value; the best value is put into the solver's settings."""
    tried = [
        _unit(setting, search["line"], solver | {search["parameter"]: value}, 0, search["by"])
        for value in search["values"]
    ]
    units += tried
    found = setting.laboratory.rows(tried, timed=search["by"] == "seconds")
    budget = (
        setting.config[setting.scale]["search_seconds"] if search["by"] == "seconds" else np.inf
    )
    scores = [_objective_at(rows, budget) for rows in found]
    best = int(np.argmin(scores))
    solver[search["parameter"]] = search["values"][best]
    return [
        {
            "line": search["line"],
            "parameter": search["parameter"],
            "value": value,
            "judged_by": search["by"],
            "objective": score,
            "iterations": rows[-1]["iteration"],
            "seconds": rows[-1]["seconds"],
            "chosen": place == best,
        }
        for place, (value, score, rows) in enumerate(
            zip(search["values"], scores, found, strict=True)
        )
    ]


def _objective_at(rows: list[dict[str, Any]], budget: float) -> float:
    """The objective when the budget of seconds is used up, between the checkpoints around it."""
    seconds, objectives = [row["seconds"] for row in rows], [row["objective"] for row in rows]
    return float(objectives[-1] if budget == np.inf else np.interp(budget, seconds, objectives))


def _chosen(lines: dict[str, dict[str, Any]], setting: Setting) -> dict[str, float | None]:
    searched = [
        (search["line"], search["parameter"])
        for search in setting.config["searches"]
        if search["line"] in lines
    ]
    return {
        f"best {line} {parameter}": float(lines[line][parameter]) for line, parameter in searched
    }


def _projection(rows: list[dict[str, Any]]) -> dict[str, float | None]:
    seconds = [
        row["projection_seconds"]
        for row in rows
        if row["line"] == "LightTouch" and row["violation"] > 0
    ]
    return {"milliseconds a projection": 1000 * float(np.median(seconds)) if seconds else None}


def _findings(curves: list[dict[str, Any]], distances: list[float]) -> dict[str, float | None]:
    best = best_objective(curves)
    found: dict[str, float | None] = {"best objective": best}
    for distance in distances:
        target, words = best * (1 + distance), f"seconds to {distance:.0%}"
        for slow, fast in (
            ("ApproxSGD", "FullTouch"),
            ("ApproxSGD", "LightTouch"),
            ("LightTouch", "FullTouch"),
        ):
            found[f"{slow} seconds / {fast} {words}"] = ratio_to_reach(
                curves, slow, fast, target, "seconds"
            )
        spent = {
            line: cost_to_reach(curves, line, target, "seconds")
            for line in (*PAPER, "default solver")
        }
        found |= {f"{line} {words}": seconds for line, seconds in spent.items()}
        fastest = [seconds for line in PAPER if (seconds := spent[line]) is not None]
        ours = spent["default solver"]
        found[f"fastest of the paper's seconds / default solver {words}"] = (
            min(fastest) / ours if fastest and ours else None
        )
    return found
