"""Sums of lattices over columns of a table: where the columns' values lie along the axes, and all
terms of a model in one pass over the rows.

An axis is a piecewise linear map through (keypoints, positions), constant outside; missing cells
(NaN) go to a position of their own.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lighttouch.kernels.compiler.compiled import kernel, lean_kernel
from lighttouch.kernels.numerics.exact_sum import (
    nearest_blend,
    nearest_weighted_sum,
    quick_blend,
)
from lighttouch.kernels.numerics.lattice_features import simplex_corners

BLOCK = 64  # rows whose cells are looked for together


class Terms(NamedTuple):
    """The terms of a model, and all their axes one after the other.

    A value is looked up once per column, among the keypoints of all axes of the column. Term t has
    the axes from axes[t] to axes[t + 1] and the parameters from starts[t] to starts[t + 1].
    """

    edges: np.ndarray
    """Those of column c are edges[edge_ends[c]:edge_ends[c + 1]]."""
    edge_ends: np.ndarray
    columns: np.ndarray
    """The column of every axis."""
    cells: np.ndarray
    """cells[cell_ends[k] + e] is the place, among all keypoints, where the cell of axis k begins
    that holds the e-th edge of its column; p is written as -p - 1 where the axis has a single
    keypoint."""
    cell_ends: np.ndarray
    keypoints: np.ndarray
    positions: np.ndarray
    """Of every keypoint along its axis."""
    missing: np.ndarray
    """The position of missing cells along every axis."""
    axes: np.ndarray
    sizes: np.ndarray
    strides: np.ndarray
    simplex: np.ndarray
    starts: np.ndarray


@lean_kernel
def find_cells(values, edges, found):
    """found[r] = the last edge that is not above values[r], or the first of them; NaN gives the
    first.

    The values of a block take each step of the binary search together: none waits for another, and
    the compiler takes several at a time. Ten times as fast as one by one.
    """
    found[:] = 0
    length = np.uint32(edges.size)
    while length > 1:
        half = length // np.uint32(2)
        for r in range(values.size):
            above = np.uint64(found[r] + half)
            found[r] = above if edges[above] <= values[r] else found[r]
        length -= half


@lean_kernel
def between(value, keypoints, positions, low):
    """Where a value lies within the cell from keypoint `low` to the next, clamped to it; the order
    of the values is kept to the last bit wherever `positions` ascend.
    """
    below, above = keypoints[low], keypoints[low + 1]
    share = min(max((value - below) / (above - below), 0.0), 1.0)
    here, there = positions[low], positions[low + 1]
    return min(max(here + share * (there - here), min(here, there)), max(here, there))


@lean_kernel
def fill_positions(
    values: np.ndarray,
    keypoints: np.ndarray,
    positions: np.ndarray,
    missing: float,
    found: np.ndarray,
    out: np.ndarray,
) -> None:
    """The position of every value along one axis; `found` is scratch of `BLOCK` numbers."""
    count = keypoints.size
    for i in range(values.size):
        r = i % BLOCK
        if r == 0:
            find_cells(values[i : i + BLOCK], keypoints[: max(1, count - 1)], found)
        if np.isnan(values[i]):
            out[i] = missing
        elif count == 1:
            out[i] = positions[0]
        else:
            out[i] = between(values[i], keypoints, positions, found[r])


@lean_kernel
def locate_block(table, first, rows, terms, values, found, bases, fractions):
    """For rows of the table from `first` on, at most a block of them: the corner of the cell of
    every term, as a parameter, and how far across the cell they are along every axis, as `locate`
    says.

    Axis by axis, so that no row waits for another; `values` and `found` are scratch.
    """
    for c in range(values.shape[0]):
        for r in range(rows):
            values[c, r] = table[first + r, c]
        own = terms.edges[terms.edge_ends[c] : terms.edge_ends[c + 1]]
        find_cells(values[c, :rows], own, found[c])
    for t in range(terms.axes.size - 1):
        bases[t] = terms.starts[t]
        for k in range(terms.axes[t], terms.axes[t + 1]):
            column, base, across = terms.columns[k], bases[t], fractions[k]
            place_along(values[column, :rows], found[column], terms, k, across)
            top, stride = terms.sizes[k] - 1, terms.strides[k]
            for r in range(rows):
                inside = across[r] if across[r] > 0.0 else 0.0  # NaN too, from a damaged file
                inside = inside if inside < top else np.float64(top)
                cell = min(np.int32(inside), np.int32(top - 1))
                base[r] += cell * stride
                across[r] = (1.0 + (inside - cell)) - 1.0


@lean_kernel
def place_along(values, near, terms, k, out):
    """The position of every value along axis k; near[r] is the last edge not above values[r].

    Without a branch among the rows: the compiler takes several at a time.
    """
    cells = terms.cells[terms.cell_ends[k] : terms.cell_ends[k + 1]]
    missing = terms.missing[k]
    if cells[0] < 0:
        only = terms.positions[-cells[0] - 1]
        for r in range(values.size):
            out[r] = missing if np.isnan(values[r]) else only
        return
    for r in range(values.size):
        x = between(values[r], terms.keypoints, terms.positions, cells[near[r]])
        out[r] = missing if np.isnan(values[r]) else x


@kernel
def fill_sum_features(
    table: np.ndarray,
    terms: Terms,
    indices: np.ndarray,
    weights: np.ndarray,
) -> None:
    """The features of every row of the table: an intercept, then the corners of its cell in every
    term, weights of 0 included.
    """
    columns, count, axes = terms.edge_ends.size - 1, terms.axes.size - 1, terms.columns.size
    values, found = np.empty((columns, BLOCK)), np.empty((columns, BLOCK), dtype=np.uint32)
    bases, fractions = np.empty((count, BLOCK), dtype=np.int64), np.empty((axes, BLOCK))
    order = np.empty(axes, dtype=np.int64)
    for first in range(0, table.shape[0], BLOCK):
        rows = min(BLOCK, table.shape[0] - first)
        locate_block(table, first, rows, terms, values, found, bases, fractions)
        places, shares = indices[first : first + rows], weights[first : first + rows]
        places[:, 0] = 0
        shares[:, 0] = 1.0
        begin = 1
        for t in range(count):
            here = slice(terms.axes[t], terms.axes[t + 1])
            strides, width = terms.strides[here], here.stop - here.start
            if terms.simplex[t] and width > 1:
                fill_simplex(bases[t], fractions[here], strides, order, begin, places, shares)
                begin += width + 1
            else:
                fill_corners(bases[t], fractions[here], strides, begin, places, shares)
                begin += 1 << width


@lean_kernel
def fill_corners(bases, fractions, strides, begin, places, shares):
    """The corners of the cells of one term for all rows of a block, from entry `begin` on.

    Corner by corner: no row of the innermost loops waits for another.
    """
    rows = places.shape[0]
    for r in range(rows):
        places[r, begin] = bases[r]
        shares[r, begin] = 1.0
    filled = 1
    for k in range(strides.size - 1, -1, -1):
        for m in range(begin, begin + filled):
            for r in range(rows):
                share, across = shares[r, m], fractions[k, r]
                places[r, filled + m] = places[r, m] + strides[k]
                shares[r, filled + m] = share * across
                shares[r, m] = share * (1.0 - across)
        filled *= 2


@lean_kernel
def fill_simplex(bases, fractions, strides, order, begin, places, shares):
    """The same by simplices: `order` is scratch of a number per axis."""
    axes = strides.size
    for r in range(places.shape[0]):
        for k in range(axes):  # by descending fraction, ties by axis
            place = k
            while place > 0 and fractions[order[place - 1], r] < fractions[k, r]:
                order[place] = order[place - 1]
                place -= 1
            order[place] = k
        base, above = bases[r], 1.0
        for k in range(axes):
            places[r, begin + k] = base
            shares[r, begin + k] = above - fractions[order[k], r]
            base += strides[order[k]]
            above = fractions[order[k], r]
        places[r, begin + axes] = base
        shares[r, begin + axes] = above


@kernel
def evaluate_sum(
    table: np.ndarray,
    terms: Terms,
    theta: np.ndarray,
    apart: bool,
    values: np.ndarray,
) -> None:
    """theta[0] plus every term, added up in order, for every row of the table; `apart`, every term
    in a column of its own.

    Every term is monotone to the last bit where its parameters are (`evaluate_row`), and so is a
    sum that is always added up in the same order.
    """
    columns, count, axes = terms.edge_ends.size - 1, terms.axes.size - 1, terms.columns.size
    most, width = 1, 2
    for t in range(count):
        own = terms.axes[t + 1] - terms.axes[t]
        most = max(most, own)
        width = max(width, own + 1 if terms.simplex[t] and own > 1 else 1 << own)
    cells, found = np.empty((columns, BLOCK)), np.empty((columns, BLOCK), dtype=np.uint32)
    bases, fractions = np.empty((count, BLOCK), dtype=np.int64), np.empty((axes, BLOCK))
    across, order = np.empty(most), np.empty(most, dtype=np.int64)
    indices, corners = np.empty(width, dtype=np.int64), np.empty(width)
    parts, out = np.empty(max(4, 2 * most + 2)), np.empty(BLOCK)
    for first in range(0, table.shape[0], BLOCK):
        rows = min(BLOCK, table.shape[0] - first)
        locate_block(table, first, rows, terms, cells, found, bases, fractions)
        total = values[first : first + rows]
        if not apart:
            total[:] = theta[0]
        for t in range(count):
            own = slice(terms.axes[t], terms.axes[t + 1])
            strides = terms.strides[own]
            if terms.simplex[t] and strides.size > 1:
                for r in range(rows):
                    for k in range(strides.size):
                        across[k] = fractions[own.start + k, r]
                    near = across[: strides.size]
                    filled = simplex_corners(bases[t, r], near, strides, order, indices, corners)
                    out[r] = nearest_weighted_sum(corners, indices, filled, theta, parts)
            else:
                blend_rows(
                    bases[t], fractions[own], strides, theta, indices, corners, parts, out[:rows]
                )
            for r in range(rows):
                if apart:
                    total[r, t] = out[r]
                else:
                    total[r, 0] += out[r]


@lean_kernel
def blend_rows(bases, fractions, strides, theta, indices, corners, parts, out):
    """The multilinear value of every row of a block in its cell, whose lowest vertex is the
    parameter bases[r].
    """
    for r in range(out.size):
        filled = 1
        indices[0] = bases[r]
        for k in range(strides.size - 1, -1, -1):
            for m in range(filled):
                indices[filled + m] = indices[m] + strides[k]
            filled *= 2
        for m in range(filled):
            corners[m] = theta[indices[m]]
        for k in range(strides.size):
            filled //= 2
            for m in range(filled):
                blend, sure = quick_blend(corners[m], corners[filled + m], fractions[k, r])
                if not sure:
                    blend = nearest_blend(corners[m], corners[filled + m], fractions[k, r], parts)
                corners[m] = blend
        out[r] = corners[0]
