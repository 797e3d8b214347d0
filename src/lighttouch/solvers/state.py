"""The state of a run: arrays and numbers only, so that saving it is saving the run."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from lighttouch.arrays import Vector
from lighttouch.kernels.compiler.compiled import interpreted
from lighttouch.kernels.loops.full_touch import CHECKS, ITERATION, SAMPLES
from lighttouch.kernels.state.batches import Batches
from lighttouch.kernels.state.distribution import Distribution
from lighttouch.kernels.state.example_order import ExampleOrder, new_example_order
from lighttouch.kernels.state.iterate import Iterate, new_iterate
from lighttouch.kernels.state.running_maximum import MaximumTree
from lighttouch.problem import Problem


@dataclass
class TouchState:
    """Iterate, place in the examples, counters [iteration, checks, samples, first averaged
    iteration], and what some solvers add.
    """

    iterate: Iterate
    visits: ExampleOrder
    counters: np.ndarray[Any, np.dtype[np.int64]]
    distribution: Distribution | None = None
    batches: Batches | None = None
    tree: MaximumTree | None = None

    @property
    def iteration(self) -> int:
        return int(self.counters[ITERATION])

    @property
    def constraint_checks(self) -> int:
        return int(self.counters[CHECKS])

    @property
    def gradient_samples(self) -> int:
        return int(self.counters[SAMPLES])

    @property
    def w(self) -> Vector:
        return self.iterate.w

    def copy(self) -> TouchState:
        return replace(
            self, **{part.name: copied(getattr(self, part.name)) for part in fields(self)}
        )


def copied(value: Any) -> Any:
    """A deep copy of arrays in (nested) records, each in the order in which it lies in memory."""
    if isinstance(value, np.ndarray):
        return value.copy(order="K")
    if isinstance(value, tuple):
        return type(value)(*(copied(part) for part in value))
    return value


def first_state(problem: Problem, start: Vector) -> TouchState:
    visits = new_example_order(problem.objective.examples, problem.objective.independent)
    return TouchState(new_iterate(start), visits, np.zeros(4, np.int64))


def runnable(kernel: Any, problem: Problem) -> Any:
    """The kernel itself, or its interpreted twin where a Python callable takes part."""
    return interpreted(kernel) if problem.interpreted else kernel
