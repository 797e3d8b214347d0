"""Monotonicity of a lattice without stored rows: every row is found from its number.

Rows are grouped by feature, and within a feature in C order of the lower vertex, so that the rows
of one feature form strips: `spans[f]` neighbouring rows compare w[a : a + span] with w[a + stride :
a + stride + span], and strips are `jumps[f]` apart. A strip is a vector maximum.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from lighttouch.kernels.compiler.compiled import lean_kernel, vector_kernel
from lighttouch.kernels.state.iterate import add
from lighttouch.kernels.verbs.constraints import add_subgradient, worst
from lighttouch.kernels.verbs.rows import write_row
from lighttouch.kernels.verbs.steps import part_pair, sweep


class LatticeOrder(NamedTuple):
    """Feature f has the rows starts[f] .. starts[f + 1]; signs[f] is +1 for increasing and -1 for
    decreasing.
    """

    starts: np.ndarray
    strides: np.ndarray
    spans: np.ndarray
    jumps: np.ndarray
    signs: np.ndarray


@lean_kernel
def feature_of(starts, j):
    feature = 0
    while starts[feature + 1] <= j:
        feature += 1
    return feature


@lean_kernel
def lower_vertex(constraints, feature, j):
    place = j - constraints.starts[feature]
    return (
        place // constraints.spans[feature] * constraints.jumps[feature]
        + place % constraints.spans[feature]
    )


@lean_kernel
def strips_from(constraints, j, stop):
    """The strips of row j's feature from that row on: the feature, the row where they end, and the
    lower vertex and the length of the first of them.
    """
    feature = feature_of(constraints.starts, j)
    base = lower_vertex(constraints, feature, j)
    length = constraints.spans[feature] - base % constraints.jumps[feature]
    return feature, min(stop, constraints.starts[feature + 1]), base, length


@worst.register(LatticeOrder)
def _worst_in_lattice(constraints, start, stop, w):
    best = -math.inf
    member = start
    j = start
    while j < stop:
        feature, end, base, length = strips_from(constraints, j, stop)
        stride = constraints.strides[feature]
        span = constraints.spans[feature]
        sign = constraints.signs[feature]
        while j < end:
            length = min(length, end - j)
            value = (
                strip_maximum(w, base, stride, length, sign)
                if length >= 8
                else short_maximum(w, base, stride, length, sign)
            )
            if value > best:
                best = value
                member = j + strip_place(w, base, stride, length, sign, value)
            j += length
            base += length + stride
            length = span
    return best, member


@vector_kernel
def strip_maximum(w, base, stride, length, sign):
    low = w[base : base + length]
    high = w[base + stride : base + stride + length]
    best = -math.inf
    for q in range(length):
        best = max(best, sign * (low[q] - high[q]))
    return best


@lean_kernel
def short_maximum(w, base, stride, length, sign):
    best = sign * (w[base] - w[base + stride])
    for q in range(base + 1, base + length):
        value = sign * (w[q] - w[q + stride])
        if value > best:
            best = value
    return best


@lean_kernel
def strip_place(w, base, stride, length, sign, value):
    for q in range(length):
        if sign * (w[base + q] - w[base + q + stride]) == value:
            return q
    return 0


@add_subgradient.register(LatticeOrder)
def _subgradient_in_lattice(constraints, member, w, scale, gradient):
    feature = feature_of(constraints.starts, member)
    low = lower_vertex(constraints, feature, member)
    push = scale * constraints.signs[feature]
    add(gradient, low, push)
    add(gradient, low + constraints.strides[feature], -push)


@write_row.register(LatticeOrder)
def _write_lattice_row(constraints, j, columns, values):
    feature = feature_of(constraints.starts, j)
    low = lower_vertex(constraints, feature, j)
    columns[0] = low
    values[0] = constraints.signs[feature]
    columns[1] = low + constraints.strides[feature]
    values[1] = -constraints.signs[feature]
    return 2, 0.0


@sweep.register(LatticeOrder)
def _sweep_lattice(constraints, start, stop, w, squares, domain, gradient):
    largest = 0.0
    j = start
    while j < stop:
        feature, end, base, length = strips_from(constraints, j, stop)
        stride = constraints.strides[feature]
        span = constraints.spans[feature]
        while j < end:
            length = min(length, end - j)
            if constraints.signs[feature] > 0.0:
                largest = max(largest, sweep_strip(w, squares, domain, base, length, stride, 0))
            else:
                largest = max(largest, sweep_strip(w, squares, domain, base, length, 0, stride))
            j += length
            base += length + stride
            length = span
    return largest


@lean_kernel
def sweep_strip(w, squares, domain, base, length, above, below):
    """Part every pair of a strip that is the wrong way round: w[q + below] must not exceed w[q +
    above].
    """
    largest = 0.0
    for q in range(base, base + length):
        violation = w[q + below] - w[q + above]
        if violation > 0.0:
            largest = max(largest, violation)
            part_pair(violation, q + below, q + above, w, squares, domain)
    return largest
