"""Over-relaxed Dykstra sweeps over order constraints: a fast, never certified, first guess of the multipliers.

Edges that join i, i+1, .., i+chunk-1 to the same indices plus a stride (chunk <= stride) are disjoint pairs, so a chunk is one
vector operation. A lattice in C order consists of few such runs; any other graph is swept edge by edge.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lighttouch.kernels.compiled import kernel, vector_kernel


class Runs(NamedTuple):
    """Run r: `repeats` chunks of edges, chunk c from index first + c * period; its multipliers start at offset."""

    first: np.ndarray
    stride: np.ndarray
    chunk: np.ndarray
    period: np.ndarray
    repeats: np.ndarray
    offset: np.ndarray


@vector_kernel
def sweep_chunks(w, multiplier, first, stride, chunk, period, repeats, half):
    largest = 0.0
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
            largest = max(largest, abs(move))
    return largest


@vector_kernel
def sweep_pairs(w, multiplier, first, stride, period, repeats, half):
    """Chunks of one edge: the innermost dimension of a lattice."""
    largest = 0.0
    for c in range(repeats):
        i = first + c * period
        low = w[i]
        high = w[i + stride]
        move = max(half * (low - high), -multiplier[c])
        multiplier[c] += move
        w[i] = low - move
        w[i + stride] = high + move
        largest = max(largest, abs(move))
    return largest


@vector_kernel
def sweep_double_pairs(w, multiplier, first, stride, period, repeats, half):
    """Chunks of two edges."""
    largest = 0.0
    for c in range(repeats):
        i = first + c * period
        low = w[i]
        high = w[i + stride]
        move = max(half * (low - high), -multiplier[2 * c])
        multiplier[2 * c] += move
        w[i] = low - move
        w[i + stride] = high + move
        low = w[i + 1]
        high = w[i + 1 + stride]
        other = max(half * (low - high), -multiplier[2 * c + 1])
        multiplier[2 * c + 1] += other
        w[i + 1] = low - other
        w[i + 1 + stride] = high + other
        largest = max(largest, abs(move), abs(other))
    return largest


@kernel
def sweep_runs(w, multiplier, runs, half):
    largest = 0.0
    for r in range(runs.first.size):
        first = runs.first[r]
        stride = runs.stride[r]
        chunk = runs.chunk[r]
        period = runs.period[r]
        repeats = runs.repeats[r]
        ties = multiplier[runs.offset[r] : runs.offset[r] + chunk * repeats]
        if chunk == 1:
            moved = sweep_pairs(w, ties, first, stride, period, repeats, half)
        elif chunk == 2:
            moved = sweep_double_pairs(w, ties, first, stride, period, repeats, half)
        else:
            moved = sweep_chunks(w, ties, first, stride, chunk, period, repeats, half)
        largest = max(largest, moved)
    return largest


@kernel
def sweep_edges(w, multiplier, lower, upper, half):
    largest = 0.0
    for e in range(lower.size):
        i = lower[e]
        j = upper[e]
        move = max(half * (w[i] - w[j]), -multiplier[e])
        if move != 0.0:
            multiplier[e] += move
            w[i] -= move
            w[j] += move
            largest = max(largest, abs(move))
    return largest


@kernel
def sweep(w, multiplier, graph, runs, sweeps, relaxation, tolerance):
    """At most `sweeps` sweeps, fewer when the largest move falls to the tolerance; returns how many were made."""
    half = 0.5 * relaxation
    for made in range(sweeps):
        if runs.first.size > 0:
            largest = sweep_runs(w, multiplier, runs, half)
        else:
            largest = sweep_edges(w, multiplier, graph.lower, graph.upper, half)
        if largest <= tolerance:
            return made + 1
    return sweeps
