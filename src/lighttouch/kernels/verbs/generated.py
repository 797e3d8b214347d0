"""Linear rows that a user's function writes from their numbers: nothing of them is stored.

A record class of its own is made for every function, as in `custom.py`, and the verbs for it call
the function. It writes into two short arrays, which are made per call rather than kept: two threads
may ask the same constraints. A column out of range, or too many entries, makes the value NaN, which
the caller turns into an error; it would otherwise read past the end of w.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from lighttouch.kernels.compiler.compiled import lean_kernel
from lighttouch.kernels.state.iterate import add
from lighttouch.kernels.verbs.constraint_steps import sweep, sweep_any
from lighttouch.kernels.verbs.constraints import add_subgradient, worst
from lighttouch.kernels.verbs.custom import allocating, compilable, own_class
from lighttouch.kernels.verbs.rows import write_row


class PythonRows(NamedTuple):
    """Rows written by a function that runs interpreted."""

    record: Any
    row: Callable[..., tuple[int, float]]
    entries: int
    dimension: int


ROOM = ("room_entries", "room_dimension")  # the fields added to a user's record

_CLASSES: dict[tuple[Any, ...], type] = {}


def generated_rows(
    record: Any, row: Callable[..., tuple[int, float]], entries: int, dimension: int
) -> Any:
    """The user's record under a class for which the verbs call the user's function; two more fields
    say how long rows are, so that one compiled function serves all lengths.
    """
    key = (type(record), row)
    if key not in _CLASSES:
        _CLASSES[key] = own_class(record, ROOM)
        _register(_CLASSES[key], compilable(row))
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


def _register(own: type, row: Any) -> None:
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
