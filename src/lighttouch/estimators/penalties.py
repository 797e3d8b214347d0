"""Roughness: a sum of squares ||D w||^2 / 2, whose rows D are differences of neighbouring
parameters of every term, each term with a strength of its own.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from lighttouch import lattice
from lighttouch.arrays import Floats
from lighttouch.estimators.costs import FIRST_CHOICE, PULL, SMOOTHING
from lighttouch.estimators.model import AdditiveModel, Term, without_last
from lighttouch.running import prepared

Pair = tuple[float, float]
Key = tuple[tuple[int, ...], str]  # a term's columns, and which of its penalties


class Square(NamedTuple):
    """The entries of D'D, and where they stand in the whole matrix if that is stored by rows."""

    row: NDArray[np.int64]
    column: NDArray[np.int64]
    values: Floats
    places: NDArray[np.int64]


@dataclass(frozen=True)
class Penalty:
    """Rows of differences of one term's parameters, whose strength is chosen."""

    key: Key
    start: int  # of the term's parameters
    rows: Any
    first: float  # the strength to begin with
    lattice: bool = False
    categories: bool = False

    @property
    def square(self) -> Square:
        """D'D."""
        return prepared(self.rows, "square", lambda: _square(self.rows))


@dataclass(frozen=True)
class Roughness:
    """The penalties of all terms, and the small pull that is always there."""

    penalties: list[Penalty]
    dimension: int
    pull: Floats

    def rows(self, strengths: Floats) -> Any:
        """D: the penalty is ||D w||^2 / 2, and PULL / 2 ||w||^2 besides."""
        found = self._rows.copy()
        counts = [each.rows.nnz for each in self.penalties]
        entries = [*counts, found.nnz - sum(counts)]
        found.data *= np.repeat(np.append(np.sqrt(strengths), 1.0), entries)
        return found

    @cached_property
    def _rows(self) -> Any:
        """The rows of all penalties, of strength 1, and a row of every parameter's pull.

        Put together by hand: stacking by SciPy took a tenth of a short fit.
        """
        pulls = np.sqrt(self.pull - PULL)
        pulled = np.flatnonzero(pulls)
        rows = [each.rows for each in self.penalties]
        places = [each.rows.indices + each.start for each in self.penalties]
        counts = [np.diff(each.indptr) for each in rows]
        ends = np.cumsum(np.concatenate([*counts, pulls != 0.0]), dtype=np.int32)
        entries = (
            np.concatenate([*(each.data for each in rows), pulls[pulled]]),
            np.concatenate([*places, pulled]).astype(np.int32),
            np.concatenate([np.zeros(1, dtype=np.int32), ends]),
        )
        return sparse.csr_matrix(entries, shape=(ends.size, self.dimension))

    @cached_property
    def _begins(self) -> NDArray[np.int64]:
        """Where the rows of each penalty begin."""
        counts = [each.rows.shape[0] for each in self.penalties]
        return np.cumsum([0, *counts], dtype=np.int64)[:-1]

    def sizes(self, w: Floats) -> Floats:
        """||D w||^2 of every penalty."""
        if not self.penalties:
            return np.zeros(0)
        squares = np.square(self._rows @ w)[: -self.dimension]
        return np.asarray(np.add.reduceat(squares, self._begins))

    def value(self, w: Floats, strengths: Floats) -> float:
        """||D w||^2 / 2."""
        return 0.5 * (float(strengths @ self.sizes(w)) + float(self.pull @ np.square(w)))

    def add_to(self, matrix: Floats, strengths: Floats) -> None:
        """Add D'D to a matrix that is stored by rows."""
        matrix.flat[:: self.dimension + 1] += self.pull
        if self.penalties:
            places, values, counts = self._squares
            np.add.at(matrix.reshape(-1), places, np.repeat(strengths, counts) * values)

    @cached_property
    def _squares(self) -> tuple[NDArray[np.int64], Floats, list[int]]:
        """Places and values of D'D of every penalty in the whole matrix, one after the other, and
        how many each has.
        """
        squares = [each.square for each in self.penalties]
        places = [
            square.row * self.dimension + (square.column + each.start * (self.dimension + 1))
            for each, square in zip(self.penalties, squares, strict=True)
        ]
        values = [square.values for square in squares]
        return np.concatenate(places), np.concatenate(values), [each.size for each in values]

    @cached_property
    def _blocks(self) -> list[tuple[int, int, Square]]:
        """The range of parameters of every penalty's term, and its D'D."""
        return [
            (each.start, each.start + each.rows.shape[1], each.square) for each in self.penalties
        ]

    def traces(self, root: Floats) -> Floats:
        """tr(W'W D'D) for every penalty, where `root` is the lower triangular W."""
        out = np.empty(len(self.penalties))
        known, inverse = -1, np.empty(0)
        for place, (start, end, square) in enumerate(self._blocks):
            if start != known:  # bends and slopes of a curve share a block of the inverse
                part = root[start:, start:end]
                known, inverse = start, (part.T @ part).reshape(-1)
            out[place] = inverse[square.places] @ square.values
        return out

    def own_traces(self, strengths: Floats) -> Floats:
        """strength * tr((the term's whole penalty)^-1 D'D): how many parameters each penalty would
        hold if there were no data.

        Slopes and bends of a curve of n vertices share n - 1 directions; in terms of its slopes,
        bends are first differences, whose squares have the eigenvalues below.
        """
        out = np.empty(len(self.penalties))
        for place, each in enumerate(self.penalties):
            if each.key[1] == "bends":
                bends = strengths[place] * _bends_of_slopes(each.rows.shape[0] + 1)
                slopes = strengths[place + 1]
                together = bends + slopes
                out[place] = np.add.reduce(bends / together)
                out[place + 1] = np.add.reduce(slopes / together)
            elif each.key[1] != "slopes":
                out[place] = each.rows.shape[1]
        return out

    def begin(self, known: dict[Key, float]) -> Floats:
        """Strengths to begin with: those known already, first choices for others."""
        return np.array([known.get(each.key, each.first) for each in self.penalties])

    def known(self, strengths: Floats) -> dict[Key, float]:
        return {each.key: float(s) for each, s in zip(self.penalties, strengths, strict=True)}

    def uniform(self, pair: Pair) -> Floats:
        """One strength for all curves and one for all lattices; categories keep their own."""
        return np.array(
            [
                each.first
                if each.categories
                else pair[1]
                if each.lattice
                else pair[0] * (SMOOTHING.first_differences**2 if each.key[1] == "slopes" else 1.0)
                for each in self.penalties
            ]
        )

    def typical(self, strengths: Floats) -> Pair:
        """The geometric mean of the strengths of curves' bends, and of lattices."""
        found = []
        for kind, none in zip(("bends", "lattice"), FIRST_CHOICE, strict=True):
            chosen = [
                s for each, s in zip(self.penalties, strengths, strict=True) if each.key[1] == kind
            ]
            logs = np.log(np.maximum(chosen, SMOOTHING.least_strength))
            found.append(float(np.exp(np.mean(logs))) if chosen else none)
        return found[0], found[1]


def roughness_of(model: AdditiveModel, categorical: list[bool], examples: float) -> Roughness:
    pull = np.full(model.dimension, PULL)
    penalties = []
    for place, term in enumerate(model.terms):
        start = int(model.starts[place])
        if term.calibrator:
            pull[start + term.size - 1] = SMOOTHING.ridge / examples  # the vertex of missing cells
        if term.calibrator and categorical[term.columns[0]]:
            rows = _levels(term.size)
            key = (term.columns, "levels")
            penalties.append(Penalty(key, start, rows, SMOOTHING.ridge / examples, categories=True))
        elif term.calibrator:
            penalties += _curve_penalties(term, start)
        else:
            key = (term.columns, "lattice")
            first = FIRST_CHOICE[1]
            rows = _lattice_rows(term.grid, term.gaps, term.unordered)
            penalties.append(Penalty(key, start, rows, first, lattice=True))
    return Roughness(penalties, model.dimension, pull)


def _curve_penalties(term: Term, start: int) -> list[Penalty]:
    """Second and first differences over the vertices that are not for missing cells."""
    count = term.grid[0]
    slopes = FIRST_CHOICE[0] * SMOOTHING.first_differences**2
    if count < 2:
        return []
    if count == 2:
        return [Penalty((term.columns, "line"), start, _differences(2, 1), slopes)]
    return [
        Penalty((term.columns, "bends"), start, _differences(count, 2), FIRST_CHOICE[0]),
        Penalty((term.columns, "slopes"), start, _differences(count, 1), slopes),
    ]


def _square(rows: Any) -> Square:
    square = sparse.coo_matrix(rows.T @ rows)
    row, column = square.row.astype(np.int64), square.col.astype(np.int64)
    return Square(row, column, square.data, row * rows.shape[1] + column)


@lru_cache(maxsize=256)
def _bends_of_slopes(count: int) -> Floats:
    """The eigenvalues of D'D, where D has the first differences of so many slopes."""
    return np.asarray(4.0 * np.square(np.sin(np.pi * np.arange(count) / (2.0 * count))))


@lru_cache(maxsize=256)
def _levels(size: int) -> Any:
    """Every parameter but the last, which is for missing cells."""
    return sparse.eye(size - 1, size, format="csr")


@lru_cache(maxsize=256)
def _differences(count: int, order: int) -> Any:
    """Of neighbours among the first `count` of one more parameters."""
    rows = np.zeros((count - order, count + 1))
    rows[:, :count] = np.diff(np.eye(count), n=order, axis=0)
    return sparse.csr_matrix(rows)


@lru_cache(maxsize=256)
def _lattice_rows(
    grid: tuple[int, ...], gaps: tuple[int, ...] = (), unordered: tuple[int, ...] = ()
) -> Any:
    """How far the lattice is from a sum of straight lines: its bends along each axis, its twists
    over each pair of axes, a little of its slopes. Along the axes in `gaps` the last vertex is for
    missing cells: no line goes through it. Along those that are `unordered` a vertex has no
    neighbours: it is compared with 0, the mean of all.
    """
    little = math.sqrt(SMOOTHING.slope_share)
    axes = [axis for axis in range(len(grid)) if axis not in unordered]
    parts = (
        [lattice.increasing(grid, axes).A]
        if unordered
        else [lattice.supermodular(grid).A, little * lattice.increasing(grid).A]
    )
    parts.append(little * sparse.identity(math.prod(grid), format="csr"))
    parts += [_bends(grid, axis, axis in gaps) for axis in axes if grid[axis] - (axis in gaps) > 2]
    return sparse.vstack(parts, format="csr")


def _bends(grid: tuple[int, ...], axis: int, gap: bool) -> Any:
    """Second differences along an axis; where there is a gap, not those with its last vertex."""
    rows = sparse.csr_matrix(lattice.convex(grid, axis, interpolation="hypercube").A)
    return without_last(rows, grid, axis) if gap else rows


def read_strengths(wanted: Any) -> Pair | None:
    """The pair of strengths that the user gave; None for "auto"."""
    if isinstance(wanted, str):
        if wanted != "auto":
            raise ValueError(
                "smoothing must be 'auto', a number or a pair of numbers (calibrators, "
                f"lattices), got {wanted!r}"
            )
        return None
    pair = np.broadcast_to(np.asarray(wanted, dtype=np.float64), 2)
    if not (np.isfinite(pair).all() and (pair >= 0.0).all()):
        raise ValueError(f"smoothing must not be negative, got {wanted!r}")
    return float(pair[0]), float(pair[1])
