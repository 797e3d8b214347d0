"""The dual active-set method for the nearest point of a polyhedron, written wholly in the Gram
matrix of its rows (Goldfarb and Idnani 1983).

Rows have length one and the point is the origin: minimise |z|^2 / 2 subject to rows @ z <= right.
With z = -rows.T @ u everything the method needs is gram = rows @ rows.T: the excess of every row is
-gram @ u - right. Every full step raises the dual value, so the method ends at the exact solution,
or with multipliers that prove there is no point at all.
"""

from __future__ import annotations

import numpy as np

from lighttouch.kernels.compiler.compiled import kernel, lean_kernel

SOLVED = 0
CONTRADICTION = 1
STEP_LIMIT = 2


@kernel
def solve_lower(factor, size, right):
    """In place: factor @ x = right."""
    for i in range(size):
        right[i] = (right[i] - np.dot(factor[i, :i], right[:i])) / factor[i, i]


@lean_kernel
def solve_upper(factor, size, right):
    """In place: factor.T @ x = right."""
    for i in range(size - 1, -1, -1):
        right[i] /= factor[i, i]
        for j in range(i):
            right[j] -= right[i] * factor[i, j]


@kernel
def drop_row(factor, size, place):
    """The factor after one row and column of the Gram matrix are taken away: the rows below move up
    and are rotated back to a triangle.
    """
    cosine = np.empty(size)
    sine = np.empty(size)
    for i in range(place, size - 1):
        row = factor[i]
        row[: i + 2] = factor[i + 1, : i + 2]
        for k in range(place, i):
            left = row[k]
            right = row[k + 1]
            row[k] = cosine[k] * left + sine[k] * right
            row[k + 1] = cosine[k] * right - sine[k] * left
        length = np.sqrt(row[i] * row[i] + row[i + 1] * row[i + 1])
        cosine[i] = row[i] / length
        sine[i] = row[i + 1] / length
        row[i] = length


@lean_kernel
def blocking(weights, direction, size, threshold):
    """How far the multipliers of the active rows allow, and the row that stops first (-1: none)."""
    longest = np.inf
    place = -1
    for i in range(size):
        if direction[i] > threshold and weights[i] < longest * direction[i]:
            longest = weights[i] / direction[i]
            place = i
    return longest, place


@kernel
def remove_active(factor, active, weights, size, place):
    drop_row(factor, size, place)
    for i in range(place, size - 1):
        active[i] = active[i + 1]
        weights[i] = weights[i + 1]
    return size - 1


@lean_kernel
def row_excess(gram, right, active, weights, size, excess):
    """The excess of every row at z = -rows.T @ u."""
    for k in range(excess.size):
        excess[k] = -right[k]
    for i in range(size):
        for k in range(excess.size):
            excess[k] -= weights[i] * gram[active[i], k]


@kernel
def refine_weights(gram, right, factor, active, weights, size):
    """One step of iterative refinement of gram[active, active] @ u = -right[active]; keeps u as it
    is if a weight would turn negative.
    """
    rest = np.empty(size)
    for i in range(size):
        total = -right[active[i]]
        for j in range(size):
            total -= gram[active[i], active[j]] * weights[j]
        rest[i] = total
    solve_lower(factor, size, rest)
    solve_upper(factor, size, rest)
    for i in range(size):
        if weights[i] + rest[i] < 0.0:
            return
    for i in range(size):
        weights[i] += rest[i]


@kernel
def dual_active_set(
    gram, right, factor, active, weights, size, excess, tolerance, dependent, steps
):
    """From a dual-feasible start (factor, active, weights, size) to the solution, in place.

    Returns (outcome, size, row, direction); on a contradiction row - sum(direction[i] active[i]) is
    zero with a negative right side.
    """
    direction = np.zeros(factor.shape[0])
    row_excess(gram, right, active, weights, size, excess)
    refreshed = True
    for _ in range(steps):
        row = np.argmax(excess)
        if excess[row] <= tolerance:
            if refreshed:
                return SOLVED, size, row, direction
            refine_weights(gram, right, factor, active, weights, size)
            row_excess(gram, right, active, weights, size, excess)
            refreshed = True
            continue
        refreshed = False
        gained = 0.0
        while True:
            for i in range(size):
                direction[i] = gram[active[i], row]
            solve_lower(factor, size, direction)
            free = gram[row, row] - np.dot(direction[:size], direction[:size])
            column = direction[:size].copy()
            solve_upper(factor, size, direction)
            longest, place = blocking(weights, direction, size, 1e-14)
            if free <= dependent:
                if place < 0:
                    return CONTRADICTION, size, row, direction
                length = longest
            else:
                length = min(longest, excess[row] / free)
            for i in range(size):
                weights[i] = max(0.0, weights[i] - length * direction[i])
            gained += length
            move_excess(gram, excess, active, direction, size, row, length)
            if free > dependent and length < longest:
                factor[size, :size] = column
                factor[size, size] = np.sqrt(free)
                active[size] = row
                weights[size] = gained
                size += 1
                excess[row] = 0.0
                break
            size = remove_active(factor, active, weights, size, place)
    return STEP_LIMIT, size, -1, direction


@lean_kernel
def move_excess(gram, excess, active, direction, size, row, length):
    """The excess after the point moved by -length times the part of `row` that is free of the
    active rows.
    """
    for k in range(excess.size):
        excess[k] -= length * gram[row, k]
    for i in range(size):
        if direction[i] != 0.0:
            change = length * direction[i]
            for k in range(excess.size):
                excess[k] += change * gram[active[i], k]
