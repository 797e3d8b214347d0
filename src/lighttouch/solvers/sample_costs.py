"""The paper's timed costs: how long one loss gradient, one drawn constraint and one remembered
constraint take.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from lighttouch.kernels.loops.sample_costs import time_draws, time_learning, time_losses
from lighttouch.kernels.state.iterate import new_gradient
from lighttouch.problem import Problem
from lighttouch.solvers.base import SgdState, copied, runnable

REPEATS = 64


def timed_costs(problem: Problem, state: SgdState) -> None:
    """Measure the three single-sample costs at the current state and average them with what was
    measured before.

    The state's randomness is left alone; a run with timed costs can still not be repeated bit for
    bit.
    """
    assert state.batches is not None and state.distribution is not None
    rng = np.random.default_rng(0)
    distribution, gradient, w = copied(state.distribution), new_gradient(problem.dimension), state.w
    objective, constraints = problem.objective, problem.constraints
    rows = (constraints.record, constraints.members, constraints.group_size)
    measured = np.array(
        [
            _seconds(
                lambda: runnable(time_losses, problem)(
                    objective.record, objective.examples, w, gradient, REPEATS, rng
                )
            ),
            _seconds(
                lambda: runnable(time_draws, problem)(
                    *rows, w, distribution, gradient, REPEATS, rng
                )
            ),
            _seconds(
                lambda: runnable(time_learning, problem)(*rows, w, distribution, REPEATS, rng)
            ),
        ]
    )
    first = state.batches.weight[0] == 0.0
    state.batches.costs[:] = measured if first else 0.5 * (state.batches.costs + measured)


def _seconds(run: Callable[[], object]) -> float:
    run()
    start = time.perf_counter()
    run()
    return max(1e-9, (time.perf_counter() - start) / REPEATS)
