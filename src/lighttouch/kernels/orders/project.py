"""Projection onto w[lower] <= w[upper]: sweeps guess the blocks, maximum flow proves them or finds
the right ones.
"""

from __future__ import annotations

import numpy as np

from lighttouch.kernels.compiler.compiled import kernel, lean_kernel
from lighttouch.kernels.orders.flow import close_settled, divide_and_conquer, load_flow, new_flow
from lighttouch.kernels.orders.graph import (
    duality_gap,
    join_descending,
    lift,
    new_blocks,
    one_block,
    tie_blocks,
    write_means,
)
from lighttouch.kernels.orders.sweeps import any_descent, sweep


@lean_kernel
def apply_multipliers(graph, v, multiplier, w):
    for i in range(v.size):
        w[i] = v[i]
    for e in range(graph.lower.size):
        if multiplier[e] > 0.0:
            w[graph.lower[e]] -= multiplier[e]
            w[graph.upper[e]] += multiplier[e]


@lean_kernel
def repair_blocks(graph, runs, flow, v, multiplier, blocks, w, repairs, tolerance):
    """Settle the guessed blocks, join those that break an order, settle again; True once all orders
    hold, so that w is the projection.

    On entry w holds the means of the blocks. No multiplier crosses blocks and each block is solved
    exactly, so only feasibility is open.
    """
    load_flow(graph, flow, v, multiplier, blocks)
    for _ in range(repairs):
        if any_descent(w, graph, runs):
            join_descending(graph, blocks)
        split = divide_and_conquer(graph, flow, v, multiplier, blocks, w, tolerance)
        if not split or not any_descent(w, graph, runs):
            return True
        close_settled(flow, blocks)
        remeasure(v, blocks)
    return False


@lean_kernel
def remeasure(v, blocks):
    """Sums and sizes after a settling."""
    blocks.total[:] = 0.0
    blocks.members[:] = 0
    blocks.unsettled[:] = 0
    for i in range(v.size):
        top = blocks.root[i]
        blocks.total[top] += v[i]
        blocks.members[top] += 1


@lean_kernel
def sweep_until_ordered(graph, runs, v, multiplier, first_goal, most_sweeps, blocks, swept, w):
    """Sweep until the means of the tied blocks keep every order, looking after the first goal and
    every doubling of it.

    A mild over-relaxation is best for the first sweeps, a stronger one where they turn out to be
    many (measured on lattices).
    """
    made = 0
    goal = first_goal
    while made < most_sweeps:
        ordered = sweep_to(graph, runs, v, multiplier, made, goal, blocks, swept, w)
        made = goal
        if ordered:
            return made
        goal = min(2 * goal, most_sweeps)
    return made


@lean_kernel
def sweep_to(graph, runs, v, multiplier, made, goal, blocks, swept, w):
    """Sweep until `goal` are made; whether the means of the blocks then keep every order."""
    sweep(swept, multiplier, graph, runs, goal - made, 1.5 if made < 40 else 1.7)
    tie_blocks(graph, v, multiplier, blocks)
    write_means(v, blocks, w)
    return not any_descent(w, graph, runs)


@kernel
def project_order(graph, runs, v, multiplier, first_goal, most_sweeps, repairs, tolerance):
    """The projection of v and its multipliers (in place; zero or a warm start).

    Returns (w, gap, rise of the last sweep, sweeps made, whether the guessed blocks could be
    repaired).
    """
    w = np.empty(v.size)
    swept = np.empty(v.size)
    blocks = new_blocks(v.size)
    apply_multipliers(graph, v, multiplier, swept)
    made = sweep_until_ordered(
        graph, runs, v, multiplier, first_goal, most_sweeps, blocks, swept, w
    )
    gap, rise, proven = settle_order(graph, runs, v, multiplier, blocks, w, repairs, tolerance)
    return w, gap, rise, made, proven


@kernel
def settle_order(graph, runs, v, multiplier, blocks, w, repairs, tolerance):
    """By maximum flow: the guessed blocks are proven and repaired, or the right ones found. w holds
    their means on entry and the projection on return.
    """
    flow = new_flow(v.size)
    trial = multiplier.copy()
    proven = repair_blocks(graph, runs, flow, v, trial, blocks, w, repairs, tolerance)
    if proven:
        for e in range(trial.size):
            multiplier[e] = trial[e]
    else:
        one_block(v, blocks)
        load_flow(graph, flow, v, multiplier, blocks)
        divide_and_conquer(graph, flow, v, multiplier, blocks, w, tolerance)
    rise = lift(graph, w) if any_descent(w, graph, runs) else 0.0
    return duality_gap(graph, v, w, multiplier), rise, proven
