"""All constraints looked at, but only those evaluated again whose coordinates moved.

The values of all rows stand at the bottom of a pyramid in which every stone holds the largest of
the sixteen below it. A row that changes is felt upwards only as far as it changes a maximum, mostly
not at all.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from lighttouch.kernels.compiler.compiled import lean_kernel, verb
from lighttouch.kernels.verbs.constraints import add_subgradient, worst

WIDTH = 16


class Pyramid(NamedTuple):
    """Level 0, the value of every row, then ever smaller levels up to a single stone; level k
    begins at levels[k].
    """

    stones: np.ndarray
    levels: np.ndarray


class WatchedRows(NamedTuple):
    """Linear rows and their values at the present w; the rows of coordinate i are
    touching[starts[i] : starts[i + 1]].
    """

    rows: NamedTuple
    starts: np.ndarray
    touching: np.ndarray
    pyramid: Pyramid


@verb
def look_again(constraints, members, gradient, w):
    """Called after w has moved along the gradient: returns how many constraints an iteration
    evaluates.
    """


@look_again.register(object)
def _look_at_all(constraints, members, gradient, w):
    return members


@look_again.register(WatchedRows)
def _look_at_moved(constraints, members, gradient, w):
    checked = 0
    for q in range(gradient.cursor[0]):
        coordinate = gradient.touched[q]
        for k in range(constraints.starts[coordinate], constraints.starts[coordinate + 1]):
            row = constraints.touching[k]
            change(constraints.pyramid, row, worst(constraints.rows, row, row + 1, w)[0])
            checked += 1
    return checked


@lean_kernel
def change(pyramid, row, value):
    stones = pyramid.stones
    before = stones[row]
    stones[row] = value
    place = row
    for level in range(1, pyramid.levels.size):
        above = pyramid.levels[level] + place // WIDTH
        largest = stones[above]
        if value > largest:
            stones[above] = value
        elif before == largest and value < largest:
            stones[above] = largest_below(pyramid, level, place // WIDTH)
        if stones[above] == largest:
            return
        before = largest
        value = stones[above]
        place //= WIDTH


@lean_kernel
def largest_below(pyramid, level, place):
    first = pyramid.levels[level - 1] + place * WIDTH
    largest = -math.inf
    for stone in range(first, min(first + WIDTH, pyramid.levels[level])):
        largest = max(largest, pyramid.stones[stone])
    return largest


@worst.register(WatchedRows)
def _worst_watched(constraints, start, stop, w):
    """From the top down, the first of equals, as a look at all rows in turn would find it."""
    pyramid = constraints.pyramid
    top = pyramid.levels.size - 1
    if stop - start < pyramid.levels[1]:
        return worst(constraints.rows, start, stop, w)
    largest = pyramid.stones[pyramid.levels[top]]
    place = 0
    for level in range(top - 1, -1, -1):
        place *= WIDTH
        while pyramid.stones[pyramid.levels[level] + place] < largest:
            place += 1
    return largest, place


@add_subgradient.register(WatchedRows)
def _subgradient_watched(constraints, member, w, scale, gradient):
    add_subgradient(constraints.rows, member, w, scale, gradient)


@lean_kernel
def build(rows, pyramid, w):
    for row in range(pyramid.levels[1]):
        pyramid.stones[row] = worst(rows, row, row + 1, w)[0]
    for level in range(1, pyramid.levels.size):
        end = pyramid.levels[level + 1] if level + 1 < pyramid.levels.size else pyramid.stones.size
        for place in range(end - pyramid.levels[level]):
            pyramid.stones[pyramid.levels[level] + place] = largest_below(pyramid, level, place)


def new_pyramid(rows: NamedTuple, count: int, w: np.ndarray) -> Pyramid:
    """At w."""
    sizes = [count]
    while sizes[-1] > 1 or len(sizes) == 1:
        sizes.append(-(-sizes[-1] // WIDTH))
    ends = np.cumsum(sizes)
    pyramid = Pyramid(np.empty(ends[-1]), np.concatenate([[0], ends[:-1]]))
    build(rows, pyramid, w)
    return pyramid
