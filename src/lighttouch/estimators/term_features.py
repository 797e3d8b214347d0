"""Features of a growing model, term by term: what one term needs is computed once, and so is each
block of the Gram matrix, however many models it is part of.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lighttouch.arrays import Floats
from lighttouch.estimators.model import AdditiveModel, Term
from lighttouch.kernels.numerics.matrices import (
    add_entries,
    add_products,
    add_transposed,
    pair_gram,
)
from lighttouch.solvers.quadratic_model import gram_of_dense, is_dense


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
        return TermFeatures(model.terms, [self.rows(term) for term in model.terms], self)

    def rows(self, term: Term) -> TermRows:
        if id(term) not in self._rows:
            self._rows[id(term)] = (term, self._new_rows(term))  # keeps the term, and so its id
        return self._rows[id(term)][1]

    def _new_rows(self, term: Term) -> TermRows:
        if self.source is not None:
            once = _rows_of(term, self.source[0])
            parts = [once.part(chosen) for chosen in self.source[1]]
        else:
            parts = [_rows_of(term, table) for table, _ in self.signed_tables]
        if len(parts) == 1 and self.signed_tables[0][1] == 1.0:
            return parts[0]
        signs = [sign for _, sign in self.signed_tables]
        return TermRows(
            np.hstack([each.places for each in parts]),
            np.hstack([sign * each.values for each, sign in zip(parts, signs, strict=True)]),
        )

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


def _rows_of(term: Term, table: Floats) -> TermRows:
    alone = term.alone.features(table)
    shape = (table.shape[0], 1 + term.lattice.row_width)  # the intercept comes first
    places = alone.indices.reshape(shape)[:, 1:] - 1
    return TermRows(places, np.ascontiguousarray(alone.data.reshape(shape)[:, 1:]))


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


class TermFeatures:
    """The feature matrix X of one model, the intercept's column first; `X @ w`, `X.T @ v` and
    `X.gram(weights)` are what smoothing asks for.
    """

    def __init__(
        self, terms: list[Term], rows: list[TermRows], store: TermStore | None, count: int = 0
    ) -> None:
        self.terms, self.rows, self.store = terms, rows, store
        self.starts = np.cumsum([1] + [term.size for term in terms])
        self.shape = (count if store is None else store.count, int(self.starts[-1]))
        self.intercept = 1.0 if store is None else sum(sign for _, sign in store.signed_tables)

    @property
    def T(self) -> _Transposed:
        return _Transposed(self)

    def __matmul__(self, w: Floats) -> Floats:
        out = np.full(self.shape[0], self.intercept * w[0])
        for rows, start in zip(self.rows, self.starts, strict=False):
            add_products(rows.places, rows.values, w[start:], out)
        return out

    def back(self, v: Floats) -> Floats:
        """X'v."""
        out = np.zeros(self.shape[1])
        out[0] = self.intercept * v.sum()
        for rows, start in zip(self.rows, self.starts, strict=False):
            add_transposed(rows.places, rows.values, v, out[start:])
        return out

    def __getitem__(self, chosen: Any) -> TermFeatures:
        some = [rows.part(chosen) for rows in self.rows]
        count = np.arange(self.shape[0])[chosen].size
        part = TermFeatures(self.terms, some, None, count)
        part.intercept = self.intercept
        return part

    def gram(self, weights: Floats) -> Floats:
        """X' diag(weights) X."""
        if is_dense(self.shape[0] * (1 + sum(e.places.shape[1] for e in self.rows)), self.shape):
            return gram_of_dense(self._dense, self.shape, weights)
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


class _Transposed:
    def __init__(self, features: TermFeatures) -> None:
        self.features = features

    def __matmul__(self, v: Floats) -> Floats:
        return self.features.back(v)
