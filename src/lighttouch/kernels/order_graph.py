"""An order graph as arrays, the blocks its multipliers tie together, and the last sweep that removes rounding."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lighttouch.kernels.compiled import kernel


class OrderGraph(NamedTuple):
    """Edge e asks w[lower[e]] <= w[upper[e]]; the arcs of node i are start[i] .. start[i + 1] - 1."""

    lower: np.ndarray
    upper: np.ndarray
    start: np.ndarray
    neighbour: np.ndarray
    edge: np.ndarray
    upward: np.ndarray  # 1 where the arc's node is the lower end of its edge
    sequence: np.ndarray  # nodes, each after every node that must not exceed it


@kernel
def root_of(parent, node):
    """The representative of a node's block; paths are halved on the way."""
    while parent[node] != node:
        parent[node] = parent[parent[node]]
        node = parent[node]
    return node


@kernel
def join_tied(graph, multiplier, parent):
    """Join the ends of every edge with a positive multiplier."""
    for e in range(graph.lower.size):
        if multiplier[e] > 0.0:
            i = root_of(parent, graph.lower[e])
            j = root_of(parent, graph.upper[e])
            if i != j:
                parent[i] = j


@kernel
def block_means(v, parent, total, count):
    """Sum and size of every block at its representative; afterwards parent[i] is the representative itself."""
    total[:] = 0.0
    count[:] = 0
    for i in range(v.size):
        root = root_of(parent, i)
        parent[i] = root
        total[root] += v[i]
        count[root] += 1


@kernel
def join_violated(graph, parent, total, count):
    """Join blocks whose means break an edge between them, pooling their sums at once; returns how many were joined."""
    joined = 0
    for e in range(graph.lower.size):
        i = root_of(parent, graph.lower[e])
        j = root_of(parent, graph.upper[e])
        if i != j and total[i] * count[j] > total[j] * count[i]:
            parent[i] = j
            total[j] += total[i]
            count[j] += count[i]
            joined += 1
    return joined


@kernel
def worst_descent(graph, w):
    """The largest w[lower] - w[upper] over all edges, at least 0."""
    worst = 0.0
    for e in range(graph.lower.size):
        worst = max(worst, w[graph.lower[e]] - w[graph.upper[e]])
    return worst


@kernel
def lift(graph, w):
    """Raise each node to the largest of those below it, in order; returns the largest rise. Only rounding should be left to lift."""
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
    """Primal minus dual value of the projection of v, as a sum of non-negative terms (so without cancellation)."""
    rest = w - v
    gap = 0.0
    for e in range(graph.lower.size):
        i = graph.lower[e]
        j = graph.upper[e]
        rest[i] += multiplier[e]
        rest[j] -= multiplier[e]
        gap += multiplier[e] * (w[j] - w[i])
    for i in range(v.size):
        gap += 0.5 * rest[i] * rest[i]
    return gap
