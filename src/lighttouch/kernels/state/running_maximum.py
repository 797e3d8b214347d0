"""All constraints looked at, but only those evaluated again whose coordinates moved.

The values of all rows stand at the bottom of a tree in which every stone holds the largest of
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


class MaximumTree(NamedTuple):
    """Level 0, the value of every row, then ever smaller levels up to a single stone; level k
    begins at levels[k].
    """

    nodes: np.ndarray
    levels: np.ndarray


class TrackedRows(NamedTuple):
    """Linear rows and their values at the present w; the rows of coordinate i are
    touching[starts[i] : starts[i + 1]].
    """

    rows: NamedTuple
    starts: np.ndarray
    touching: np.ndarray
    tree: MaximumTree


@verb
def refresh(constraints, members, gradient, w):
    """Called after w has moved along the gradient: returns how many constraints an iteration
    evaluates.
    """


@refresh.register(object)
def _look_at_all(constraints, members, gradient, w):
    return members


@refresh.register(TrackedRows)
def _look_at_moved(constraints, members, gradient, w):
    checked = 0
    for q in range(gradient.cursor[0]):
        coordinate = gradient.touched[q]
        for k in range(constraints.starts[coordinate], constraints.starts[coordinate + 1]):
            row = constraints.touching[k]
            change(constraints.tree, row, worst(constraints.rows, row, row + 1, w)[0])
            checked += 1
    return checked


@lean_kernel
def change(tree, row, value):
    nodes = tree.nodes
    before = nodes[row]
    nodes[row] = value
    place = row
    for level in range(1, tree.levels.size):
        above = tree.levels[level] + place // WIDTH
        largest = nodes[above]
        if value > largest:
            nodes[above] = value
        elif before == largest and value < largest:
            nodes[above] = largest_below(tree, level, place // WIDTH)
        if nodes[above] == largest:
            return
        before = largest
        value = nodes[above]
        place //= WIDTH


@lean_kernel
def largest_below(tree, level, place):
    first = tree.levels[level - 1] + place * WIDTH
    largest = -math.inf
    for stone in range(first, min(first + WIDTH, tree.levels[level])):
        largest = max(largest, tree.nodes[stone])
    return largest


@worst.register(TrackedRows)
def _worst_watched(constraints, start, stop, w):
    """From the top down, the first of equals, as a look at all rows in turn would find it."""
    tree = constraints.tree
    top = tree.levels.size - 1
    if stop - start < tree.levels[1]:
        return worst(constraints.rows, start, stop, w)
    largest = tree.nodes[tree.levels[top]]
    place = 0
    for level in range(top - 1, -1, -1):
        place *= WIDTH
        while tree.nodes[tree.levels[level] + place] < largest:
            place += 1
    return largest, place


@add_subgradient.register(TrackedRows)
def _subgradient_watched(constraints, member, w, scale, gradient):
    add_subgradient(constraints.rows, member, w, scale, gradient)


@lean_kernel
def build(rows, tree, w):
    for row in range(tree.levels[1]):
        tree.nodes[row] = worst(rows, row, row + 1, w)[0]
    for level in range(1, tree.levels.size):
        end = tree.levels[level + 1] if level + 1 < tree.levels.size else tree.nodes.size
        for place in range(end - tree.levels[level]):
            tree.nodes[tree.levels[level] + place] = largest_below(tree, level, place)


def new_maximum_tree(rows: NamedTuple, count: int, w: np.ndarray) -> MaximumTree:
    """At w."""
    sizes = [count]
    while sizes[-1] > 1 or len(sizes) == 1:
        sizes.append(-(-sizes[-1] // WIDTH))
    ends = np.cumsum(sizes)
    tree = MaximumTree(np.empty(ends[-1]), np.concatenate([[0], ends[:-1]]))
    build(rows, tree, w)
    return tree
