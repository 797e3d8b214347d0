"""Nearest points under orders: pool adjacent violators on chains, Dykstra's sweeps and maximum flow
on every other graph.

Chains: M. Ayer and others, "An empirical distribution function for sampling with incomplete
information", Annals of Mathematical Statistics 26, 1955. Sweeps: R. Dykstra, "An algorithm for
restricted least squares regression", JASA 78, 1983. Flow: push-relabel (A. Goldberg and R. Tarjan,
Journal of the ACM 35, 1988), which certifies the blocks that the sweeps suggest, or divides and
conquers (Q. Stout, "Isotonic regression via partitioning", Algorithmica 66, 2013).
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse import csgraph

from lighttouch.arrays import Floats, Indices, Vector
from lighttouch.errors import InfeasibleConstraintsError
from lighttouch.kernels.orders.graph import (
    OrderGraph,
    lift,
    new_blocks,
    rank_along_edges,
    rising_cycle,
)
from lighttouch.kernels.orders.project import (
    Runs,
    apply_multipliers,
    pool_adjacent_violators,
    project_order,
    settle_order,
    sweep_to,
)
from lighttouch.projections.costs import COSTS, EPSILON
from lighttouch.projections.result import EXACT, Certificate, Nearest, certified
from lighttouch.projections.rows.kinds import LinearSet
from lighttouch.running import OutOfTimeError, seconds_left


@dataclass(frozen=True)
class GraphOrders:
    """Orders that a potential turns into plain ones, and bounds that are the same all over each
    connected part.
    """

    rows: LinearSet
    order: PreparedOrder

    def nearest(self, v: Vector, warm: object = None) -> Nearest:
        potential = self.order.potential
        shifted = v if potential is None else v - potential
        if self.order.chains is not None:
            w, method, sure, ties = self._on_chains(shifted)
        else:
            w, method, sure, ties = self._on_graph(shifted, warm)
        if potential is not None:
            w = self._with_margins(w + potential)
            method += ", margins as potentials"
        bounds = self.rows.bounds
        if not bounds.trivial:
            np.clip(w, bounds.lower, bounds.upper, out=w)
            method += ", then clipped to bounds"
        multipliers = None if ties is None else partial(self._multipliers, ties)
        return Nearest(w, method, sure, multipliers, ties)

    def near(self, v: Vector) -> Vector:
        """Some point of the set, near v; for the time that is left after a time limit."""
        potential = self.order.potential
        w = between(self.order.graph, v if potential is None else v - potential)
        if potential is not None:
            w = self._with_margins(w + potential)
        return np.clip(w, self.rows.bounds.lower, self.rows.bounds.upper)

    def _on_chains(self, v: Vector) -> tuple[Vector, str, Certificate, Vector | None]:
        assert self.order.chains is not None
        w = np.empty_like(v)
        pool_adjacent_violators(v, self.order.chains[0], self.order.chains[1], w)
        return w, "pool adjacent violators", EXACT, None

    def _on_graph(self, v: Vector, warm: object) -> tuple[Vector, str, Certificate, Vector | None]:
        w, method, gap, ties = on_graph(self.order.graph, self.order.runs, v, warm)
        if self.order.tied_nodes:
            method += f", {self.order.tied_nodes} coordinates on cycles merged to equalities"
        return w, method, certified(gap), ties

    def _multipliers(self, ties: Vector) -> Vector:
        """Multipliers of the rows as given: of repeated rows the first carries all."""
        multipliers = np.zeros(self.rows.count)
        multipliers[self.rows.orders.source[self.order.row_of_edge]] = (
            ties / self.rows.orders.scale[self.order.row_of_edge]
        )
        return multipliers

    def _with_margins(self, w: Vector) -> Vector:
        """Rounding in w - t + t can break an order by the last bits; lift the upper ends by that
        much, from the bottom up.
        """
        orders = self.rows.orders
        for _ in range(COSTS.margin_repairs):
            short = w[orders.lower] - w[orders.upper] + orders.margin
            bad = short > 0
            if not bad.any():
                break
            raised = np.nextafter(w[orders.upper[bad]] + short[bad], np.inf)
            np.maximum.at(w, orders.upper[bad], raised)
        return w


def on_graph(
    graph: OrderGraph, runs: Runs, v: Vector, warm: object
) -> tuple[Vector, str, float, Vector]:
    """The nearest point under plain orders, how it was found, its gap, and the multipliers of the
    edges.
    """
    known = isinstance(warm, np.ndarray) and warm.shape == graph.lower.shape
    ties = np.array(warm) if known else np.zeros(graph.lower.size)
    tolerance = COSTS.order_rounding * float(np.abs(v).max(initial=0.0))
    first = COSTS.first_sweeps_warm if known else COSTS.first_sweeps
    clocked = graph.lower.size >= COSTS.clocked_edges and seconds_left() < math.inf
    by = _project_by_the_clock if clocked else project_order
    w, gap, _, _, guessed = by(
        graph, runs, v, ties, first, COSTS.most_sweeps, COSTS.order_repairs, tolerance
    )
    how = "certified by maximum flow" if guessed else "then divide and conquer by maximum flow"
    return w, f"Dykstra sweeps {'by dimension ' if runs.first.size else ''}{how}", float(gap), ties


def _project_by_the_clock(
    graph: OrderGraph,
    runs: Runs,
    v: Vector,
    ties: Vector,
    first: int,
    most: int,
    repairs: int,
    tolerance: float,
) -> tuple[Vector, float, float, int, bool]:
    """`project_order` in stages, the same bits: none is begun that would end too late.

    A stage doubles the sweeps, so it takes about as long as all before it; the flow takes longer.
    """
    began = time.perf_counter()
    w, swept, blocks = np.empty(v.size), np.empty(v.size), new_blocks(v.size)
    apply_multipliers(graph, v, ties, swept)
    made, goal, ordered = 0, first, False
    while made < most and not ordered:
        ordered = bool(sweep_to(graph, runs, v, ties, made, goal, blocks, swept, w))
        made, goal = goal, min(2 * goal, most)
        if seconds_left() < time.perf_counter() - began:
            raise OutOfTimeError("a projection onto orders needs more time; allow more")
    if seconds_left() < COSTS.flow_per_sweeps * (time.perf_counter() - began):
        raise OutOfTimeError("a projection onto orders needs more time; allow more")
    gap, rise, proven = settle_order(graph, runs, v, ties, blocks, w, repairs, tolerance)
    return w, gap, rise, made, proven


def between(graph: OrderGraph, v: Vector) -> Vector:
    """A point that keeps every order, near v though not the nearest: halfway between v raised to
    what must be below it and v lowered to what must be above it.
    """
    raised, lowered = v.copy(), -v
    lift(graph, raised)
    lift(graph._replace(upward=1 - graph.upward, sequence=graph.sequence[::-1].copy()), lowered)
    return 0.5 * (raised - lowered)


def graph_orders(rows: LinearSet) -> GraphOrders | None:
    """The method for rows that are orders and bounds only, or None where it would not be exact."""
    orders = rows.orders
    if rows.source.size or not orders.source.size:
        return None
    prepared = prepare_order(rows.dimension, orders.lower, orders.upper, orders.margin)
    if prepared is None:
        refuse_rising_cycle(rows)
    if prepared is None or not bounds_fit(rows, prepared.potential is not None):
        return None
    return GraphOrders(rows, prepared)


def refuse_rising_cycle(rows: LinearSet) -> None:
    """Raise if margins add up to more than zero around a cycle, with the cycle in words."""
    orders = rows.orders
    cycle = rising_cycle(rows.dimension, orders.lower, orders.upper, orders.margin)[::-1]
    if not cycle.size:
        return
    shown = COSTS.most_rows_of_cycle
    around = [
        f"w[{orders.lower[e]}]{orders.margin[e]:+.6g} <= w[{orders.upper[e]}]"
        for e in cycle[:shown]
    ]
    more = "" if cycle.size <= shown else f" and {cycle.size - shown} more"
    raise InfeasibleConstraintsError(
        (
            "no point satisfies rows "
            f"{', '.join(str(orders.source[e]) for e in cycle[:shown])}{more}: they order "
            "parameters in a cycle, "
            f"{', '.join(around)}{more}, whose margins add up to "
            f"{float(orders.margin[cycle].sum()):.6g} > 0"
        ),
        orders.source[cycle].tolist(),
    )


def bounds_fit(rows: LinearSet, margins: bool) -> bool:
    """Clipping afterwards is exact where a connected part has one lower and one upper bound, and no
    margins shift them.
    """
    if rows.bounds.trivial:
        return True
    linked = np.zeros(rows.dimension, dtype=bool)
    linked[rows.orders.lower] = True
    linked[rows.orders.upper] = True
    low, high = rows.bounds.lower[linked], rows.bounds.upper[linked]
    if margins:
        return bool(np.all(np.isneginf(low)) and np.all(np.isposinf(high)))
    if np.all(low == low[0]) and np.all(high == high[0]):
        return True
    return same_within_parts(rows.bounds.lower, rows) and same_within_parts(rows.bounds.upper, rows)


def same_within_parts(values: Floats, rows: LinearSet) -> bool:
    orders = rows.orders
    links = sparse.coo_matrix(
        (np.ones(orders.lower.size), (orders.lower, orders.upper)),
        shape=(rows.dimension, rows.dimension),
    )
    _, part = csgraph.connected_components(links, directed=False)
    low = np.full(part.max() + 1, np.inf)
    high = np.full(part.max() + 1, -np.inf)
    np.minimum.at(low, part, values)
    np.maximum.at(high, part, values)
    return bool(np.all(low == high))


# -------------------------------------------------------------------------------------------------
# Order graphs prepared for the kernels: arcs, a sequence to sweep in, vector runs, cycles, and
# margins as potentials.


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
    return PreparedOrder(graph, vector_runs(lower, upper), row_of_edge, potential, tied, chains)


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


def vector_runs(lower: Indices, upper: Indices) -> Runs:
    """Edges (sorted by stride, then lower end) as runs of equal chunks; no runs at all where chunks
    would be too short to pay.
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
    return joined_chunks(lower[first_edge], stride[first_edge], chunk, first_edge)


def joined_chunks(first: Indices, stride: Indices, chunk: Indices, offset: Indices) -> Runs:
    """Successive chunks of one stride, one length and one distance become a run."""
    step = np.diff(first)
    same = (np.diff(stride) == 0) & (np.diff(chunk) == 0)
    fresh = np.ones(first.size, dtype=bool)
    fresh[1:] = ~same
    fresh[2:] |= (step[1:] != step[:-1]) & ~fresh[1:-1]
    begin = np.flatnonzero(fresh)
    repeats = np.diff(np.concatenate([begin, [first.size]]))
    if begin.size * COSTS.shortest_run > offset[-1] + chunk[-1]:
        return no_runs()
    period = np.ones(begin.size, dtype=np.int64)
    several = repeats > 1
    period[several] = first[begin[several] + 1] - first[begin[several]]
    return Runs(first[begin], stride[begin], chunk[begin], period, repeats, offset[begin])


def no_runs() -> Runs:
    """What sweeps take as: go edge by edge."""
    return Runs(*(np.empty(0, dtype=np.int64) for _ in range(6)))


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
