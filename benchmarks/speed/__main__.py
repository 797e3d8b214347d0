"""`python -m benchmarks.speed [--quick] [--only PART]`: one run, side by side, each as a ratio; a
table and a picture at the end.

Both go to results/speed, with the rows of the parts as JSON. `--only` measures one part again and
keeps the other parts' rows of the same scale; `--draw` measures nothing.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import json
import time
from dataclasses import asdict
from pathlib import Path

from benchmarks.speed.paper_problem import Row
from benchmarks.speed.picture import draw, markdown

PARTS = ("per_example", "to_objective", "scaling", "checks", "expensive", "cold_start", "peers")
FOLDER = Path("results/speed")


def measure(parts: list[str], quick: bool) -> dict[str, list[Row]]:
    measured = {}
    for number, part in enumerate(parts, 1):
        print(f"[{number}/{len(parts)}] {part} ...", flush=True)
        began = time.perf_counter()
        measured[part] = importlib.import_module(f"benchmarks.speed.{part}").run(quick)
        for row in measured[part]:
            print(row, flush=True)
        print(f"      {time.perf_counter() - began:.0f} s", flush=True)
    return measured


def kept(path: Path) -> dict[str, list[Row]]:
    """The rows of earlier runs, by part."""
    found = json.loads(path.read_text()) if path.exists() else {}
    return {part: [Row(**row) for row in found[part]] for part in PARTS if part in found}


def show(rows: list[Row], folder: Path) -> None:
    table = "\n".join(["", f"{'what':74s} {'measured':>26s} {'target':>14s}  met", *map(str, rows)])
    print(table)
    (folder / "table.txt").write_text(table + "\n")
    (folder / "table.md").write_text(markdown(rows))
    if importlib.util.find_spec("matplotlib") is None:
        print("\nno picture: it needs matplotlib; install it and run again with --draw")
        return
    draw(rows, folder / "picture.png")
    print(f"\nthe table: {folder / 'table.md'}   the picture: {folder / 'picture.png'}")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="smaller problems, a first look")
    parser.add_argument("--only", choices=PARTS, help="measure this part only")
    parser.add_argument(
        "--draw", action="store_true", help="only the table and picture of what was measured before"
    )
    chosen = parser.parse_args()
    folder = FOLDER / "quick" if chosen.quick else FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "rows.json"
    rows = kept(path) if chosen.only or chosen.draw else {}
    if not chosen.draw:
        rows |= measure([chosen.only] if chosen.only else list(PARTS), chosen.quick)
        path.write_text(
            json.dumps(
                {part: [asdict(row) for row in found] for part, found in rows.items()}, indent=1
            )
        )
    show([row for part in PARTS for row in rows.get(part, [])], folder)


if __name__ == "__main__":
    main()
