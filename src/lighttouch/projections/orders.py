"""Nearest points under orders, on any graph and on lattices: pool adjacent violators on chains,
Dykstra's sweeps and maximum flow elsewhere.

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
from functools import cached_property, partial
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse import csgraph

from lighttouch.arrays import EPSILON, Floats, Indices, Vector
from lighttouch.constraints.base import LatticeAxes
from lighttouch.errors import InfeasibleConstraintsError
from lighttouch.kernels.orders.graph import (
    OrderGraph,
    lattice_arcs,
    lattice_edges,
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
    vector_runs,
)
from lighttouch.projections.costs import COSTS
from lighttouch.projections.rows.kinds import LinearSet, Side
from lighttouch.result import EXACT, Certificate, Nearest, certified
from lighttouch.running import OutOfTimeError, seconds_left
from lighttouch.validation import available_memory


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
# Monotonicity of a lattice, without a row of it: graph and sweeps are written down from the sizes.

LARGEST = 2**30  # edges that 32-bit numbers can hold twice


@dataclass(frozen=True)
class AxesByStride:
    """The constrained axes, short strides first, and where the edges of each begin."""

    strides: Indices
    lengths: Indices
    first: Indices
    count: int


@dataclass(frozen=True)
class LatticeOrders:
    """Increasing along some axes, decreasing along the `mirrored` ones, and one interval for all
    vertices.
    """

    axes: LatticeAxes
    mirrored: tuple[int, ...]
    lower: float
    upper: float

    @property
    def bytes_needed(self) -> int:
        """Of memory, at the peak of a projection in one process."""
        return COSTS.bytes_per_edge * self.axes.count

    @property
    def fits_one_process(self) -> bool:
        """Whether its memory and 32-bit numbers suffice; else `exchange/` takes it by blocks."""
        return self.axes.count <= LARGEST and self.bytes_needed <= available_memory()

    @cached_property
    def graph(self) -> OrderGraph:
        return graph_of(self.axes.dimension, by_stride(self.axes))

    @cached_property
    def runs(self) -> Runs:
        return vector_runs(self.graph.lower, self.graph.upper, COSTS.shortest_edge_run)

    def nearest(self, v: Vector, warm: object = None) -> Nearest:
        w, method, gap, ties = on_graph(self.graph, self.runs, self._mirror(v), warm)
        w = self._mirror(w)
        if np.isfinite(self.lower) or np.isfinite(self.upper):
            np.clip(w, self.lower, self.upper, out=w)
            method += ", then clipped to bounds"
        return Nearest(w, method, certified(gap), partial(self._multipliers, ties), ties)

    def near(self, v: Vector) -> Vector:
        """Some point of the set, near v; for the time that is left after a time limit."""
        return np.clip(between_envelopes(self.axes, v), self.lower, self.upper)

    def _mirror(self, v: Vector) -> Vector:
        if not self.mirrored:
            return v
        return np.ascontiguousarray(np.flip(v.reshape(self.axes.sizes), self.mirrored)).ravel()

    def _multipliers(self, ties: Vector) -> Vector:
        """Edges are sorted by stride and mirrored; rows are grouped by feature in the order they
        were given.
        """
        sizes, given = self.axes.sizes, self.axes
        multipliers = np.empty(self.axes.count)
        axes = by_stride(self.axes)
        for row, feature in enumerate(self.axes.features):
            axis = int(np.flatnonzero(axes.strides == given.strides[row])[0])
            shape = [size - (k == feature) for k, size in enumerate(sizes)]
            mine = ties[axes.first[axis] : axes.first[axis] + int(np.prod(shape))].reshape(shape)
            multipliers[given.starts[row] : given.starts[row + 1]] = np.flip(
                mine, self.mirrored
            ).ravel()
        return multipliers


def by_stride(axes: LatticeAxes) -> AxesByStride:
    features = sorted(axes.features, reverse=True)
    lengths = np.array([axes.sizes[f] for f in features], np.int64)
    strides = np.array(
        [int(np.prod(axes.sizes[f + 1 :], dtype=np.int64)) for f in features], np.int64
    )
    counts = axes.dimension // lengths * (lengths - 1)
    return AxesByStride(
        strides,
        lengths,
        np.concatenate([[0], np.cumsum(counts)[:-1]]).astype(np.int64),
        int(counts.sum()),
    )


def lattice_orders(axes: LatticeAxes, lower: Side, upper: Side) -> LatticeOrders | None:
    """None where one of its premises fails: one interval for all, two constrained axes at least
    (one makes chains), each once.
    """
    low, high = np.unique(lower), np.unique(upper)
    features = axes.features
    longer = [f for f in features if axes.sizes[f] > 1]
    if (
        low.size > 1
        or high.size > 1
        or len(longer) < 2
        or len(longer) < len(features)
        or len(set(features)) < len(features)
    ):
        return None
    mirrored = tuple(f for f, sign in zip(features, axes.signs, strict=True) if sign < 0.0)
    return LatticeOrders(axes, mirrored, float(low[0]), float(high[0]))


def between_envelopes(axes: LatticeAxes, w: Vector) -> Vector:
    """Halfway between w raised to what must be below it and w lowered to what must be above it:
    running maxima and minima along one axis after the other. It keeps every order exactly.
    """
    raised, lowered = w.reshape(axes.sizes).copy(), w.reshape(axes.sizes).copy()
    for feature, sign in zip(axes.features, axes.signs, strict=True):
        step = 1 if sign > 0.0 else -1
        up = np.moveaxis(raised, feature, 0)[::step]
        down = np.moveaxis(lowered, feature, 0)[::-step]
        _run_along(np.maximum, up)
        _run_along(np.minimum, down)
    return np.asarray(0.5 * (raised + lowered)).ravel()


def _run_along(extremum: np.ufunc, values: Vector) -> None:
    """Running maxima or minima along the first axis; on short axes `accumulate` takes ten times as
    long as one slice after the other.
    """
    if len(values) ** 2 > values.size:
        extremum.accumulate(values, axis=0, out=values)
        return
    for here in range(1, len(values)):
        extremum(values[here], values[here - 1], out=values[here])


def graph_of(nodes: int, axes: AxesByStride) -> OrderGraph:
    lower, upper = np.empty(axes.count, np.int32), np.empty(axes.count, np.int32)
    lattice_edges(nodes, axes.strides, axes.lengths, axes.first, lower, upper)
    start, arcs = np.empty(nodes + 1, np.int32), 2 * axes.count
    neighbour, edge, upward = (
        np.empty(arcs, np.int32),
        np.empty(arcs, np.int32),
        np.empty(arcs, np.int8),
    )
    lattice_arcs(nodes, axes.strides, axes.lengths, axes.first, start, neighbour, edge, upward)
    return OrderGraph(
        lower, upper, start, neighbour, edge, upward, np.arange(nodes, dtype=np.int32)
    )


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
    return PreparedOrder(
        graph,
        vector_runs(lower, upper, COSTS.shortest_edge_run),
        row_of_edge,
        potential,
        tied,
        chains,
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
