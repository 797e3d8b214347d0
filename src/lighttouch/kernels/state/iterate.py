"""What an SGD run carries along: the gradient of an iteration, counters, step numbers, the order of
the examples, the iterate.

A sparse step costs what it touches. The gradient remembers which coordinates it touches; one that
does not move costs nothing, for the running sum of the iterates catches up with it when it moves
next.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from lighttouch.kernels.compiler.compiled import lean_kernel
from lighttouch.kernels.verbs.domains import BALL, clamp, pull_factor, put_on_simplex


class Gradient(NamedTuple):
    """`values[j]` counts only where `stamp[j]` is the current round; `touched[:cursor[0]]` lists
    those coordinates.
    """

    values: np.ndarray
    touched: np.ndarray
    stamp: np.ndarray
    cursor: np.ndarray  # [number of touched coordinates, round]


def new_gradient(dimension: int) -> Gradient:
    return Gradient(
        np.zeros(dimension),
        np.zeros(dimension, np.int64),
        np.zeros(dimension, np.int64),
        np.zeros(2, np.int64),
    )


@lean_kernel
def clear(gradient):
    gradient.cursor[0] = 0
    gradient.cursor[1] += 1


@lean_kernel
def add(gradient, coordinate, value):
    if gradient.stamp[coordinate] == gradient.cursor[1]:
        gradient.values[coordinate] += value
    else:
        gradient.stamp[coordinate] = gradient.cursor[1]
        gradient.values[coordinate] = value
        gradient.touched[gradient.cursor[0]] = coordinate
        gradient.cursor[0] += 1


@lean_kernel
def add_dense(gradient, vector, scale):
    """Add scale * vector, touching every coordinate."""
    dimension = gradient.values.size
    if gradient.cursor[0] < dimension:
        for j in range(dimension):
            if gradient.stamp[j] != gradient.cursor[1]:
                gradient.values[j] = 0.0
                gradient.stamp[j] = gradient.cursor[1]
            gradient.touched[j] = j
        gradient.cursor[0] = dimension
    for j in range(dimension):
        gradient.values[j] += scale * vector[j]


@lean_kernel
def add_sparse(gradient, data, indices, start, stop, scale):
    """Add scale times a compressed row; the cursor stays in registers on the way."""
    values = gradient.values
    stamp = gradient.stamp
    touched = gradient.touched
    count = gradient.cursor[0]
    now = gradient.cursor[1]
    for k in range(start, stop):
        j = indices[k]
        value = scale * data[k]
        if stamp[j] == now:
            values[j] += value
        else:
            stamp[j] = now
            values[j] = value
            touched[count] = j
            count += 1
    gradient.cursor[0] = count


@lean_kernel
def add_gradient_to(target, source, scale):
    for q in range(source.cursor[0]):
        j = source.touched[q]
        add(target, j, scale * source.values[j])


@lean_kernel
def squared_norm(gradient):
    total = 0.0
    for q in range(gradient.cursor[0]):
        value = gradient.values[gradient.touched[q]]
        total += value * value
    return total


@lean_kernel
def dot(a, b):
    """The inner product, in a fixed order of four partial sums: fast, and the same bits
    everywhere.
    """
    s0 = 0.0
    s1 = 0.0
    s2 = 0.0
    s3 = 0.0
    whole = a.size - a.size % 4
    for j in range(0, whole, 4):
        s0 += a[j] * b[j]
        s1 += a[j + 1] * b[j + 1]
        s2 += a[j + 2] * b[j + 2]
        s3 += a[j + 3] * b[j + 3]
    for j in range(whole, a.size):
        s0 += a[j] * b[j]
    return (s0 + s1) + (s2 + s3)


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


# -------------------------------------------------------------------------------------------------
# Automatic minibatching (Section 5.2): how many losses, drawn constraints and remembered
# constraints an iteration looks at.


LOSS, PUSH, LEARN = 0, 1, 2  # the three gradients: k_f, k_g, k_p


class Batches(NamedTuple):
    """Sizes [k_f, k_g, k_p]; averaged variances and mean costs of single samples; `memory` is nu,
    `weight` its running sum.
    """

    sizes: np.ndarray
    variances: np.ndarray
    costs: np.ndarray
    weight: np.ndarray
    memory: float


def first_batches(costs: np.ndarray, memory: float, constraints: int) -> Batches:
    """The smallest sizes, before any variance is known."""
    sizes = np.array([2, 2 if constraints else 0, min(1, constraints)], np.int64)
    return Batches(sizes, np.zeros(3), np.asarray(costs, float), np.zeros(1), memory)


@lean_kernel
def remember_variances(batches, of_loss, of_push, of_learning):
    """v-bar^(t+1) is proportional to v^(t) + nu v-bar^(t)."""
    batches.weight[0] = 1.0 + batches.memory * batches.weight[0]
    share = 1.0 / batches.weight[0]
    batches.variances[LOSS] += (of_loss - batches.variances[LOSS]) * share
    batches.variances[PUSH] += (of_push - batches.variances[PUSH]) * share
    batches.variances[LEARN] += (of_learning - batches.variances[LEARN]) * share


@lean_kernel
def choose_sizes(batches, step, weight_step, constraints):
    """[k_f, k_g, k_p] proportional to sqrt(step * variance / cost), scaled so that k_f = 2,
    rounded, at least [2, 2, 1].
    """
    loss = math.sqrt(step * batches.variances[LOSS] / batches.costs[LOSS])
    push = math.sqrt(step * batches.variances[PUSH] / batches.costs[PUSH])
    learn = math.sqrt(weight_step * batches.variances[LEARN] / batches.costs[LEARN])
    batches.sizes[PUSH] = scaled_size(push, loss, 2, max(2, constraints))
    batches.sizes[LEARN] = scaled_size(learn, loss, 1, constraints)


@lean_kernel
def scaled_size(impact, loss_impact, least, most):
    if impact == 0.0:
        return least
    if 2.0 * impact >= most * loss_impact:
        return most
    return min(most, max(least, int(0.5 + 2.0 * impact / loss_impact)))
