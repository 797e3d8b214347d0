"""Takes Figure 1's runs and looks at feasibility and checks per iteration."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from lighttouch.experiments.curves import averaged, label_rows, of_line, stays_below
from lighttouch.experiments.figure1 import run as figure1
from lighttouch.experiments.setting import Measured, Setting, read_config


def run(setting: Setting) -> Measured:
    """Rows and mean curves of Figure 1's units (kept, where that figure was made before), and the
    claims' numbers.
    """
    all_units = figure1.units_of(replace(setting, config=read_config(setting.config["runs"])))
    units = [unit for unit in all_units if unit["line"] in setting.config["shown"]]
    rows: list[dict[str, Any]] = []
    for unit, found in zip(units, setting.laboratory.rows(units), strict=True):
        rows += label_rows(found, unit["line"], unit["seed"])
    curves = averaged(rows)
    limit = setting.config["nearly_feasible"] * 2 * setting.problem["box"]
    return Measured(units, {"rows": rows, "curves": curves}, _findings(curves, limit))


def _findings(curves: list[dict[str, Any]], limit: float) -> dict[str, float | None]:
    full, light = (
        stays_below(curves, line, "violation", limit) for line in ("FullTouch", "LightTouch")
    )
    curve = of_line(curves, "LightTouch")
    m = of_line(curves, "FullTouch")[0]["checks_per_iteration"]
    first = next(row for row in curve if row["iteration"] >= 100)
    before, last = curve[-2], curve[-1]
    late = (last["constraint_checks"] - before["constraint_checks"]) / (
        last["iteration"] - before["iteration"]
    )
    return {
        "nearly feasible means a violation of at most": limit,
        "FullTouch nearly feasible from iteration": full,
        "LightTouch nearly feasible from iteration": light,
        "LightTouch / FullTouch iterations to nearly feasible": None
        if full is None or light is None
        else light / full,
        "LightTouch average checks per iteration, end / first 100": last["checks_per_iteration"]
        / first["checks_per_iteration"],
        "LightTouch late checks per iteration / m": late / m,
        "LightTouch late checks per iteration": late,
    }
