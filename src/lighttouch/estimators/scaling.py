"""How a linear model scales its columns for training, and what its examples weigh."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

Floats = NDArray[np.float64]


def worth(sample_weight: Any, rows: int) -> float:
    """What examples weigh together: their number unless they have weights."""
    return (
        float(rows)
        if sample_weight is None
        else float(np.sum(np.broadcast_to(np.asarray(sample_weight, dtype=np.float64), rows)))
    )


def column_sizes(X: Any, weights: Floats) -> Floats:
    """The root mean square of every column about its mean (dense) or about 0 (sparse); 1 for a
    column of zeros.
    """
    squares = (
        np.asarray(X.multiply(X).T @ weights).ravel()
        if sparse.issparse(X)
        else weights @ np.square(X - weights @ X)
    )
    size = np.sqrt(squares)
    largest = (
        np.asarray(abs(X).max(axis=0).todense()).ravel()
        if sparse.issparse(X)
        else np.abs(X).max(axis=0, initial=0.0)
    )
    return usable_sizes(size, largest)


def usable_sizes(size: Floats, largest: Floats) -> Floats:
    """A column that hardly varies is measured by its largest value, one of zeros by 1."""
    usable = size > 1e-10 * largest
    return np.where(usable, size, np.where(largest > 0.0, largest, 1.0))


def scaled(X: Any, sizes: Floats) -> Any:
    ones = np.ones((X.shape[0], 1))
    if sparse.issparse(X):
        matrix = sparse.hstack(
            [sparse.csr_matrix(ones), X @ sparse.diags(1.0 / sizes)], format="csr"
        )
        matrix.sort_indices()
        return matrix
    return np.hstack([ones, X / sizes])


def ranges(X: Any) -> Floats:
    lowest, highest = ends(X)
    return highest - lowest


def ends(X: Any) -> tuple[Floats, Floats]:
    """The smallest and the largest value of every column."""
    if sparse.issparse(X):
        return np.asarray(X.min(axis=0).todense()).ravel(), np.asarray(
            X.max(axis=0).todense()
        ).ravel()
    return np.asarray(X.min(axis=0)), np.asarray(X.max(axis=0))
