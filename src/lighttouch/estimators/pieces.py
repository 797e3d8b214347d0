"""The model: an intercept plus pieces, each a lattice over the positions of one or more columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from lighttouch.estimators.inputs import InputMap
from lighttouch.lattice import Lattice

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Piece:
    """A calibrator (one column, with one vertex past the last for missing cells) or a lattice over
    several columns.
    """

    columns: tuple[int, ...]
    maps: tuple[InputMap, ...]
    lattice: Lattice

    @property
    def calibrator(self) -> bool:
        return len(self.columns) == 1

    @property
    def size(self) -> int:
        return self.lattice.parameter_count

    @property
    def grid(self) -> tuple[int, ...]:
        """The sizes rules speak of: without the vertex for missing cells."""
        return (self.lattice.sizes[0] - 1,) if self.calibrator else self.lattice.sizes

    def positions(self, table: Floats) -> Floats:
        return np.column_stack(
            [each(table[:, column]) for column, each in zip(self.columns, self.maps, strict=True)]
        )

    def features(self, table: Floats) -> sparse.csr_matrix:
        return self.lattice.features(self.positions(table))

    def evaluate(self, table: Floats, theta: Floats) -> Floats:
        return self.lattice.evaluate(self.positions(table), theta)

    def spacings(self, axis: int) -> Floats:
        """How far apart, in the column's units, neighbouring vertices along an axis are."""
        return np.diff(self.vertices(axis))

    def vertices(self, axis: int) -> Floats:
        """The column's values at the vertices along an axis whose map is ascending."""
        each = self.maps[axis]
        return np.interp(
            np.arange(self.grid[axis], dtype=np.float64), each.positions, each.keypoints
        )

    def state(self) -> dict[str, Any]:
        maps = [each.state() for each in self.maps]
        return {
            "columns": list(self.columns),
            "maps": maps,
            "sizes": list(self.lattice.sizes),
            "interpolation": self.lattice.interpolation,
        }

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Piece:
        lattice = Lattice(tuple(state["sizes"]), state["interpolation"])
        return cls(
            tuple(state["columns"]),
            tuple(InputMap.from_state(each) for each in state["maps"]),
            lattice,
        )


class PieceModel:
    """Parameters: the intercept, then each piece's, in order."""

    def __init__(self, pieces: list[Piece]) -> None:
        self.pieces = pieces
        self.starts = np.cumsum([1] + [piece.size for piece in pieces])

    @property
    def dimension(self) -> int:
        return int(self.starts[-1])

    def part(self, place: int) -> slice:
        """Where a piece's parameters lie."""
        return slice(int(self.starts[place]), int(self.starts[place + 1]))

    def features(self, table: Floats) -> sparse.csr_matrix:
        """One row an example, one column a parameter."""
        blocks = [sparse.csr_matrix(np.ones((table.shape[0], 1)))] + [
            piece.features(table) for piece in self.pieces
        ]
        matrix = sparse.hstack(blocks, format="csr")
        matrix.sort_indices()
        return matrix

    def evaluate(self, table: Floats, w: Floats) -> Floats:
        """Predictions: every piece to the last bit monotone where its parameters are, added up in
        one order, so the sum is too.
        """
        total = np.full(table.shape[0], w[0])
        for place, piece in enumerate(self.pieces):
            total = total + piece.evaluate(table, w[self.part(place)])
        return total

    def calibrator_of(self, column: int) -> int | None:
        """The place of a column's own calibrator."""
        return next(
            (place for place, piece in enumerate(self.pieces) if piece.columns == (column,)), None
        )

    def wide(self, place: int, rows: Any) -> sparse.csr_matrix:
        """Rows about the first parameters of one piece as rows about all parameters."""
        rows = sparse.csr_matrix(rows)
        shape = (rows.shape[0], self.dimension)
        return sparse.csr_matrix(
            (rows.data, rows.indices + int(self.starts[place]), rows.indptr), shape=shape
        )
