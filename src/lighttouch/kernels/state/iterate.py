"""What an SGD run carries along: counters, step numbers, the order of the examples, the iterate.

A coordinate that does not move costs nothing: the running sum of the iterates catches up with it
when it moves next.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from lighttouch.kernels.compiler.compiled import lean_kernel
from lighttouch.kernels.verbs.domains import BALL, clamp, pull_factor, put_on_simplex

ITERATION, CHECKS, SAMPLES = 0, 1, 2
AVERAGED_FROM = 3  # the iteration after which the average begins (MidTouch starts a second one)
NEXT_GROUP = 4  # the constraint group that is visited next in cyclic order (sampled AdaGrad)
NEXT_PENALTY_ROW = 5  # the row of the quadratic penalty that is visited next (sampled AdaGrad)


def new_counters() -> np.ndarray:
    return np.zeros(6, np.int64)


CONSTANT, INVERSE_SQRT, INVERSE_TIME, ADAGRAD = 0, 1, 2, 3


class Steps(NamedTuple):
    """What an iteration is told, in the paper's letters where it has one.

    Numbers only: a loop reads them from registers, where a record within a record would cost half
    its time again.
    """

    rule: int  # how eta^(t) depends on t
    eta: float
    batch: int  # k_f, examples per iteration (fixed, except in Algorithm 4)
    l2: float  # the objective's ridge term
    penalty: float  # gamma
    weight_step: float  # eta_p
    looks: int  # k, constraints in S^(t) (Algorithms 2 and 3)


@lean_kernel
def step_length(rule, eta, t):
    """eta^(t); AdaGrad divides by its own roots, coordinate by coordinate, later."""
    if rule == INVERSE_SQRT:
        return eta / math.sqrt(t)
    if rule == INVERSE_TIME:
        return eta / t
    return eta


class ExampleOrder(NamedTuple):
    """`order` is being shuffled as it is read; `cursor[0]` is the place in it. An empty order means
    independent draws.
    """

    order: np.ndarray
    cursor: np.ndarray
    examples: int


def new_example_order(examples: int, independent: bool) -> ExampleOrder:
    kind = np.int32 if examples < 2**31 else np.int64
    order = np.zeros(0, kind) if independent else np.arange(examples, dtype=kind)
    return ExampleOrder(order, np.zeros(1, np.int64), examples)


@lean_kernel
def next_example(visits, rng):
    if visits.order.size == 0:
        return int(rng.random() * visits.examples)
    place = visits.cursor[0]
    chosen = place + int(rng.random() * (visits.examples - place))
    example = visits.order[chosen]
    visits.order[chosen] = visits.order[place]
    visits.order[place] = example
    visits.cursor[0] = place + 1 if place + 1 < visits.examples else 0
    return int(example)


class Iterate(NamedTuple):
    """w, the sum of its past values, up to which iteration each coordinate is summed, and AdaGrad's
    squared gradients.
    """

    w: np.ndarray
    total: np.ndarray
    summed: np.ndarray
    squares: np.ndarray


def new_iterate(start: np.ndarray) -> Iterate:
    return Iterate(
        start.copy(), np.zeros_like(start), np.zeros(start.size, np.int64), np.zeros_like(start)
    )


@lean_kernel
def settle(iterate, coordinate, t):
    """Add to the sum what the coordinate was in the iterates up to t, before it changes."""
    iterate.total[coordinate] += (t - iterate.summed[coordinate]) * iterate.w[coordinate]
    iterate.summed[coordinate] = t


@lean_kernel
def move(iterate, gradient, domain, steps, t):
    """w^(t+1) = Pi_w(w^(t) - eta^(t) gradient), on the touched coordinates only (all of them
    outside a ball, and on a simplex).
    """
    length = step_length(steps.rule, steps.eta, t)
    for q in range(gradient.cursor[0]):
        j = gradient.touched[q]
        value = gradient.values[j]
        if value == 0.0:
            continue
        if steps.rule == ADAGRAD:
            iterate.squares[j] += value * value
            if iterate.squares[j] == 0.0:
                continue  # the square of a gradient below 1e-162 vanishes; so may its step
            length = steps.eta / math.sqrt(iterate.squares[j])
        settle(iterate, j, t)
        iterate.w[j] = clamp(domain, j, iterate.w[j] - length * value)
    if domain.kind >= BALL:
        pull_together(iterate, domain, t)


@lean_kernel
def pull_together(iterate, domain, t):
    if domain.kind != BALL:
        for j in range(iterate.w.size):
            if iterate.summed[j] < t:
                settle(iterate, j, t)
        put_on_simplex(iterate.w, domain.radius)
        return
    factor = pull_factor(domain, iterate.w)
    if factor < 1.0:
        for j in range(iterate.w.size):
            if iterate.summed[j] < t:
                settle(iterate, j, t)
            iterate.w[j] = domain.center[j] + factor * (iterate.w[j] - domain.center[j])


def average(iterate: Iterate, first: int, last: int) -> np.ndarray:
    """The mean of w^(first+1) .. w^(last); the state is left alone."""
    if last <= first:
        return iterate.w.copy()
    return np.asarray((iterate.total + (last - iterate.summed) * iterate.w) / (last - first))


def put_iterate(iterate: Iterate, w: np.ndarray, t: int) -> None:
    """Let w be the iterate after t, adding to the sum what every coordinate was until then."""
    np.add(iterate.total, (t - iterate.summed) * iterate.w, out=iterate.total)
    iterate.summed[:] = t
    iterate.w[:] = w
