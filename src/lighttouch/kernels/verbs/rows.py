"""Linear constraints row by row, whether their rows are stored or not: the verbs that write one row
down, and what is found out about all rows without keeping them.
"""

from __future__ import annotations

import math

from lighttouch.kernels.compiler.compiled import lean_kernel, verb
from lighttouch.kernels.verbs.constraints import (
    DenseEqualities,
    DenseRows,
    Joined,
    OrderRows,
    SparseEqualities,
    SparseRows,
    order_scale,
    order_side,
    worst,
)


@verb
def write_row(constraints, j, columns, values):
    """Write the entries of row j into the first places of two arrays that are long enough; returns
    how many they are, and the right side. A row that is no row has the right side NaN.
    """


@verb
def is_equality(constraints, j):
    """Whether row j is a row of A w = b rather than of A w <= b."""


@is_equality.register(object)
def _is_none(constraints, j):
    return False


@is_equality.register(DenseEqualities)
@is_equality.register(SparseEqualities)
def _is_one(constraints, j):
    return True


@is_equality.register(Joined)
def _is_joined(constraints, j):
    if j < constraints.split:
        return is_equality(constraints.first, j)
    return is_equality(constraints.second, j - constraints.split)


@write_row.register(DenseRows)
@write_row.register(DenseEqualities)
def _write_dense(constraints, j, columns, values):
    for k in range(constraints.A.shape[1]):
        columns[k] = k
        values[k] = constraints.A[j, k]
    return constraints.A.shape[1], constraints.b[j]


@write_row.register(SparseRows)
@write_row.register(SparseEqualities)
def _write_sparse(constraints, j, columns, values):
    first = constraints.indptr[j]
    many = constraints.indptr[j + 1] - first
    for k in range(many):
        columns[k] = constraints.indices[first + k]
        values[k] = constraints.data[first + k]
    return many, constraints.b[j]


@write_row.register(OrderRows)
def _write_order(constraints, j, columns, values):
    scale = order_scale(constraints, j)
    columns[0] = constraints.smaller[j]
    values[0] = scale
    columns[1] = constraints.larger[j]
    values[1] = -scale
    return 2, order_side(constraints, j)


@write_row.register(Joined)
def _write_joined(constraints, j, columns, values):
    if j < constraints.split:
        return write_row(constraints.first, j, columns, values)
    return write_row(constraints.second, j - constraints.split, columns, values)


@lean_kernel
def excess_and_length(constraints, j, w, columns, values):
    """By how much w breaks row j, the length of the row (1 of a row of zeros), and how many entries
    it has.
    """
    many, right = write_row(constraints, j, columns, values)
    total = 0.0
    square = 0.0
    for k in range(many):
        total += values[k] * w[columns[k]]
        square += values[k] * values[k]
    excess = total - right
    if is_equality(constraints, j):
        excess = abs(excess)
    return excess, math.sqrt(square) if square > 0.0 else 1.0, many


@lean_kernel
def largest_of(constraints, start, stop, w, scratch):
    """The largest g_j(w) over start <= j < stop and its j; NaN where one is NaN."""
    return worst(constraints, start, stop, w)


@lean_kernel
def largest_relative_of(constraints, start, stop, w, scratch):
    """The same in lengths of the rows."""
    columns, values = scratch
    best = -math.inf
    member = start
    for j in range(start, stop):
        excess, length, _ = excess_and_length(constraints, j, w, columns, values)
        relative = excess / length
        if relative != relative:
            return relative, j
        if relative > best:
            best = relative
            member = j
    return best, member


@lean_kernel
def row_lengths(constraints, start, stop, w, scratch, out):
    columns, values = scratch
    for j in range(start, stop):
        out[j - start] = excess_and_length(constraints, j, w, columns, values)[1]


@lean_kernel
def collect_violated(
    constraints, start, stop, w, above, below, after, used, most, scratch, found, scores, many
):
    """Note rows start <= j < stop until `found` is full; returns where to go on, and how many are
    noted.

    They are broken by more than `above` lengths, come after row `after`, which is broken by
    `below`, in the order of falling violations, and have a column that fewer than `most` chosen
    rows use. `used` counts the chosen rows of every column, `many` the rows noted before; `scratch`
    is a pair of arrays for one row.
    """
    columns, values = scratch
    for j in range(start, stop):
        if many == found.size:
            return j, many
        excess, length, entries = excess_and_length(constraints, j, w, columns, values)
        relative = excess / length
        if (
            relative > above
            and (relative < below or (relative == below and j > after))
            and has_room(used, columns, entries, most)
        ):
            found[many] = j
            scores[many] = relative
            many += 1
    return stop, many


@lean_kernel
def has_room(used, columns, entries, most):
    if entries == 0:
        return True
    for k in range(entries):
        if used[columns[k]] < most:
            return True
    return False


@lean_kernel
def choose_spread(constraints, ranked, used, most, wanted, scratch, chosen, already):
    """Of rows in the order of their violation, those with a column that fewer than `most` chosen
    rows use, until `wanted` are chosen; returns how many are.
    """
    columns, values = scratch
    for j in ranked:
        if already == wanted:
            break
        entries, _ = write_row(constraints, j, columns, values)
        if has_room(used, columns, entries, most):
            for k in range(entries):
                used[columns[k]] += 1
            chosen[already] = j
            already += 1
    return already


@lean_kernel
def write_rows(constraints, chosen, scratch, indptr, indices, data, right):
    """The chosen rows in compressed form; returns the number of entries."""
    columns, values = scratch
    place = 0
    for q in range(chosen.size):
        entries, right[q] = write_row(constraints, chosen[q], columns, values)
        for k in range(entries):
            indices[place] = columns[k]
            data[place] = values[k]
            place += 1
        indptr[q + 1] = place
    return place
