"""Order graphs as arrays.

How they are built from the axes of a lattice or from points, searched for cycles (Bellman and
Ford), tied into blocks by their multipliers, and swept a last time to remove rounding.
"""

from __future__ import annotations

from typing import NamedTuple

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


@lean_kernel
def lattice_edges(nodes, strides, lengths, first, lower, upper):
    """The ends of every edge; the edges of axis a begin at first[a]."""
    for axis in range(strides.size):
        stride = strides[axis]
        span = stride * (lengths[axis] - 1)
        jump = stride * lengths[axis]
        e = first[axis]
        for base in range(0, nodes, jump):
            for i in range(base, base + span):
                lower[e] = i
                upper[e] = i + stride
                e += 1


@lean_kernel
def lattice_arcs(nodes, strides, lengths, first, start, neighbour, edge, upward):
    """Both directions of every edge, node by node."""
    arc = 0
    for i in range(nodes):
        start[i] = arc
        for axis in range(strides.size):
            stride = strides[axis]
            jump = stride * lengths[axis]
            place = i % jump
            number = first[axis] + i // jump * (jump - stride) + place
            if place >= stride:
                neighbour[arc] = i - stride
                edge[arc] = number - stride
                upward[arc] = 0
                arc += 1
            if place < jump - stride:
                neighbour[arc] = i + stride
                edge[arc] = number
                upward[arc] = 1
                arc += 1
    start[nodes] = arc


@lean_kernel
def rank_along_edges(start, heads, waiting, queue, rank):
    """rank[i] = the number of edges on the longest path up to i. The edges of node i go up to
    heads[start[i]:start[i + 1]]; `waiting` counts the edges that come in, and is used up (Kahn
    1962).
    """
    tail = 0
    for i in range(waiting.size):
        if waiting[i] == 0:
            queue[tail] = i
            tail += 1
    head = 0
    while head < tail:
        i = queue[head]
        head += 1
        for k in range(start[i], start[i + 1]):
            j = heads[k]
            rank[j] = max(rank[j], rank[i] + 1)
            waiting[j] -= 1
            if waiting[j] == 0:
                queue[tail] = j
                tail += 1


@lean_kernel
def join_along_axes(w, strides, lengths, signs, tolerance, root):
    """Join both ends of every edge of a lattice that is level or rises by `tolerance` or less,
    without a graph; afterwards root[i] is the vertex that stands for i's group.
    """
    for k in range(strides.size):
        stride = strides[k]
        jump = stride * lengths[k]
        for first in range(0, w.size, jump):
            for low in range(first, first + jump - stride):
                rise = signs[k] * (w[low + stride] - w[low])
                if rise == 0.0 or rise <= tolerance:
                    i = find(root, low)
                    j = find(root, low + stride)
                    if i != j:
                        root[max(i, j)] = min(i, j)
    for i in range(w.size):
        root[i] = find(root, i)


# -------------------------------------------------------------------------------------------------
# The componentwise order of points: x <= y where no coordinate of x is above that of y.


@lean_kernel
def below(x, y):
    """Whether x <= y."""
    for k in range(x.size):
        if x[k] > y[k]:
            return False
    return True


@lean_kernel
def covers(points, equal, first, work, lower, upper):
    """Pairs (i, j) with points[i] <= points[j] and no point between: the transitive reduction of
    the order of different points, which ascend lexicographically. The first `equal` coordinates
    must be the same.

    The points above i come after it. One of them covers i if it is not above another that does.
    It begins with i = `first`, and ends where so many comparisons are made or where there may be no
    more room: the next i, and how many pairs were written.
    """
    count = points.shape[0]
    found = compared = 0
    for i in range(first, count):
        if compared > work or found + count - i > lower.size:
            return i, found
        many = 0
        for j in range(i + 1, count):
            compared += 1
            if not below(points[j, :equal], points[i, :equal]):
                break  # the points after it differ too
            if not below(points[i], points[j]):
                continue
            nearest = True
            for k in range(found, found + many):
                compared += 1
                if below(points[upper[k]], points[j]):
                    nearest = False
                    break
            if nearest:
                lower[found + many], upper[found + many] = i, j
                many += 1
        found += many
    return count, found


@lean_kernel
def largest_below(
    points: np.ndarray, values: np.ndarray, rows: np.ndarray, none: float, out: np.ndarray
) -> None:
    """out[r] = the first value of a point that is at most rows[r]; values must not rise."""
    for r in range(rows.shape[0]):
        out[r] = none
        for i in range(points.shape[0]):
            if below(points[i], rows[r]):
                out[r] = values[i]
                break


@lean_kernel
def smallest_above(
    points: np.ndarray, values: np.ndarray, rows: np.ndarray, none: float, out: np.ndarray
) -> None:
    """out[r] = the first value of a point that is at least rows[r]; values must not fall."""
    for r in range(rows.shape[0]):
        out[r] = none
        for i in range(points.shape[0]):
            if below(rows[r], points[i]):
                out[r] = values[i]
                break
