"""The scorecard of reliability: `python -m benchmarks.reliability [ROW ...] [--quick]`.

One JSON line per row: {row, tried, ok, worst, seconds}. The exit code is 1 if a row falls short.
"""

from __future__ import annotations

import argparse
import importlib
import sys

from benchmarks.reliability.card import ROWS, run

# they register their rows
MODULES = ("answers", "browser", "inputs", "kills", "limits", "processes", "versions")


def main() -> int:
    for module in MODULES:
        importlib.import_module(f"benchmarks.reliability.{module}")
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rows", nargs="*", metavar="ROW", help=", ".join(ROWS))
    parser.add_argument("--quick", action="store_true", help="a few of each: about a minute")
    options = parser.parse_args()
    unknown = [name for name in options.rows if name not in ROWS]
    if unknown:
        parser.error(f"there is no row {unknown[0]}; there are {', '.join(ROWS)}")
    passed = True
    for name in options.rows or ROWS:
        score = run(name, options.quick)
        print(score, flush=True)
        passed &= score.passed
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
