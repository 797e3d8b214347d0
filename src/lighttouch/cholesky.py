"""Cholesky's factor of a dense symmetric matrix, in the place of the matrix; and the memory of
large matrices.
"""

from __future__ import annotations

import contextlib
import math
import mmap
from dataclasses import dataclass

import numpy as np
import scipy.linalg

from lighttouch.arrays import Floats

LARGE = 1 << 20
"""Bytes from which a matrix has pages of its own. Budget: new ones take 0.1 to 0.4 ms for each of
a few matrices in a fit."""


def zeros(*shape: int) -> Floats:
    """The same as NumPy's. Large ones have pages of their own, which the system has back as soon as
    they are let go of: in the heap they leave holes, which the next one, a little larger, does not
    fit in.
    """
    size = 8 * math.prod(shape)
    if size < LARGE:
        return np.zeros(shape)
    # a child that is forked must not write into its parent's matrices
    own = {"flags": mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS} if hasattr(mmap, "MAP_PRIVATE") else {}
    try:
        pages = mmap.mmap(-1, size, **own)
    except OSError:  # short of memory: as NumPy says it
        return np.zeros(shape)
    if hasattr(mmap, "MADV_HUGEPAGE"):
        with contextlib.suppress(OSError):  # of systems without large pages, which are faster
            pages.madvise(mmap.MADV_HUGEPAGE)
    return np.frombuffer(pages, dtype=np.float64).reshape(shape)


class Scratch:
    """Room for one square matrix at a time, for those that follow each other: new pages would take
    as long as a tenth of a factor.
    """

    def __init__(self) -> None:
        self.room = zeros(0)

    def matrix(self, size: int) -> Floats:
        """One of so many rows, whatever they hold; the last one is overwritten."""
        if self.room.size < size**2:
            self.room = zeros(size**2 + size**2 // 8)  # the next may be a little larger
        return self.room[: size**2].reshape(size, size)

    def copied(self, matrix: Floats) -> Floats:
        out = self.matrix(matrix.shape[0])
        out[:] = matrix
        return out


@dataclass(frozen=True, eq=False)
class Cholesky:
    """The symmetric matrix H = share L L' by its factor L."""

    lower: Floats
    """L, best in the order of LAPACK, column by column."""
    share: float = 1.0

    @classmethod
    def of(cls, H: Floats, clean: bool = True) -> Cholesky | None:
        """The factor of a symmetric matrix that lies row by row, in its place; None where it has
        none. Where it is not to be `clean`, H stays as it is above the diagonal of L.
        """
        # the transpose of a symmetric matrix is the same matrix in the order of LAPACK
        lower, failed = scipy.linalg.lapack.dpotrf(H.T, lower=1, clean=int(clean), overwrite_a=1)
        return None if failed else cls(np.asarray(lower))

    @property
    def size(self) -> int:
        return int(self.lower.shape[0])

    def solved(self, right: Floats) -> Floats:
        """H^-1 right."""
        if right.size == 0:  # LAPACK takes none
            return np.zeros(right.shape)
        found = np.asarray(scipy.linalg.lapack.dpotrs(self.lower, right, lower=1)[0])
        return found if self.share == 1.0 else found / self.share

    def half_solved(self, right: Floats) -> Floats:
        """(share^1/2 L)^-1 right, in the place of a matrix that lies column by column."""
        root = self.share**-0.5
        return np.asarray(scipy.linalg.blas.dtrsm(root, self.lower, right, lower=1, overwrite_b=1))
