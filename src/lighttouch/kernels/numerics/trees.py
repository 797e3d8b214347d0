"""Binary trees of one depth over binned columns: grown on slopes and curvatures, and evaluated.

Gradient boosting (Friedman 2001) with Newton steps in the leaves and splits by histograms (Chen and
Guestrin 2016).

Node i has the children 2 i + 1 and 2 i + 2. A row goes to the second one where the bin of the
node's column is above its cut. A node that is not split has the cut 255, which no bin is above.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lighttouch.kernels.compiler.compiled import lean_kernel

BLOCK = 256  # rows that go down a tree together, or are binned together
NO_CUT = 255


@lean_kernel
def add_to_bins(places, rows, first, last, steps, sums):
    """sums[b] += slope and curvature of every row that is in bin b, for the bins of all columns.

    Row by row, so that the two numbers of a row are fetched once for all columns.
    """
    for k in range(first, last):
        i = np.uint64(rows[k])
        slope, curvature = steps[i, 0], steps[i, 1]
        for c in range(places.shape[1]):
            b = np.uint64(places[i, c])
            sums[b, 0] += slope
            sums[b, 1] += curvature


@lean_kernel
def clipped(value, low, high):
    return min(max(value, low), high)


@lean_kernel
def gain_of(slope, curvature, value):
    """How much a step of this size lowers the quadratic model."""
    return -value * (slope + 0.5 * curvature * value)


@lean_kernel
def best_split(sums, starts, signs, pull, least, low, high):
    """The column, the cut and the value between both sides of the best split of a node whose values
    lie in low..high; column -1 where none gains. Each side has at least a share `least` of the
    node's curvature.

    A column with a sign is split only where the second side's value is not below (not above) the
    first one's.
    """
    slope = curvature = 0.0
    for b in range(starts[1]):
        slope += sums[b, 0]
        curvature += sums[b, 1]
    fewest, most = least * curvature, (1.0 - least) * curvature
    whole = gain_of(slope, curvature + pull, clipped(-slope / (curvature + pull), low, high))
    best, column, cut, between = whole + 1e-12 * abs(whole), -1, NO_CUT, 0.0
    for c in range(signs.size):
        s = k = 0.0
        for b in range(starts[c], starts[c + 1] - 1):
            s += sums[b, 0]
            k += sums[b, 1]
            if k < fewest:
                continue
            if k > most:
                break
            others, first, second = slope - s, k + pull, curvature - k + pull
            # Values without limits gain s^2 / (2 k) on both sides, and no others gain more.
            if 0.5 * (s * s * second + others * others * first) <= best * (first * second):
                continue
            left, right = clipped(-s / first, low, high), clipped(-others / second, low, high)
            if signs[c] * (right - left) < 0.0:
                continue
            gain = gain_of(s, first, left) + gain_of(others, second, right)
            if gain > best:
                best, column, cut, between = gain, c, b - starts[c], 0.5 * (left + right)
    return column, cut, between


@lean_kernel
def parted(codes, column, cut, rows, first, last, spare):
    """Bring the rows of the first child to the front, each side in its order; where the second
    begins.
    """
    own = codes[column]
    middle = first
    others = 0
    for k in range(first, last):
        i = rows[k]
        above = own[i] > cut
        spare[others] = i
        rows[middle] = i
        others += above
        middle += 1 - above
    for k in range(others):
        rows[middle + k] = spare[k]
    return middle


class Room(NamedTuple):
    """Scratch of a tree, one entry per row (first two), per level or per node."""

    rows: np.ndarray  # those of every node follow each other
    spare: np.ndarray
    sums: np.ndarray  # of the bins of all columns: slopes, curvatures; one per level
    todo: np.ndarray  # nodes to look at, and where their sums are
    spans: np.ndarray  # where the rows of a node begin and end
    ends: np.ndarray  # what its values must lie between


@lean_kernel
def grow_tree(
    places,
    by_column,
    starts,
    signs,
    steps,
    pull,
    least_rows,
    share,
    rate,
    room,
    columns,
    cuts,
    values,
    score,
):
    """Fill the columns and cuts of a tree and the values of its leaves, shares `rate` of Newton
    steps in the order that the signs ask for, and add them to the score of every row. `steps` are
    slopes and curvatures. The bins of column c are those from starts[c] on; `places` has the bin of
    every row and column, `by_column` its number among the column's own.

    What a monotone column's split separates stays on either side of the value between its two
    sides, in all levels below.

    The child with fewer rows is looked at first. Its sums come after those of its parent, where the
    other child's are left: what is read is what was written last, and still in the cache.
    """
    rows, sums, todo, spans, ends = room.rows, room.sums, room.todo, room.spans, room.ends
    for i in range(rows.size):
        rows[i] = i
    columns[:], cuts[:] = 0, NO_CUT
    spans[0, 0], spans[0, 1] = 0, rows.size
    ends[0, 0], ends[0, 1] = -np.inf, np.inf
    sums[0] = 0.0
    add_to_bins(places, rows, 0, rows.size, steps, sums[0])
    todo[0, 0] = todo[0, 1] = 0
    waiting = 1 if rows.size >= 2 * least_rows else 0
    while waiting > 0:
        waiting -= 1
        node, here = todo[waiting, 0], todo[waiting, 1]
        first, last = spans[node, 0], spans[node, 1]
        low, high = ends[node, 0], ends[node, 1]
        least = max(share, least_rows / (last - first))
        column, cut, between = best_split(sums[here], starts, signs, pull, least, low, high)
        if column < 0:
            continue
        middle = parted(by_column, column, cut, rows, first, last, room.spare)
        columns[node], cuts[node] = column, cut
        left, right = 2 * node + 1, 2 * node + 2
        spans[left, 0], spans[left, 1] = first, middle
        spans[right, 0], spans[right, 1] = middle, last
        ends[left, 0], ends[left, 1] = low, high
        ends[right, 0], ends[right, 1] = low, high
        if signs[column] > 0:
            ends[left, 1] = ends[right, 0] = between
        if signs[column] < 0:
            ends[left, 0] = ends[right, 1] = between
        small, large = left, right
        if last - middle < middle - first:
            small, large = right, left
        if right >= columns.size or spans[large, 1] - spans[large, 0] < 2 * least_rows:
            continue  # neither side is split again
        part, whole = sums[here + 1], sums[here]
        part[:] = 0.0
        add_to_bins(places, rows, spans[small, 0], spans[small, 1], steps, part)
        for b in range(part.shape[0]):
            whole[b, 0] -= part[b, 0]
            whole[b, 1] -= part[b, 1]
        todo[waiting, 0], todo[waiting, 1] = large, here
        waiting += 1
        if spans[small, 1] - spans[small, 0] >= 2 * least_rows:
            todo[waiting, 0], todo[waiting, 1] = small, here + 1
            waiting += 1
    for node in range(columns.size):
        if cuts[node] == NO_CUT:  # all of its rows go to its first child
            left, right = 2 * node + 1, 2 * node + 2
            spans[left, 0], spans[left, 1] = spans[node, 0], spans[node, 1]
            spans[right, 0] = spans[right, 1] = spans[node, 1]
            ends[left, 0] = ends[right, 0] = ends[node, 0]
            ends[left, 1] = ends[right, 1] = ends[node, 1]
    for leaf in range(values.size):
        node = columns.size + leaf
        s = k = 0.0
        for r in range(spans[node, 0], spans[node, 1]):
            s += steps[rows[r], 0]
            k += steps[rows[r], 1]
        if spans[node, 1] > spans[node, 0]:
            values[leaf] = rate * clipped(-s / (k + pull), ends[node, 0], ends[node, 1])
        else:
            values[leaf] = values[leaf - 1]  # no row comes here: the node above is not split
        for r in range(spans[node, 0], spans[node, 1]):
            score[rows[r]] += values[leaf]


@lean_kernel
def fill_codes(table, edges, counts, gaps, at, out):
    """out[r, c] = gaps[c] where the cell is missing, 0 where the column has no edges, else 1 and
    the number of edges below it.

    The rows of a block take each step of the binary search together, so that none waits for
    another; `at` is scratch of `BLOCK` numbers.
    """
    for begin in range(0, table.shape[0], BLOCK):
        rows, codes = table[begin : begin + BLOCK], out[begin : begin + BLOCK]
        for c in range(table.shape[1]):
            own = edges[c]
            at[:] = 0
            length = np.uint32(counts[c] + 1)  # numbers that are still possible
            while length > 1:
                half = length // np.uint32(2)
                for r in range(rows.shape[0]):
                    more = np.uint64(at[r] + half)
                    at[r] = more if own[more - np.uint64(1)] < rows[r, c] else at[r]
                length -= half
            for r in range(rows.shape[0]):
                codes[r, c] = gaps[c] if np.isnan(rows[r, c]) else at[r] + np.uint32(counts[c] > 0)


@lean_kernel
def add_trees(codes, columns, cuts, values, at, out):
    """Add the leaf of every tree to out[r], in the order of the trees.

    A block of rows goes down a tree level by level, so that no row waits for another; `at`, scratch
    of `BLOCK` numbers, is where each of them is. Places are unsigned: no negative ones are looked
    for, which would take three times as long.
    """
    inner = columns.shape[1]
    depth = 0
    while 2**depth - 1 < inner:
        depth += 1
    for begin in range(0, codes.shape[0], BLOCK):
        rows, sums = codes[begin : begin + BLOCK], out[begin : begin + BLOCK]
        for t in range(columns.shape[0]):
            column, cut, leaves = columns[t], cuts[t], values[t]
            at[:] = 0
            for _ in range(depth):
                for r in range(rows.shape[0]):
                    i = np.uint64(at[r])
                    right = rows[r, np.uint64(column[i])] > cut[i]
                    at[r] = i + i + np.uint64(1) + np.uint64(right)
            for r in range(rows.shape[0]):
                sums[r] += leaves[np.uint64(at[r]) - np.uint64(inner)]
