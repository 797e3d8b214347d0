"""Projecting onto a lattice by blocks against projecting on the driver: CPU seconds and memory.

    python -m benchmarks.shards.blocks [--columns 16 18 20] [--points few signal noise]

Each line is measured in a process of its own, so that its peak memory is its own. Points: `few` is
increasing but for 1,000 vertices, `signal` increasing with noise as large as a column's slope or
larger, `noise` nothing but noise, whose level sets are largest. Kernels are compiled beforehand.
Seconds are CPU in one process, those inside of tasks and those between; memory is the peak of the
driver and of the largest of two workers in a second run, imports included.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

import lighttouch as lt
from benchmarks.shards.constraints import nearly_increasing
from lighttouch.running import InProcess, run_task

HEAD = (
    "point", "parameters", "orders", "method", "driver", "tasks", "MB driver",
    "MB worker", "apart", "steps",
)  # fmt: skip


def point(kind: str, columns: int) -> np.ndarray:
    rng = np.random.default_rng(0)
    if kind == "few":
        return nearly_increasing(columns, rng)
    noise = rng.normal(size=2**columns)
    if kind == "noise":
        return noise
    w = np.zeros(1)
    for slope in rng.random(columns):
        w = np.concatenate([w, w + slope])
    return w + noise


class Counting(InProcess):
    """Tasks in this process, and the CPU seconds inside of them."""

    seconds = 0.0

    def map(self, task: Any, items: Any, names: Any = None) -> Iterator[Any]:
        for item in items:
            began = time.process_time()
            answer = run_task(task, item)
            self.seconds += time.process_time() - began
            yield answer


def measure(kind: str, columns: int, blocks: int, workers: int) -> None:
    """One line, in this process: 0 blocks is the driver alone."""
    small = lt.lattice.increasing([2] * 6)
    lt.project(point("signal", 6), small)  # compiles, or reads what was compiled
    lt.project(point("signal", 6), small, blocks=2)
    rules, v = lt.lattice.increasing([2] * columns), point(kind, columns)
    memory: list[str] = ["-", "-"]
    if blocks:
        with lt.Processes(workers) as engine:
            lt.project(v, rules, blocks=blocks, engine=engine)
        memory = [megabytes(resource.RUSAGE_SELF), megabytes(resource.RUSAGE_CHILDREN)]
    counting, began = Counting(), time.process_time()
    found = lt.project(v, rules, blocks=blocks or None, engine=counting)
    seconds = time.process_time() - began
    if not blocks:
        memory[0] = megabytes(resource.RUSAGE_SELF)
    apart = np.sqrt(2.0 * (found.gap or 0.0)) / found.distance
    assert found.violation == 0.0 and found.certificate.holds
    print(
        kind, f"{v.size:,}", f"{rules.count:,}", f"{blocks} blocks" if blocks else "driver",
        f"{seconds - counting.seconds:.2f} s", f"{counting.seconds:.2f} s", *memory,
        f"{apart:.0e}", found.method.partition("blocks, ")[2] or "-", sep=" | ", flush=True,
    )  # fmt: skip


def megabytes(who: int) -> str:
    return f"{resource.getrusage(who).ru_maxrss / 1e3:.0f}"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--columns", type=int, nargs="+", default=[16, 18, 20])
    parser.add_argument("--points", nargs="+", default=["few", "signal", "noise"])
    parser.add_argument("--blocks", type=int, default=16)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--line", nargs=3, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.line:
        kind, columns, blocks = asked.line
        measure(kind, int(columns), int(blocks), asked.workers)
        return
    print(*HEAD, sep=" | ", flush=True)
    for columns in asked.columns:
        for kind in asked.points:
            for blocks in (0, asked.blocks):
                line = ["--line", kind, str(columns), str(blocks), "--workers", str(asked.workers)]
                command = [sys.executable, "-m", "benchmarks.shards.blocks", *line]
                subprocess.run(command, check=True)


if __name__ == "__main__":
    main()
