"""The two halves of a fast stochastic step: gather the gradient of a run of examples, step on the coordinates they touch."""

from __future__ import annotations

import math

from lighttouch.kernels.compiled import lean_kernel, verb
from lighttouch.kernels.domains import clamp
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
from lighttouch.kernels.prefetch import prefetch

BUFFER, SQUARES = 0, 1  # a coordinate's gradient being gathered, and its squared gradients, side by side in memory
LINE = 64  # bytes that memory delivers at once


@verb
def fetch_rows(objective, first, last):
    """Ask for the examples first <= i < last, so that several runs are on their way while the first is being read."""


@verb
def fetch_cells(objective, first, last, w, cells):
    """Ask for the coordinates that the examples first <= i < last touch."""


@verb
def add_rows(objective, first, last, share, w, cells):
    """Add share times the gradients of the examples first <= i < last to the cells."""


@verb
def step_on_rows(objective, first, last, w, cells, domain, eta):
    """An AdaGrad step on the coordinates that the examples first <= i < last touch; it empties their buffers."""


@lean_kernel
def adagrad_step(cells, j, value, eta):
    """Remember a gradient and return the step it asks for. A zero gradient passes through: no branch is as fast as none."""
    square = cells[j, SQUARES] + value * value
    cells[j, SQUARES] = square
    return eta / math.sqrt(square) * value


@lean_kernel
def mobility(cells, j):
    """How far coordinate j moves for a unit of force, up to a factor that all coordinates share."""
    return 1.0 / math.sqrt(cells[j, SQUARES])


@lean_kernel
def add_any_rows(objective, first, last, share, w, cells):
    for example in range(first, last):
        add_smooth_gradient(objective, example, w, share, 0.0, cells[:, BUFFER])


@lean_kernel
def step_on_no_rows(objective, first, last, w, cells, domain, eta):
    return None


@lean_kernel
def fetch_no_rows(objective, first, last):
    return None


@fetch_rows.register(SparseExamples)
def _fetch_sparse_rows(objective, first, last):
    start = objective.indptr[first]
    stop = objective.indptr[last]
    for k in range(start, stop, LINE // objective.data.itemsize):
        prefetch(objective.data, k)
    for k in range(start, stop, LINE // objective.indices.itemsize):
        prefetch(objective.indices, k)


@lean_kernel
def fetch_no_cells(objective, first, last, w, cells):
    return None


@fetch_cells.register(SparseExamples)
def _fetch_sparse_cells(objective, first, last, w, cells):
    for k in range(objective.indptr[first], objective.indptr[last]):
        j = objective.indices[k]
        prefetch(w, j)
        prefetch(cells, j)


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
        moved = w[j] - adagrad_step(cells, j, cells[j, BUFFER], eta)
        cells[j, BUFFER] = 0.0
        if uniform:
            w[j] = min(max(moved, lower), upper)
        else:
            w[j] = clamp(domain, j, moved)


for _family in (DenseExamples, DenseQuadratic, SparseQuadratic):
    fetch_rows.register(_family)(fetch_no_rows.py_func)
    fetch_cells.register(_family)(fetch_no_cells.py_func)
    add_rows.register(_family)(add_any_rows.py_func)
    step_on_rows.register(_family)(step_on_no_rows.py_func)
