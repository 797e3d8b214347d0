"""The model: an intercept plus terms, each a lattice over the positions of one or more columns; and
its feature matrix, whole or term by term.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence, Sized
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from lighttouch.arrays import Floats, Indices, Matrix
from lighttouch.kernels.numerics.additive import (
    BLOCK,
    Terms,
    evaluate_sum,
    fill_positions,
    fill_sum_features,
)
from lighttouch.kernels.numerics.matrices import (
    add_entries,
    add_products,
    add_transposed,
    pair_gram,
)
from lighttouch.lattice import Lattice
from lighttouch.lattice.model import checked_parameters
from lighttouch.solvers.quadratic_model import gram_of_dense, is_dense

CLOSEST = 1e-9  # of the median gap between keypoints; nearer ones are taken for one
LARGEST_INT32 = 2**31 - 1
ROWS_AT_ONCE = 32_768  # whose places on a term's axes are known together
SMALLEST_GAP = float(np.finfo(np.float64).tiny)  # slopes over a smaller gap would overflow


@dataclass(frozen=True)
class InputMap:
    """Piecewise linear through (keypoints, positions), constant outside; missing cells (NaN) go to
    `missing`.

    Computed so that positions keep the order of the values to the last bit wherever `positions`
    ascend.
    """

    keypoints: Floats
    positions: Floats
    missing: float

    def __call__(self, values: Floats) -> Floats:
        out = np.empty(values.shape)
        column = np.ascontiguousarray(values)  # one kind of array: compiled once
        found = np.empty(BLOCK, dtype=np.uint32)
        fill_positions(column, self.keypoints, self.positions, self.missing, found, out)
        return out

    def state(self) -> dict[str, Any]:
        return {
            "keypoints": self.keypoints,
            "positions": self.positions,
            "missing": float(self.missing),
        }

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> InputMap:
        return cls(state["keypoints"], state["positions"], float(state["missing"]))


def whole_positions(keypoints: Floats, missing: float | None = None) -> InputMap:
    """A vertex at every keypoint; missing cells go one place past the last, a vertex of their own,
    unless told otherwise.
    """
    return InputMap(
        keypoints,
        np.arange(keypoints.size, dtype=np.float64),
        float(keypoints.size) if missing is None else missing,
    )


def quantile_keypoints(
    values: Floats, weights: Floats, count: int, include: tuple[float, ...] = ()
) -> Floats:
    """At most `count` distinct values that cut the present cells into parts of equal weight, ends
    included.
    """
    return keypoints_among(*distinct_values(values, weights), count, include)


def distinct_values(values: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """The distinct present cells, and the weight of each."""
    present = ~np.isnan(values) & (weights > 0.0)
    distinct, group = np.unique(values[present], return_inverse=True)
    mass = np.bincount(group, weights[present], minlength=distinct.size)
    return distinct, mass.astype(np.float64)


def keypoints_among(
    distinct: Floats, mass: Floats, count: int, include: tuple[float, ...] = ()
) -> Floats:
    """`quantile_keypoints` of values that have been sorted."""
    if distinct.size == 0:
        return np.array([0.0])
    if distinct.size <= count:
        chosen = distinct
    else:
        share = np.cumsum(_capped(mass, count))
        places = np.searchsorted(share, np.linspace(0.0, share[-1], count) * (1.0 - 1e-12))
        chosen = distinct[np.unique(np.append(places, distinct.size - 1))]
    return _well_apart(np.union1d(chosen, include) if include else chosen)


def _capped(mass: Floats, count: int) -> Floats:
    """No value heavier than one part, so that a value most rows share does not use up the keypoints
    of all others.
    """
    capped = mass
    for _ in range(4):
        capped = np.minimum(mass, capped.sum() / count)
    return capped


def _well_apart(keypoints: Floats) -> Floats:
    """Without keypoints so close that the slope between them would be a rounding error.

    Close is measured by the median gap and not by the range, so that one huge cell (a code such as
    999999999) does not make all other values look equal.
    """
    if keypoints.size < 2:
        return keypoints
    gaps = np.sort(np.diff(keypoints))
    least = max(CLOSEST * float(gaps[(gaps.size - 1) // 2]), SMALLEST_GAP)
    if gaps[0] > least:
        return keypoints
    kept = [keypoints[0]]
    for point in keypoints[1:]:
        if point - kept[-1] > least:
            kept.append(point)
    return np.array(kept)


@dataclass(frozen=True)
class Term:
    """A curve of one column, or a lattice over several.

    A curve, also called a calibrator, is a lattice over one column, with one vertex past the last
    for missing cells.
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

    @cached_property
    def gaps(self) -> tuple[int, ...]:
        """The axes of a lattice whose last vertex is for missing cells only."""
        return tuple(
            axis
            for axis, each in enumerate(self.maps)
            if not self.calibrator and each.missing > each.positions.max()
        )

    @cached_property
    def unordered(self) -> tuple[int, ...]:
        """The axes of a lattice with a vertex for each category, in no order; the first vertex is
        for missing and unseen ones.
        """
        return tuple(
            axis
            for axis, each in enumerate(self.maps)
            if not self.calibrator and each.missing < each.positions.min()
        )

    @property
    def grid(self) -> tuple[int, ...]:
        """The sizes rules speak of: without the vertex for missing cells."""
        return (self.lattice.sizes[0] - 1,) if self.calibrator else self.lattice.sizes

    def positions(self, table: Floats) -> Floats:
        return np.column_stack(
            [each(table[:, column]) for column, each in zip(self.columns, self.maps, strict=True)]
        )

    def masses(self, table: Floats, weights: Floats) -> list[Floats]:
        """How much of the rows' weight every vertex along every axis holds, by interpolation."""
        found = [np.zeros(size) for size in self.lattice.sizes]
        for first in range(0, table.shape[0], ROWS_AT_ONCE):
            here = slice(first, first + ROWS_AT_ONCE)
            for column, each, out in zip(self.columns, self.maps, found, strict=True):
                out[:] += _masses(each(table[here, column]), out.size, weights[here])
        return found

    def features(self, table: Floats) -> sparse.csr_matrix:
        return self.lattice.features(self.positions(table))

    def evaluate(self, table: Floats, theta: Floats) -> Floats:
        """By the kernel that evaluates whole models, to the same bits as `Lattice.evaluate`."""
        return self.alone.evaluate(table, np.append(0.0, theta))

    @cached_property
    def alone(self) -> AdditiveModel:
        """The model of this term only, with an intercept."""
        return AdditiveModel([self])

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
    def from_state(cls, state: dict[str, Any]) -> Term:
        lattice = Lattice(tuple(state["sizes"]), state["interpolation"])
        return cls(
            tuple(state["columns"]),
            tuple(InputMap.from_state(each) for each in state["maps"]),
            lattice,
        )


def _masses(positions: Floats, size: int, weights: Floats) -> Floats:
    """How much weight every vertex along an axis holds."""
    low = positions.astype(np.int64).clip(0, size - 2)
    part = weights * (positions - low).clip(0.0, 1.0)
    mass = np.bincount(low, weights - part, minlength=size)
    return np.asarray(mass + np.bincount(low + 1, part, minlength=size), float)


def without_last(A: sparse.csr_matrix, sizes: tuple[int, ...], axis: int) -> sparse.csr_matrix:
    """The rows about a lattice of such sizes that do not touch the last vertex along an axis."""
    stride = math.prod(sizes[axis + 1 :])
    last = A.indices // stride % sizes[axis] == sizes[axis] - 1
    kept = np.ones(A.shape[0], dtype=bool)
    kept[np.repeat(np.arange(A.shape[0]), np.diff(A.indptr))[last]] = False
    return A[kept]


class AdditiveModel:
    """An intercept plus terms; parameters are the intercept's, then each term's, in order."""

    def __init__(self, terms: list[Term]) -> None:
        self.terms = terms
        self.starts = np.cumsum([1] + [term.size for term in terms])
        self._known: Terms | None = None

    @property
    def dimension(self) -> int:
        return int(self.starts[-1])

    @property
    def row_entries(self) -> int:
        """Entries of every row of features."""
        return 1 + sum(term.lattice.row_width for term in self.terms)

    def part(self, place: int) -> slice:
        """Where a term's parameters lie."""
        return slice(int(self.starts[place]), int(self.starts[place + 1]))

    def features(self, table: Floats) -> sparse.csr_matrix:
        """One row per example, one column per parameter.

        Every row has the same number of entries, weights of 0 included, so that Gram matrices can
        be formed term by term.
        """
        indices, weights = self.entries(table)
        indptr = np.arange(0, indices.size + 1, indices.shape[1], dtype=indices.dtype)
        shape = (indices.shape[0], self.dimension)
        matrix = sparse.csr_matrix((weights.ravel(), indices.ravel(), indptr), shape=shape)
        matrix.has_canonical_format = True
        return matrix

    def entries(self, table: Floats) -> tuple[NDArray[Any], Floats]:
        """The parameters of every row of features, and their weights."""
        rows, width = table.shape[0], self.row_entries
        small = rows * width <= LARGEST_INT32
        indices = np.empty((rows, width), dtype=np.int32 if small else np.int64)
        weights = np.empty(indices.shape)
        fill_sum_features(np.ascontiguousarray(table), self._flat(table.shape[1]), indices, weights)
        return indices, weights

    def evaluate(self, table: Floats, w: Floats) -> Floats:
        """Predictions.

        Every term is monotone to the last bit where its parameters are. Terms are added up in one
        order, so the sum is monotone too.
        """
        return self._evaluated(table, w, np.empty((table.shape[0], 1)), apart=False)[:, 0]

    def evaluate_terms(self, table: Floats, w: Floats) -> Floats:
        """Every term of every row, one column each, without the intercept."""
        return self._evaluated(table, w, np.empty((table.shape[0], len(self.terms))), apart=True)

    def _evaluated(self, table: Floats, w: Floats, values: Floats, apart: bool) -> Floats:
        theta = checked_parameters(w, (self.dimension,))
        evaluate_sum(np.ascontiguousarray(table), self._flat(table.shape[1]), theta, apart, values)
        return values

    def _flat(self, columns: int) -> Terms:
        """All terms as kernels read them; found once."""
        if self._known is None or self._known.edge_ends.size != columns + 1:
            self._known = _flat_terms(self.terms, columns, self.starts)
        return self._known

    def calibrator_of(self, column: int) -> int | None:
        """The place of a column's own calibrator."""
        return next(
            (place for place, term in enumerate(self.terms) if term.columns == (column,)), None
        )

    def wide(self, place: int, rows: Matrix) -> sparse.csr_matrix:
        """Rows about the first parameters of one term as rows about all parameters."""
        rows = rows if sparse.isspmatrix_csr(rows) else sparse.csr_matrix(rows)
        shape = (rows.shape[0], self.dimension)
        return sparse.csr_matrix(
            (rows.data, rows.indices + int(self.starts[place]), rows.indptr), shape=shape
        )


def _flat_terms(terms: list[Term], columns: int, starts: Indices) -> Terms:
    """The edges of the cells of every column, and all axes of all terms one after the other."""
    axes = [pair for term in terms for pair in zip(term.columns, term.maps, strict=True)]
    edges = [np.array([-np.inf])] * columns
    for c in {column for column, _ in axes}:
        edges[c] = np.unique(
            np.concatenate([edges[c], *(each.keypoints for k, each in axes if k == c)])
        )
    firsts = accumulate((each.keypoints.size for _, each in axes), initial=0)
    cells = [
        _cells(each.keypoints, edges[column], first)
        for (column, each), first in zip(axes, firsts, strict=False)
    ]
    nothing = np.zeros(0)
    return Terms(
        edges=np.concatenate([nothing, *edges]),
        edge_ends=_ends(edges),
        columns=np.array([column for column, _ in axes], dtype=np.int64),
        cells=np.concatenate([nothing, *cells]).astype(np.int64),
        cell_ends=_ends(cells),
        keypoints=np.concatenate([nothing, *(each.keypoints for _, each in axes)]),
        positions=np.concatenate([nothing, *(each.positions for _, each in axes)]),
        missing=np.array([each.missing for _, each in axes], dtype=np.float64),
        axes=_ends([term.columns for term in terms]),
        sizes=np.array([n for term in terms for n in term.lattice.sizes], dtype=np.int64),
        strides=np.array([n for term in terms for n in term.lattice.strides], dtype=np.int64),
        simplex=np.array([term.lattice.simplex for term in terms], dtype=np.bool_),
        starts=starts,
    )


def _cells(keypoints: Floats, edges: Floats, first: int) -> Indices:
    """Where the cell of an axis begins that holds each edge of its column (`Terms.cells`)."""
    if keypoints.size == 1:
        return np.full(edges.size, -first - 1)
    return first + keypoints[1:-1].searchsorted(edges, side="right")


def _ends(parts: Sequence[Sized]) -> Indices:
    """Where each of the parts ends, one after the other; 0 comes first."""
    return np.array([0, *accumulate(map(len, parts))], dtype=np.int64)


# -------------------------------------------------------------------------------------------------
# Features of a growing model, term by term: what one term needs is computed once, and so is each
# block of the Gram matrix, however many models it is part of.


@dataclass(frozen=True)
class TermRows:
    """The entries of every example in the parameters of one term."""

    places: NDArray[np.int32]
    values: Floats

    def part(self, rows: Any) -> TermRows:
        return TermRows(self.places[rows], self.values[rows])


class TermStore:
    """Rows and Gram blocks of the terms of several models on the same examples.

    Examples are tables with a sign, or rows of one table that each signed table repeats (`source`).
    """

    def __init__(
        self,
        signed_tables: list[tuple[Floats, float]],
        source: tuple[Floats, list[NDArray[np.int64]]] | None,
    ) -> None:
        self.signed_tables = signed_tables
        self.source = source
        self.count = signed_tables[0][0].shape[0]
        self._rows: dict[int, tuple[Term, TermRows]] = {}
        self._blocks: dict[tuple[int, int], Floats] = {}
        self._weights: Floats | None = None

    def features(self, model: AdditiveModel) -> TermFeatures:
        new = [term for term in model.terms if id(term) not in self._rows]
        if new:
            found = zip(new, self._new_rows(AdditiveModel(new)), strict=True)
            self._rows |= {id(term): (term, rows) for term, rows in found}  # a term keeps its id
        return TermFeatures(model.terms, [self.rows(term) for term in model.terms], self)

    def rows(self, term: Term) -> TermRows:
        return self._rows[id(term)][1]

    def _new_rows(self, model: AdditiveModel) -> list[TermRows]:
        """Of every term of a model."""
        if self.source is not None:
            once = _rows_of(model, self.source[0])
            parts = [[rows.part(chosen) for rows in once] for chosen in self.source[1]]
        else:
            parts = [_rows_of(model, table) for table, _ in self.signed_tables]
        signs = [sign for _, sign in self.signed_tables]
        if signs == [1.0]:
            return parts[0]
        return [_side_by_side(same, signs) for same in zip(*parts, strict=True)]

    def block(self, first: Term, second: Term, weights: Floats) -> Floats:
        """X_first' diag(weights) X_second; kept until other weights are asked for."""
        if weights is not self._weights:
            self._weights = weights
            self._blocks.clear()
        key = (id(first), id(second))
        if key not in self._blocks:
            self._blocks[key] = _products(
                first, self.rows(first), second, self.rows(second), weights
            )
        return self._blocks[key]


def _rows_of(model: AdditiveModel, table: Floats) -> list[TermRows]:
    """Of every term of a model, apart."""
    places, values = model.entries(table)
    ends = accumulate((term.lattice.row_width for term in model.terms), initial=1)  # an intercept
    return [
        TermRows(places[:, here:end] - start, np.ascontiguousarray(values[:, here:end]))
        for (here, end), start in zip(pairwise(ends), model.starts.tolist(), strict=False)
    ]


def _side_by_side(parts: Sequence[TermRows], signs: list[float]) -> TermRows:
    """The entries of a term in several tables, each times its sign."""
    return TermRows(
        np.hstack([each.places for each in parts]),
        np.hstack([sign * each.values for each, sign in zip(parts, signs, strict=True)]),
    )


def _products(
    first: Term, rows: TermRows, second: Term, others: TermRows, weights: Floats
) -> Floats:
    """X_first' diag(weights) X_second."""
    out = np.zeros((first.size, second.size))
    pair_gram(
        rows.places.ravel(),
        rows.values.ravel(),
        others.places.ravel(),
        others.values.ravel(),
        weights,
        out,
    )
    return out


class Features(ABC):
    """A feature matrix X that is no matrix of SciPy: what smoothing asks of it."""

    shape: tuple[int, int]

    @abstractmethod
    def __matmul__(self, w: Floats) -> Floats:
        """X w."""

    @abstractmethod
    def back(self, v: Floats) -> Floats:
        """X'v."""

    @abstractmethod
    def gram(self, weights: Floats) -> Floats:
        """X' diag(weights) X."""

    @abstractmethod
    def __getitem__(self, chosen: Any) -> Features:
        """Some of its rows."""

    @property
    def T(self) -> _Transposed:
        """X', for `X.T @ v`."""
        return _Transposed(self)


class FeaturesMadeAnew(Features):
    """They are made for every product, which takes longer than the product itself."""

    @abstractmethod
    def there_and_back(
        self, w: Floats, use: Callable[[Floats, slice], Floats]
    ) -> tuple[Floats, Floats]:
        """X w, and X'v for the v that is made of it, and of where it lies, in one pass."""


class _Transposed:
    def __init__(self, features: Features) -> None:
        self.features = features

    def __matmul__(self, v: Floats) -> Floats:
        return self.features.back(v)


class TermFeatures(Features):
    """The features of one model, term by term, the intercept's column first."""

    def __init__(
        self, terms: list[Term], rows: list[TermRows], store: TermStore | None, count: int = 0
    ) -> None:
        self.terms, self.rows, self.store = terms, rows, store
        self.starts = np.cumsum([1] + [term.size for term in terms])
        self.shape = (count if store is None else store.count, int(self.starts[-1]))
        self.intercept = 1.0 if store is None else sum(sign for _, sign in store.signed_tables)

    def __matmul__(self, w: Floats) -> Floats:
        out = np.full(self.shape[0], self.intercept * w[0])
        for rows, start in zip(self.rows, self.starts, strict=False):
            add_products(rows.places, rows.values, w[start:], out)
        return out

    def back(self, v: Floats) -> Floats:
        out = np.zeros(self.shape[1])
        out[0] = self.intercept * v.sum()
        for rows, start in zip(self.rows, self.starts, strict=False):
            add_transposed(rows.places, rows.values, v, out[start:])
        return out

    def spreads(self, w: Floats, weights: Floats) -> Floats:
        """The weighted squares of every term's part of X w, less its mean where there is an
        intercept.
        """
        found = np.empty(len(self.rows))
        for place, (rows, start) in enumerate(zip(self.rows, self.starts, strict=False)):
            part = np.zeros(self.shape[0])
            add_products(rows.places, rows.values, w[start:], part)
            if self.intercept:
                part -= float(weights @ part) / float(weights.sum())
            found[place] = weights @ np.square(part)
        return found

    def __getitem__(self, chosen: Any) -> TermFeatures:
        some = [rows.part(chosen) for rows in self.rows]
        count = np.arange(self.shape[0])[chosen].size
        part = TermFeatures(self.terms, some, None, count)
        part.intercept = self.intercept
        return part

    def gram(self, weights: Floats) -> Floats:
        if is_dense(self.shape[0] * (1 + sum(e.places.shape[1] for e in self.rows)), self.shape):
            return gram_of_dense(self._dense, self.shape[1], weights)
        out = np.empty((self.shape[1], self.shape[1]))
        out[0] = self.intercept * self.back(weights)
        out[:, 0] = out[0]
        for g, first in enumerate(self.terms):
            here = slice(self.starts[g], self.starts[g + 1])
            for h, second in enumerate(self.terms[: g + 1]):
                there = slice(self.starts[h], self.starts[h + 1])
                block = self._block(g, h, first, second, weights)
                out[here, there] = block
                if g != h:
                    out[there, here] = block.T
        return out

    def _dense(self, here: slice) -> Floats:
        """Some rows of X."""
        out = np.zeros((np.arange(self.shape[0])[here].size, self.shape[1]))
        out[:, 0] = self.intercept
        for rows, start in zip(self.rows, self.starts, strict=False):
            add_entries(rows.places[here], rows.values[here], out[:, start:])
        return out

    def _block(self, g: int, h: int, first: Term, second: Term, weights: Floats) -> Floats:
        if self.store is not None:
            return self.store.block(first, second, weights)
        return _products(first, self.rows[g], second, self.rows[h], weights)
