"""FullTouch (Algorithm 1): SGD on f(w) + gamma max(0, max_j g_j(w)); with no constraints, plain
SGD.
"""

from __future__ import annotations

from lighttouch.kernels.compiler.compiled import lean_kernel
from lighttouch.kernels.state.counters import CHECKS, ITERATION, SAMPLES
from lighttouch.kernels.state.example_order import next_example
from lighttouch.kernels.state.gradient import add_dense, clear
from lighttouch.kernels.state.iterate import move
from lighttouch.kernels.state.running_maximum import refresh
from lighttouch.kernels.verbs.constraints import add_subgradient, worst
from lighttouch.kernels.verbs.objectives import add_gradient


@lean_kernel
def full_touch(
    objective,
    l2,
    constraints,
    members,
    domain,
    penalty,
    rule,
    eta,
    batch,
    iterate,
    visits,
    gradient,
    counters,
    steps,
    rng,
):
    w = iterate.w
    for _ in range(steps):  # line 2
        t = counters[ITERATION] + 1
        clear(gradient)
        for _ in range(batch):  # line 3
            add_gradient(objective, next_example(visits, rng), w, 1.0 / batch, gradient)
        if l2 > 0.0:
            add_dense(gradient, w, l2)
        if members > 0:  # line 4
            violation, member = worst(constraints, 0, members, w)
            if violation > 0.0:
                add_subgradient(constraints, member, w, penalty, gradient)
        move(iterate, gradient, domain, rule, eta, t)  # line 5
        counters[ITERATION] = t
        counters[CHECKS] += refresh(constraints, members, gradient, w)
        counters[SAMPLES] += batch
