"""In which order a sparse symmetric matrix is eliminated, and what its factor then costs."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from lighttouch.arrays import Booleans, Indices, Matrix
from lighttouch.interior.costs import COSTS
from lighttouch.kernels.numerics.fill import factor_counts


def fill_reducing(matrix: Matrix) -> Indices:
    """By minimum degree (Liu 1985); a few long rows come last, among which that search takes
    minutes.
    """
    last = is_last(matrix)
    short = np.flatnonzero(~last)
    inner = matrix if short.size == last.size else matrix[short][:, short]
    return np.concatenate([short[_by_degree(inner)], np.flatnonzero(last)])


def is_last(matrix: Matrix) -> Booleans:
    """The long rows of a symmetric matrix, where they are few."""
    is_long = np.diff(matrix.indptr) > COSTS.long_row
    few = np.count_nonzero(is_long) <= COSTS.small_dimension
    return is_long if few else np.zeros_like(is_long)


def _by_degree(matrix: Matrix) -> Indices:
    """The order that SuperLU finds; the incomplete factor that comes with it is cheap."""
    from scipy.sparse.linalg import spilu

    pattern = sparse.csc_matrix(
        (np.full(matrix.nnz, 1.0 / matrix.shape[0]), matrix.indices, matrix.indptr), matrix.shape
    )
    regular = sparse.csc_matrix(pattern + sparse.identity(matrix.shape[0]))
    found = spilu(regular, permc_spec="MMD_AT_PLUS_A", drop_tol=np.inf, fill_factor=1.0)
    return np.argsort(found.perm_c)


def factor_size(matrix: Matrix) -> tuple[float, float]:
    """Entries of the factor of an ordered matrix, and multiplications; infinite where it is too
    large.
    """
    counts, parent, work = np.empty((3, matrix.shape[0]), dtype=np.int64)
    pattern = matrix.indptr.astype(np.int64), matrix.indices.astype(np.int64)
    entries = factor_counts(*pattern, COSTS.most_factor_entries, counts, parent, work)
    if entries > COSTS.most_factor_entries:
        return np.inf, np.inf
    return float(entries), float(np.square(counts, dtype=np.float64).sum())
