"""A gradient that remembers which coordinates it touches, so that a sparse step costs what it
touches.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lighttouch.kernels.compiler.compiled import lean_kernel


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
