"""Passes over matrices that NumPy and SciPy do not have: weighted Gram matrices of sparse rows, the
entries of a factor, the sizes of dense rows, the largest of many planes.
"""

from __future__ import annotations

import math

import numpy as np

from lighttouch.kernels.compiler.compiled import lean_kernel

TILE = 32  # rows and columns that stay in the cache

# -------------------------------------------------------------------------------------------------
# Weighted Gram matrices of sparse rows


@lean_kernel
def weighted_gram(
    data: np.ndarray, indices: np.ndarray, indptr: np.ndarray, weights: np.ndarray, out: np.ndarray
) -> None:
    """Add sum_i weights[i] x_i x_i' to the lower triangle of `out`; every row's indices ascend."""
    for i in range(indptr.size - 1):
        if weights[i] == 0.0:
            continue
        for a in range(indptr[i], indptr[i + 1]):
            scaled = weights[i] * data[a]
            row = indices[a]
            for b in range(indptr[i], a + 1):
                out[row, indices[b]] += scaled * data[b]


@lean_kernel
def nonzero_gram(
    data: np.ndarray,
    indices: np.ndarray,
    indptr: np.ndarray,
    weights: np.ndarray,
    places: np.ndarray,
    values: np.ndarray,
    out: np.ndarray,
) -> None:
    """The same without stored zeros, which are most of the features of columns with few values;
    every row's indices ascend. `places` and `values` are scratch for the longest row.
    """
    for i in range(indptr.size - 1):
        if weights[i] == 0.0:
            continue
        count = 0
        for a in range(indptr[i], indptr[i + 1]):
            places[count], values[count] = indices[a], data[a]
            count += data[a] != 0.0
        for a in range(count):
            scaled = weights[i] * values[a]
            row = places[a]
            for b in range(a + 1):
                out[row, places[b]] += scaled * values[b]


@lean_kernel
def pair_gram(
    places: np.ndarray,
    values: np.ndarray,
    other_places: np.ndarray,
    other_values: np.ndarray,
    weights: np.ndarray,
    out: np.ndarray,
) -> None:
    """Add sum_i weights[i] x_i z_i' to `out`, where row i of x has its entries at `places`, one row
    after the other, and row i of z at the other places.

    Up to four entries of z stay in registers, which takes half the time of a plain loop. Places are
    unsigned: no negative ones are looked for.
    """
    rows = weights.size
    if rows == 0:
        return
    wide, other = places.size // rows, other_places.size // rows
    fours = other // 4 * 4
    for i in range(rows):
        begin, end = i * wide, (i + 1) * wide
        at = i * other
        for b in range(at, at + fours, 4):
            p0, p1 = np.uint64(other_places[b]), np.uint64(other_places[b + 1])
            p2, p3 = np.uint64(other_places[b + 2]), np.uint64(other_places[b + 3])
            v0, v1 = other_values[b], other_values[b + 1]
            v2, v3 = other_values[b + 2], other_values[b + 3]
            for a in range(begin, end):
                row, scaled = np.uint64(places[a]), weights[i] * values[a]
                out[row, p0] += scaled * v0
                out[row, p1] += scaled * v1
                out[row, p2] += scaled * v2
                out[row, p3] += scaled * v3
        if other - fours >= 2:
            b = at + fours
            p0, p1 = np.uint64(other_places[b]), np.uint64(other_places[b + 1])
            v0, v1 = other_values[b], other_values[b + 1]
            for a in range(begin, end):
                row, scaled = np.uint64(places[a]), weights[i] * values[a]
                out[row, p0] += scaled * v0
                out[row, p1] += scaled * v1
        if other % 2 == 1:
            b = at + other - 1
            p0, v0 = np.uint64(other_places[b]), other_values[b]
            for a in range(begin, end):
                out[np.uint64(places[a]), p0] += weights[i] * values[a] * v0


@lean_kernel
def grouped_gram(
    places: np.ndarray,
    values: np.ndarray,
    widths: np.ndarray,
    weights: np.ndarray,
    out: np.ndarray,
) -> None:
    """Add sum_i weights[i] x_i x_i' to the lower triangle of `out`, where every row has `widths[g]`
    entries in each group g of columns; what is above the diagonal changes too.

    `places` and `values` hold the entries of the first group of all rows, then those of the next.
    A pair of groups touches a small part of `out`, which stays in the cache. Every entry is added
    up in the order of the rows, as `weighted_gram` adds it up.
    """
    rows = weights.size
    first = 0
    for g in range(widths.size):
        end = first + rows * widths[g]
        second = 0
        for h in range(g + 1):
            stop = second + rows * widths[h]
            pair_gram(
                places[first:end],
                values[first:end],
                places[second:stop],
                values[second:stop],
                weights,
                out,
            )
            second = stop
        first = end


@lean_kernel
def mirror(out: np.ndarray) -> None:
    """Copy what is below the diagonal of a square matrix above it, tile by tile."""
    size = out.shape[0]
    for top in range(0, size, TILE):
        for left in range(0, top + 1, TILE):
            for row in range(top, min(top + TILE, size)):
                for column in range(left, min(left + TILE, row)):
                    out[column, row] = out[row, column]


@lean_kernel
def add_products(places: np.ndarray, values: np.ndarray, w: np.ndarray, out: np.ndarray) -> None:
    """Add x_i.w to out[i], where row i of x has `values[i]` at `places[i]`."""
    for i in range(out.size):
        total = 0.0
        for a in range(places.shape[1]):
            total += values[i, a] * w[places[i, a]]
        out[i] += total


@lean_kernel
def add_transposed(places: np.ndarray, values: np.ndarray, v: np.ndarray, out: np.ndarray) -> None:
    """Add sum_i v[i] x_i to `out`."""
    for i in range(v.size):
        for a in range(places.shape[1]):
            out[places[i, a]] += v[i] * values[i, a]


@lean_kernel
def add_entries(places: np.ndarray, values: np.ndarray, out: np.ndarray) -> None:
    """Add `values[i]` to row i of `out`, at `places[i]`."""
    for i in range(out.shape[0]):
        for a in range(places.shape[1]):
            out[i, places[i, a]] += values[i, a]


# -------------------------------------------------------------------------------------------------
# How many entries the factor of a sparse symmetric matrix has, without factoring it.


@lean_kernel
def factor_counts(indptr, indices, most, counts, parent, work):
    """Entries below the diagonal of every column of Cholesky's factor of a matrix with this
    pattern, in this order, written to `counts`; stops once they are more than `most` in all.
    Returns how many there are. `parent` and `work` are scratch.

    Row i of the factor is the subtree of the elimination tree that its entries span (Liu 1990).
    """
    d = indptr.size - 1
    for i in range(d):
        counts[i] = 0
        parent[i] = -1
        work[i] = -1
    for i in range(d):
        for k in range(indptr[i], indptr[i + 1]):
            j = indices[k]
            while j != -1 and j < i:
                following = work[j]
                work[j] = i
                if following == -1:
                    parent[j] = i
                j = following
    total = 0
    for i in range(d):
        work[i] = -1
    for i in range(d):
        work[i] = i
        for k in range(indptr[i], indptr[i + 1]):
            j = indices[k]
            while j < i and work[j] != i:
                work[j] = i
                counts[j] += 1
                total += 1
                j = parent[j]
        if total > most:
            break
    return total


# -------------------------------------------------------------------------------------------------
# What is to be known of many dense rows, in one pass over them.


@lean_kernel
def sizes_and_entries(rows: np.ndarray, sizes: np.ndarray, entries: np.ndarray) -> None:
    """The largest absolute entry of every row, and how many are not 0."""
    whole = rows.shape[1] - rows.shape[1] % 4
    for i in range(rows.shape[0]):
        row = rows[i]
        m0 = m1 = m2 = m3 = 0.0  # four at a time: one maximum waits for the one before it
        count = 0
        for j in range(0, whole, 4):
            m0 = max(m0, abs(row[j]))
            m1 = max(m1, abs(row[j + 1]))
            m2 = max(m2, abs(row[j + 2]))
            m3 = max(m3, abs(row[j + 3]))
        for j in range(whole, row.size):
            m0 = max(m0, abs(row[j]))
        for j in range(row.size):
            count += row[j] != 0.0
        sizes[i] = max(m0, m1, m2, m3)
        entries[i] = count


# -------------------------------------------------------------------------------------------------
# The largest of many planes.


@lean_kernel
def largest_plane(
    rows: np.ndarray, points: np.ndarray, heights: np.ndarray, slopes: np.ndarray, out: np.ndarray
) -> None:
    """out[r] = max_i heights[i] + slopes[i].(rows[r] - points[i]).

    Products are added up in one order, so that out never falls in a column whose slopes are not
    negative, to the last bit.
    """
    for r in range(rows.shape[0]):
        largest = -math.inf
        for i in range(points.shape[0]):
            height = heights[i]
            for k in range(rows.shape[1]):
                height += slopes[i, k] * (rows[r, k] - points[i, k])
            largest = max(largest, height)
        out[r] = largest
