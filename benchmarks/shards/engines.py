"""What engines and shards cost against plain `solve`: the paper's problem, FISTA for a few steps.

    python -m benchmarks.shards.engines [--pairs 612587] [--shards 8] [--steps 10] [--ray]

The same steps in the same run, workers started and data shared beforehand: seconds on the clock,
and CPU seconds of this process and of the busiest worker. Seconds on the clock mean something on a
machine that does nothing else; CPU seconds also where it is busy. Their sum is what a run takes
where every process has a core, and this process and the workers never work at the same time.
"""

from __future__ import annotations

import argparse
import os
import time
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import lighttouch as lt
from benchmarks.shards.cases import PAIRS, in_shards
from benchmarks.speed.paper_problem import paper_problem


@dataclass(frozen=True)
class Took:
    """Seconds: on the clock, of this process, of the busiest worker."""

    clock: float
    driver: float
    worker: float

    @property
    def alone(self) -> float:
        """Where every process has a core."""
        return self.driver + self.worker


def used(pause: float) -> tuple[int, float]:
    """Which process this is, and its CPU seconds so far; the pause lets every worker answer."""
    time.sleep(pause)
    return os.getpid(), time.process_time()


def workers_used(engine: Any) -> dict[int, float]:
    return {} if engine is None else dict(engine.map(used, [(0.1,)] * 4 * engine.workers))


def took(problem: lt.Problem, steps: int, engine: Any = None, repeats: int = 3) -> Took:
    """The best of a few: what else runs on the machine only adds."""
    found = []
    for _ in range(repeats):
        before, driver, began = workers_used(engine), time.process_time(), time.perf_counter()
        lt.solve(problem, lt.Accelerated(1e-6, near=True), iterations=steps, engine=engine)
        clock, driver = time.perf_counter() - began, time.process_time() - driver
        after = workers_used(engine)
        busy = max((after[pid] - before.get(pid, 0.0) for pid in after), default=0.0)
        found.append(Took(clock, driver, busy))
    return Took(*(min(getattr(each, name) for each in found) for name in vars(found[0])))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--pairs", type=int, default=PAIRS)
    parser.add_argument("--shards", type=int, default=8)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--ray", action="store_true")
    asked = parser.parse_args()
    whole = paper_problem(asked.pairs)
    parts = in_shards(whole, asked.shards)
    rows: list[tuple[str, Took]] = []

    def add(name: str, problem: lt.Problem, engine: Any = None) -> None:
        took(problem, 2, engine, repeats=1)  # compiles, shares, warms up
        rows.append((name, took(problem, asked.steps, engine, asked.repeats)))
        this = rows[-1][1]
        print(
            f"{name:42s} {this.clock:6.2f} s, {this.clock / rows[0][1].clock:5.2f} x plain solve; "
            f"CPU here {this.driver:5.2f} s, busiest worker {this.worker:5.2f} s",
            flush=True,
        )

    print(f"{'':42s} load {os.getloadavg()[0]:.1f}", flush=True)
    add("solve, all examples in memory", whole)
    add(f"{asked.shards} shards, this process", parts)
    engines: list[Any] = [lt.Processes(1), lt.Processes(2)]
    engines += [lt.Ray(workers=1), lt.Ray(workers=2)] if asked.ray else []
    for engine in engines:
        with ExitStack() as stack:
            stack.enter_context(engine)
            add(f"{asked.shards} shards, {engine.describe()}", parts, engine)
    one, two = rows[2][1], rows[3][1]
    print(f"two processes against one: {one.clock / two.clock:.2f}x faster on the clock, "
          f"{one.alone / two.alone:.2f}x by CPU seconds")  # fmt: skip


if __name__ == "__main__":
    main()
