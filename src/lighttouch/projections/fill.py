"""What it would cost to factor a sparse system, before anything is factored."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse import csgraph

LARGEST_ENTRIES = 500_000


def factor_operations(P: Any, rows: Any) -> float:
    """About how many multiplications one factorisation takes: the few dense lines set aside, the
    others in a band.

    An upper estimate for what a fill-reducing order makes of it; random sparse rows come out as
    expensive as they are.
    """
    count, dimension = rows.shape
    if P.nnz + rows.nnz > LARGEST_ENTRIES:
        return np.inf
    pattern = sparse.bmat([[abs(P), abs(rows.T)], [abs(rows), None]], format="csr")
    degree = np.diff(pattern.indptr)
    dense = degree > 10.0 * np.sqrt(count + dimension)
    rest = pattern[~dense][:, ~dense]
    place = csgraph.reverse_cuthill_mckee(rest.tocsr(), symmetric_mode=True)
    banded = rest[place][:, place].tocoo()
    width = np.zeros(place.size)
    np.maximum.at(width, banded.row, np.abs(banded.row - banded.col))
    beside = np.asarray(pattern[~dense][:, dense].getnnz(axis=1))[place]
    return float(np.square(width + beside).sum() + np.count_nonzero(dense) ** 3)
