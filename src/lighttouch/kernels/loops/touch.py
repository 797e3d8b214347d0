"""SGD that looks at all constraints or at a few of them: FullTouch (Algorithm 1), LightTouch
(Algorithm 2) and practical LightTouch (Algorithm 4).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from lighttouch.kernels.compiler.compiled import lean_kernel
from lighttouch.kernels.compiler.intrinsics import generator_at, prefetch
from lighttouch.kernels.state.distribution import (
    REFERENCES,
    REMEMBERED,
    Distribution,
    descend_together,
    draw,
    draw_set,
    fetch_changes,
    is_kept,
    learn,
    tick,
)
from lighttouch.kernels.state.iterate import (
    CHECKS,
    ITERATION,
    LEARN,
    LOSS,
    PUSH,
    SAMPLES,
    add_dense,
    add_gradient_to,
    choose_sizes,
    clear,
    move,
    next_example,
    remember_variances,
    squared_norm,
    step_length,
)
from lighttouch.kernels.state.running_maximum import refresh
from lighttouch.kernels.verbs.constraints import (
    Groups,
    add_subgradient,
    fetch_constraint,
    fetch_entries,
    group_stop,
    worst,
)
from lighttouch.kernels.verbs.objectives import add_gradient

# -------------------------------------------------------------------------------------------------
# FullTouch (Algorithm 1): SGD on f(w) + gamma max(0, max_j g_j(w)); with no constraints, plain SGD.


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


# -------------------------------------------------------------------------------------------------
# LightTouch (Algorithm 2); MidTouch's second phase (Algorithm 3) is this loop with k = 1.


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


# -------------------------------------------------------------------------------------------------
# Practical LightTouch (Algorithm 4): steps that decrease, and minibatch sizes that follow the
# variances of the three stochastic gradients (Section 5.2).


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
# Lines that several of the paper's algorithms share.


class Learning(NamedTuple):
    """What Algorithms 2 to 4 learn with: p over the groups of constraints, and room for what is
    found on S. A loop takes it apart before it begins.
    """

    groups: Groups
    distribution: Distribution
    found: np.ndarray


@lean_kernel
def sample_losses(objective, steps, w, visits, gradient, counters, rng):
    """Add a stochastic subgradient of f at w: the mean over the next k_f examples."""
    for _ in range(steps.batch):
        add_gradient(objective, next_example(visits, rng), w, 1.0 / steps.batch, gradient)
    if steps.l2 > 0.0:
        add_dense(gradient, w, steps.l2)
    counters[SAMPLES] += steps.batch


@lean_kernel
def push(constraints, groups, i, w, scale, gradient, counters):
    """Add scale times a subgradient of max{0, g_i(w)}."""
    first = i * groups.size
    stop = group_stop(i, groups.size, groups.members)
    violation, member = worst(constraints, first, stop, w)
    if violation > 0.0:
        add_subgradient(constraints, member, w, scale, gradient)
    counters[CHECKS] += stop - first


@lean_kernel
def fetch_set(constraints, groups, distribution, size):
    """Ask for the rows of S, and what is remembered of them, before they are evaluated.

    Where they lie is asked for first and their entries second, so that no question waits for the
    answer to another.
    """
    chosen = distribution.chosen
    for q in range(size):
        j = np.int64(chosen[q])
        fetch_constraint(constraints, j * groups.size)
        prefetch(distribution.law, j)
    for q in range(size):
        fetch_entries(constraints, chosen[q] * groups.size)


@lean_kernel
def look(constraints, groups, distribution, size, w, found, counters):
    """max{0, g_j(w)} of every j in S; what learning it will change is asked for at once."""
    for q in range(size):
        j = np.int64(distribution.chosen[q])
        first = j * groups.size
        stop = group_stop(j, groups.size, groups.members)
        violation, _ = worst(constraints, first, stop, w)
        found[q] = max(0.0, violation)
        counters[CHECKS] += stop - first
        fetch_changes(distribution, j, found[q])


@lean_kernel
def learn_set(distribution, size, found):
    """ln p += eta_p (gamma mu + (gamma m / k) sum over S of e_j (max{0, g_j} - mu_j)), then mu_j =
    max{0, g_j} on S.

    The distribution holds eta_p gamma, and lets ln p grow along eta_p gamma mu by itself.
    """
    share = distribution.law.shape[0] / size
    for q in range(size):
        learn(distribution, np.int64(distribution.chosen[q]), found[q], share)


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


# -------------------------------------------------------------------------------------------------
# The p side of LightTouch alone (Algorithm 2, lines 6 and 9 to 13), for models that are trained
# elsewhere: drawing before the constraints are looked at, learning after.


@lean_kernel
def draw_touch(distribution, pushes, looks, state, draws, rests, out):
    """Write `pushes` draws from p into `out`, and behind them the set S of `looks` constraints;
    what is remembered of S is asked for, so that it is there when it is learned. The generator is
    at the addresses `state` and `draws` (`compiler/intrinsics.py`).

    The draws are those of `draw`, begun together: which are kept is decided one by one, and after
    a new reference, with new bounds, the rest is drawn anew. `rests` is room for `pushes` numbers.
    """
    rng = generator_at(state, draws)
    descend_together(distribution, pushes, rng, rests, out)  # line 6
    references = distribution.clock[REFERENCES]
    for q in range(pushes):
        if distribution.clock[REFERENCES] != references or not is_kept(distribution, out[q], rng):
            out[q] = draw(distribution, rng)
    draw_set(distribution, looks, rng)  # line 9
    for q in range(looks):
        out[pushes + q] = distribution.chosen[q]
        prefetch(distribution.law, np.int64(distribution.chosen[q]))


@lean_kernel
def take_in(distribution, values, pushes, scale, found, weights):
    """Learn from the violations of one step, first those that push; False, and nothing is learned,
    where one is not finite. `weights` becomes the slope of the penalty in each of them.
    """
    for q in range(values.size):
        if not abs(values[q]) < math.inf:
            return False
    for q in range(pushes):
        weights[q] = scale if values[q] > 0.0 else 0.0
    for q in range(found.size):
        weights[pushes + q] = 0.0
        found[q] = values[pushes + q]
    return learn_touch(distribution, found)


@lean_kernel
def learn_touch(distribution, found):
    """Learn max{0, g_j} of the S that was drawn last from its g_j, which are changed in place;
    False, and nothing is learned, where one is not finite.
    """
    for q in range(found.size):
        if not abs(found[q]) < math.inf:
            return False
        found[q] = max(0.0, found[q])
    learn_set(distribution, found.size, found)  # lines 10 to 12
    tick(distribution)  # line 13
    return True
