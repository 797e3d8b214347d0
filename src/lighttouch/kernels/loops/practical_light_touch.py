"""Practical LightTouch (Algorithm 4): steps that decrease, and minibatch sizes that follow the
variances of the three stochastic gradients (Section 5.2).
"""

from __future__ import annotations

from lighttouch.kernels.compiler.compiled import lean_kernel
from lighttouch.kernels.loops.shared import fetch_set, learn_set, look, push
from lighttouch.kernels.state.batches import LEARN, LOSS, PUSH, choose_sizes, remember_variances
from lighttouch.kernels.state.distribution import REMEMBERED, draw, draw_set, learn, tick
from lighttouch.kernels.state.iterate import (
    ITERATION,
    SAMPLES,
    add_dense,
    add_gradient_to,
    clear,
    move,
    next_example,
    squared_norm,
    step_length,
)
from lighttouch.kernels.verbs.constraints import add_subgradient, group_stop, worst
from lighttouch.kernels.verbs.objectives import add_gradient


@lean_kernel
def practical_light_touch(
    objective,
    constraints,
    domain,
    steps,
    iterate,
    visits,
    learning,
    batches,
    gradients,
    counters,
    iterations,
    rng,
):
    """Lines 4 to 15 of Algorithm 4; the second and third of the `gradients` are room for single
    ones.

    The constraints of S are evaluated before w moves, as lines 12 and 13 take g at w^(t).
    """
    groups, distribution, found = learning
    gradient, first, second = gradients
    w = iterate.w
    for _ in range(iterations):  # line 4
        t = counters[ITERATION] + 1
        eta = step_length(steps.rule, steps.eta, t)  # line 5
        if t > 1:  # line 6
            choose_sizes(batches, eta, steps.weight_step, distribution.law.shape[0])
        clear(gradient)
        of_loss = two_losses(objective, w, visits, gradient, first, second, rng)  # line 7
        if steps.l2 > 0.0:
            add_dense(gradient, w, steps.l2)
        of_push = pushes(  # lines 8 and 9
            constraints, groups, distribution, batches.sizes[PUSH], w, steps.penalty,
            gradient, first, second, counters, rng,
        )  # fmt: skip
        k = batches.sizes[LEARN]
        draw_set(distribution, k, rng)  # line 11
        fetch_set(constraints, groups, distribution, k)
        look(constraints, groups, distribution, k, w, found, counters)  # g(w^(t)) on S
        of_learning = learning_variance(distribution, k, found, steps.penalty)
        move(iterate, gradient, domain, steps, t)  # line 10
        learn_set(distribution, k, found)  # lines 12, 13 and 14
        tick(distribution)  # line 15: p is normalised where it is drawn from
        remember_variances(batches, of_loss, of_push, of_learning)
        counters[ITERATION] = t
        counters[SAMPLES] += batches.sizes[LOSS]


@lean_kernel
def two_losses(objective, w, visits, gradient, first, second, rng):
    """Add the mean gradient of the next two examples (k_f = 2); returns their sample variance."""
    clear(first)
    clear(second)
    add_gradient(objective, next_example(visits, rng), w, 0.5, first)
    add_gradient(objective, next_example(visits, rng), w, 0.5, second)
    add_gradient_to(gradient, first, 1.0)
    add_gradient_to(gradient, second, 1.0)
    add_gradient_to(first, second, -1.0)
    return 2.0 * squared_norm(first)


@lean_kernel
def pushes(
    constraints, groups, distribution, size, w, penalty, gradient, single, total, counters, rng
):
    """Add the mean push of `size` drawn constraints; returns the sample variance of the pushes."""
    clear(total)
    squares = 0.0
    for _ in range(size):
        clear(single)
        push(constraints, groups, draw(distribution, rng), w, penalty / size, single, counters)
        squares += squared_norm(single)
        add_gradient_to(total, single, 1.0)
    add_gradient_to(gradient, total, 1.0)
    return max(0.0, (size * size * squares - size * squared_norm(total)) / (size - 1.0))


@lean_kernel
def learning_variance(distribution, size, found, penalty):
    """An estimate of the variance of the p-gradient: gamma^2 m^2 times the mean squared change of
    what is remembered.
    """
    squares = 0.0
    for q in range(size):
        change = distribution.law[distribution.chosen[q], REMEMBERED] - found[q]
        squares += change * change
    count = distribution.law.shape[0]
    return penalty * penalty * count * count * squares / size


# -------------------------------------------------------------------------------------------------
# The three single-sample operations of an iteration, each alone, to be timed from outside.


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
