"""The three single-sample operations of an iteration, each alone, to be timed from outside."""

from __future__ import annotations

from lighttouch.kernels.compiler.compiled import lean_kernel
from lighttouch.kernels.state.distribution import draw, learn
from lighttouch.kernels.state.iterate import clear
from lighttouch.kernels.verbs.constraints import add_subgradient, group_stop, worst
from lighttouch.kernels.verbs.objectives import add_gradient


@lean_kernel
def time_losses(objective, examples, w, gradient, repeats, rng):
    for _ in range(repeats):
        clear(gradient)
        add_gradient(objective, int(rng.random() * examples), w, 1.0, gradient)


@lean_kernel
def time_draws(constraints, members, group, w, distribution, gradient, repeats, rng):
    for _ in range(repeats):
        drawn = draw(distribution, rng)
        violation, member = worst(constraints, drawn * group, group_stop(drawn, group, members), w)
        clear(gradient)
        if violation > 0.0:
            add_subgradient(constraints, member, w, 1.0, gradient)


@lean_kernel
def time_learning(constraints, members, group, w, distribution, repeats, rng):
    for _ in range(repeats):
        j = int(rng.random() * distribution.law.shape[0])
        violation, _ = worst(constraints, j * group, group_stop(j, group, members), w)
        learn(distribution, j, max(0.0, violation), 1.0)
