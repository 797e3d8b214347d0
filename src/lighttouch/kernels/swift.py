"""The stochastic loop of this project's own solver: AdaGrad on the losses, sweeps over a few constraints at a time.

A visit sweeps one group of constraints in cyclic order, so that none is forgotten, and groups drawn from the learned
distribution p, so that violated ones are seen more often. Work an iteration does not depend on the number of constraints.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lighttouch.kernels.compiled import lean_kernel
from lighttouch.kernels.constraints import group_stop
from lighttouch.kernels.distribution import draw, learn, tick
from lighttouch.kernels.domains import BALL, clamp, pull_factor
from lighttouch.kernels.full_touch import CHECKS, ITERATION, SAMPLES
from lighttouch.kernels.sweeps import sweep
from lighttouch.kernels.swift_rows import BUFFER, SQUARES, adagrad_step, add_rows, fetch_cells, fetch_rows, step_on_rows
from lighttouch.kernels.visits import next_example

CYCLE = 3  # the counter that walks through the groups
TINY = 1e-16  # squared gradients start here, so that the first step has the length eta


class Pace(NamedTuple):
    """An iteration takes `runs` runs of `run` neighbouring examples: memory likes neighbours, randomness wants several runs.

    Constraints are visited every `every` iterations: one group of `group` members in cyclic order and `draws` drawn ones.
    Every `record` iterations w is added to the tail sum. `sparse` says that an example touches few coordinates,
    `far` that there are too many of them for the caches, so that asking for them early pays.
    """

    runs: int
    run: int
    every: int
    draws: int
    group: int
    record: int
    sparse: bool
    far: bool


class Walk(NamedTuple):
    """Where the loop stands: w, two more numbers a coordinate (see swift_rows), the tail sum (its length last)."""

    w: np.ndarray
    cells: np.ndarray
    tail: np.ndarray
    firsts: np.ndarray  # the first example of each run


def new_walk(start: np.ndarray, runs: int) -> Walk:
    walk = Walk(start.copy(), np.zeros((start.size, 2)), np.zeros(start.size + 1), np.zeros(runs, np.int64))
    walk.cells[:, SQUARES] = TINY
    return walk


@lean_kernel
def swift(objective, examples, l2, constraints, members, domain, eta, pace, walk, visits, distribution, gradient, counters, steps, rng):
    w = walk.w
    for _ in range(steps):
        t = counters[ITERATION] + 1
        for r in range(pace.runs):
            first = next_example(visits, rng) * pace.run
            walk.firsts[r] = first
            fetch_rows(objective, first, min(first + pace.run, examples))
        for r in range(pace.runs):
            first = walk.firsts[r]
            last = min(first + pace.run, examples)
            if pace.far and r + 1 < pace.runs:
                fetch_cells(objective, walk.firsts[r + 1], min(walk.firsts[r + 1] + pace.run, examples), w, walk.cells)
            add_rows(objective, first, last, 1.0 / (pace.runs * (last - first)), w, walk.cells)
            counters[SAMPLES] += last - first
        if pace.sparse:
            for r in range(pace.runs):
                last = min(walk.firsts[r] + pace.run, examples)
                step_on_rows(objective, walk.firsts[r], last, w, walk.cells, domain, eta)
        else:
            step_everywhere(w, walk.cells, domain, eta, l2)
        if domain.kind == BALL:
            pull(domain, w)
        if members > 0 and t % pace.every == 0:
            visit(constraints, members, domain, pace, walk, distribution, gradient, counters, rng)
        if t & (t - 1) == 0:  # the tail covers what came since the last power of two
            walk.tail[:] = 0.0
        if t % pace.record == 0:
            for j in range(w.size):
                walk.tail[j] += w[j]
            walk.tail[w.size] += 1.0
        counters[ITERATION] = t


@lean_kernel
def step_everywhere(w, cells, domain, eta, l2):
    """An AdaGrad step on all coordinates; it empties the buffer."""
    for j in range(w.size):
        value = cells[j, BUFFER] + l2 * w[j]
        cells[j, BUFFER] = 0.0
        w[j] = clamp(domain, j, w[j] - adagrad_step(cells, j, value, eta))


@lean_kernel
def pull(domain, w):
    factor = pull_factor(domain, w)
    if factor < 1.0:
        for j in range(w.size):
            w[j] = domain.center[j] + factor * (w[j] - domain.center[j])


@lean_kernel
def visit(constraints, members, domain, pace, walk, distribution, gradient, counters, rng):
    groups = distribution.law.shape[0]
    for place in range(1 + pace.draws):
        if place == 0:
            group = counters[CYCLE]
            counters[CYCLE] = group + 1 if group + 1 < groups else 0
        else:
            group = draw(distribution, rng)
        first = group * pace.group
        last = group_stop(group, pace.group, members)
        violation = sweep(constraints, first, last, walk.w, walk.cells, domain, gradient)
        counters[CHECKS] += last - first
        if pace.draws > 0:
            learn(distribution, group, violation, 0.0)
    if pace.draws > 0:
        tick(distribution)
