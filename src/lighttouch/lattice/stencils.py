"""Constraint rows that repeat one pattern over a block of vertices; every builder is a list of such
stencils.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from lighttouch.arrays import Floats
from lighttouch.constraints import LinearConstraints
from lighttouch.constraints.base import NestedRows
from lighttouch.errors import ConstraintError
from lighttouch.lattice.model import short
from lighttouch.validation import refuse_if_too_large

_LARGEST_INT32 = 2**31 - 1
Block = Mapping[int, tuple[int, int]]


@dataclass(frozen=True)
class Stencil:
    """sum_k coefficients[k] * theta[v + offsets[k]] >= least, for every vertex v of a block;
    offsets are parameter numbers.
    """

    start: tuple[int, ...]
    stop: tuple[int, ...]
    offsets: tuple[int, ...]
    coefficients: tuple[float, ...]
    least: float

    @property
    def count(self) -> int:
        """Rows."""
        return math.prod(stop - start for start, stop in zip(self.start, self.stop, strict=True))


def stencil(
    sizes: tuple[int, ...], block: Block, terms: Sequence[tuple[int, float]], least: float = 0.0
) -> Stencil:
    """A stencil over all vertices v with start <= v[feature] < stop for the features in `block`;
    equal offsets are added up.
    """
    start = tuple(block.get(feature, (0, size))[0] for feature, size in enumerate(sizes))
    stop = tuple(block.get(feature, (0, size))[1] for feature, size in enumerate(sizes))
    merged: dict[int, float] = {}
    for offset, coefficient in terms:
        merged[offset] = merged.get(offset, 0.0) + coefficient
    kept = sorted(
        (offset, coefficient) for offset, coefficient in merged.items() if coefficient != 0.0
    )
    return Stencil(
        start,
        stop,
        tuple(offset for offset, _ in kept),
        tuple(coefficient for _, coefficient in kept),
        least,
    )


def steps(sizes: tuple[int, ...]) -> tuple[int, ...]:
    """By how much the parameter number grows with one step along each feature."""
    return tuple(math.prod(sizes[feature + 1 :]) for feature in range(len(sizes)))


def constraints_from(
    name: str,
    sizes: tuple[int, ...],
    stencils: Sequence[Stencil],
    nested: Sequence[NestedRows] = (),
) -> LinearConstraints:
    """All rows, stencil after stencil and within one in C order of v, turned around to A w <= b."""
    rows = sum(each.count for each in stencils)
    nonzeros = sum(each.count * len(each.offsets) for each in stencils)
    require_room(name, sizes, rows, nonzeros)
    index_type = _index_type(sizes, nonzeros)
    indptr = np.zeros(rows + 1, dtype=index_type)
    indices = np.empty(nonzeros, dtype=index_type)
    data = np.empty(nonzeros)
    b = np.zeros(rows)
    _fill(sizes, [each for each in stencils if each.count], indptr, indices, data, b)
    A = sparse.csr_matrix((data, indices, indptr), shape=(rows, math.prod(sizes)))
    A.has_canonical_format = True
    return LinearConstraints(A, b, nested=nested, copy=False)


def require_room(
    name: str, sizes: tuple[int, ...], rows: int, nonzeros: int, more_advice: str = ""
) -> None:
    """Refuse, before any is taken, rows that would not fit into memory."""
    index_bytes = _index_type(sizes, nonzeros).itemsize
    needed = nonzeros * (8 + index_bytes) + (rows + 1) * index_bytes + 16 * rows
    what = f"{name} on a lattice of sizes {short(sizes)}, {rows:,} rows,"
    advice = f"name fewer features, use smaller sizes or several small lattices{more_advice}"
    refuse_if_too_large(needed, what, advice, ConstraintError)


def _index_type(sizes: tuple[int, ...], nonzeros: int) -> np.dtype[Any]:
    return np.dtype(np.int32 if max(nonzeros, math.prod(sizes)) <= _LARGEST_INT32 else np.int64)


def _fill(
    sizes: tuple[int, ...],
    stencils: Sequence[Stencil],
    indptr: npt.NDArray[Any],
    indices: npt.NDArray[Any],
    data: Floats,
    b: Floats,
) -> None:
    row, entry = 0, 0
    for each in stencils:
        width = len(each.offsets)
        last_row, last_entry = row + each.count, entry + each.count * width
        vertices = _vertices(each, sizes, indices.dtype)
        np.add(
            vertices[:, None],
            np.array(each.offsets, dtype=indices.dtype),
            out=indices[entry:last_entry].reshape(-1, width),
        )
        data[entry:last_entry].reshape(-1, width)[:] = [
            -coefficient for coefficient in each.coefficients
        ]
        indptr[row + 1 : last_row + 1] = np.arange(entry + width, last_entry + 1, width)
        if each.least:
            b[row:last_row] = -each.least
        row, entry = last_row, last_entry


def _vertices(each: Stencil, sizes: tuple[int, ...], index_type: np.dtype[Any]) -> npt.NDArray[Any]:
    vertices = np.zeros(1, dtype=index_type)
    for start, stop, step in zip(each.start, each.stop, steps(sizes), strict=True):
        vertices = (vertices[:, None] + step * np.arange(start, stop, dtype=index_type)).ravel()
    return vertices
