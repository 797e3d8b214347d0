"""Losses that users write as functions of (z, y), compiled into the loops or called from Python.

A loss of the table is chosen by its number. A user's loss has no number: its examples get a record
class of their own, for which the verbs call the user's functions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
import numpy as np

from lighttouch.kernels.compiler.compiled import interpreted, lean_kernel
from lighttouch.kernels.state.iterate import add_dense, add_sparse
from lighttouch.kernels.verbs.custom import allocating, compilable, own_class
from lighttouch.kernels.verbs.example_steps import register_penalty_steps
from lighttouch.kernels.verbs.objectives import (
    SparseExamples,
    add_loss_gradient,
    add_smooth_gradient,
    dense_prediction,
    example_value,
    register_penalties,
    sparse_prediction,
    target_of,
    weight_of,
)

_CLASSES: dict[tuple[Any, ...], type] = {}
_LOOPS: dict[Any, Callable[..., Any]] = {}


def examples_with_loss(record: Any, value: Any, slope: Any, compiled: bool) -> Any:
    """The examples under a record class of their own, whose loss is the user's."""
    key = (type(record), value, slope, compiled)
    if key not in _CLASSES:
        own = _CLASSES[key] = own_class(record)
        register_penalties(own)
        register_penalty_steps(own)
        functions = (_scalar(value), _scalar(slope)) if compiled else (value, slope)
        kernels = SPARSE if isinstance(record, SparseExamples) else DENSE
        _register(own, *functions, compiled, kernels)
    return _CLASSES[key](*record)


def loop_over(function: Callable[..., float], compiled: bool) -> Callable[..., Any]:
    """The function at every pair of two vectors."""
    if not compiled:
        return lambda z, y: np.array([float(function(a, b)) for a, b in zip(z, y, strict=True)])
    if function not in _LOOPS:
        scalar = _scalar(function)

        @numba.njit(error_model="numpy")
        def loop(z, y):
            out = np.empty(z.size)
            for i in range(z.size):
                out[i] = scalar(z[i], y[i])
            return out

        _LOOPS[function] = loop
    return _LOOPS[function]


def _scalar(function: Callable[..., float]) -> Any:
    compiled = compilable(function)

    @allocating
    def scalar(z, y):
        return float(compiled(z, y))

    return scalar


@lean_kernel
def _push_dense(objective, example, steepness, gradient):
    add_dense(gradient, objective.X[example], steepness)


@lean_kernel
def _push_sparse(objective, example, steepness, gradient):
    start, stop = objective.indptr[example], objective.indptr[example + 1]
    add_sparse(gradient, objective.data, objective.indices, start, stop, steepness)


@lean_kernel
def _add_dense_to(objective, example, steepness, out):
    for j in range(out.size):
        out[j] += steepness * objective.X[example, j]


@lean_kernel
def _add_sparse_to(objective, example, steepness, out):
    for k in range(objective.indptr[example], objective.indptr[example + 1]):
        out[objective.indices[k]] += steepness * objective.data[k]


DENSE = (dense_prediction, _push_dense, _add_dense_to)
SPARSE = (sparse_prediction, _push_sparse, _add_sparse_to)


def _register(own: type, value: Any, slope: Any, compiled: bool, kernels: tuple[Any, ...]) -> None:
    """The verbs of examples whose loss is the user's; `kernels` read one example."""
    predict, push, add = kernels if compiled else map(interpreted, kernels)

    @example_value.register(own)
    def users_value(objective, example, w):
        z = predict(objective, example, w)
        y = target_of(objective.targets, example)
        return weight_of(objective.weights, example) * value(z, y)

    @add_loss_gradient.register(own)
    def add_users_gradient(objective, example, w, scale, gradient):
        z = predict(objective, example, w)
        y = target_of(objective.targets, example)
        steepness = slope(z, y) * (weight_of(objective.weights, example) * scale)
        if steepness != 0.0:
            push(objective, example, steepness, gradient)

    @add_smooth_gradient.register(own)
    def add_users_smooth_gradient(objective, example, w, scale, width, out):
        z = predict(objective, example, w)
        y = target_of(objective.targets, example)
        weight = weight_of(objective.weights, example)
        steepness = slope(z, y) * (weight * scale)
        if steepness != 0.0:
            add(objective, example, steepness, out)
        return weight * value(z, y)
