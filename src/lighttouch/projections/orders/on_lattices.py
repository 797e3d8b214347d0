"""Nearest points under monotonicity of a lattice, without a row of it: graph and sweeps are written
down from the sizes.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np

from lighttouch.arrays import Indices, Vector
from lighttouch.constraints.base import LatticeAxes
from lighttouch.kernels.orders.graph import OrderGraph, lattice_arcs, lattice_edges
from lighttouch.kernels.orders.project import Runs
from lighttouch.projections.costs import COSTS
from lighttouch.projections.orders.on_graphs import on_graph, vector_runs
from lighttouch.projections.result import Nearest, certified
from lighttouch.projections.rows.kinds import Side
from lighttouch.validation import available_memory

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
        return vector_runs(self.graph.lower, self.graph.upper)

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
