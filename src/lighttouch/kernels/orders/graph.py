"""An order graph as arrays, the blocks its multipliers tie together, and the last sweep that
removes rounding.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lighttouch.kernels.compiler.compiled import kernel, lean_kernel


class OrderGraph(NamedTuple):
    """Edge e asks w[lower[e]] <= w[upper[e]]; the arcs of node i are start[i] .. start[i + 1] -
    1.
    """

    lower: np.ndarray
    upper: np.ndarray
    start: np.ndarray
    neighbour: np.ndarray
    edge: np.ndarray
    upward: np.ndarray  # 1 where the arc's node is the lower end of its edge
    sequence: np.ndarray  # nodes, each after every node that must not exceed it


class Blocks(NamedTuple):
    """A partition of the nodes: root[i] leads to the node that stands for i's block, where its sum
    and size are kept.
    """

    root: np.ndarray
    total: np.ndarray
    members: np.ndarray
    unsettled: np.ndarray  # 1 where a block has not yet been proven to be one


@kernel
def new_blocks(nodes):
    return Blocks(
        np.zeros(nodes, np.int32),
        np.zeros(nodes),
        np.zeros(nodes, np.int32),
        np.zeros(nodes, np.uint8),
    )


@lean_kernel
def find(root, node):
    """The node that stands for a node's block; paths are halved on the way."""
    while root[node] != node:
        root[node] = root[root[node]]
        node = root[node]
    return node


@lean_kernel
def tie_blocks(graph, v, multiplier, blocks):
    """The blocks joined by edges with a positive multiplier, none of them settled."""
    root = blocks.root
    for i in range(v.size):
        root[i] = i
    for e in range(graph.lower.size):
        if multiplier[e] > 0.0:
            i = find(root, graph.lower[e])
            j = find(root, graph.upper[e])
            if i != j:
                root[i] = j
    measure_blocks(v, blocks)


@lean_kernel
def one_block(v, blocks):
    """All nodes in one block."""
    blocks.root[:] = 0
    measure_blocks(v, blocks)


@lean_kernel
def measure_blocks(v, blocks):
    blocks.total[:] = 0.0
    blocks.members[:] = 0
    for i in range(v.size):
        top = find(blocks.root, i)
        blocks.root[i] = top
        blocks.total[top] += v[i]
        blocks.members[top] += 1
    for i in range(v.size):
        blocks.unsettled[i] = 1 if blocks.members[i] > 1 else 0


@lean_kernel
def write_means(v, blocks, w):
    for i in range(v.size):
        top = blocks.root[i]
        w[i] = v[i] if blocks.members[top] == 1 else blocks.total[top] / blocks.members[top]


@lean_kernel
def join_descending(graph, blocks):
    """Join blocks whose means break an edge between them until none does; returns how many joins
    that took.
    """
    root, total, members = blocks.root, blocks.total, blocks.members
    joins = 0
    before = -1
    while joins != before:
        before = joins
        for e in range(graph.lower.size):
            i = find(root, graph.lower[e])
            j = find(root, graph.upper[e])
            if i != j and total[i] * members[j] > total[j] * members[i]:
                root[i] = j
                total[j] += total[i]
                members[j] += members[i]
                blocks.unsettled[j] = 1
                joins += 1
    for i in range(root.size):
        root[i] = find(root, i)
    return joins


@lean_kernel
def lift(graph, w):
    """Raise each node to the largest of those below it, in order; returns the largest rise. Only
    rounding should be left to lift.
    """
    rise = 0.0
    changed = True
    while changed:  # a second pass moves something only where the graph has a cycle
        changed = False
        for t in range(graph.sequence.size):
            i = graph.sequence[t]
            for arc in range(graph.start[i], graph.start[i + 1]):
                if graph.upward[arc] == 0 and w[graph.neighbour[arc]] > w[i]:
                    rise = max(rise, w[graph.neighbour[arc]] - w[i])
                    w[i] = w[graph.neighbour[arc]]
                    changed = True
    return rise


@kernel
def duality_gap(graph, v, w, multiplier):
    """Primal minus dual value of the projection of v, as a sum of non-negative terms (so without
    cancellation).
    """
    rest = w - v
    gap = 0.0
    for e in range(graph.lower.size):
        if multiplier[e] > 0.0:
            i = graph.lower[e]
            j = graph.upper[e]
            rest[i] += multiplier[e]
            rest[j] -= multiplier[e]
            gap += multiplier[e] * (w[j] - w[i])
    for i in range(v.size):
        gap += 0.5 * rest[i] * rest[i]
    return gap
