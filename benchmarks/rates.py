"""Tables 2 and 3 of the paper, measured with every algorithm they list: what an accuracy costs,
against m and epsilon.

`python -m benchmarks.rates` measures what `lighttouch reproduce --only tables` does (the problems,
settings and fits are lighttouch.experiments.rates), and beside it the methods the tables compare
with, which take a projection or a linear program an iteration and so get fewer constraints, seeds
and iterations. The tables are upper bounds: exponents below theirs are no contradiction. Rows and
costs go to results/rates; a second call reads what was measured before.
"""

from __future__ import annotations

import argparse
import csv
from pathlib import Path
from typing import Any

from lighttouch.experiments.setting import Measured, Setting, read_config
from lighttouch.experiments.tables.run import run
from lighttouch.experiments.units import Laboratory

FOLDER = Path("results/rates")
RIVALS = {
    "table2": {
        "algorithms": ["ProjectedSGD", "OnlineFrankWolfe", "LocalFrankWolfe"],
        "epsilons": [0.4, 0.2, 0.1],
    },
    "table3": {
        "algorithms": ["ProjectedSGD", "LocalFrankWolfe"],
        "epsilons": [0.256, 0.128, 0.064],
    },
}
FEW = {"constraints": [16, 64], "shortest": 4, "longest": 11, "seeds": 2}
SOURCES = ("measured", "theory")
Row = dict[str, Any]


def measure(scale: str, fresh: bool) -> list[Measured]:
    """The paper's algorithms at the scale, then the rivals."""
    config = read_config("tables")
    rivals = {name: {**config[name], **settings} for name, settings in RIVALS.items()}
    laboratory = Laboratory(FOLDER / "cache", resume=not fresh, label="rates")
    return [
        run(Setting(scale, {}, chosen, None, laboratory))
        for chosen in (config, {scale: FEW, **rivals})
    ]


def show(costs: list[Row], fits: list[Row]) -> None:
    """For every algorithm and cost a line for each m, and the fitted exponents beside the
    theory's.
    """
    for fit in fits:
        if (
            fit["cost"] == "checks"
            and fit["algorithm"] in RIVALS[f"table{fit['table']}"]["algorithms"]
        ):
            continue  # they project or optimise instead: the tables say N/A
        print(f"\nTable {fit['table']}  {fit['algorithm']}: {fit['cost']}")
        group = [
            row
            for row in costs
            if all(row[name] == fit[name] for name in ("table", "algorithm", "cost"))
        ]
        epsilons = sorted({row["epsilon"] for row in group}, reverse=True)
        print(" " * 12 + "".join(f"{f'eps {epsilon:g}':>14}" for epsilon in epsilons))
        for m in sorted({row["constraints"] for row in group}):
            line = {row["epsilon"]: row["measured"] for row in group if row["constraints"] == m}
            print(
                f"{f'm = {m:,}':>12}"
                + "".join(f"{_shown(line[epsilon]):>14}" for epsilon in epsilons)
            )
        print(
            "    power of "
            + ", of ".join(f"{power}: {_powers(fit, power)}" for power in ("m", "1/epsilon"))
        )


def _shown(value: float | None) -> str:
    return "not reached" if value is None else f"{value:,.0f}"


def _powers(fit: Row, power: str) -> str:
    measured, theory = (
        "-" if value is None else f"{value:.2f}"
        for value in (fit[f"{source} power of {power}"] for source in SOURCES)
    )
    return f"{measured} (theory {theory})"


def write(name: str, rows: list[Row]) -> None:
    with open(FOLDER / f"{name}.csv", "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="the small scale, a first look")
    parser.add_argument(
        "--fresh", action="store_true", help="measure again what was measured before"
    )
    chosen = parser.parse_args()
    found = measure("small" if chosen.quick else "full", chosen.fresh)
    tables = {
        name: [row for each in found for row in each.tables[name]]
        for name in ("rows", "costs", "exponents")
    }
    show(tables["costs"], tables["exponents"])
    for name, rows in tables.items():
        write(name, rows)


if __name__ == "__main__":
    main()
