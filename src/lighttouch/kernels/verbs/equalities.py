"""Equalities as records: g_j(w) = |a_j.w - b_j|. A subgradient is the row, with the sign of the
error.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from lighttouch.kernels.compiler.compiled import verb
from lighttouch.kernels.state.iterate import dot
from lighttouch.kernels.verbs.constraints import (
    add_subgradient,
    fetch_constraint,
    fetch_entries,
    fetch_sparse,
    fetch_sparse_entries,
    subgradient_dense,
    subgradient_sparse,
    worst,
)
from lighttouch.kernels.verbs.objectives import sparse_dot


class DenseEqualities(NamedTuple):
    """A w = b with every entry stored."""

    A: np.ndarray
    b: np.ndarray


class SparseEqualities(NamedTuple):
    """A w = b in compressed rows."""

    data: np.ndarray
    indices: np.ndarray
    indptr: np.ndarray
    b: np.ndarray


@verb
def error_of_row(constraints, j, w):
    """a_j.w - b_j."""


@verb
def add_row(constraints, j, w, scale, gradient):
    """Add scale times a_j."""


@error_of_row.register(DenseEqualities)
def _dense_error(constraints, j, w):
    return dot(constraints.A[j], w) - constraints.b[j]


@error_of_row.register(SparseEqualities)
def _sparse_error(constraints, j, w):
    first = constraints.indptr[j]
    last = constraints.indptr[j + 1]
    return sparse_dot(constraints.data, constraints.indices, first, last, w) - constraints.b[j]


add_row.register(DenseEqualities)(subgradient_dense)
add_row.register(SparseEqualities)(subgradient_sparse)


@worst.register(DenseEqualities)
@worst.register(SparseEqualities)
def _worst_equality(constraints, start, stop, w):
    best = -math.inf
    member = start
    for j in range(start, stop):
        value = abs(error_of_row(constraints, j, w))
        if value > best:
            best = value
            member = j
    return best, member


@add_subgradient.register(DenseEqualities)
@add_subgradient.register(SparseEqualities)
def _subgradient_equality(constraints, member, w, scale, gradient):
    error = error_of_row(constraints, member, w)
    if error != 0.0:
        add_row(constraints, member, w, scale if error > 0.0 else -scale, gradient)


fetch_constraint.register(SparseEqualities)(fetch_sparse)
fetch_entries.register(SparseEqualities)(fetch_sparse_entries)
