"""The iterate w^(t), its running sum and its step: a coordinate that does not move costs
nothing.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from lighttouch.kernels.compiler.compiled import lean_kernel
from lighttouch.kernels.state.steps import ADAGRAD, step_length
from lighttouch.kernels.verbs.domains import BALL, clamp, pull_factor


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
    outside a ball).
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
    if domain.kind == BALL:
        pull_into_ball(iterate, domain, t)


@lean_kernel
def pull_into_ball(iterate, domain, t):
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
