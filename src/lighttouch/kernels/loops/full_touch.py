"""FullTouch (Algorithm 1): SGD on f(w) + gamma max(0, max_j g_j(w)); with no constraints, plain
SGD.
"""

from __future__ import annotations

from lighttouch.kernels.compiler.compiled import lean_kernel
from lighttouch.kernels.loops.shared import sample_losses
from lighttouch.kernels.state.iterate import CHECKS, ITERATION, clear, move
from lighttouch.kernels.state.running_maximum import refresh
from lighttouch.kernels.verbs.constraints import add_subgradient, worst


@lean_kernel
def full_touch(
    objective,
    constraints,
    members,
    domain,
    steps,
    iterate,
    visits,
    gradient,
    counters,
    iterations,
    rng,
):
    """Lines 2 to 5 of Algorithm 1. Line 1 is the solver's `init`, line 6 `average`, line 7 the
    driver's.
    """
    w = iterate.w
    for _ in range(iterations):  # line 2
        t = counters[ITERATION] + 1
        clear(gradient)
        sample_losses(objective, steps, w, visits, gradient, counters, rng)  # line 3
        if members > 0:  # line 4
            violation, member = worst(constraints, 0, members, w)
            if violation > 0.0:
                add_subgradient(constraints, member, w, steps.penalty, gradient)
        move(iterate, gradient, domain, steps, t)  # line 5
        counters[CHECKS] += refresh(constraints, members, gradient, w)
        counters[ITERATION] = t
