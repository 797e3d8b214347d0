"""Measures how many iterations and checks an accuracy takes, and fits exponents beside the
theory's.
"""

from __future__ import annotations

from typing import Any

import lighttouch as lt
from lighttouch.experiments.rates import PENALTY, STRONG_CONVEXITY, exponents, to_accuracy
from lighttouch.experiments.setting import Measured, Setting
from lighttouch.experiments.units import Unit

COSTS = (("iterations", "iterations"), ("checks", "constraint_checks"))
DIAMETER = 2.0


def run(setting: Setting) -> Measured:
    """Errors by length, costs by accuracy, exponents of both."""
    units = [unit for table in (2, 3) for unit in _units(setting, table)]
    rows = [row for found in setting.laboratory.rows(units) for row in found]
    costs = [cost for table in (2, 3) for cost in _costs(setting, table, rows)]
    fits = _fits(costs)
    findings: dict[str, float | None] = {}
    for fit in fits:
        for power in ("m", "1/epsilon"):
            findings[f"table {fit['table']} {fit['algorithm']} {fit['cost']}: power of {power}"] = (
                fit[f"measured power of {power}"]
            )
    return Measured(units, {"rows": rows, "costs": costs, "exponents": fits}, findings)


def _units(setting: Setting, table: int) -> list[Unit]:
    scale = setting.config[setting.scale]
    lengths = [2**power for power in range(scale["shortest"], scale["longest"] + 1)]
    return [
        {
            "kind": "rates",
            "line": f"{algorithm}, m = {m}",
            "table": table,
            "algorithm": algorithm,
            "constraints": m,
            "lengths": lengths,
            "seeds": scale["seeds"],
        }
        for algorithm in setting.config[f"table{table}"]["algorithms"]
        for m in scale["constraints"]
    ]


def _costs(setting: Setting, table: int, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """For every algorithm, m and epsilon: what was needed, beside the table's formula (without its
    constants).
    """
    config = setting.config[f"table{table}"]
    return [
        {
            "table": table,
            "algorithm": algorithm,
            "cost": cost,
            "constraints": m,
            "epsilon": epsilon,
            "measured": to_accuracy(_of(rows, table, algorithm, m), epsilon, column),
            "theory": _theory(cost, algorithm, m, epsilon, config["strongly_convex"]),
        }
        for algorithm in config["algorithms"]
        for cost, column in COSTS
        for m in setting.config[setting.scale]["constraints"]
        for epsilon in config["epsilons"]
    ]


def _of(rows: list[dict[str, Any]], table: int, algorithm: str, m: int) -> list[dict[str, Any]]:
    return [
        row
        for row in rows
        if (row["table"], row["algorithm"], row["constraints"]) == (table, algorithm, m)
    ]


def _theory(
    cost: str, algorithm: str, m: int, epsilon: float, strongly_convex: bool
) -> float | None:
    """None where the table has no number: rivals check no constraints, and LLO-FW's constant is not
    known.
    """
    sizes = lt.theory.Sizes(
        m, PENALTY, DIAMETER, epsilon, STRONG_CONVEXITY if strongly_convex else None
    )
    value = (lt.theory.iterations_table if cost == "iterations" else lt.theory.checks_table)(
        algorithm, sizes
    )
    return value if isinstance(value, float) else None


def _fits(costs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    fits: list[dict[str, Any]] = []
    for key in dict.fromkeys((cost["table"], cost["algorithm"], cost["cost"]) for cost in costs):
        group = [
            cost
            for cost in costs
            if (cost["table"], cost["algorithm"], cost["cost"]) == key
            and cost["measured"] is not None
        ]
        fit: dict[str, Any] = dict(zip(("table", "algorithm", "cost"), key, strict=True)) | {
            "points": len(group)
        }
        for source in ("measured", "theory"):
            points = [
                (cost["constraints"], cost["epsilon"], cost[source])
                for cost in group
                if cost[source] is not None
            ]
            fit[f"{source} power of m"], fit[f"{source} power of 1/epsilon"] = (
                exponents(points) if len(points) >= 4 else (None, None)
            )
        fits.append(fit)
    return fits
