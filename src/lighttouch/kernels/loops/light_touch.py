"""LightTouch (Algorithm 2) and its practical variant (Algorithm 4); MidTouch's second phase
(Algorithm 3) is this loop too.

Algorithm 2 is Algorithm 4 with fixed sizes k_f = batch, k_g = 1, k_p = k. Lines are Algorithm 4's.
"""

from __future__ import annotations

from lighttouch.kernels.compiler.compiled import lean_kernel
from lighttouch.kernels.state.batches import LEARN, LOSS, PUSH, choose_sizes, remember_variances
from lighttouch.kernels.state.counters import CHECKS, ITERATION, SAMPLES
from lighttouch.kernels.state.distribution import REMEMBERED, draw, draw_set, learn, tick
from lighttouch.kernels.state.example_order import next_example
from lighttouch.kernels.state.gradient import add_dense, add_gradient_to, clear, squared_norm
from lighttouch.kernels.state.iterate import move, step_length
from lighttouch.kernels.verbs.constraints import add_subgradient, group_stop, worst
from lighttouch.kernels.verbs.objectives import add_gradient


@lean_kernel
def light_touch(
    objective, l2, constraints, members, group, domain, penalty, rule, eta, weight_step,
    iterate, visits, distribution, batches, gradient, first, second, found, counters, steps, rng,
):  # fmt: skip
    w = iterate.w
    count = distribution.law.shape[0]
    for _ in range(steps):  # line 4
        t = counters[ITERATION] + 1
        if batches.automatic and t > 1:  # lines 5-6
            choose_sizes(batches, step_length(rule, eta, t), weight_step, count)
        clear(gradient)
        of_loss = loss_gradient(
            objective, w, visits, batches, gradient, first, second, rng
        )  # line 7
        if l2 > 0.0:
            add_dense(gradient, w, l2)
        of_push = push_gradient(
            constraints,
            members,
            group,
            penalty,
            w,
            distribution,
            batches,
            gradient,
            first,
            second,
            counters,
            rng,
        )
        of_learning = look(
            constraints,
            members,
            group,
            penalty,
            w,
            distribution,
            batches.sizes[LEARN],
            found,
            counters,
            rng,
        )  # line 11
        move(iterate, gradient, domain, rule, eta, t)  # line 10
        size = batches.sizes[LEARN]
        for q in range(size):  # lines 12-15; p is normalised when it is drawn from
            learn(distribution, distribution.chosen[q], found[q], count / size)
        tick(distribution)
        if batches.automatic:
            remember_variances(batches, of_loss, of_push, of_learning)
        counters[ITERATION] = t
        counters[SAMPLES] += batches.sizes[LOSS]


@lean_kernel
def loss_gradient(objective, w, visits, batches, gradient, first, second, rng):
    """Line 7 and the first sum of line 9; returns the sample variance of two loss gradients when
    sizes are automatic.
    """
    size = batches.sizes[LOSS]
    if not batches.automatic:
        for _ in range(size):
            add_gradient(objective, next_example(visits, rng), w, 1.0 / size, gradient)
        return 0.0
    clear(first)
    clear(second)
    add_gradient(objective, next_example(visits, rng), w, 0.5, first)
    add_gradient(objective, next_example(visits, rng), w, 0.5, second)
    add_gradient_to(gradient, first, 1.0)
    add_gradient_to(gradient, second, 1.0)
    add_gradient_to(first, second, -1.0)
    return 2.0 * squared_norm(first)


@lean_kernel
def push_gradient(
    constraints,
    members,
    group,
    penalty,
    w,
    distribution,
    batches,
    gradient,
    single,
    pushes,
    counters,
    rng,
):
    """Line 8 and the second sum of line 9; returns the sample variance of the constraint gradients
    when sizes are automatic.
    """
    size = batches.sizes[PUSH]
    clear(pushes)
    squares = 0.0
    for _ in range(size):
        drawn = draw(distribution, rng)
        violation, member = worst(constraints, drawn * group, group_stop(drawn, group, members), w)
        counters[CHECKS] += group_stop(drawn, group, members) - drawn * group
        if violation <= 0.0:
            continue
        if not batches.automatic:
            add_subgradient(constraints, member, w, penalty / size, gradient)
            continue
        clear(single)
        add_subgradient(constraints, member, w, penalty / size, single)
        squares += squared_norm(single)
        add_gradient_to(pushes, single, 1.0)
    if not batches.automatic:
        return 0.0
    add_gradient_to(gradient, pushes, 1.0)
    return max(0.0, (size * size * squares - size * squared_norm(pushes)) / (size - 1.0))


@lean_kernel
def look(constraints, members, group, penalty, w, distribution, size, found, counters, rng):
    """Line 11: draw S and look at its constraints; returns the variance estimate of the
    p-gradient.
    """
    draw_set(distribution, size, rng)
    squares = 0.0
    for q in range(size):
        j = distribution.chosen[q]
        violation, _ = worst(constraints, j * group, group_stop(j, group, members), w)
        found[q] = max(0.0, violation)
        counters[CHECKS] += group_stop(j, group, members) - j * group
        change = distribution.law[j, REMEMBERED] - found[q]
        squares += change * change
    count = distribution.law.shape[0]
    return penalty * penalty * count * count * squares / size
