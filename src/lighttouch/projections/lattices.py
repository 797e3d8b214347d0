"""Nearest points under monotonicity of a lattice, without a row of it: graph and sweeps are written
down from the sizes.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from lighttouch.arrays import Indices, Vector
from lighttouch.errors import ConstraintError
from lighttouch.kernels.orders.graph import OrderGraph
from lighttouch.kernels.orders.lattice_graph import lattice_arcs, lattice_edges
from lighttouch.lattice.implicit import LatticeMonotonicity
from lighttouch.projections.order_graphs import vector_runs
from lighttouch.projections.orders import on_graph
from lighttouch.projections.result import Nearest
from lighttouch.validation import refuse_if_too_large

BYTES_AN_EDGE = 100  # of graph, multipliers and scratch at the peak
LARGEST = 2**30  # edges that 32-bit numbers can hold twice


@dataclass(frozen=True)
class Axes:
    """The constrained axes, short strides first, and where the edges of each begin."""

    strides: Indices
    lengths: Indices
    first: Indices
    count: int


@dataclass(frozen=True)
class LatticeEngine:
    """Increasing along some axes, decreasing along the `mirrored` ones, and one interval for all
    vertices.
    """

    constraints: LatticeMonotonicity
    graph: OrderGraph
    runs: Any
    mirrored: tuple[int, ...]
    lower: float
    upper: float

    def nearest(self, v: Vector, warm: object = None) -> Nearest:
        w, method, gap, ties = on_graph(self.graph, self.runs, self._mirror(v), warm)
        w = self._mirror(w)
        if np.isfinite(self.lower) or np.isfinite(self.upper):
            np.clip(w, self.lower, self.upper, out=w)
            method += ", then clipped to bounds"
        return Nearest(w, method, gap, partial(self._multipliers, ties), ties)

    def _mirror(self, v: Vector) -> Vector:
        if not self.mirrored:
            return v
        return np.ascontiguousarray(
            np.flip(v.reshape(self.constraints.sizes), self.mirrored)
        ).ravel()

    def _multipliers(self, ties: Vector) -> Vector:
        """Edges are sorted by stride and mirrored; rows are grouped by feature in the order they
        were given.
        """
        sizes, record = self.constraints.sizes, self.constraints.record
        multipliers = np.empty(self.constraints.count)
        axes = axes_of(self.constraints)
        for row, feature in enumerate(self.constraints.features):
            axis = int(np.flatnonzero(axes.strides == record.strides[row])[0])
            shape = [size - (k == feature) for k, size in enumerate(sizes)]
            mine = ties[axes.first[axis] : axes.first[axis] + int(np.prod(shape))].reshape(shape)
            multipliers[record.starts[row] : record.starts[row + 1]] = np.flip(
                mine, self.mirrored
            ).ravel()
        return multipliers


def axes_of(constraints: LatticeMonotonicity) -> Axes:
    features = sorted(constraints.features, reverse=True)
    lengths = np.array([constraints.sizes[f] for f in features], np.int64)
    strides = np.array(
        [int(np.prod(constraints.sizes[f + 1 :], dtype=np.int64)) for f in features], np.int64
    )
    counts = constraints.dimension // lengths * (lengths - 1)
    return Axes(
        strides,
        lengths,
        np.concatenate([[0], np.cumsum(counts)[:-1]]).astype(np.int64),
        int(counts.sum()),
    )


def lattice_engine(
    constraints: LatticeMonotonicity, lower: Any, upper: Any
) -> LatticeEngine | None:
    """None where one of its premises fails: one interval for all, two constrained axes at least
    (one makes chains), each once.
    """
    low, high = np.unique(lower), np.unique(upper)
    features = constraints.features
    longer = [f for f in features if constraints.sizes[f] > 1]
    if (
        low.size > 1
        or high.size > 1
        or len(longer) < 2
        or len(longer) < len(features)
        or len(set(features)) < len(features)
    ):
        return None
    if constraints.count > LARGEST:
        return None
    advice = "use a smaller lattice, or solve with project=False"
    refuse_if_too_large(
        BYTES_AN_EDGE * constraints.count,
        f"projecting onto {constraints.count:,} orders",
        advice,
        ConstraintError,
    )
    graph = graph_of(constraints.dimension, axes_of(constraints))
    mirrored = tuple(
        f for f, sign in zip(features, constraints.record.signs, strict=True) if sign < 0.0
    )
    return LatticeEngine(
        constraints,
        graph,
        vector_runs(graph.lower, graph.upper),
        mirrored,
        float(low[0]),
        float(high[0]),
    )


def graph_of(nodes: int, axes: Axes) -> OrderGraph:
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
