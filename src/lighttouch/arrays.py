"""The array types of this package, and what every module does with them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

Floats = NDArray[np.float64]
Vector = Floats  # of one dimension
Indices = NDArray[np.int64]
Booleans = NDArray[np.bool_]
Matrix = Any  # a dense float64 array in C order, or a scipy CSR matrix (scipy has no types)


def dense(matrix: Matrix) -> Floats:
    """A matrix, sparse or not, as a dense array."""
    return np.asarray(matrix.todense()) if sparse.issparse(matrix) else np.asarray(matrix)
