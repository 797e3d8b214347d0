"""The stochastic loop of this project's own solver: AdaGrad (Duchi, Hazan and Singer 2011) on the
losses, sweeps over a few constraints at a time.

A visit sweeps one group of constraints in cyclic order, so that none is forgotten, and groups drawn
from the learned distribution p, so that violated ones are seen more often. The work of an iteration
does not depend on the number of constraints. Sparse examples are stepped on one after the other;
the gradients of dense ones are gathered for one step on all coordinates. The rows of a quadratic
penalty are visited in cyclic order, by implicit steps.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lighttouch.kernels.compiler.compiled import lean_kernel
from lighttouch.kernels.state.distribution import draw, learn, tick
from lighttouch.kernels.state.iterate import (
    CHECKS,
    ITERATION,
    NEXT_GROUP,
    NEXT_PENALTY_ROW,
    SAMPLES,
    next_example,
)
from lighttouch.kernels.verbs.constraints import group_stop
from lighttouch.kernels.verbs.domains import BALL, clamp, pull_factor, put_on_simplex
from lighttouch.kernels.verbs.objectives import add_smooth_gradient, add_unvisited_penalty
from lighttouch.kernels.verbs.steps import (
    TINY,
    adagrad_step,
    eased,
    fetch_coordinates,
    fetch_rows,
    penalty_count,
    step_on_penalty,
    step_on_rows,
    sweep,
)


class SamplingPlan(NamedTuple):
    """How much of everything one iteration takes.

    An iteration takes `runs` runs of `run` neighbours among the `examples`: neighbours are read
    faster from memory, and several runs keep the sample random. Constraints are visited every
    `every` iterations: one group of `group` of the `members` in cyclic order and `draws` groups
    drawn from p. Every `record` iterations w is added to the tail sum. `sparse` says that an
    example touches few coordinates, so that each is stepped on at once. `far` says that there are
    too many coordinates for the caches: they are then kept in single precision and fetched ahead of
    use. `penalty_rows` rows of the quadratic penalty are visited per iteration.
    """

    examples: int
    members: int
    runs: int
    run: int
    every: int
    draws: int
    group: int
    record: int
    sparse: bool
    far: bool
    penalty_rows: int = 0


class AdaGradState(NamedTuple):
    """Where the loop stands.

    `coordinates` holds w in its first row and the sums of squared gradients in its second. `ridge`
    is the l2 term's share per coordinate for sparse steps (see `step_on_rows`). `buffer` gathers
    the gradient of dense examples. `tail` is the sum of recent iterates, its length last.
    `ahead[r]` is the first example of the next run that has place r in its iteration: it is
    chosen one iteration ahead, so that its numbers can be fetched early.
    """

    coordinates: np.ndarray
    ridge: np.ndarray
    buffer: np.ndarray
    tail: np.ndarray
    ahead: np.ndarray


def new_adagrad_state(start: np.ndarray, ridge: np.ndarray, plan: SamplingPlan) -> AdaGradState:
    """Far coordinates are kept in single precision, each beside its square: a step then waits for
    one line of memory only.
    """
    coordinates = (
        np.empty((2, start.size), np.float32, order="F") if plan.far else np.empty((2, start.size))
    )
    coordinates[0], coordinates[1] = start, TINY
    buffer = np.zeros(0 if plan.sparse else start.size)
    return AdaGradState(
        coordinates, ridge, buffer, np.zeros(start.size + 1), np.full(plan.runs, -1, np.int64)
    )


@lean_kernel
def sampled_adagrad(
    objective,
    constraints,
    domain,
    steps,
    plan,
    state,
    visits,
    distribution,
    gradient,
    counters,
    iterations,
    rng,
):
    eta, l2 = steps.eta, steps.l2
    examples, members = plan.examples, plan.members
    w = state.coordinates[0]
    squares = state.coordinates[1]
    if state.ahead[0] < 0:
        for r in range(plan.runs):
            state.ahead[r] = next_example(visits, rng) * plan.run
    for _ in range(iterations):
        t = counters[ITERATION] + 1
        for r in range(plan.runs):
            first = state.ahead[r]
            last = min(first + plan.run, examples)
            state.ahead[r] = next_example(visits, rng) * plan.run
            fetch_rows(objective, state.ahead[r], min(state.ahead[r] + plan.run, examples))
            if plan.far:
                following = state.ahead[r + 1 if r + 1 < plan.runs else 0]
                fetch_coordinates(objective, following, min(following + plan.run, examples), w)
            if plan.sparse:
                step_on_rows(objective, first, last, w, squares, state.ridge, domain, eta)
            else:
                for example in range(first, last):
                    add_smooth_gradient(
                        objective, example, w, 1.0 / (plan.runs * (last - first)), 0.0, state.buffer
                    )
            counters[SAMPLES] += last - first
        if not plan.sparse:
            add_unvisited_penalty(objective, w, state.buffer)
            step_everywhere(w, squares, state.buffer, domain, eta, l2)
        if plan.penalty_rows > 0:
            smooth(objective, w, squares, domain, eta, plan, counters)
        if domain.kind >= BALL:
            pull(domain, w)
        if members > 0 and t % plan.every == 0:
            visit(
                constraints,
                members,
                w,
                squares,
                domain,
                plan,
                distribution,
                gradient,
                counters,
                rng,
            )
            if domain.kind > BALL:  # steps on constraints leave it
                put_on_simplex(w, domain.radius)
        if t & (t - 1) == 0:  # the tail covers what came since the last power of two
            state.tail[:] = 0.0
        if t % plan.record == 0:
            for j in range(w.size):
                state.tail[j] += w[j]
            state.tail[w.size] += 1.0
            for j in range(state.ridge.size):
                if state.ridge[j] == np.inf:  # no example touches it
                    w[j] = clamp(
                        domain, j, eased(squares, j, w[j], w.dtype.type(l2), w.dtype.type(eta))
                    )
        counters[ITERATION] = t


@lean_kernel
def step_everywhere(w, squares, buffer, domain, eta, l2):
    """An AdaGrad step on all coordinates; it empties the buffer."""
    for j in range(w.size):
        value = buffer[j] + l2 * w[j]
        buffer[j] = 0.0
        w[j] = clamp(domain, j, w[j] - adagrad_step(squares, j, value, eta))


@lean_kernel
def smooth(objective, w, squares, domain, eta, plan, counters):
    """Implicit steps on the next rows of the quadratic penalty.

    The objective is a mean per example. A row that is visited once in so many steps on examples
    stands for the penalty of all of them, and has that number as its weight.
    """
    rows = penalty_count(objective)
    steps = plan.runs * plan.run if plan.sparse else 1
    weight = rows / plan.penalty_rows * steps
    row = counters[NEXT_PENALTY_ROW]
    for _ in range(plan.penalty_rows):
        step_on_penalty(objective, row, weight, w, squares, domain, eta)
        row = row + 1 if row + 1 < rows else 0
    counters[NEXT_PENALTY_ROW] = row


@lean_kernel
def pull(domain, w):
    if domain.kind != BALL:
        put_on_simplex(w, domain.radius)
        return
    factor = pull_factor(domain, w)
    if factor < 1.0:
        for j in range(w.size):
            w[j] = domain.center[j] + factor * (w[j] - domain.center[j])


@lean_kernel
def visit(constraints, members, w, squares, domain, plan, distribution, gradient, counters, rng):
    groups = distribution.law.shape[0]
    for place in range(1 + plan.draws):
        if place == 0:
            group = counters[NEXT_GROUP]
            counters[NEXT_GROUP] = group + 1 if group + 1 < groups else 0
        else:
            group = draw(distribution, rng)
        first = group * plan.group
        last = group_stop(group, plan.group, members)
        violation = sweep(constraints, first, last, w, squares, domain, gradient)
        counters[CHECKS] += last - first
        if plan.draws > 0:
            learn(distribution, group, violation, 0.0)
    if plan.draws > 0:
        tick(distribution)
