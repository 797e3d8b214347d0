"""The array types of this package, and what every module does with them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

Floats = NDArray[np.float64]
Vector = Floats  # of one dimension
Indices = NDArray[np.int64]
Booleans = NDArray[np.bool_]
Matrix = Any  # a dense float64 array in C order, or a scipy CSR matrix (scipy has no types)

EPSILON = 2.0**-52  # of double precision: from 1 to the next number


def in_parts(matrix: Floats, entries: int) -> Iterator[slice]:
    """Rows with so many entries together: what the processor's cache holds for several passes."""
    rows = max(1, entries // max(1, matrix.shape[1]))
    for first in range(0, matrix.shape[0], rows):
        yield slice(first, first + rows)


def dense(matrix: Matrix) -> Floats:
    """A matrix, sparse or not, as a dense array."""
    return np.asarray(matrix.todense()) if sparse.issparse(matrix) else np.asarray(matrix)
