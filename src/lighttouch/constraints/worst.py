"""Linear rows by their numbers, and the worst of very many, without keeping all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Protocol

import numpy as np
import scipy.sparse

from lighttouch.arrays import Floats, Indices, Matrix, Vector
from lighttouch.kernels.compiler.compiled import interpreted
from lighttouch.kernels.verbs.rows import choose_spread, collect_violated, write_rows
from lighttouch.running import check_deadline

ROWS_PER_COLUMN = 4
"""Chosen rows that may share all their columns with others: a working set that knows a few rows of
every parameter moves all of them, one that knows the worst rows may know only one parameter."""

DENSE_SHARE = 0.5
"""Entries of a row, as a share of the parameters, from which rows are about all of them: simply the
worst are chosen."""

ENTRIES_AT_ONCE = 2**22
"""Entries of rows between two looks at the clock: about 10 ms."""

CANDIDATES = 4
"""Candidates kept per row that is wanted: the worst are often about the same parameters."""

PASSES = 4
"""Passes over all rows in search of enough candidates; each looks only at parameters that have too
few rows so far."""


class LinearFamily(Protocol):
    """What is asked of constraints that are rows."""

    record: Any
    count: int
    dimension: int
    interpreted: bool

    @property
    def most_entries(self) -> int: ...


def scratch_for(family: LinearFamily) -> tuple[Indices, Floats]:
    """Two arrays that hold any one row."""
    entries = max(1, family.most_entries)
    return np.zeros(entries, dtype=np.int64), np.zeros(entries)


def runnable(family: LinearFamily, kernel: Callable[..., Any]) -> Callable[..., Any]:
    return interpreted(kernel) if family.interpreted else kernel


def blocks(family: LinearFamily) -> Iterator[tuple[int, int]]:
    """All constraints in ranges; the deadline is looked at before each."""
    size = max(1, ENTRIES_AT_ONCE // max(1, family.most_entries))
    for start in range(0, family.count, size):
        check_deadline()
        yield start, min(family.count, start + size)


def rows_of(family: LinearFamily, chosen: Indices) -> tuple[Matrix, Vector]:
    """The chosen rows as a CSR matrix, and their right sides."""
    room = chosen.size * max(1, family.most_entries)
    indptr, indices = np.zeros(chosen.size + 1, dtype=np.int64), np.empty(room, dtype=np.int64)
    data, right = np.empty(room), np.empty(chosen.size)
    write = runnable(family, write_rows)
    used = write(family.record, chosen, scratch_for(family), indptr, indices, data, right)
    shape = (chosen.size, family.dimension)
    matrix = scipy.sparse.csr_matrix((data[:used], indices[:used], indptr), shape=shape)
    matrix.sum_duplicates()
    return matrix, right


def worst_spread(family: LinearFamily, w: Vector, wanted: int, tolerance: float) -> Indices:
    """The worst rows, worst first; one counts only if one of its columns occurs in fewer than
    `ROWS_PER_COLUMN` of those before it, or rows are dense.

    Rows that are chosen or passed over are never looked at again, as the counts of the columns only
    grow: later passes find exactly what a list of all violated rows would have given.
    """
    used, chosen = np.zeros(family.dimension, dtype=np.int64), np.empty(wanted, dtype=np.int64)
    choose = runnable(family, choose_spread)
    dense = family.most_entries > DENSE_SHARE * family.dimension
    each = wanted if dense else ROWS_PER_COLUMN
    scratch, many = scratch_for(family), 0
    below, after = np.inf, -1
    for _ in range(PASSES):
        found, scores, complete = _candidates(
            family, w, tolerance, below, after, used, each, wanted
        )
        many = choose(family.record, found, used, each, wanted, scratch, chosen, many)
        if complete or many == wanted or int(used.min()) >= each:
            break
        below, after = float(scores[-1]), int(found[-1])
    return chosen[:many]


def _candidates(
    family: LinearFamily,
    w: Vector,
    above: float,
    below: float,
    after: int,
    used: Indices,
    each: int,
    wanted: int,
) -> tuple[Indices, Floats, bool]:
    """The worst rows that may still be chosen, worst first, and whether these are all."""
    kept = CANDIDATES * wanted
    found, scores = np.empty(2 * kept, dtype=np.int64), np.empty(2 * kept)
    collect = runnable(family, collect_violated)
    scratch, many, complete = scratch_for(family), 0, True
    for start, stop in blocks(family):
        place = start
        while place < stop:
            place, many = collect(
                family.record, place, stop, w, above, below, after, used, each,
                scratch, found, scores, many,
            )  # fmt: skip
            if many == found.size:  # later rows must be worse than all that are kept
                order = _ranked(found, scores)[:kept]
                found[:kept], scores[:kept] = found[order], scores[order]
                many, above, complete = kept, float(scores[kept - 1]), False
    order = _ranked(found[:many], scores[:many])
    return found[order], scores[order], complete


def _ranked(found: Indices, scores: Floats) -> Indices:
    return np.lexsort((found, -scores))
