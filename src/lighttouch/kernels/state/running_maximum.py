"""The largest of all constraints, evaluating only rows whose coordinates moved: a tournament tree.

The leaves are the values of all rows; every node holds the largest of its 16 children (Knuth, The
Art of Computer Programming 3, section 5.4.1, with 2 children). A row that changes is carried
upwards only as far as it changes a maximum, mostly not at all.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from lighttouch.kernels.compiler.compiled import lean_kernel, verb
from lighttouch.kernels.verbs.constraints import add_subgradient, worst

WIDTH = 16  # children per node


class MaximumTree(NamedTuple):
    """Level 0, the value of every row, then ever smaller levels up to the root; level k begins at
    nodes[levels[k]].
    """

    nodes: np.ndarray
    levels: np.ndarray


class TrackedRows(NamedTuple):
    """Linear rows and their values at the present w; the rows that depend on coordinate i are
    touching[starts[i] : starts[i + 1]].
    """

    rows: NamedTuple
    starts: np.ndarray
    touching: np.ndarray
    tree: MaximumTree


@verb
def refresh(constraints, members, gradient, w):
    """After w has moved along the gradient: bring remembered values up to date.

    Returns how many constraints the iteration evaluated, which is what is counted as checks: all
    of them where nothing is remembered, else those that depend on a coordinate that moved.
    """


@refresh.register(object)
def _remember_nothing(constraints, members, gradient, w):
    return members


@refresh.register(TrackedRows)
def _evaluate_moved(constraints, members, gradient, w):
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
    """Give a row its new value and correct the maxima above it."""
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
    for node in range(first, min(first + WIDTH, tree.levels[level])):
        largest = max(largest, tree.nodes[node])
    return largest


@worst.register(TrackedRows)
def _root_of_tree(constraints, start, stop, w):
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
def _subgradient_tracked(constraints, member, w, scale, gradient):
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
    """The tree of the values of all rows at w."""
    sizes = [count]
    while sizes[-1] > 1 or len(sizes) == 1:
        sizes.append(-(-sizes[-1] // WIDTH))
    ends = np.cumsum(sizes)
    tree = MaximumTree(np.empty(ends[-1]), np.concatenate([[0], ends[:-1]]))
    build(rows, tree, w)
    return tree
