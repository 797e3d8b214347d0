"""python -m lighttouch.experiments --scale small"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from lighttouch.errors import DataError
from lighttouch.experiments.reproduce import EXPERIMENTS, SCALES, reproduce


def main(words: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m lighttouch.experiments", description=__doc__)
    parser.add_argument("--scale", choices=SCALES, default="full")
    parser.add_argument("--only", nargs="+", choices=EXPERIMENTS)
    parser.add_argument("--data", help="your own pairs: one file, or two joined by a comma")
    parser.add_argument("--output", type=Path, default=Path("results/reproduce"))
    parser.add_argument("--seeds", type=int)
    parser.add_argument("--workers", type=int)
    parser.add_argument(
        "--fresh", action="store_true", help="measure again what was measured before"
    )
    parser.add_argument("--quiet", action="store_true")
    asked = parser.parse_args(words)
    try:
        done = reproduce(
            asked.scale,
            asked.only,
            asked.data,
            asked.output,
            not asked.quiet,
            asked.seeds,
            resume=not asked.fresh,
            workers=asked.workers,
        )
    except DataError as problem:
        sys.stderr.write(f"{problem}\n")
        return 2
    except KeyboardInterrupt:
        sys.stderr.write("\ninterrupted: the same command goes on from here\n")
        return 130
    sys.stdout.write(f"{done}\n\nrows, pictures and provenance: {done.folder}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
