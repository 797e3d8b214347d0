"""Order graphs prepared for the kernels: arcs, a sequence to sweep in, vector runs, cycles, and
margins as potentials.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse import csgraph

from lighttouch.arrays import Floats, Indices
from lighttouch.kernels.orders.graph import OrderGraph, rank_along_edges
from lighttouch.kernels.orders.project import Runs, vector_runs
from lighttouch.projections.costs import COSTS, EPSILON


@dataclass(frozen=True)
class PreparedOrder:
    """Orders ready to be projected onto; `row_of_edge[e]` is the first given pair that is edge e
    (pairs may repeat).
    """

    graph: OrderGraph
    runs: Runs
    row_of_edge: Indices
    potential: Floats | None
    tied_nodes: int
    chains: tuple[Indices, Indices] | None


def prepare_order(
    dimension: int, lower: Indices, upper: Indices, margin: Floats | None = None
) -> PreparedOrder | None:
    """Everything about the graph that does not depend on the point; None where no potential
    explains the margins.
    """
    potential = None
    if margin is not None and np.any(margin):
        potential = potential_of(dimension, lower, upper, margin)
        if potential is None:
            return None
    row_of_edge = distinct_edges(dimension, lower, upper)
    lower, upper = lower[row_of_edge], upper[row_of_edge]
    sequence, tied = topological_sequence(dimension, lower, upper)
    start, neighbour, edge, upward = arcs_of(dimension, lower, upper)
    graph = OrderGraph(
        lower.astype(np.int32),
        upper.astype(np.int32),
        start,
        neighbour,
        edge,
        upward,
        sequence.astype(np.int32),
    )
    chains = None if tied else chains_of(dimension, lower, upper, sequence)
    return PreparedOrder(
        graph, vector_runs(lower, upper, COSTS.shortest_run), row_of_edge, potential, tied, chains
    )


def distinct_edges(dimension: int, lower: Indices, upper: Indices) -> Indices:
    """The first of every group of equal pairs, short strides first (no row has both ends in one
    node).
    """
    key = (upper - lower + dimension) * np.int64(2 * dimension) + lower
    _, first = np.unique(key, return_index=True)
    return np.asarray(first)


def arcs_of(dimension: int, lower: Indices, upper: Indices) -> tuple[Any, ...]:
    """Both directions of every edge, grouped by node: start, neighbour, edge, upward."""
    edges = np.arange(lower.size)
    node = np.concatenate([lower, upper])
    start = np.zeros(dimension + 1, dtype=np.int64)
    np.cumsum(np.bincount(node, minlength=dimension), out=start[1:])
    grouped = np.argsort(node, kind="stable")
    neighbour = np.concatenate([upper, lower])[grouped]
    upward = np.repeat(np.array([1, 0], dtype=np.int8), lower.size)[grouped]
    return (
        start.astype(np.int32),
        neighbour.astype(np.int32),
        np.tile(edges, 2)[grouped].astype(np.int32),
        upward,
    )


def topological_sequence(dimension: int, lower: Indices, upper: Indices) -> tuple[Indices, int]:
    """Nodes in an order that goes up every edge between different cycles, and how many nodes lie on
    cycles.
    """
    if np.all(lower < upper):
        return np.arange(dimension), 0
    components, component = components_of(dimension, lower, upper)
    between = component[lower] != component[upper]
    rank = longest_paths(components, component[lower[between]], component[upper[between]])
    size = np.bincount(component, minlength=components)
    return np.argsort(rank[component], kind="stable"), int(size[size > 1].sum())


def components_of(dimension: int, lower: Indices, upper: Indices) -> tuple[int, Indices]:
    """Strongly connected components: nodes on a common cycle must be equal."""
    links = sparse.coo_matrix(
        (np.ones(lower.size, dtype=np.int8), (lower, upper)), shape=(dimension, dimension)
    ).tocsr()
    count, component = csgraph.connected_components(links, directed=True, connection="strong")
    return int(count), component.astype(np.int64)


def longest_paths(nodes: int, lower: Indices, upper: Indices) -> Indices:
    """The number of edges on the longest path up to each node of an acyclic graph."""
    by_lower = np.argsort(lower, kind="stable")
    start = np.concatenate([[0], np.cumsum(np.bincount(lower, minlength=nodes))])
    waiting = np.bincount(upper, minlength=nodes)
    rank, queue = np.zeros(nodes, dtype=np.int64), np.empty(nodes, dtype=np.int64)
    rank_along_edges(start, upper[by_lower], waiting, queue, rank)
    return rank


def chains_of(
    dimension: int, lower: Indices, upper: Indices, sequence: Indices
) -> tuple[Indices, Indices] | None:
    """Nodes chain after chain with the start of each chain, where no node has two edges above or
    two below it; else None.
    """
    if (
        lower.size == 0
        or np.bincount(lower, minlength=dimension).max() > 1
        or np.bincount(upper, minlength=dimension).max() > 1
    ):
        return None
    links = sparse.coo_matrix(
        (np.ones(lower.size, dtype=np.int8), (lower, upper)), shape=(dimension, dimension)
    )
    _, chain = csgraph.connected_components(links, directed=False)
    position = np.empty(dimension, dtype=np.int64)
    position[sequence] = np.arange(dimension)
    nodes = np.lexsort((position, chain))
    start = np.concatenate([[0], np.cumsum(np.bincount(chain))])
    return nodes, start


def potential_of(dimension: int, lower: Indices, upper: Indices, margin: Floats) -> Floats | None:
    """A t with t[upper] - t[lower] = margin on every edge, so that w - t obeys plain orders; None
    where there is none.
    """
    weight = sparse.coo_matrix(
        (np.ones(lower.size), (lower, upper)), shape=(dimension, dimension)
    ).tocsr()
    _, component = csgraph.connected_components(weight, directed=False)
    potential = np.zeros(dimension)
    known = np.zeros(dimension, dtype=bool)
    _, roots = np.unique(component, return_index=True)
    known[roots] = True
    pending = np.arange(lower.size)
    while pending.size:
        up = pending[known[lower[pending]] & ~known[upper[pending]]]
        potential[upper[up]] = potential[lower[up]] + margin[up]
        known[upper[up]] = True
        down = pending[known[upper[pending]] & ~known[lower[pending]]]
        potential[lower[down]] = potential[upper[down]] - margin[down]
        known[lower[down]] = True
        pending = pending[~(known[lower[pending]] & known[upper[pending]])]
    scale = np.maximum(np.abs(potential[lower]) + np.abs(potential[upper]), np.abs(margin))
    error = np.abs(potential[upper] - potential[lower] - margin)
    return potential if np.all(error <= 8 * EPSILON * scale) else None
