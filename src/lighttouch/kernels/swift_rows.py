"""The two halves of a fast stochastic step: gather the gradient of a run of examples, step on the coordinates they touch."""

from __future__ import annotations

import math

from lighttouch.kernels.compiled import lean_kernel, verb
from lighttouch.kernels.losses import slope
from lighttouch.kernels.objectives import (
    DenseExamples,
    DenseQuadratic,
    SparseExamples,
    SparseQuadratic,
    add_smooth_gradient,
    sparse_dot,
    target_of,
    weight_of,
)

BUFFER, SQUARES, RATE = 0, 1, 2  # a coordinate's gradient being gathered, its squared gradients, its step length: one cache line
STALE = 1.1  # AdaGrad's root is taken anew when its argument has grown by this factor


@verb
def add_rows(objective, first, last, share, w, cells):
    """Add share times the gradients of the examples first <= i < last to the cells."""


@verb
def step_on_rows(objective, first, last, w, cells, domain, eta):
    """An AdaGrad step on the coordinates that the examples first <= i < last touch; it empties their buffers."""


@lean_kernel
def adagrad_rate(cells, j, value, eta):
    """Remember a gradient; eta over the root of all squares, renewed only when it has become 5% stale."""
    square = cells[j, SQUARES] + value * value
    cells[j, SQUARES] = square
    rate = cells[j, RATE]
    if square * rate * rate > STALE * eta * eta:
        rate = eta / math.sqrt(square)
        cells[j, RATE] = rate
    return rate


@lean_kernel
def add_any_rows(objective, first, last, share, w, cells):
    for example in range(first, last):
        add_smooth_gradient(objective, example, w, share, 0.0, cells[:, BUFFER])


@lean_kernel
def step_on_no_rows(objective, first, last, w, cells, domain, eta):
    return None


@add_rows.register(SparseExamples)
def _add_sparse_rows(objective, first, last, share, w, cells):
    data = objective.data
    indices = objective.indices
    for example in range(first, last):
        start = objective.indptr[example]
        stop = objective.indptr[example + 1]
        z = sparse_dot(data, indices, start, stop, w)
        steepness = slope(objective.kind, objective.level, z, target_of(objective.targets, example))
        steepness *= weight_of(objective.weights, example) * share
        if steepness != 0.0:
            for k in range(start, stop):
                cells[indices[k], BUFFER] += steepness * data[k]


@step_on_rows.register(SparseExamples)
def _step_on_sparse_rows(objective, first, last, w, cells, domain, eta):
    indices = objective.indices
    uniform = domain.lower.size == 1 and domain.upper.size == 1
    lower = domain.lower[0]
    upper = domain.upper[0]
    for k in range(objective.indptr[first], objective.indptr[last]):
        j = indices[k]
        value = cells[j, BUFFER]
        if value != 0.0:
            cells[j, BUFFER] = 0.0
            moved = w[j] - adagrad_rate(cells, j, value, eta) * value
            if uniform:
                w[j] = min(max(moved, lower), upper)
            else:
                low = domain.lower[j] if domain.lower.size > 1 else lower
                high = domain.upper[j] if domain.upper.size > 1 else upper
                w[j] = min(max(moved, low), high)


for _family in (DenseExamples, DenseQuadratic, SparseQuadratic):
    add_rows.register(_family)(add_any_rows.py_func)
    step_on_rows.register(_family)(step_on_no_rows.py_func)
