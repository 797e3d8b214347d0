"""A program that solves a problem in shards on a cluster, from a checkpoint if there is one.

Run as `python driver.py ADDRESS CHECKPOINT RESULT`; it is killed again and again.
"""

from __future__ import annotations

import sys
from pathlib import Path

from problems import SOLVER, digest, problem

import lighttouch as lt

if __name__ == "__main__":
    address, checkpoint, result = sys.argv[1:]
    found = lt.solve(
        problem(0.02),
        SOLVER,
        checkpoint=checkpoint,
        checkpoint_every=0.0,
        engine=lt.Ray(address, workers=2),
    )
    Path(result).write_text(digest(found), encoding="utf-8")
