"""Constraint families as records, and the verbs every family offers: the worst of a range and a
subgradient, and, where it helps, asking for a row before it is read.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from lighttouch.kernels.compiler.compiled import lean_kernel, verb
from lighttouch.kernels.compiler.intrinsics import prefetch_read
from lighttouch.kernels.state.iterate import add, add_dense, add_sparse, dot
from lighttouch.kernels.verbs.objectives import sparse_dot


class DenseRows(NamedTuple):
    """A w <= b with every entry stored."""

    A: np.ndarray
    b: np.ndarray


class SparseRows(NamedTuple):
    """A w <= b in compressed rows."""

    data: np.ndarray
    indices: np.ndarray
    indptr: np.ndarray
    b: np.ndarray


class OrderRows(NamedTuple):
    """scale_j (w[smaller_j] - w[larger_j]) <= b_j; `scale` and `b` hold one number per row, or a
    single one for all.
    """

    smaller: np.ndarray
    larger: np.ndarray
    scale: np.ndarray
    b: np.ndarray


class NormRows(NamedTuple):
    """||A_j w + b_j|| <= c_j.w + d_j; A holds a matrix per row, one for all, or none (the
    identity); c may be empty (zero).
    """

    A: np.ndarray
    b: np.ndarray
    c: np.ndarray
    d: np.ndarray


class QuadraticRows(NamedTuple):
    """w'P_j w / 2 + q_j.w + r_j <= 0; P holds a matrix per row, or one for all."""

    P: np.ndarray
    q: np.ndarray
    r: np.ndarray


class Groups(NamedTuple):
    """Constraints come in groups of `size` neighbours (aggregated, Section 5.1); the last group may
    be smaller.
    """

    size: int
    members: int


class Joined(NamedTuple):
    """Two families one after the other; `split` is the count of the first."""

    first: NamedTuple
    second: NamedTuple
    split: int


class Ranged(NamedTuple):
    """A range of another family's constraints: number 0 is that family's `first`."""

    rows: NamedTuple
    first: int


@verb
def worst(constraints, start, stop, w):
    """The largest g_j(w) over start <= j < stop, and its j."""


@verb
def add_subgradient(constraints, member, w, scale, gradient):
    """Add scale times a subgradient of g_member at w."""


@verb
def fetch_constraint(constraints, j):
    """Ask for what says where row j lies: a hint, so families may do nothing."""


@verb
def fetch_entries(constraints, j):
    """Ask for the entries of row j, once `fetch_constraint` had time to arrive."""


@fetch_constraint.register(object)
@fetch_entries.register(object)
def _fetch_nothing(constraints, j):
    pass


@worst.register(DenseRows)
def _worst_dense(constraints, start, stop, w):
    best = -math.inf
    member = start
    for j in range(start, stop):
        value = dot(constraints.A[j], w) - constraints.b[j]
        if not value <= best:
            best = value
            member = j
            if value != value:
                break  # NaN is the worst of all: it must not be taken for satisfied
    return best, member


@add_subgradient.register(DenseRows)
def subgradient_dense(constraints, member, w, scale, gradient):
    add_dense(gradient, constraints.A[member], scale)


@worst.register(SparseRows)
def _worst_sparse(constraints, start, stop, w):
    best = -math.inf
    member = start
    for j in range(start, stop):
        value = (
            sparse_dot(
                constraints.data,
                constraints.indices,
                constraints.indptr[j],
                constraints.indptr[j + 1],
                w,
            )
            - constraints.b[j]
        )
        if not value <= best:
            best = value
            member = j
            if value != value:
                break  # NaN is the worst of all: it must not be taken for satisfied
    return best, member


@add_subgradient.register(SparseRows)
def subgradient_sparse(constraints, member, w, scale, gradient):
    add_sparse(
        gradient,
        constraints.data,
        constraints.indices,
        constraints.indptr[member],
        constraints.indptr[member + 1],
        scale,
    )


@fetch_constraint.register(SparseRows)
def fetch_sparse(constraints, j):
    prefetch_read(constraints.indptr, j)
    prefetch_read(constraints.b, j)


@fetch_entries.register(SparseRows)
def fetch_sparse_entries(constraints, j):
    first = constraints.indptr[j]
    prefetch_read(constraints.data, first)
    prefetch_read(constraints.indices, first)


@lean_kernel
def order_scale(constraints, j):
    return constraints.scale[j] if constraints.scale.size > 1 else constraints.scale[0]


@lean_kernel
def order_side(constraints, j):
    return constraints.b[j] if constraints.b.size > 1 else constraints.b[0]


@worst.register(OrderRows)
def _worst_order(constraints, start, stop, w):
    best = -math.inf
    member = start
    for j in range(start, stop):
        value = order_scale(constraints, j) * (
            w[constraints.smaller[j]] - w[constraints.larger[j]]
        ) - order_side(constraints, j)
        if not value <= best:
            best = value
            member = j
            if value != value:
                break  # NaN is the worst of all: it must not be taken for satisfied
    return best, member


@add_subgradient.register(OrderRows)
def _subgradient_order(constraints, member, w, scale, gradient):
    push = scale * order_scale(constraints, member)
    add(gradient, constraints.smaller[member], push)
    add(gradient, constraints.larger[member], -push)


@fetch_constraint.register(OrderRows)
def _fetch_order(constraints, j):
    prefetch_read(constraints.smaller, j)
    prefetch_read(constraints.larger, j)
    if constraints.scale.size > 1:
        prefetch_read(constraints.scale, j)
    if constraints.b.size > 1:
        prefetch_read(constraints.b, j)


@lean_kernel
def _which(count, j):
    """The index of the matrix that belongs to row j when there are `count` of them: one for all, or
    one per row.
    """
    return j if count > 1 else 0


@lean_kernel
def norm_entry(constraints, j, row, w):
    """One entry of A_j w + b_j."""
    if constraints.A.shape[0] == 0:
        return constraints.b[j, row] + w[row]
    return constraints.b[j, row] + dot(constraints.A[_which(constraints.A.shape[0], j), row], w)


@lean_kernel
def norm_size(constraints, j, w):
    """||A_j w + b_j||, without an array for it: these loops cannot free one."""
    total = 0.0
    for row in range(constraints.b.shape[1]):
        entry = norm_entry(constraints, j, row, w)
        total += entry * entry
    return math.sqrt(total)


@worst.register(NormRows)
def _worst_norm(constraints, start, stop, w):
    best = -math.inf
    member = start
    for j in range(start, stop):
        value = norm_size(constraints, j, w) - constraints.d[j]
        if constraints.c.shape[0] > 0:
            value -= dot(constraints.c[j], w)
        if not value <= best:
            best = value
            member = j
            if value != value:
                break  # NaN is the worst of all: it must not be taken for satisfied
    return best, member


@add_subgradient.register(NormRows)
def _subgradient_norm(constraints, member, w, scale, gradient):
    size = norm_size(constraints, member, w)
    if size > 0.0:
        for row in range(constraints.b.shape[1]):
            pull = scale * norm_entry(constraints, member, row, w) / size
            if constraints.A.shape[0] == 0:
                add(gradient, row, pull)
            else:
                add_dense(
                    gradient, constraints.A[_which(constraints.A.shape[0], member), row], pull
                )
    if constraints.c.shape[0] > 0:
        add_dense(gradient, constraints.c[member], -scale)


@worst.register(QuadraticRows)
def _worst_quadratic(constraints, start, stop, w):
    best = -math.inf
    member = start
    for j in range(start, stop):
        matrix = constraints.P[_which(constraints.P.shape[0], j)]
        value = constraints.r[j] + dot(constraints.q[j], w)
        for row in range(w.size):
            value += 0.5 * w[row] * dot(matrix[row], w)
        if not value <= best:
            best = value
            member = j
            if value != value:
                break  # NaN is the worst of all: it must not be taken for satisfied
    return best, member


@add_subgradient.register(QuadraticRows)
def _subgradient_quadratic(constraints, member, w, scale, gradient):
    add_dense(gradient, constraints.q[member], scale)
    matrix = constraints.P[_which(constraints.P.shape[0], member)]
    for row in range(w.size):
        gradient.values[row] += scale * dot(matrix[row], w)


@worst.register(Joined)
def _worst_joined(constraints, start, stop, w):
    split = constraints.split
    if stop <= split:
        return worst(constraints.first, start, stop, w)
    value, member = worst(constraints.second, max(0, start - split), stop - split, w)
    member += split
    if start < split:
        other, candidate = worst(constraints.first, start, split, w)
        if other >= value or other != other:  # NaN is the worst of all
            return other, candidate
    return value, member


@add_subgradient.register(Joined)
def _subgradient_joined(constraints, member, w, scale, gradient):
    if member < constraints.split:
        add_subgradient(constraints.first, member, w, scale, gradient)
    else:
        add_subgradient(constraints.second, member - constraints.split, w, scale, gradient)


@fetch_constraint.register(Joined)
def _fetch_joined(constraints, j):
    if j < constraints.split:
        fetch_constraint(constraints.first, j)
    else:
        fetch_constraint(constraints.second, j - constraints.split)


@fetch_entries.register(Joined)
def _fetch_joined_entries(constraints, j):
    if j < constraints.split:
        fetch_entries(constraints.first, j)
    else:
        fetch_entries(constraints.second, j - constraints.split)


@worst.register(Ranged)
def _worst_ranged(constraints, start, stop, w):
    first = constraints.first
    value, member = worst(constraints.rows, first + start, first + stop, w)
    return value, member - first


@add_subgradient.register(Ranged)
def _subgradient_ranged(constraints, member, w, scale, gradient):
    add_subgradient(constraints.rows, constraints.first + member, w, scale, gradient)


@fetch_constraint.register(Ranged)
def _fetch_ranged(constraints, j):
    fetch_constraint(constraints.rows, constraints.first + j)


@fetch_entries.register(Ranged)
def _fetch_ranged_entries(constraints, j):
    fetch_entries(constraints.rows, constraints.first + j)


@lean_kernel
def group_stop(group, size, members):
    return min((group + 1) * size, members)


@lean_kernel
def group_values(constraints, members, size, w, out):
    """g of every group of `size` members (of every member, for size 1)."""
    for group in range(out.size):
        out[group] = worst(constraints, group * size, group_stop(group, size, members), w)[0]


# -------------------------------------------------------------------------------------------------
# Equalities as records: g_j(w) = |a_j.w - b_j|. A subgradient is the row, with the sign of the
# error.


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
        if not value <= best:
            best = value
            member = j
            if value != value:
                break  # NaN is the worst of all: it must not be taken for satisfied
    return best, member


@add_subgradient.register(DenseEqualities)
@add_subgradient.register(SparseEqualities)
def _subgradient_equality(constraints, member, w, scale, gradient):
    error = error_of_row(constraints, member, w)
    if error != 0.0:
        add_row(constraints, member, w, scale if error > 0.0 else -scale, gradient)


fetch_constraint.register(SparseEqualities)(fetch_sparse)
fetch_entries.register(SparseEqualities)(fetch_sparse_entries)
