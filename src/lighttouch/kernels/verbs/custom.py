"""What users write, in kernels: objectives, constraints, rows and losses.

Python callables run interpreted, records with plain loops run compiled.
"""

from __future__ import annotations

import itertools
import math
from collections import namedtuple
from collections.abc import Callable
from contextlib import contextmanager
from typing import Any, NamedTuple

import numba
import numpy as np
from numba.core.errors import NumbaError

from lighttouch.errors import DataError
from lighttouch.kernels.compiler.compiled import interpreted, lean_kernel
from lighttouch.kernels.state.iterate import add, add_dense, add_sparse
from lighttouch.kernels.verbs.constraints import add_subgradient, worst
from lighttouch.kernels.verbs.objectives import (
    SparseExamples,
    add_gradient,
    add_loss_gradient,
    add_smooth_gradient,
    dense_prediction,
    example_value,
    register_penalties,
    sparse_prediction,
    target_of,
    weight_of,
)
from lighttouch.kernels.verbs.rows import write_row
from lighttouch.kernels.verbs.steps import register_penalty_steps, sweep, sweep_any


def name_of(function: Callable[..., Any]) -> str:
    """What messages call a user's function."""
    return str(getattr(function, "__name__", type(function).__name__))


def not_compiled(problem: NumbaError) -> str:
    """What users are told where numba cannot compile their functions."""
    lines = [line.strip() for line in str(problem).splitlines() if line.strip()]
    callers = [place for place, line in enumerate(lines[:-1]) if "Failed in nopython" in line]
    said = lines[callers[-1] + 1 :] if callers else lines  # the innermost function's own fault
    return (
        "with record=, functions must be plain loops over numbers and arrays that numba compiles; "
        f"numba says: {said[0] if said else type(problem).__name__}"
    )


@contextmanager
def refusing_what_is_not_compiled(functions: tuple[str, str], error: type[ValueError]) -> Any:
    """numba's errors about users' functions, in our words."""
    try:
        yield
    except NumbaError as problem:
        named = " and ".join(repr(name) for name in functions)
        raise error(f"the functions {named} must compile: {not_compiled(problem)}") from problem


class PythonObjective(NamedTuple):
    value: Callable[[int, np.ndarray], float]
    gradient: Callable[[int, np.ndarray], np.ndarray]


class PythonConstraints(NamedTuple):
    value: Callable[[int, np.ndarray], float]
    subgradient: Callable[[int, np.ndarray], np.ndarray]


@add_gradient.register(PythonObjective)
def _python_gradient(objective, example, w, scale, gradient):
    add_dense(gradient, _gradient(objective, example, w), scale)


@example_value.register(PythonObjective)
def _python_value(objective, example, w):
    return _number(objective.value(example, w), objective.value, example)


@worst.register(PythonConstraints)
def _python_worst(constraints, start, stop, w):
    best, member = -math.inf, start
    for j in range(start, stop):
        value = float(constraints.value(j, w))
        if value != value:  # NaN is the worst of all: it must not be taken for satisfied
            return value, j
        if value > best:
            best, member = value, j
    return best, member


@add_subgradient.register(PythonConstraints)
def _python_subgradient(constraints, member, w, scale, gradient):
    add_dense(gradient, _vector(constraints.subgradient(member, w), w.size, "subgradient"), scale)


def _number(value: Any, function: Callable[..., Any], example: int) -> float:
    """What a user's objective returned: NaN must not wander through a run to its end."""
    number = float(value)
    if number != number:
        raise DataError(
            f"value must return a number at every w of the domain: the function "
            f"{name_of(function)!r} returned nan for example {example}"
        )
    return number


def _gradient(objective: PythonObjective, example: int, w: np.ndarray) -> np.ndarray:
    vector = _vector(objective.gradient(example, w), w.size, "gradient")
    if np.isnan(vector).any():
        raise DataError(
            f"gradient must return numbers at every w of the domain: the function "
            f"{name_of(objective.gradient)!r} returned nan for example {example}"
        )
    return vector


def _vector(values: Any, dimension: int, name: str) -> np.ndarray:
    """What a user's function returned, checked: a compiled loop would read past the end of a
    shorter array.
    """
    vector = np.ascontiguousarray(values, dtype=np.float64)
    if np.shape(values) != (dimension,):
        raise ValueError(
            f"{name} must return an array of {dimension} numbers, one for each parameter; "
            f"got shape {np.shape(values)}"
        )
    return vector


# Around users' functions, which may allocate: the loops that call them are compiled without
# reference counts.
allocating: Any = numba.njit(error_model="numpy", _nrt=True)  # type: ignore[call-overload]


def compilable(function: Callable[..., Any]) -> Any:
    return function if hasattr(function, "py_func") else numba.njit(function)


@add_smooth_gradient.register(PythonObjective)
def _python_smooth_gradient(objective, example, w, scale, width, out):
    out += scale * _gradient(objective, example, w)
    return _number(objective.value(example, w), objective.value, example)


sweep.register(PythonConstraints)(sweep_any.py_func)

_CLASSES: dict[tuple[Any, ...], type] = {}
_NUMBERS = itertools.count()


def compiled_objective(
    record: Any, value: Callable[..., float], gradient: Callable[..., None]
) -> Any:
    """The user's record under a class of its own, for which the verbs call the user's functions."""
    key = ("objective", type(record), value, gradient)
    if key not in _CLASSES:
        _CLASSES[key] = own_class(record)
        _register_objective(_CLASSES[key], compilable(value), compilable(gradient))
    return _CLASSES[key](*record)


def compiled_constraints(
    record: Any, value: Callable[..., float], subgradient: Callable[..., None]
) -> Any:
    key = ("constraints", type(record), value, subgradient)
    if key not in _CLASSES:
        _CLASSES[key] = own_class(record)
        _register_constraints(_CLASSES[key], compilable(value), compilable(subgradient))
    return _CLASSES[key](*record)


def own_class(record: Any, more: tuple[str, ...] = ()) -> type:
    """A class like that of the record, with more fields where a verb needs them."""
    if not hasattr(record, "_fields"):
        raise TypeError(
            f"record must be a NamedTuple of arrays and numbers, got {type(record).__name__}"
        )
    name = f"{type(record).__name__}{next(_NUMBERS)}"  # numba tells classes apart by their names
    own = namedtuple(name, (*record._fields, *more))  # type: ignore[misc]
    own.__module__ = "users"  # anything outside the package: its machine code stays in this process
    return own


def _register_objective(own: type, value: Any, gradient: Any) -> None:
    @allocating
    def add_through_array(objective, example, w, scale, gradient_):
        out = np.zeros(w.size)
        gradient(objective, example, w, out)
        add_dense(gradient_, out, scale)

    @add_gradient.register(own)
    def add_users_gradient(objective, example, w, scale, gradient_):
        add_through_array(objective, example, w, scale, gradient_)

    @allocating
    def value_of(objective, example, w):
        return value(objective, example, w)

    @example_value.register(own)
    def users_value(objective, example, w):
        return value_of(objective, example, w)

    @allocating
    def add_smooth_through_array(objective, example, w, scale, out):
        gradient_ = np.zeros(w.size)
        gradient(objective, example, w, gradient_)
        out += scale * gradient_
        return value(objective, example, w)

    @add_smooth_gradient.register(own)
    def add_users_smooth_gradient(objective, example, w, scale, width, out):
        return add_smooth_through_array(objective, example, w, scale, out)


def _register_constraints(own: type, value: Any, subgradient: Any) -> None:
    sweep.register(own)(sweep_any.py_func)

    @allocating
    def value_of(constraints, j, w):
        return value(constraints, j, w)

    @worst.register(own)
    def users_worst(constraints, start, stop, w):
        best = -math.inf
        member = start
        for j in range(start, stop):
            found = value_of(constraints, j, w)
            if found != found:  # NaN is the worst of all: it must not be taken for satisfied
                return found, j
            if found > best:
                best = found
                member = j
        return best, member

    @allocating
    def add_through_array(constraints, member, w, scale, gradient):
        out = np.zeros(w.size)
        subgradient(constraints, member, w, out)
        add_dense(gradient, out, scale)

    @add_subgradient.register(own)
    def add_users_subgradient(constraints, member, w, scale, gradient):
        add_through_array(constraints, member, w, scale, gradient)


# -------------------------------------------------------------------------------------------------
# Linear rows that a user's function writes from their numbers: nothing of them is stored.
#
# A record class of its own is made for every function, as above, and the verbs for it call
# the function. It writes into two short arrays, which are made per call rather than kept: two
# threads may ask the same constraints. A column out of range, or too many entries, makes the value
# NaN, which the caller turns into an error; it would otherwise read past the end of w.


class PythonRows(NamedTuple):
    """Rows written by a function that runs interpreted."""

    record: Any
    row: Callable[..., tuple[int, float]]
    entries: int
    dimension: int


ROOM = ("room_entries", "room_dimension")  # the fields added to a user's record


def generated_rows(
    record: Any, row: Callable[..., tuple[int, float]], entries: int, dimension: int
) -> Any:
    """The user's record under a class for which the verbs call the user's function; two more fields
    say how long rows are, so that one compiled function serves all lengths.
    """
    key = ("rows", type(record), row)
    if key not in _CLASSES:
        _CLASSES[key] = own_class(record, ROOM)
        _register_rows(_CLASSES[key], compilable(row))
    return _CLASSES[key](*record, entries, dimension)


@lean_kernel
def fits(many, columns, dimension):
    """Whether a row has places for all its entries, and parameters for all its columns."""
    if many < 0 or many > columns.size:
        return False
    for k in range(many):
        if columns[k] < 0 or columns[k] >= dimension:
            return False
    return True


@lean_kernel
def excess_of(many, right, columns, values, w):
    """columns and values times w, minus the right side; NaN where they do not fit."""
    if not fits(many, columns, w.size):
        return math.nan
    total = 0.0
    for k in range(many):
        total += values[k] * w[columns[k]]
    return total - right


@lean_kernel
def add_row(gradient, many, columns, values, scale):
    for k in range(many):
        add(gradient, columns[k], scale * values[k])


def _register_rows(own: type, row: Any) -> None:
    sweep.register(own)(sweep_any.py_func)

    @allocating
    def write(constraints, j, columns, values):
        many, right = row(constraints, j, columns, values)
        if not fits(many, columns, constraints.room_dimension):
            return 0, math.nan
        return many, right

    @write_row.register(own)
    def write_users_row(constraints, j, columns, values):
        return write(constraints, j, columns, values)

    @allocating
    def worst_of(constraints, start, stop, w):
        columns = np.empty(constraints.room_entries, np.int64)
        values = np.empty(constraints.room_entries)
        best = -math.inf
        member = start
        for j in range(start, stop):
            many, right = row(constraints, j, columns, values)
            found = excess_of(many, right, columns, values, w)
            if found != found:  # NaN is the worst of all: it must not be taken for satisfied
                return found, j
            if found > best:
                best = found
                member = j
        return best, member

    @worst.register(own)
    def worst_of_users_rows(constraints, start, stop, w):
        return worst_of(constraints, start, stop, w)

    @allocating
    def add_users_row(constraints, member, scale, gradient):
        columns = np.empty(constraints.room_entries, np.int64)
        values = np.empty(constraints.room_entries)
        many, _ = row(constraints, member, columns, values)
        if fits(many, columns, constraints.room_dimension):
            add_row(gradient, many, columns, values, scale)

    @add_subgradient.register(own)
    def add_users_subgradient(constraints, member, w, scale, gradient):
        add_users_row(constraints, member, scale, gradient)


@write_row.register(PythonRows)
def _write_python_row(constraints, j, columns, values):
    many, right = constraints.row(constraints.record, j, columns, values)
    if not fits.py_func(many, columns, constraints.dimension):
        return 0, math.nan
    return int(many), float(right)


@worst.register(PythonRows)
def _worst_python_row(constraints, start, stop, w):
    columns, values = np.empty(constraints.entries, np.int64), np.empty(constraints.entries)
    best, member = -math.inf, start
    for j in range(start, stop):
        many, right = _write_python_row(constraints, j, columns, values)
        found = excess_of.py_func(many, right, columns, values, w)
        if found != found:
            return found, j
        if found > best:
            best, member = found, j
    return best, member


@add_subgradient.register(PythonRows)
def _add_python_row(constraints, member, w, scale, gradient):
    columns, values = np.empty(constraints.entries, np.int64), np.empty(constraints.entries)
    many, _ = _write_python_row(constraints, member, columns, values)
    for k in range(many):
        add(gradient, columns[k], scale * values[k])


sweep.register(PythonRows)(sweep_any.py_func)


# -------------------------------------------------------------------------------------------------
# Losses that users write as functions of (z, y), compiled into the loops or called from Python.
#
# A loss of the table is chosen by its number. A user's loss has no number: its examples get a
# record class of their own, for which the verbs call the user's functions.


_LOOPS: dict[Any, Callable[..., Any]] = {}


def examples_with_loss(record: Any, value: Any, slope: Any, compiled: bool) -> Any:
    """The examples under a record class of their own, whose loss is the user's."""
    key = ("loss", type(record), value, slope, compiled)
    if key not in _CLASSES:
        own = _CLASSES[key] = own_class(record)
        register_penalties(own)
        register_penalty_steps(own)
        functions = (_scalar(value), _scalar(slope)) if compiled else (value, slope)
        kernels = SPARSE if isinstance(record, SparseExamples) else DENSE
        _register_loss(own, *functions, compiled, kernels)
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


def _register_loss(
    own: type, value: Any, slope: Any, compiled: bool, kernels: tuple[Any, ...]
) -> None:
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
