"""Run the experiments: all of them, or those of the fields named on the command line."""

from __future__ import annotations

import importlib
import sys

from benchmarks.thresholds import EXPERIMENTS, MODULES, report


def main(fields: list[str]) -> int:
    for name in MODULES:
        importlib.import_module(f"benchmarks.thresholds.{name}")
    unknown = set(fields) - {each.field for each in EXPERIMENTS}
    if unknown:
        print(f"no experiment for {', '.join(sorted(unknown))}", file=sys.stderr)
        return 2
    for each in EXPERIMENTS:
        if not fields or each.field in fields:
            print(report(each), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
