"""Objectives and constraints that users write: Python callables run interpreted, records with plain
loops run compiled.
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
from lighttouch.kernels.state.iterate import add_dense
from lighttouch.kernels.verbs.constraint_steps import sweep, sweep_any
from lighttouch.kernels.verbs.constraints import add_subgradient, worst
from lighttouch.kernels.verbs.objectives import add_gradient, add_smooth_gradient, example_value


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
