"""Over-relaxed sweeps of Dykstra's method (1983) over order constraints: a fast first guess of the
multipliers, never a proof.

Edges that join i, i+1, .., i+chunk-1 to the same indices plus a stride (chunk <= stride) are
disjoint pairs, so a chunk is one vector operation. A lattice in C order consists of few such runs;
any other graph is swept edge by edge.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lighttouch.kernels.compiler.compiled import lean_kernel


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
