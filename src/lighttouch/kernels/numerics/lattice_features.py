"""Interpolation on a lattice: one row at a time for use inside other kernels, and whole tables.

A lattice enters as `sizes` and `strides` (int64, C order) and `simplex` (True: simplex, False:
hypercube). Scratch is the caller's: `fractions` (float64) and `order` (int64) of one number
per feature; a row has at most `row_width` entries.
"""

from __future__ import annotations

import numpy as np

from lighttouch.kernels.compiler.compiled import kernel, lean_kernel
from lighttouch.kernels.numerics.exact_sum import nearest_blend, nearest_weighted_sum


@lean_kernel
def row_width(features, simplex):
    """The most entries a row can have."""
    return features + 1 if simplex else 1 << features


@lean_kernel
def locate(x, sizes, strides, fractions):
    """Clamp x, fill `fractions` with its place inside its cell and return the cell's lowest vertex.

    Fractions are rounded to multiples of 2^-52 (which keeps their order): all their differences,
    and 1 minus them, are then exact.
    """
    base = 0
    for d in range(sizes.size):
        top = sizes[d] - 1
        inside = min(max(np.float64(x[d]), 0.0), np.float64(top))
        cell = min(int(inside), top - 1)
        fractions[d] = (1.0 + (inside - cell)) - 1.0
        base += cell * strides[d]
    return base


@lean_kernel
def _sort_descending(fractions, order):
    """Fill `order` with the features by descending fraction, ties by feature."""
    for d in range(fractions.size):
        fraction = fractions[d]
        place = d
        while place > 0 and fractions[order[place - 1]] < fraction:
            order[place] = order[place - 1]
            place -= 1
        order[place] = d


@lean_kernel
def simplex_row(x, sizes, strides, fractions, order, indices, weights):
    """Vertices (ascending) and weights (positive, exact, adding up to exactly 1) of x; returns how
    many.
    """
    vertex = locate(x, sizes, strides, fractions)
    return simplex_corners(vertex, fractions, strides, order, indices, weights)


@lean_kernel
def simplex_corners(vertex, fractions, strides, order, indices, weights):
    """The same from the lowest vertex of the cell of x and its place inside the cell."""
    _sort_descending(fractions, order)
    count = 0
    above = 1.0
    for k in range(fractions.size):
        fraction = fractions[order[k]]
        if fraction < above:
            indices[count] = vertex
            weights[count] = above - fraction
            count += 1
        vertex += strides[order[k]]
        above = fraction
    if above > 0.0:
        indices[count] = vertex
        weights[count] = above
        count += 1
    return count


@lean_kernel
def _cell_corners(x, sizes, strides, fractions, order, indices):
    """The vertices with a positive multilinear weight, ascending; order[:k] are the k features
    strictly inside the cell.
    """
    base = locate(x, sizes, strides, fractions)
    inner = 0
    for d in range(fractions.size):
        if fractions[d] == 1.0:
            base += strides[d]
        elif fractions[d] > 0.0:
            order[inner] = d
            inner += 1
    indices[0] = base
    count = 1
    for k in range(inner - 1, -1, -1):
        for m in range(count):
            indices[count + m] = indices[m] + strides[order[k]]
        count *= 2
    return inner, count


@lean_kernel
def hypercube_row(x, sizes, strides, fractions, order, indices, weights):
    """Vertices (ascending) and multilinear weights of x; returns how many."""
    inner, count = _cell_corners(x, sizes, strides, fractions, order, indices)
    weights[0] = 1.0
    filled = 1
    for k in range(inner - 1, -1, -1):
        fraction = fractions[order[k]]
        for m in range(filled):
            weights[filled + m] = weights[m] * fraction
            weights[m] *= 1.0 - fraction
        filled *= 2
    return count


@lean_kernel
def interpolate_row(x, sizes, strides, simplex, fractions, order, indices, weights):
    """The row of features of one example: ascending vertices, their weights; returns how many."""
    if simplex:
        return simplex_row(x, sizes, strides, fractions, order, indices, weights)
    return hypercube_row(x, sizes, strides, fractions, order, indices, weights)


@kernel
def fill_features(
    X: np.ndarray,
    sizes: np.ndarray,
    strides: np.ndarray,
    simplex: bool,
    indptr: np.ndarray,
    indices: np.ndarray,
    weights: np.ndarray,
) -> int:
    """The features of every row of X in CSR form; returns the number of entries filled."""
    fractions = np.empty(sizes.size)
    order = np.empty(sizes.size, dtype=np.int64)
    filled = 0
    indptr[0] = 0
    for i in range(X.shape[0]):
        filled += interpolate_row(
            X[i], sizes, strides, simplex, fractions, order, indices[filled:], weights[filled:]
        )
        indptr[i + 1] = filled
    return filled


@lean_kernel
def evaluate_row(x, sizes, strides, simplex, theta, fractions, order, indices, weights, parts):
    """The interpolated value at x, monotone to the last bit wherever theta is.

    Simplex: the weights are exact, so the value is the exact interpolation rounded once. Hypercube:
    one feature after the other is blended away, each blend exact but for its rounding. Rounding
    keeps order and so does each exact step, hence the whole does. `indices` and `weights` hold
    `row_width` numbers, `parts` 2 (D + 1).
    """
    if simplex:
        count = simplex_row(x, sizes, strides, fractions, order, indices, weights)
        return nearest_weighted_sum(weights, indices, count, theta, parts)
    inner, count = _cell_corners(x, sizes, strides, fractions, order, indices)
    for m in range(count):
        weights[m] = theta[indices[m]]
    for k in range(inner):
        count //= 2
        for m in range(count):
            weights[m] = nearest_blend(weights[m], weights[count + m], fractions[order[k]], parts)
    return weights[0]


@kernel
def evaluate_rows(
    X: np.ndarray,
    sizes: np.ndarray,
    strides: np.ndarray,
    simplex: bool,
    theta: np.ndarray,
    values: np.ndarray,
) -> None:
    """`evaluate_row` for every row of X."""
    width = row_width(sizes.size, simplex)
    fractions = np.empty(sizes.size)
    order = np.empty(sizes.size, dtype=np.int64)
    indices = np.empty(width, dtype=np.int64)
    weights = np.empty(width)
    parts = np.empty(max(4, 2 * sizes.size + 2))
    for i in range(X.shape[0]):
        values[i] = evaluate_row(
            X[i], sizes, strides, simplex, theta, fractions, order, indices, weights, parts
        )
