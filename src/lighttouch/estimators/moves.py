"""Rules on the sum: what a lattice says about one column alone may lie in that column's curve.

Rules are asked of every term, which is sufficient for their sum. It is necessary too once parts of
the terms may move. Let s_p be the least slope of lattice p along a column, a number for each of its
cells there. If lattices share no other column, all of these slopes are reached at once, so the sum
rises exactly where the curve's slope and all s_p add up to at least 0. Take from every lattice the
function of the column whose slopes are s_p, and add it to the curve: no prediction changes, and now
every term rises. Its knots are those of the lattice, so the curve can hold it where the lattice
bends only where the curve does.

Roughness is not the same before and after a move. So the moves m are trained with the parameters w:
rules are asked of w, roughness is that of w + T m, and predictions do not depend on m. A model
keeps w only, whose terms obey the rules one by one, to the last bit.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from lighttouch.arrays import Floats
from lighttouch.estimators.model import AdditiveModel, InputMap, Term
from lighttouch.estimators.outputs import with_more_columns
from lighttouch.estimators.rules import RuleRows


@dataclass(frozen=True)
class Moves:
    """The matrix T: each of its columns moves one function of one column from a lattice to a curve.

    What is trained has the parameters of the terms first, then one number per move, then those of
    thresholds. Without moves everything stays as it is.
    """

    matrix: sparse.csr_matrix  # (parameters of the terms, moves)

    @property
    def count(self) -> int:
        return int(self.matrix.shape[1])

    @property
    def _first(self) -> int:
        return int(self.matrix.shape[0])

    def roughness(self, D: Any) -> Any:
        """D (w + T m) as rows about (w, m)."""
        if not self.count:
            return D
        moved = sparse.csr_matrix(D @ self.matrix)
        moved.eliminate_zeros()
        return sparse.hstack([D, moved], format="csr")

    def squares(self, matrix: Floats) -> Floats:
        """A matrix of second derivatives by w as one by (w, m)."""
        return np.pad(matrix, (0, self.count)) if self.count else matrix

    def rules(self, rules: list[RuleRows]) -> list[RuleRows]:
        """Rules about w as rules about (w, m)."""
        return [with_more_columns(rule, self.count) for rule in rules] if self.count else rules

    def with_none(self, w: Floats) -> Floats:
        """Parameters with moves of 0."""
        return np.insert(w, self._first, np.zeros(self.count)) if self.count else w

    def kept(self, trained: Floats) -> Floats:
        """Trained parameters without the moves."""
        return np.delete(trained, self._first + np.arange(self.count)) if self.count else trained


def no_moves(dimension: int) -> Moves:
    return Moves(sparse.csr_matrix((dimension, 0)))


def moves_of(model: AdditiveModel, ruled: Iterable[int], categorical: Sequence[bool]) -> Moves:
    """All moves along the columns that rules are about.

    One for every vertex of a lattice axis but the first: a constant needs no move.
    """
    parts = [sparse.csr_matrix((model.dimension, 0))]
    for column in sorted(set(ruled)):
        own = model.calibrator_of(column)
        if own is None or model.terms[own].grid[0] < 2:
            continue
        knots = model.terms[own].maps[0].keypoints
        for place, term in enumerate(model.terms):
            if term.calibrator or column not in term.columns:
                continue
            axis = term.columns.index(column)
            if _within(term.maps[axis], knots, categorical[column]):
                parts.append(_moves(model, own, place, axis))
    return Moves(sparse.hstack(parts, format="csr"))


def _within(each: InputMap, knots: Floats, categories: bool) -> bool:
    """Whether a lattice bends along an axis only at the knots of the column's curve: at its own
    keypoints, and at every vertex between them.
    """
    if each.keypoints.size < 2 or not np.isin(each.keypoints, knots).all():
        return False
    low = np.minimum(each.positions[:-1], each.positions[1:])
    high = np.maximum(each.positions[:-1], each.positions[1:])
    return categories or bool((np.ceil(high) - np.floor(low) <= 1.0).all())


def _moves(model: AdditiveModel, own: int, place: int, axis: int) -> sparse.csr_matrix:
    """Into the lattice a function of one of its columns, out of the curve the same."""
    curve, term = model.terms[own], model.terms[place]
    values = np.append(curve.maps[0].keypoints, np.nan)  # the last vertex is for missing cells
    vertices = np.arange(term.lattice.sizes[axis])
    positions = np.clip(term.maps[axis](values), 0.0, vertices[-1])
    along = sparse.csr_matrix(np.maximum(0.0, 1.0 - np.abs(positions[:, None] - vertices)))
    into = model.wide(place, _at_vertices(term, axis).T)
    out_of = model.wide(own, along.T)
    return sparse.csr_matrix((into - out_of)[1:].T)


def _at_vertices(term: Term, axis: int) -> sparse.csr_matrix:
    """Which vertex along an axis every vertex of a lattice belongs to, as rows of one 1 each."""
    sizes = term.lattice.sizes
    vertex = np.indices(sizes)[axis].ravel()
    entries = np.ones(vertex.size), vertex, np.arange(vertex.size + 1)
    return sparse.csr_matrix(entries, shape=(vertex.size, sizes[axis]))
