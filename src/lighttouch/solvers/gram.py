"""Weighted Gram matrices X' diag(weights) X of all kinds of rows."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.linalg
from scipy import sparse

from lighttouch.arrays import Floats, Vector
from lighttouch.kernels.numerics.gram import grouped_gram, weighted_gram
from lighttouch.running import check_deadline
from lighttouch.solvers.costs import COSTS


def gram(X: Any, weights: Vector) -> Vector:
    """X' diag(weights) X, symmetric and dense; ends with an OutOfTimeError once the time is over,
    because it takes longer than anything else in a step.
    """
    if not sparse.issparse(X):
        return np.asarray(X.T @ (weights[:, None] * X))
    if is_dense(X.nnz, X.shape):
        return gram_of_dense(lambda here: X[here].toarray(), X.shape, weights)
    out = np.zeros((X.shape[1], X.shape[1]))
    groups, rows = _column_groups(X), X.shape[0]
    weights = np.ascontiguousarray(weights)
    stride = max(1, rows * COSTS.gram_entries // max(1, X.nnz))  # rows that stay in the cache
    if groups is None:
        for first in range(0, rows, stride):
            check_deadline()
            ends = X.indptr[first : first + stride + 1]
            weighted_gram(X.data, X.indices, ends, weights[first : first + stride], out)
        return np.asarray(out + np.tril(out, -1).T)
    width = int(groups[-1])
    places, values = X.indices.reshape(rows, width), X.data.reshape(rows, width)
    parts = [slice(low, high) for low, high in itertools.pairwise(groups.tolist())]
    for first in range(0, rows, stride):
        check_deadline()
        here = slice(first, first + stride)
        grouped_gram(
            np.concatenate([places[here, part].ravel() for part in parts]),
            np.concatenate([values[here, part].ravel() for part in parts]),
            np.diff(groups),
            weights[here],
            out,
        )
    return out


def _column_groups(X: Any) -> Any:
    """Where the entries of a row are cut, such that every row has the same number of entries in
    each of several ranges of columns; None where rows differ, or there is one range only.

    Features of curves and lattices are of this kind: a term has a range of columns of its own.
    """
    rows = X.shape[0]
    width = X.nnz // rows if rows else 0
    if width < 2 or X.nnz != width * rows or (np.diff(X.indptr) != width).any():
        return None
    places = X.indices.reshape(rows, width)
    first, last = places.min(axis=0), places.max(axis=0)
    cuts = np.flatnonzero(first[1:] > np.maximum.accumulate(last)[:-1]) + 1
    if cuts.size == 0:
        return None
    found = [0]
    for cut in cuts.tolist():
        if cut - found[-1] >= COSTS.gram_width:
            found.append(cut)
    return np.array([*found, width], dtype=np.int64)


def is_dense(entries: int, shape: tuple[int, ...]) -> bool:
    """Whether so many entries that dense products are faster."""
    return entries > COSTS.gram_dense * shape[0] * shape[1]


def gram_of_dense(
    rows_of: Callable[[slice], Floats], shape: tuple[int, ...], weights: Vector
) -> Floats:
    """The same from dense rows, which are made when they are needed; weights are not negative."""
    count, dimension = shape
    out, roots = np.zeros((dimension, dimension), order="F"), np.sqrt(weights)
    stride = max(1, COSTS.gram_dense_entries // dimension)
    for first in range(0, count, stride):
        check_deadline()
        here = slice(first, first + stride)
        rows = roots[here, None] * rows_of(here)
        out = scipy.linalg.blas.dsyrk(1.0, rows.T, beta=1.0, c=out, lower=1, overwrite_c=1)
    return np.asarray(out + np.tril(out, -1).T)
