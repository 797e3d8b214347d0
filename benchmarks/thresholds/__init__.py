"""Where two methods take the same time: one experiment per threshold of a costs record.

`python -m benchmarks.thresholds` runs all of them, `python -m benchmarks.thresholds few_violated
warm_rows` those named. Each prints, along a row of growing cases, the processor time of the method
on either side of the threshold and their ratio; the threshold should lie where the ratio passes
one. Ratios carry over between machines, seconds do not.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from lighttouch.running import OutOfTimeError, within

MODULES = ("projections", "solvers", "interior", "systems", "working_sets", "estimators", "torch")
ROUNDS = 3  # runs of each method, of which the fastest counts; the first also compiles
LIMIT = 5.0  # seconds of a run


@dataclass(frozen=True)
class Comparison:
    """One case: its size in the unit of the threshold, or another value of the field, and the
    seconds on either side.
    """

    size: Any
    below: float
    above: float
    name: str = ""

    @property
    def ratio(self) -> float:
        return self.below / self.above


@dataclass(frozen=True)
class Experiment:
    """What is measured for a threshold: the method used up to it, and the one beyond."""

    field: str
    value: Any
    case: str
    below: str
    above: str
    run: Callable[[], Iterator[Comparison]]
    other_values: bool = False  # of the field itself, rather than sizes around a threshold

    def faster_beyond(self, found: Comparison) -> bool:
        """Whether the side that is not chosen there was the faster one."""
        chosen_below = self.other_values or found.size <= self.value
        return chosen_below != (found.ratio <= 1.0)


EXPERIMENTS: list[Experiment] = []
Run = Callable[[], Iterator[Comparison]]


def experiment(
    field: str, value: Any, case: str, below: str, above: str, other_values: bool = False
) -> Callable[[Run], Run]:
    """Register a function that yields comparisons."""

    def register(run: Run) -> Run:
        EXPERIMENTS.append(Experiment(field, value, case, below, above, run, other_values))
        return run

    return register


@contextmanager
def with_values(record: Any, **values: object) -> Iterator[None]:
    """A record of costs with other values, inside the block."""
    before = {name: getattr(record, name) for name in values}
    for name, value in values.items():
        object.__setattr__(record, name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            object.__setattr__(record, name, value)


def seconds(call: Callable[[], object], limit: float = LIMIT) -> float:
    """The least processor time of a few runs: other work on the machine does not count. Infinite
    where a run takes too long or gives up.
    """
    least = float("inf")
    for _ in range(ROUNDS):
        began = time.process_time()
        try:
            with within(limit):
                if call() is None:
                    return float("inf")
        except OutOfTimeError:
            return float("inf")
        taken = time.process_time() - began
        least = min(least, taken)
        if taken > limit / ROUNDS:
            break
    return least


def alternated(
    first: Callable[[], object],
    second: Callable[[], object],
    rounds: int = 5,
    clock: Callable[[], float] = time.process_time,
    limit: float = LIMIT,
) -> tuple[float, float]:
    """The least time of each of two calls, which take turns: what else the machine does meets both.
    Processor time, unless both use several threads. Turns end after `limit` seconds; the first one,
    which also compiles, counts only where there is no other.
    """
    least, began = [float("inf")] * 2, time.perf_counter()
    for turn in range(rounds + 1):
        for side, call in enumerate((first, second)):
            start = clock()
            call()
            taken = clock() - start
            least[side] = taken if turn < 2 else min(least[side], taken)
        if turn and time.perf_counter() - began > limit:
            break
    return least[0], least[1]


def sides(
    record: Any, field: str, below: object, above: object, call: Callable[[], object], **how: Any
) -> tuple[float, float]:
    """The seconds of a call with two values of a field that force the method up to the threshold,
    and the one beyond; `how` is for `alternated`.
    """

    def forced(value: object) -> Callable[[], object]:
        def run() -> object:
            with with_values(record, **{field: value}):
                return call()

        return run

    return alternated(forced(below), forced(above), **how)


def report(each: Experiment) -> str:
    """The experiment as lines of text."""
    lines = [f"{each.field} = {_text(each.value)}: {each.case}"]
    lines.append(f"  {'size':>12}  {each.below:>28}  {each.above:>28}  ratio")
    for found in each.run():
        side = "  other side is faster" if each.faster_beyond(found) else ""
        lines.append(
            f"  {_text(found.size):>12}  {found.below:>26.4f} s  {found.above:>26.4f} s"
            f"  {found.ratio:5.2f}  {found.name}{side}"
        )
    return "\n".join(lines)


def _text(value: Any) -> str:
    return f"{value:,g}" if isinstance(value, int | float) else str(value)
