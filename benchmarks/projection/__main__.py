"""`python -m benchmarks.projection [--quick] [--limit SECONDS] [--only WORD]`: the projection
against general solvers, in one run.

Every rival runs in a process of its own that is ended soon after the limit; its set-up is not
counted, nor is ours. Times are processor seconds of one thread. The table goes to
results/projection as Markdown and CSV. Rivals that are not installed are left out with the reason
(`make bench-projection` installs them).
"""

from __future__ import annotations

import argparse
import csv
import os
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import lighttouch as lt
from benchmarks.projection.rivals import RIVALS, in_own_process, objection_to, timed
from benchmarks.projection.sets import Case, lattice_cases, other_cases

OURS = "lighttouch"


@dataclass(frozen=True)
class Line:
    """One solver on one case; `ratio` is its time over ours, `farther` how much larger its distance
    is than ours, relatively.
    """

    case: str
    solver: str
    seconds: float
    ratio: float
    farther: float
    violation: float
    says: str


def best_time(
    solve: Callable[[], Any], repeats: int = 50, budget: float = 2.0
) -> tuple[Any, float]:
    """The answer and the best time of several runs within the budget."""
    best, began = np.inf, time.perf_counter()
    for _ in range(repeats):
        answer, seconds = timed(solve)
        best = min(best, seconds)
        if time.perf_counter() - began > budget:
            break
    return answer, best


def our_lines(case: Case) -> tuple[list[Line], Any]:
    """The first projection (with what is prepared once), the next ones, and one that starts from
    the answer for a point close by.
    """
    _, first = timed(lambda: lt.project(case.point, case.constraints, case.domain))
    found, seconds = best_time(lambda: lt.project(case.point, case.constraints, case.domain))
    nearby = case.point + 1e-3 * np.random.default_rng(1).standard_normal(case.point.size)
    cold, from_scratch = best_time(lambda: lt.project(nearby, case.constraints, case.domain))
    warmed, warm = best_time(
        lambda: lt.project(nearby, case.constraints, case.domain, warm=found.warm)
    )
    violation = case.violation(found.w)
    return [
        Line(case.name, OURS, seconds, 1.0, 0.0, violation, found.method),
        Line(
            case.name,
            f"{OURS}, first call",
            first,
            first / seconds,
            0.0,
            violation,
            "with what is prepared once",
        ),
        Line(
            case.name,
            f"{OURS}, warm",
            warm,
            warm / seconds,
            warmed.distance / cold.distance - 1.0,
            case.violation(warmed.w),
            f"a point close by: {from_scratch / warm:.1f}x faster than cold",
        ),
    ], found


def rival_line(
    name: str, build: Callable[[], Case], case: Case, ours: Any, seconds: float, limit: float
) -> Line:
    objection = objection_to(name, case)
    answer = objection if objection else in_own_process(name, build, limit)
    if isinstance(answer, str):
        return Line(case.name, name, np.nan, np.nan, np.nan, np.nan, answer)
    w, took, says = answer
    farther = float(np.linalg.norm(w - case.point)) / ours.distance - 1.0
    return Line(case.name, name, took, took / seconds, farther, case.violation(w), says)


def run(builders: list[partial[Case]], limit: float) -> list[Line]:
    lines: list[Line] = []
    warm_up()
    for number, build in enumerate(builders, 1):
        case = build()
        print(f"[{number}/{len(builders)}] {case.name}", flush=True)
        mine, ours = our_lines(case)
        for line in mine:
            lines.append(line)
            print(f"    {shown(line)}", flush=True)
        for name in RIVALS:
            line = rival_line(name, build, case, ours, mine[0].seconds, limit)
            lines.append(line)
            print(f"    {shown(line)}", flush=True)
    return lines


def warm_up() -> None:
    """Compilation is not what is measured."""
    for constraints in (
        lt.lattice.increasing([2] * 4),
        lt.ordering(5),
        lt.LinearConstraints(np.eye(5) + 1.0, np.zeros(5)),
    ):
        lt.project(np.arange(constraints.dimension, 0.0, -1.0), constraints)
    lt.project(
        np.ones(3),
        lt.NormConstraints(
            None, np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]), None, np.ones(2) * 1.5
        ),
    )


def shown(line: Line) -> str:
    if np.isnan(line.seconds):
        return f"{line.solver:24s} left out: {line.says}"
    checked = f"violation {line.violation:8.1e}  farther {line.farther:+.1e}"
    return f"{line.solver:24s} {line.seconds:10.5f} s {line.ratio:9.1f}x  {checked}  {line.says}"


def best_rival(lines: list[Line], case: str) -> Line | None:
    """The fastest rival that is right: no further away than a part in 10^4, and feasible to
    1e-5.
    """
    right = [
        line
        for line in lines
        if line.case == case
        and line.solver in RIVALS
        and abs(line.farther) <= 1e-4
        and line.violation <= 1e-5
    ]
    return min(right, key=lambda line: line.seconds, default=None)


def markdown(lines: list[Line]) -> str:
    """One row a case: ours, the best rival that is right, the ratio, and every solver's time."""
    names = list(RIVALS)
    heads = [
        "case",
        "ours, ms",
        "warm, ms",
        "violation",
        "best rival",
        "ratio",
        "distances agree to",
        *(f"{name}, ms" for name in names),
    ]
    table = [f"| {' | '.join(heads)} |", "|" + "---|" * len(heads)]
    for case in dict.fromkeys(line.case for line in lines):
        by_name = {line.solver: line for line in lines if line.case == case}
        best = best_rival(lines, case)
        ours, warm = by_name[OURS], by_name[f"{OURS}, warm"]
        cells = [
            case,
            f"{1e3 * ours.seconds:.2f}",
            f"{1e3 * warm.seconds:.2f}",
            f"{ours.violation:.0e}",
        ]
        cells += (
            [best.solver, f"{best.ratio:,.3g}", f"{abs(best.farther):.0e}"]
            if best
            else ["none right in time", "", ""]
        )
        cells += [rival_cell(by_name[name]) for name in names]
        table.append(f"| {' | '.join(cells)} |")
    note = (
        "* not right: infeasible by more than 1e-5, or the distance off by more than a part in "
        "10^4 (mostly: out of time)"
    )
    return "\n".join([*table, "", note])


def rival_cell(line: Line) -> str:
    if np.isnan(line.seconds):
        return "–"
    wrong = abs(line.farther) > 1e-4 or line.violation > 1e-5
    return f"{1e3 * line.seconds:,.0f}{'*' if wrong else ''}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small sets, a first look")
    parser.add_argument(
        "--limit", type=float, default=60.0, help="seconds a rival may take for one projection"
    )
    parser.add_argument(
        "--only", default="", help="cases such as lattice, 'lattice 12', general_rows, balls"
    )
    chosen = parser.parse_args()
    os.environ |= dict.fromkeys(
        ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "RAYON_NUM_THREADS"), "1"
    )  # for the rivals' processes
    builders = lattice_cases(chosen.quick) + other_cases(chosen.quick)
    builders = [
        build
        for build in builders
        if chosen.only in " ".join(map(str, (build.func.__name__, *build.args)))
    ]
    lines = run(builders, chosen.limit)
    table = markdown(lines)
    print(f"\n{table}")
    folder = Path("results/projection")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "table.md").write_text(table + "\n")
    with (folder / "lines.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, [field.name for field in fields(Line)])
        writer.writeheader()
        writer.writerows(asdict(line) for line in lines)


if __name__ == "__main__":
    main()
