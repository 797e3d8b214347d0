"""Constraint steps that never overshoot: every violated member of a range is met exactly, in the
metric of the steps.

Each step projects w onto one half-space {g_j + <s, w' - w> <= 0} that holds every feasible point,
in the norm in which AdaGrad measures distances, so it never moves away from any feasible point.
"""

from __future__ import annotations

import math

from lighttouch.kernels.compiler.compiled import lean_kernel, verb
from lighttouch.kernels.state.iterate import clear
from lighttouch.kernels.verbs.constraints import (
    OrderRows,
    add_subgradient,
    order_scale,
    order_side,
    worst,
)
from lighttouch.kernels.verbs.domains import clamp
from lighttouch.kernels.verbs.example_steps import mobility


@verb
def sweep(constraints, start, stop, w, squares, domain, gradient):
    """Meet every violated constraint of a range, one after the other; returns the largest violation
    found on the way.
    """


@lean_kernel
def step_back(violation, w, squares, domain, gradient):
    """Project onto the half-space of the linearised constraint whose subgradient is given."""
    stiffness = 0.0
    for q in range(gradient.cursor[0]):
        j = gradient.touched[q]
        slope = gradient.values[j]
        stiffness += slope * slope * mobility(squares, j)
    if stiffness <= 0.0:
        return
    force = violation / stiffness
    for q in range(gradient.cursor[0]):
        j = gradient.touched[q]
        if gradient.values[j] != 0.0:
            w[j] = clamp(domain, j, w[j] - force * gradient.values[j] * mobility(squares, j))


@lean_kernel
def sweep_any(constraints, start, stop, w, squares, domain, gradient):
    largest = 0.0
    for j in range(start, stop):
        violation, _ = worst(constraints, j, j + 1, w)
        if violation > 0.0:
            largest = max(largest, violation)
            clear(gradient)
            add_subgradient(constraints, j, w, 1.0, gradient)
            step_back(violation, w, squares, domain, gradient)
    return largest


@lean_kernel
def sweep_order(constraints, start, stop, w, squares, domain, gradient):
    smaller = constraints.smaller
    larger = constraints.larger
    largest = 0.0
    for j in range(start, stop):
        low = smaller[j]
        high = larger[j]
        scale = order_scale(constraints, j)
        violation = scale * (w[low] - w[high]) - order_side(constraints, j)
        if violation > 0.0:
            largest = max(largest, violation)
            part_pair(violation / scale, low, high, w, squares, domain)
    return largest


@lean_kernel
def part_pair(excess, low, high, w, squares, domain):
    """Move w[low] down and w[high] up by `excess` together, each by its share."""
    low_root = math.sqrt(squares[low])
    high_root = math.sqrt(squares[high])
    share = high_root / (low_root + high_root)  # mobilities are the inverse roots
    w[low] = clamp(domain, low, w[low] - share * excess)
    w[high] = clamp(domain, high, w[high] + (1.0 - share) * excess)


sweep.register(OrderRows)(sweep_order.py_func)
sweep.register(object)(sweep_any.py_func)
