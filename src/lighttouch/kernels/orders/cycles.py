"""Orders with margins that no point satisfies: a cycle whose margins add up to more than zero.

Longest paths by the method of Bellman (1958) and Ford. A cycle among the edges that last raised
each node is such a cycle; it is looked for after 1, 2, 4, ... passes.
"""

from __future__ import annotations

import numpy as np

from lighttouch.kernels.compiler.compiled import kernel, lean_kernel


@lean_kernel
def raise_heights(lower, upper, margin, height, parent):
    """One pass of height[upper] = max(height[upper], height[lower] + margin); returns how many
    heights rose beyond rounding.
    """
    rises = 0
    for e in range(lower.size):
        wanted = height[lower[e]] + margin[e]
        rounding = 4e-16 * (abs(height[lower[e]]) + abs(margin[e]))
        if wanted > height[upper[e]] + rounding:
            height[upper[e]] = wanted
            parent[upper[e]] = e
            rises += 1
    return rises


@kernel
def node_on_cycle(lower, parent):
    """A node that the edges which last raised each node lead back to, or -1."""
    seen = np.zeros(parent.size, np.int64)
    for start in range(parent.size):
        node = start
        while seen[node] == 0 and parent[node] >= 0:
            seen[node] = start + 1
            node = lower[parent[node]]
        if parent[node] >= 0 and seen[node] == start + 1:
            return node
    return -1


@kernel
def rising_cycle(nodes, lower, upper, margin):
    """The edges of a cycle that asks a node to exceed itself, from the top down; empty if there is
    none.
    """
    height = np.zeros(nodes)
    parent = np.full(nodes, -1, np.int64)
    look = 1
    for turn in range(1, nodes + 2):
        if raise_heights(lower, upper, margin, height, parent) == 0:
            break
        if turn == look or turn > nodes:
            look *= 2
            top = node_on_cycle(lower, parent)
            if top >= 0:
                cycle = [parent[top]]
                node = lower[parent[top]]
                while node != top:
                    cycle.append(parent[node])
                    node = lower[parent[node]]
                return np.array(cycle)
    return np.empty(0, np.int64)
