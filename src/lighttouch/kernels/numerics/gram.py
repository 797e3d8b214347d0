"""Weighted Gram matrices of sparse rows."""

from __future__ import annotations

import numpy as np

from lighttouch.kernels.compiler.compiled import lean_kernel


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
def grouped_gram(
    places: np.ndarray,
    values: np.ndarray,
    widths: np.ndarray,
    weights: np.ndarray,
    out: np.ndarray,
) -> None:
    """Add sum_i weights[i] x_i x_i' to `out`, where every row has `widths[g]` entries in each group
    g of columns.

    `places` and `values` hold the entries of the first group of all rows, then those of the next.
    A pair of groups touches a small part of `out`, which stays in the cache. Every entry is added
    up in the order of the rows, as `weighted_gram` adds it up. Up to four entries of the second
    group stay in registers, which takes half the time of a plain loop.
    """
    rows = weights.size
    first = 0
    for g in range(widths.size):
        wide = widths[g]
        second = 0
        for h in range(g + 1):
            other = widths[h]
            fours = other // 4 * 4
            for i in range(rows):
                begin, end = first + i * wide, first + (i + 1) * wide
                at = second + i * other
                for b in range(at, at + fours, 4):
                    p0, p1, p2, p3 = places[b], places[b + 1], places[b + 2], places[b + 3]
                    v0, v1, v2, v3 = values[b], values[b + 1], values[b + 2], values[b + 3]
                    for a in range(begin, end):
                        row, scaled = places[a], weights[i] * values[a]
                        out[row, p0] += scaled * v0
                        out[row, p1] += scaled * v1
                        out[row, p2] += scaled * v2
                        out[row, p3] += scaled * v3
                if other - fours >= 2:
                    b = at + fours
                    p0, p1, v0, v1 = places[b], places[b + 1], values[b], values[b + 1]
                    for a in range(begin, end):
                        row, scaled = places[a], weights[i] * values[a]
                        out[row, p0] += scaled * v0
                        out[row, p1] += scaled * v1
                if other % 2 == 1:
                    b = at + other - 1
                    for a in range(begin, end):
                        out[places[a], places[b]] += weights[i] * values[a] * values[b]
            second += rows * other
        first += rows * wide
    for row in range(out.shape[0]):
        for column in range(row):
            if out[row, column] != 0.0:
                out[column, row] = out[row, column]


@lean_kernel
def pair_gram(
    places: np.ndarray,
    values: np.ndarray,
    other_places: np.ndarray,
    other_values: np.ndarray,
    weights: np.ndarray,
    out: np.ndarray,
) -> None:
    """Add sum_i weights[i] x_i z_i' to `out`, where row i of x has `values[i]` at `places[i]` and
    row i of z the other values at the other places.
    """
    for i in range(weights.size):
        for a in range(places.shape[1]):
            scaled = weights[i] * values[i, a]
            row = places[i, a]
            for b in range(other_places.shape[1]):
                out[row, other_places[i, b]] += scaled * other_values[i, b]


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
