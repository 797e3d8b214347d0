"""Projection onto w[lower] <= w[upper]: sweeps guess the blocks, maximum flow proves them or finds
the right ones. Chains need neither.
"""

from __future__ import annotations

from typing import NamedTuple

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

MILD, STRONG = 1.5, 1.7
"""Over-relaxation of sweeps, of the first ones and where they turn out to be many; below 2 sweeps
converge. Tuning: measured once, on lattices."""

MANY_SWEEPS = 40
"""Sweeps made, from which the stronger one is used. Tuning: measured once, with these."""


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

    The over-relaxation (`MILD`, then `STRONG`) grows where sweeps turn out to be many.
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
    sweep(swept, multiplier, graph, runs, goal - made, MILD if made < MANY_SWEEPS else STRONG)
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


# -------------------------------------------------------------------------------------------------
# Over-relaxed sweeps of Dykstra's method (1983) over order constraints: a fast first guess of the
# multipliers, never a proof.
#
# Edges that join i, i+1, .., i+chunk-1 to the same indices plus a stride (chunk <= stride) are
# disjoint pairs, so a chunk is one vector operation. A lattice in C order consists of few such
# runs; any other graph is swept edge by edge.


class Runs(NamedTuple):
    """Run r: `repeats` chunks of edges, chunk c from index first + c * period; its multipliers
    start at offset.
    """

    first: np.ndarray
    stride: np.ndarray
    chunk: np.ndarray
    period: np.ndarray
    repeats: np.ndarray
    offset: np.ndarray


def vector_runs(lower: np.ndarray, upper: np.ndarray, shortest: float) -> Runs:
    """Edges (sorted by stride, then lower end) as runs of equal chunks; no runs at all where they
    would have fewer than `shortest` edges on average.
    """
    stride = upper - lower
    if lower.size == 0 or stride.min() <= 0:
        return no_runs()
    continues = (np.diff(stride) == 0) & (np.diff(lower) == 1)
    begin = np.concatenate([[0], np.flatnonzero(~continues) + 1])
    length = np.diff(np.concatenate([begin, [lower.size]]))
    pieces = -(-length // stride[begin])  # a chunk longer than its stride would overlap itself
    owner = np.repeat(np.arange(begin.size), pieces)
    place = np.arange(owner.size) - np.repeat(np.cumsum(pieces) - pieces, pieces)
    first_edge = begin[owner] + place * stride[begin[owner]]
    chunk = np.minimum(stride[begin[owner]], length[owner] - place * stride[begin[owner]])
    return joined_chunks(lower[first_edge], stride[first_edge], chunk, first_edge, shortest)


def joined_chunks(
    first: np.ndarray,
    stride: np.ndarray,
    chunk: np.ndarray,
    offset: np.ndarray,
    shortest: float,
) -> Runs:
    """Successive chunks of one stride, one length and one distance become a run."""
    step = np.diff(first)
    same = (np.diff(stride) == 0) & (np.diff(chunk) == 0)
    fresh = np.ones(first.size, dtype=bool)
    fresh[1:] = ~same
    fresh[2:] |= (step[1:] != step[:-1]) & ~fresh[1:-1]
    begin = np.flatnonzero(fresh)
    repeats = np.diff(np.concatenate([begin, [first.size]]))
    if begin.size * shortest > offset[-1] + chunk[-1]:
        return no_runs()
    period = np.ones(begin.size, dtype=np.int64)
    several = repeats > 1
    period[several] = first[begin[several] + 1] - first[begin[several]]
    return Runs(first[begin], stride[begin], chunk[begin], period, repeats, offset[begin])


def no_runs() -> Runs:
    """What sweeps take as: go edge by edge."""
    return Runs(*(np.empty(0, dtype=np.int64) for _ in range(6)))


@lean_kernel
def sweep_chunks(w, multiplier, first, stride, chunk, period, repeats, half):
    """No largest move is kept: that alone would stop the loop from becoming a vector one."""
    for c in range(repeats):
        base = first + c * period
        low = w[base : base + chunk]
        high = w[base + stride : base + stride + chunk]
        tie = multiplier[c * chunk : (c + 1) * chunk]
        for t in range(chunk):
            move = max(half * (low[t] - high[t]), -tie[t])
            tie[t] += move
            low[t] -= move
            high[t] += move


@lean_kernel
def sweep_pairs(w, multiplier, first, stride, period, repeats, half):
    """Chunks of one edge: the innermost dimension of a lattice."""
    for c in range(repeats):
        i = first + c * period
        low = w[i]
        high = w[i + stride]
        move = max(half * (low - high), -multiplier[c])
        multiplier[c] += move
        w[i] = low - move
        w[i + stride] = high + move


@lean_kernel
def sweep_runs(w, multiplier, runs, half):
    for r in range(runs.first.size):
        chunk = runs.chunk[r]
        ties = multiplier[runs.offset[r] : runs.offset[r] + chunk * runs.repeats[r]]
        if chunk == 1:
            sweep_pairs(
                w, ties, runs.first[r], runs.stride[r], runs.period[r], runs.repeats[r], half
            )
        else:
            sweep_chunks(
                w, ties, runs.first[r], runs.stride[r], chunk, runs.period[r], runs.repeats[r], half
            )


@lean_kernel
def sweep_edges(w, multiplier, lower, upper, half):
    for e in range(lower.size):
        i = lower[e]
        j = upper[e]
        move = max(half * (w[i] - w[j]), -multiplier[e])
        if move != 0.0:
            multiplier[e] += move
            w[i] -= move
            w[j] += move


@lean_kernel
def sweep(w, multiplier, graph, runs, sweeps, relaxation):
    """The given number of sweeps over all edges."""
    half = 0.5 * relaxation
    for _ in range(sweeps):
        if runs.first.size > 0:
            sweep_runs(w, multiplier, runs, half)
        else:
            sweep_edges(w, multiplier, graph.lower, graph.upper, half)


@lean_kernel
def descents_in_chunks(w, first, stride, chunk, period, repeats):
    descents = 0
    for c in range(repeats):
        base = first + c * period
        low = w[base : base + chunk]
        high = w[base + stride : base + stride + chunk]
        for t in range(chunk):
            descents += low[t] > high[t]
    return descents


@lean_kernel
def any_descent(w, graph, runs):
    """Whether some edge has w[lower] > w[upper]."""
    for r in range(runs.first.size):
        if (
            descents_in_chunks(
                w, runs.first[r], runs.stride[r], runs.chunk[r], runs.period[r], runs.repeats[r]
            )
            > 0
        ):
            return True
    if runs.first.size > 0:
        return False
    for e in range(graph.lower.size):
        if w[graph.lower[e]] > w[graph.upper[e]]:
            return True
    return False


# -------------------------------------------------------------------------------------------------
# The exact projection onto chains of orders: pool adjacent violators (Ayer et al. 1955).


@kernel
def pool_adjacent_violators(v, nodes, start, w):
    """The w nearest to v with w[nodes[k]] <= w[nodes[k + 1]] inside each chain nodes[start[c] :
    start[c + 1]].
    """
    total = np.empty(v.size)
    count = np.empty(v.size, np.int64)
    for c in range(start.size - 1):
        pools = 0
        for k in range(start[c], start[c + 1]):
            total[pools] = v[nodes[k]]
            count[pools] = 1
            pools += 1
            while (
                pools > 1
                and total[pools - 2] / count[pools - 2] >= total[pools - 1] / count[pools - 1]
            ):
                total[pools - 2] += total[pools - 1]
                count[pools - 2] += count[pools - 1]
                pools -= 1
        k = start[c]
        for p in range(pools):
            mean = v[nodes[k]] if count[p] == 1 else total[p] / count[p]
            for _ in range(count[p]):
                w[nodes[k]] = mean
                k += 1
