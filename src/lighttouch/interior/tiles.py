"""Products of dense matrices on all cores, to the same bits whatever their number.

BLAS with several threads adds in another order for every number of threads. Here each tile of the
product is one call with one thread, and tiles are always the same.
"""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import TypeVar

import numpy as np
import scipy.linalg

from lighttouch.arrays import Floats, Vector
from lighttouch.interior.costs import COSTS
from lighttouch.running import one_blas_thread

Part = TypeVar("Part")
Tile = tuple[slice, slice]


def gram(rows: Floats) -> Floats:
    """rows'rows."""
    d = rows.shape[1]
    if float(rows.shape[0]) * d * d < COSTS.tiled_products:
        return rows.T @ rows
    H = np.empty((d, d), order="F")

    def fill(tile: Tile) -> None:
        i, j = tile
        H[i, j] = rows[:, i].T @ rows[:, j]
        H[j, i] = H[i, j].T

    _on_all_cores(fill, _lower_tiles(d))
    return H


def add_gram(H: Floats, rows: Floats) -> None:
    """Add rows'rows to the lower triangle of H, which is in Fortran's order."""
    d = rows.shape[1]
    if float(rows.shape[0]) * d * d < COSTS.tiled_products:
        scipy.linalg.blas.dsyrk(1.0, rows.T, beta=1.0, c=H, lower=1, overwrite_c=1)
        return

    def add(tile: Tile) -> None:
        i, j = tile
        H[i, j] += rows[:, i].T @ rows[:, j]

    _on_all_cores(add, _lower_tiles(d))


def _lower_tiles(d: int) -> list[Tile]:
    places = [slice(first, first + COSTS.tile) for first in range(0, d, COSTS.tile)]
    return [(i, j) for k, i in enumerate(places) for j in places[: k + 1]]


def scaled_rows(factors: Vector, rows: Floats) -> Floats:
    """diag(factors) rows."""
    if rows.size < COSTS.tiled_scaled:
        return factors[:, None] * rows
    out, size = np.empty_like(rows), COSTS.tile

    def fill(first: int) -> None:
        part = slice(first, first + size)
        np.multiply(factors[part, None], rows[part], out=out[part])

    _on_all_cores(fill, range(0, rows.shape[0], size))
    return out


def times(A: Floats, w: Vector) -> Vector:
    """A w, in blocks of rows: no sum is split, so that the bits are those of one product."""
    if A.size < COSTS.tiled_entries:
        return np.asarray(A @ w)
    out, size = np.empty(A.shape[0]), COSTS.tall_tile

    def fill(first: int) -> None:
        np.matmul(A[first : first + size], w, out=out[first : first + size])

    _on_all_cores(fill, range(0, A.shape[0], size))
    return out


def _on_all_cores(work: Callable[[Part], None], parts: Iterable[Part]) -> None:
    with one_blas_thread():
        for _ in _threads().map(work, parts):
            pass


@cache
def _threads() -> ThreadPoolExecutor:
    """One thread for each core that this process may use (`taskset` sets that), each with one
    thread of BLAS whatever OMP_NUM_THREADS says; a single one in worker processes, whose engine
    keeps all cores busy.
    """
    if multiprocessing.parent_process() is not None:
        return ThreadPoolExecutor(1)
    known = hasattr(os, "sched_getaffinity")  # not everywhere
    return ThreadPoolExecutor(len(os.sched_getaffinity(0)) if known else os.cpu_count())


if hasattr(os, "register_at_fork"):  # threads do not survive a fork
    os.register_at_fork(after_in_child=_threads.cache_clear)
