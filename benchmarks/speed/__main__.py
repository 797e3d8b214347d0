"""`python -m benchmarks.speed [--quick] [--only PART]`: one run, side by side, each as a ratio; a table and a picture at the end."""

from __future__ import annotations

import argparse
import importlib
import time
from pathlib import Path

PARTS = ("per_example", "to_objective", "scaling", "checks", "expensive", "cold_start", "peers")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="smaller problems, a first look")
    parser.add_argument("--only", choices=PARTS)
    chosen = parser.parse_args()
    rows = []
    parts = [chosen.only] if chosen.only else PARTS
    for number, part in enumerate(parts, 1):
        print(f"[{number}/{len(parts)}] {part} ...", flush=True)
        began = time.perf_counter()
        found = importlib.import_module(f"benchmarks.speed.{part}").run(chosen.quick)
        rows += found
        for row in found:
            print(row, flush=True)
        print(f"      {time.perf_counter() - began:.0f} s", flush=True)
    table = "\n".join(["", f"{'what':74s} {'measured':>26s} {'target':>14s}  met", *map(str, rows)])
    print(table)
    folder = Path("results/speed")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "table.txt").write_text(table + "\n")


if __name__ == "__main__":
    main()
