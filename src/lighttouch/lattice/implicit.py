"""Monotonicity on a lattice as linear constraints that store no rows until somebody asks for
them.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike

from lighttouch.arrays import Matrix, Vector
from lighttouch.constraints import LinearConstraints
from lighttouch.constraints.base import LatticeAxes, RecordConstraints
from lighttouch.errors import ConstraintError
from lighttouch.kernels.verbs.constraints import group_values
from lighttouch.kernels.verbs.lattice_rows import LatticeOrder
from lighttouch.lattice.arguments import Sizes
from lighttouch.validation import refuse_if_too_large

SCALE = float(np.sqrt(2.0))  # the norm of a row


class LatticeMonotonicity(LinearConstraints):
    """theta[v] <= theta[v + e_f] for the given features (the other way round where the direction is
    -1).

    `A` and `b` are built when they are first read; solvers do without them.
    """

    def __init__(self, sizes: Sizes, features: Sequence[int], directions: Sequence[float]) -> None:
        self.sizes = tuple(int(size) for size in sizes)
        self.features = tuple(features)
        self.dimension = int(np.prod(self.sizes, dtype=np.int64))
        strides = np.array(
            [int(np.prod(self.sizes[f + 1 :], dtype=np.int64)) for f in self.features], np.int64
        )
        lengths = np.array([self.sizes[f] for f in self.features], np.int64)
        counts = self.dimension // lengths * (lengths - 1)
        starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        self.count = int(starts[-1])
        self.record = LatticeOrder(
            starts, strides, strides * (lengths - 1), strides * lengths, np.array(directions, float)
        )
        self.names = None
        self.nested = ()
        self.sparse = True
        self.cost = 2.0

    @property
    def most_entries(self) -> int:
        return 2

    def rows_at(self, indices: ArrayLike) -> tuple[Matrix, Vector]:
        return RecordConstraints.rows_at(self, indices)  # without storing the others

    def lattice_axes(self) -> LatticeAxes:
        starts, strides, _, _, signs = self.record
        return LatticeAxes(self.sizes, self.features, signs, starts, strides)

    def pairs(
        self,
    ) -> tuple[np.ndarray[Any, np.dtype[np.int64]], np.ndarray[Any, np.dtype[np.int64]]]:
        """For every row the vertex that must not be larger, and the one that must not be
        smaller.
        """
        starts, strides, spans, jumps, signs = self.record
        smaller, larger = np.empty(self.count, np.int64), np.empty(self.count, np.int64)
        for f in range(strides.size):
            place = np.arange(starts[f + 1] - starts[f])
            low = place // spans[f] * jumps[f] + place % spans[f]
            rows = slice(starts[f], starts[f + 1])
            smaller[rows], larger[rows] = (
                (low, low + strides[f]) if signs[f] > 0 else (low + strides[f], low)
            )
        return smaller, larger

    def largest(self, w: Vector) -> float:
        """The largest g_j(w), strip by strip, so that none of the others is stored."""
        out = np.empty(1)
        group_values(self.record, self.count, self.count, w, out)
        return float(out[0])

    def largest_relative(self, w: Vector) -> float:
        return self.largest(w) / SCALE

    @cached_property
    def A(self) -> Any:
        advice = "use a smaller lattice, or a solver that does not store the rows"
        refuse_if_too_large(
            self.count * 60, f"storing {self.count:,} monotonicity rows", advice, ConstraintError
        )
        smaller, larger = self.pairs()
        columns = np.column_stack([smaller, larger])
        values = np.tile([1.0, -1.0], self.count)
        backwards = smaller > larger
        columns[backwards] = columns[backwards][:, ::-1]
        values.reshape(-1, 2)[backwards] *= -1.0
        kind = np.int32 if 2 * self.count < 2**31 else np.int64
        pointers = np.arange(0, 2 * self.count + 1, 2, dtype=kind)
        return scipy.sparse.csr_matrix(
            (values, columns.ravel().astype(kind), pointers), shape=(self.count, self.dimension)
        )

    @cached_property
    def b(self) -> Vector:  # type: ignore[override]
        return np.zeros(self.count)

    @property
    def is_bounds(self) -> bool:
        return False

    def row_scales(self) -> Vector:
        return np.full(self.count, SCALE)

    def describe(self, j: int) -> str:
        starts, _, spans, jumps, signs = self.record
        f = int(np.searchsorted(starts, j, side="right") - 1)
        place = j - starts[f]
        low = int(place // spans[f] * jumps[f] + place % spans[f])
        vertex = tuple(int(part) for part in np.unravel_index(low, self.sizes))
        word = "increasing" if signs[f] > 0 else "decreasing"
        return f"row {j}: {word} in feature {self.features[f]} at vertex {vertex}"
