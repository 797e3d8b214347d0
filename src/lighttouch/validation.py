"""Checks at the edge: every array that enters is finite, of the right shape, and named when it is
not.
"""

from __future__ import annotations

import inspect
import math
import os
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse

from lighttouch.arrays import Matrix, Vector
from lighttouch.errors import DataError
from lighttouch.text import readable_size

LARGEST_COUNT = 2**63 - 1  # what kernels count with


def finite_vector(
    values: object,
    name: str,
    size: int | None = None,
    error: type[ValueError] = DataError,
    own: bool = False,
) -> Vector:
    """A contiguous float64 vector without NaN or infinity. With `own` it is nobody else's: what the
    caller does to his array later does not change it.
    """
    vector = np.ascontiguousarray(to_float(values, name, error))
    if own:
        vector = _own(vector, values)
    if vector.ndim != 1:
        raise error(f"{name} must be one-dimensional, got shape {vector.shape}")
    if size is not None and vector.size != size:
        raise error(f"{name} must have {size} entries, got {vector.size}")
    refuse_non_finite(vector, name, error)
    return vector


def finite_matrix(
    values: Any, name: str, error: type[ValueError] = DataError, own: bool = False
) -> Matrix:
    """A float64 matrix without NaN or infinity: CSR if it was sparse, dense in C order
    otherwise. `own` is as in `finite_vector`.
    """
    if scipy.sparse.issparse(values):
        if values.dtype.kind not in "iufb":
            raise error(f"{name} must hold real numbers, got {values.dtype} data")
        matrix = scipy.sparse.csr_matrix(values, dtype=np.float64)
        if own and np.may_share_memory(matrix.data, getattr(values, "data", matrix.data)):
            matrix = matrix.copy()
        if not matrix.has_canonical_format:
            matrix = matrix.copy()  # the caller's arrays are not ours to sort
            matrix.sum_duplicates()
        bad = ~np.isfinite(matrix.data)
        if bad.any():
            first = int(np.argmax(bad))
            row = int(np.searchsorted(matrix.indptr, first, side="right") - 1)
            raise error(
                _not_finite(
                    name,
                    int(bad.sum()),
                    f"row {row}, column {matrix.indices[first]}",
                    matrix.data[first],
                )
            )
        return matrix
    dense = np.ascontiguousarray(to_float(values, name, error))
    if own:
        dense = _own(dense, values)
    if dense.ndim != 2:
        raise error(
            f"{name} must be two-dimensional, got shape {dense.shape}; reshape it to "
            "(rows, columns)"
        )
    refuse_non_finite(dense, name, error)
    return dense


def to_float(
    values: object, name: str, error: type[ValueError] = DataError
) -> np.ndarray[Any, np.dtype[np.float64]]:
    array = plain_array(values, name, error)
    if array.dtype.kind in "iufb":
        return np.asarray(array, dtype=np.float64)
    if np.iscomplexobj(array):
        raise error(f"{name} must be real, got complex numbers")
    if array.dtype.kind in "Mm":
        raise error(
            f"{name} must hold numbers, got dates or durations ({array.dtype}); turn them into "
            "numbers first, such as days since a date"
        )
    if array.dtype.kind in "US" or any(isinstance(cell, str | bytes) for cell in array.flat):
        first = next(cell for cell in array.flat if isinstance(cell, str | bytes))
        raise error(
            f"{name} must hold numbers, got text such as {first[:30]!r}; convert it with "
            "astype(float) if that is what it means"
        )
    try:
        return np.asarray(array, dtype=np.float64)
    except (TypeError, ValueError) as problem:
        raise error(f"{name} must hold numbers: {problem}") from None
    except OverflowError:
        raise error(f"{name} must be finite: it holds a number too large for float64") from None


def plain_array(values: Any, name: str, error: type[ValueError] = DataError) -> Any:
    """A NumPy array; masked cells and rows of different lengths are refused."""
    if np.ma.is_masked(values):
        raise error(
            f"{name} must hold a number everywhere, got a masked array with "
            f"{int(np.sum(np.ma.getmaskarray(values)))} masked cells; drop or fill them: "
            "values.filled(...)"
        )
    try:
        return np.asarray(values)
    except (ValueError, TypeError) as problem:
        ragged = "inhomogeneous" in str(problem)
        told = "rows of different lengths" if ragged else str(problem)
        raise error(
            f"{name} must be an array of numbers, got {told}; give every row as many entries"
        ) from None


def _own(array: Any, given: object) -> Any:
    """A copy where the array shares the caller's memory. Of files mapped to memory none is made:
    they may be larger than memory.
    """
    if isinstance(given, np.memmap) or not isinstance(given, np.ndarray):
        shares = hasattr(given, "__array_interface__") or hasattr(given, "to_numpy")
        return array.copy() if shares and not isinstance(given, np.memmap) else array
    return array.copy() if np.may_share_memory(array, given) else array


def refuse_non_finite(
    array: np.ndarray[Any, np.dtype[np.float64]], name: str, error: type[ValueError] = DataError
) -> None:
    bad = ~np.isfinite(array)
    if not bad.any():
        return
    place = np.unravel_index(int(np.argmax(bad)), array.shape)
    words = ("row {}", "row {}, column {}", "block {}, row {}, column {}")[len(place) - 1].format(
        *(int(p) for p in place)
    )
    raise error(_not_finite(name, int(bad.sum()), words, array[place]))


def _not_finite(name: str, count: int, place: str, value: float) -> str:
    entries = "entry is" if count == 1 else "entries are"
    return (
        f"{name} must be finite: {count} {entries} not, the first at {place} ({value}); drop "
        "or impute them"
    )


def positive(value: object, name: str, zero: bool = False) -> float:
    """A finite number above zero (or zero itself, if allowed)."""
    number = _number(value, name)
    if not math.isfinite(number) or number < 0.0 or (number == 0.0 and not zero):
        raise ValueError(
            f"{name} must be {'non-negative' if zero else 'positive'} and finite, got {value}"
        )
    return number


def positive_int(value: Any, name: str, least: int = 1, most: float = LARGEST_COUNT) -> int:
    number = _number(value, name)
    if not math.isfinite(number) or int(value) != value or value < least:
        raise ValueError(f"{name} must be a whole number of at least {least}, got {value}")
    if value > most:
        raise ValueError(
            f"{name} must be a whole number below 2^63, got {_short(int(value))}; give a smaller "
            "one"
        )
    return int(value)


def _number(value: Any, name: str) -> float:
    if isinstance(value, str | bytes):
        raise ValueError(f"{name} must be a number, got the text {_short(value)}")
    try:
        return float(value)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be a number, got {told(value)}") from None
    except OverflowError:
        raise ValueError(
            f"{name} must be a number that a float holds, got {_short(value)}; give a smaller one"
        ) from None


def function(value: object, name: str, what: str) -> Any:
    """Something that can be called."""
    if not callable(value):
        raise ValueError(f"{name} must be a function, {what}; got {told(value)}")
    return value


def takes(value: Any, name: str, arguments: str, error: type[ValueError]) -> None:
    """A compiled function takes the record first: the compiler would say so much less plainly."""
    try:
        signature = inspect.signature(getattr(value, "py_func", value))
    except (TypeError, ValueError):
        return  # it says nothing about itself
    try:
        signature.bind(*arguments.split(", "))
    except TypeError:
        own = f"{getattr(value, '__name__', type(value).__name__)}{signature}"
        raise error(
            f"with record=, {name} must take ({arguments}), got {own}; functions without the "
            "record are taken without record=, and run in Python"
        ) from None


def flag(value: object, name: str) -> bool:
    if not isinstance(value, bool | np.bool_):
        raise ValueError(f"{name} must be True or False, got {told(value)}")
    return bool(value)


def refuse_if_too_large(
    needed: int, what: str, advice: str, error: type[ValueError] = DataError
) -> None:
    """Say so before the memory is taken, instead of being killed for it afterwards."""
    available = available_memory()
    if needed > available:
        raise error(
            f"{what} needs about {readable_size(needed)} of memory, {readable_size(available)} are "
            f"available; {advice}"
        )


def available_memory() -> int:
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") + _reclaimable()
    except (ValueError, OSError, AttributeError):
        return 2**62


def _reclaimable() -> int:
    """Page cache the kernel gives back on demand, where /proc tells."""
    try:
        with open("/proc/meminfo", encoding="ascii") as lines:
            for line in lines:
                if line.startswith("Cached:"):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass
    return 0


def told(value: object) -> str:
    """What was given, in a few words: a class is not an instance, and long values are cut."""
    if isinstance(value, type):
        return f"the class {value.__name__} instead of an instance of it"
    if value is None or isinstance(value, bool | int | float | complex | str | bytes):
        text = _short(value)
        return text if value is None else f"{text} ({type(value).__name__})"
    return f"a {type(value).__name__}"


def _short(value: object, most: int = 60) -> str:
    """A repr of at most so many letters; of a huge integer its size, whose digits take long."""
    if isinstance(value, int) and value.bit_length() > 256:
        return f"an integer of {value.bit_length()} bits"
    text = repr(value if not isinstance(value, str | bytes) else value[: most + 1])
    return text if len(text) <= most + 2 else text[:most] + "..."


def whole_seed(seed: Any) -> int:
    """A seed of random numbers: a whole number from 0 on."""
    whole = isinstance(seed, int | np.integer) and not isinstance(seed, bool)
    if not whole or seed < 0:
        raise ValueError(
            f"seed must be a whole number of at least 0, or None for a fresh one; got {told(seed)}"
        )
    return int(seed)


def one_of(value: str, choices: Sequence[str], name: str) -> str:
    if value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(choices)}; got {value!r}")
    return value
