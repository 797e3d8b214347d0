"""Projection onto w[lower] <= w[upper]: sweeps guess the blocks, maximum flow proves them or finds the right ones."""

from __future__ import annotations

import numpy as np

from lighttouch.kernels.compiled import kernel
from lighttouch.kernels.order_flow import divide_and_conquer, new_flow
from lighttouch.kernels.order_graph import block_means, duality_gap, join_tied, join_violated, lift, worst_descent
from lighttouch.kernels.order_sweeps import sweep


@kernel
def apply_multipliers(graph, v, multiplier, w):
    w[:] = v
    for e in range(graph.lower.size):
        if multiplier[e] > 0.0:
            w[graph.lower[e]] -= multiplier[e]
            w[graph.upper[e]] += multiplier[e]


@kernel
def guess_blocks(graph, v, multiplier, parent, total, count):
    """Blocks tied by multipliers, joined further until their means keep every order between them."""
    for i in range(v.size):
        parent[i] = i
    join_tied(graph, multiplier, parent)
    block_means(v, parent, total, count)
    joined = 0
    while True:
        more = join_violated(graph, parent, total, count)
        joined += more
        if more == 0:
            break
    for i in range(v.size):
        root = i
        while parent[root] != root:
            root = parent[root]
        parent[i] = root
    return joined


@kernel
def project_order(graph, runs, v, multiplier, rounds, sweeps, relaxation, tolerance):
    """The projection of v and its multipliers (in place; zero or a warm start).

    Returns (w, gap, rise of the last sweep, sweeps made, rounds used, 1 where the guessed blocks were right).
    """
    nodes = v.size
    w = np.empty(nodes)
    swept = np.empty(nodes)
    parent = np.empty(nodes, np.int32)
    total = np.empty(nodes)
    count = np.empty(nodes, np.int32)
    flow = new_flow(nodes)
    trial = multiplier.copy()
    apply_multipliers(graph, v, multiplier, swept)
    made = 0
    for attempt in range(rounds):
        made += sweep(swept, multiplier, graph, runs, sweeps, relaxation, 1e-3 * tolerance)
        guess_blocks(graph, v, multiplier, parent, total, count)
        trial[:] = multiplier
        divide_and_conquer(graph, flow, v, trial, parent, w, tolerance)
        if worst_descent(graph, w) <= 4.0 * tolerance:  # no multiplier crosses a block, so feasible means optimal
            rise = lift(graph, w)
            multiplier[:] = trial
            return w, duality_gap(graph, v, w, multiplier), rise, made, attempt + 1, 1
        sweeps *= 2
    parent[:] = 0
    divide_and_conquer(graph, flow, v, multiplier, parent, w, tolerance)
    rise = lift(graph, w)
    return w, duality_gap(graph, v, w, multiplier), rise, made, rounds, 0
