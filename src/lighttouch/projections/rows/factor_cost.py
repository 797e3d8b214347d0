"""What it would cost to factor the sparse system [P A'; A D], before anything is factored."""

from __future__ import annotations

import numpy as np
from scipy import sparse
from scipy.sparse import csgraph

from lighttouch.arrays import Matrix
from lighttouch.projections.costs import COSTS


def factor_cost(P: Matrix, rows: Matrix) -> float:
    """About how many multiplications one factorisation takes: the few dense lines set aside, the
    others in a band (reverse Cuthill-McKee order, George 1971).

    An upper estimate for what a fill-reducing order makes of it; random sparse rows come out as
    expensive as they are. Infinite where there are too many entries to ask.
    """
    count, dimension = rows.shape
    if P.nnz + rows.nnz > COSTS.most_factor_entries:
        return np.inf
    pattern = sparse.bmat([[abs(P), abs(rows.T)], [abs(rows), None]], format="csr")
    degree = np.diff(pattern.indptr)
    dense = degree > COSTS.dense_line * np.sqrt(count + dimension)
    rest = pattern[~dense][:, ~dense]
    place = csgraph.reverse_cuthill_mckee(rest.tocsr(), symmetric_mode=True)
    banded = rest[place][:, place].tocoo()
    width = np.zeros(place.size)
    np.maximum.at(width, banded.row, np.abs(banded.row - banded.col))
    beside = np.asarray(pattern[~dense][:, dense].getnnz(axis=1))[place]
    return float(np.square(width + beside).sum() + np.count_nonzero(dense) ** 3)
