"""A tree of sums with 32 children per node: draws a leaf in proportion to what it holds.

`tree` holds the leaves and, level by level from `offsets`, the sums of their 32 children. Sums are
taken again, never corrected, so that rounding errors do not pile up.
"""

from __future__ import annotations

import numpy as np

from lighttouch.kernels.compiler.compiled import lean_kernel
from lighttouch.kernels.compiler.prefetch import prefetch

WIDTH = 32  # children of a node
LINE = 8  # numbers in a cache line


def level_offsets(leaves: int) -> np.ndarray:
    """Where each level begins, the leaves first; the last entry is the length of the tree."""
    sizes = [leaves]
    while sizes[-1] > 1:
        sizes.append(-(-sizes[-1] // WIDTH))
    return np.cumsum([0] + [-(-size // WIDTH) * WIDTH for size in sizes])


@lean_kernel
def descend(distribution, u):
    """The leaf in which a share u of the sum of all bounds lies."""
    tree = distribution.tree
    levels = distribution.offsets.size - 1
    rest = u * tree[distribution.offsets[levels - 1]]
    node = 0
    for level in range(levels - 2, -1, -1):
        first = distribution.offsets[level] + node * WIDTH
        if level == 0:
            fetch_leaves(tree, first)
        child, rest = child_of(tree, first, rest)
        node = node * WIDTH + child
    return node


@lean_kernel
def child_of(tree, first, rest):
    """Which of the children that begin at `first` a share `rest` of their sum lies in, and what is
    left of it there.
    """
    child = 0
    while child < WIDTH - 1 and rest >= tree[first + child]:
        rest -= tree[first + child]
        child += 1
    while child > 0 and tree[first + child] == 0.0:  # rounding may step past the last weight
        child -= 1
    return child, rest


@lean_kernel
def descend_together(distribution, count, rng, rests, leaves):
    """`count` independent leaves, as by `descend`: all go down one level before any goes on, so
    that each finds its next children in the cache.
    """
    tree = distribution.tree
    levels = distribution.offsets.size - 1
    for q in range(count):
        rests[q] = rng.random() * tree[distribution.offsets[levels - 1]]
        leaves[q] = 0
    for level in range(levels - 2, -1, -1):
        for q in range(count):
            first = distribution.offsets[level] + leaves[q] * WIDTH
            child, rests[q] = child_of(tree, first, rests[q])
            leaves[q] = leaves[q] * WIDTH + child
            if level > 0:
                fetch_leaves(tree, distribution.offsets[level - 1] + leaves[q] * WIDTH)
            else:
                prefetch(distribution.law, leaves[q])


@lean_kernel
def set_leaf(distribution, j, bound):
    tree = distribution.tree
    if tree[j] == bound:
        return
    tree[j] = bound
    node = j
    for level in range(distribution.offsets.size - 2):
        node //= WIDTH
        tree[distribution.offsets[level + 1] + node] = sum_of_children(
            tree, distribution.offsets[level] + node * WIDTH
        )


@lean_kernel
def sum_levels(distribution):
    """Every sum of the tree, from the leaves up."""
    tree = distribution.tree
    size = distribution.law.shape[0]
    for level in range(distribution.offsets.size - 2):
        size = (size + WIDTH - 1) // WIDTH
        for node in range(size):
            tree[distribution.offsets[level + 1] + node] = sum_of_children(
                tree, distribution.offsets[level] + node * WIDTH
            )


@lean_kernel
def sum_of_children(tree, first):
    s0 = 0.0
    s1 = 0.0
    s2 = 0.0
    s3 = 0.0
    for child in range(first, first + WIDTH, 4):
        s0 += tree[child]
        s1 += tree[child + 1]
        s2 += tree[child + 2]
        s3 += tree[child + 3]
    return (s0 + s1) + (s2 + s3)


@lean_kernel
def fetch_leaves(tree, leaf):
    """Ask for the bounds of a leaf and its siblings, whose sum is taken again when it changes."""
    first = leaf - leaf % WIDTH
    for place in range(first, first + WIDTH, LINE):
        prefetch(tree, place)
