"""LightTouch (Algorithm 2); MidTouch's second phase (Algorithm 3) is this loop with k = 1."""

from __future__ import annotations

from lighttouch.kernels.compiler.compiled import lean_kernel
from lighttouch.kernels.loops.shared import fetch_set, learn_set, look, push, sample_losses
from lighttouch.kernels.state.distribution import draw, draw_set, tick
from lighttouch.kernels.state.iterate import ITERATION, clear, move
from lighttouch.kernels.verbs.constraints import fetch_constraint, fetch_entries


@lean_kernel
def light_touch(
    objective,
    constraints,
    domain,
    steps,
    iterate,
    visits,
    learning,
    gradient,
    counters,
    iterations,
    rng,
):
    """Lines 4 to 13 of Algorithm 2 (11 to 20 of Algorithm 3, where k = 1).

    Two things stand earlier than in the paper, without a change in what is computed. S is drawn as
    soon as i is, so that memory has time to bring its rows. And the constraints of S are evaluated
    before w moves, as lines 10 and 11 take g at w^(t).
    """
    groups, distribution, found = learning
    w = iterate.w
    k = steps.looks
    for _ in range(iterations):  # line 4
        t = counters[ITERATION] + 1
        clear(gradient)
        sample_losses(objective, steps, w, visits, gradient, counters, rng)  # line 5
        i = draw(distribution, rng)  # line 6
        fetch_constraint(constraints, i * groups.size)
        draw_set(distribution, k, rng)  # line 9
        fetch_entries(constraints, i * groups.size)
        fetch_set(constraints, groups, distribution, k)
        push(constraints, groups, i, w, steps.penalty, gradient, counters)  # line 7
        look(constraints, groups, distribution, k, w, found, counters)  # g(w^(t)) on S
        move(iterate, gradient, domain, steps, t)  # line 8
        learn_set(distribution, k, found)  # lines 10, 11 and 12
        tick(distribution)  # line 13: p is normalised where it is drawn from
        counters[ITERATION] = t
