"""The stochastic loop of this project's own solver: AdaGrad on the losses, sweeps over a few
constraints at a time.

A visit sweeps one group of constraints in cyclic order, so that none is forgotten, and groups drawn
from the learned distribution p, so that violated ones are seen more often. Work an iteration does
not depend on the number of constraints. Sparse examples are stepped on one after the other; the
gradients of dense ones are gathered for one step on all coordinates.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lighttouch.kernels.compiler.compiled import lean_kernel
from lighttouch.kernels.state.counters import CHECKS, ITERATION, NEXT_GROUP, SAMPLES
from lighttouch.kernels.state.distribution import draw, learn, tick
from lighttouch.kernels.state.example_order import next_example
from lighttouch.kernels.verbs.constraint_steps import sweep
from lighttouch.kernels.verbs.constraints import group_stop
from lighttouch.kernels.verbs.domains import BALL, clamp, pull_factor
from lighttouch.kernels.verbs.example_steps import (
    TINY,
    adagrad_step,
    eased,
    fetch_coordinates,
    fetch_rows,
    step_on_rows,
)
from lighttouch.kernels.verbs.objectives import add_smooth_gradient


class SamplingPlan(NamedTuple):
    """An iteration takes `runs` runs of `run` neighbouring examples: memory likes neighbours,
    randomness wants several runs.

    Constraints are visited every `every` iterations: one group of `group` members in cyclic order
    and `draws` drawn ones. Every `record` iterations w is added to the tail sum. `sparse` says that
    an example touches few coordinates, `far` that there are too many of them for the caches, so
    that they are kept small and asked for early.
    """

    runs: int
    run: int
    every: int
    draws: int
    group: int
    record: int
    sparse: bool
    far: bool


class AdaGradState(NamedTuple):
    """Where the loop stands: w over the squared gradients of its coordinates, the gradient being
    gathered, the tail sum (its length last).

    `ridge` is for sparse steps with an l2 term: see `step_on_rows`. A ring of runs is always under
    way: `ahead[r]` is the first example of the next run that has the place r in its iteration.
    """

    coordinates: np.ndarray
    ridge: np.ndarray
    buffer: np.ndarray
    tail: np.ndarray
    ahead: np.ndarray


def new_adagrad_state(start: np.ndarray, ridge: np.ndarray, pace: SamplingPlan) -> AdaGradState:
    """Far coordinates are kept in single precision, each beside its square: a step then waits for
    one line of memory only.
    """
    coordinates = (
        np.empty((2, start.size), np.float32, order="F") if pace.far else np.empty((2, start.size))
    )
    coordinates[0], coordinates[1] = start, TINY
    buffer = np.zeros(0 if pace.sparse else start.size)
    return AdaGradState(
        coordinates, ridge, buffer, np.zeros(start.size + 1), np.full(pace.runs, -1, np.int64)
    )


@lean_kernel
def sampled_adagrad(
    objective,
    examples,
    l2,
    constraints,
    members,
    domain,
    eta,
    pace,
    walk,
    visits,
    distribution,
    gradient,
    counters,
    steps,
    rng,
):
    w = walk.coordinates[0]
    squares = walk.coordinates[1]
    if walk.ahead[0] < 0:
        for r in range(pace.runs):
            walk.ahead[r] = next_example(visits, rng) * pace.run
    for _ in range(steps):
        t = counters[ITERATION] + 1
        for r in range(pace.runs):
            first = walk.ahead[r]
            last = min(first + pace.run, examples)
            walk.ahead[r] = next_example(visits, rng) * pace.run
            fetch_rows(objective, walk.ahead[r], min(walk.ahead[r] + pace.run, examples))
            if pace.far:
                following = walk.ahead[r + 1 if r + 1 < pace.runs else 0]
                fetch_coordinates(objective, following, min(following + pace.run, examples), w)
            if pace.sparse:
                step_on_rows(objective, first, last, w, squares, walk.ridge, domain, eta)
            else:
                for example in range(first, last):
                    add_smooth_gradient(
                        objective, example, w, 1.0 / (pace.runs * (last - first)), 0.0, walk.buffer
                    )
            counters[SAMPLES] += last - first
        if not pace.sparse:
            step_everywhere(w, squares, walk.buffer, domain, eta, l2)
        if domain.kind == BALL:
            pull(domain, w)
        if members > 0 and t % pace.every == 0:
            visit(
                constraints,
                members,
                w,
                squares,
                domain,
                pace,
                distribution,
                gradient,
                counters,
                rng,
            )
        if t & (t - 1) == 0:  # the tail covers what came since the last power of two
            walk.tail[:] = 0.0
        if t % pace.record == 0:
            for j in range(w.size):
                walk.tail[j] += w[j]
            walk.tail[w.size] += 1.0
            for j in range(walk.ridge.size):
                if walk.ridge[j] == np.inf:  # no example touches it
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
def pull(domain, w):
    factor = pull_factor(domain, w)
    if factor < 1.0:
        for j in range(w.size):
            w[j] = domain.center[j] + factor * (w[j] - domain.center[j])


@lean_kernel
def visit(constraints, members, w, squares, domain, pace, distribution, gradient, counters, rng):
    groups = distribution.law.shape[0]
    for place in range(1 + pace.draws):
        if place == 0:
            group = counters[NEXT_GROUP]
            counters[NEXT_GROUP] = group + 1 if group + 1 < groups else 0
        else:
            group = draw(distribution, rng)
        first = group * pace.group
        last = group_stop(group, pace.group, members)
        violation = sweep(constraints, first, last, w, squares, domain, gradient)
        counters[CHECKS] += last - first
        if pace.draws > 0:
            learn(distribution, group, violation, 0.0)
    if pace.draws > 0:
        tick(distribution)
