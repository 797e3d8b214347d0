"""Which equations to factor: all of them, by blocks, or dense."""

from __future__ import annotations

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import dijkstra

from lighttouch.interior.blocks import block_system
from lighttouch.interior.costs import COSTS
from lighttouch.interior.program import Program, entries
from lighttouch.interior.systems import (
    DenseSystem,
    SparseSystem,
    System,
    all_rows,
    dense_seconds,
    is_last,
)


def expected_seconds(program: Program) -> float:
    """Of a factorisation, without looking for an order where that takes longer than it is worth."""
    by_dense = dense_seconds(program.P, program.blocks)
    if np.isinf(by_dense) and is_wide(program):
        return by_dense
    return choose_system(program)[1]


def is_wide(program: Program) -> bool:
    """Whether parameters and rows are joined so closely that a sparse factor fills up, and finding
    an order for it takes minutes: many of them are equally far from the first one. A few long rows
    and columns do not count: they are eliminated last.
    """
    rows = all_rows(program)
    rows = rows[np.diff(rows.indptr) > 1]  # others join nothing
    if rows.shape[0] + program.dimension <= COSTS.ordered_at_once:
        return False
    graph = sparse.bmat([[sparse.csr_matrix(program.P), rows.T], [rows, None]], format="csr")
    graph.data[:] = 1.0
    short = np.flatnonzero(~is_last(graph))
    graph = graph[short][:, short]
    away = dijkstra(graph, directed=False, indices=0, unweighted=True)
    return bool(np.bincount(away[np.isfinite(away)].astype(int)).max() > COSTS.widest_level)


def choose_system(program: Program) -> tuple[System, float]:
    """The system that is expected to be fastest, and the seconds of a factorisation."""
    by_dense = dense_seconds(program.P, program.blocks)
    stored = sum(map(entries, program.blocks))
    full = float(program.count + program.dimension) * program.dimension
    is_dense = stored + entries(program.P) > COSTS.dense_share * full
    if by_dense <= COSTS.short or stored > COSTS.most_entries or is_dense:
        return DenseSystem(program), by_dense
    by_blocks = block_system(program)
    if by_blocks is not None and by_blocks.seconds <= min(by_dense, COSTS.shorter):
        return by_blocks, by_blocks.seconds
    size = program.count + program.dimension
    slow = size / COSTS.order_rate > COSTS.typical_steps * by_dense
    if slow or (np.isfinite(by_dense) and is_wide(program)):
        return DenseSystem(program), by_dense
    by_pieces = SparseSystem(program)
    least = min(by_dense, by_pieces.seconds)
    if by_blocks is not None and by_blocks.seconds <= least:
        return by_blocks, by_blocks.seconds
    return (by_pieces, least) if least < by_dense else (DenseSystem(program), by_dense)
