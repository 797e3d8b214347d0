"""SHA-256 of what a run depends on: arrays, numbers, records of them, and functions by their code.

Two values with the same fingerprint are the same to the last bit, whatever process made them.
"""

from __future__ import annotations

import dataclasses
import hashlib
import types
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import scipy.sparse

_DEEPEST = 50  # levels of nesting: what is deeper refers to itself


def fingerprint(value: object) -> str:
    """64 hexadecimal digits."""
    digest = hashlib.sha256()
    _feed(digest.update, value, 0)
    return digest.hexdigest()


def _feed(update: Callable[[Any], None], value: object, depth: int) -> None:
    if depth > _DEEPEST:
        return
    for kind, feed in _FEEDERS:
        if isinstance(value, kind):
            feed(update, value, depth + 1)
            return
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        _feed_mapping(update, {f.name: getattr(value, f.name) for f in dataclasses.fields(value)},
                      depth + 1)  # fmt: skip
        return
    _feed_function(update, value, depth + 1)


def _feed_text(update: Callable[[Any], None], value: object, depth: int) -> None:
    """Numbers, text and None, with their type: 1, 1.0 and "1" are three things."""
    text = repr(value.item() if isinstance(value, np.generic) else value)
    update(f"{type(value).__name__}:{len(text)}:{text};".encode("utf-8", "surrogatepass"))


def _feed_array(update: Callable[[Any], None], array: Any, depth: int) -> None:
    update(f"array{array.dtype.str}{array.shape};".encode())
    if array.dtype.kind in "OV":
        _feed_sequence(update, array.ravel().tolist(), depth)
    elif array.size:
        update(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)


def _feed_sparse(update: Callable[[Any], None], matrix: Any, depth: int) -> None:
    rows = scipy.sparse.csr_matrix(matrix)
    update(f"sparse{rows.shape};".encode())
    for part in (rows.data, rows.indices.astype(np.int64), rows.indptr.astype(np.int64)):
        _feed_array(update, part, depth)


def _feed_sequence(update: Callable[[Any], None], values: Any, depth: int) -> None:
    update(f"sequence{len(values)};".encode())
    for each in values:
        _feed(update, each, depth)


def _feed_mapping(update: Callable[[Any], None], values: Mapping[Any, Any], depth: int) -> None:
    update(f"mapping{len(values)};".encode())
    for name, each in values.items():
        _feed(update, name, depth)
        _feed(update, each, depth)


def _feed_function(update: Callable[[Any], None], value: Any, depth: int) -> None:
    """A function by its code, constants and what it closes over; another object by its class and
    what it holds.
    """
    function = getattr(value, "py_func", getattr(value, "__func__", value))
    code = getattr(function, "__code__", None)
    if code is None:
        kind = type(value)
        update(f"object {kind.__module__}.{kind.__qualname__};".encode())
        held = getattr(value, "__dict__", {})
        _feed_mapping(update, {k: v for k, v in held.items() if not k.startswith("_")}, depth)
        return
    _feed_code(update, code, depth)
    _feed_sequence(update, function.__defaults__ or (), depth)
    cells = [cell.cell_contents for cell in function.__closure__ or () if _is_filled(cell)]
    _feed_sequence(update, cells, depth)
    if owner := getattr(value, "__self__", None):
        _feed(update, owner, depth)


def _feed_code(update: Callable[[Any], None], code: types.CodeType, depth: int) -> None:
    update(b"code" + code.co_code + repr(code.co_names).encode())
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            _feed_code(update, constant, depth)
        elif not isinstance(constant, frozenset):  # whose order differs between processes
            _feed_text(update, constant, depth)


def _is_filled(cell: Any) -> bool:
    try:
        return cell.cell_contents is not None
    except ValueError:
        return False


_FEEDERS: list[tuple[Any, Callable[[Callable[[Any], None], Any, int], None]]] = [
    ((type(None), bool, int, float, complex, str, bytes, np.generic), _feed_text),
    (np.ndarray, _feed_array),
    ((scipy.sparse.spmatrix, scipy.sparse.sparray), _feed_sparse),
    ((list, tuple), _feed_sequence),
    (Mapping, _feed_mapping),
]
