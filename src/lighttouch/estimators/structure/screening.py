"""Which columns interact: how much of the residual they explain together on coarse grids."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from lighttouch.arrays import Floats
from lighttouch.estimators.model import distinct_values, keypoints_among
from lighttouch.estimators.structure.limits import LIMITS
from lighttouch.kernels.numerics.cells import COPIES, explained_by_cells

Subset = tuple[int, ...]


@dataclass(frozen=True)
class Leftover:
    """What a fit leaves over for every example, its weight, and the variance of its noise."""

    residual: Floats
    weights: Floats
    noise: float


@dataclass(frozen=True)
class Gain:
    """What a subset explains of the residual, in units of the noise of one example."""

    explained: float
    freedom: float  # what noise would explain

    @property
    def significance(self) -> float:
        """Above 1: more than noise would, three deviations included."""
        noise = self.freedom + LIMITS.noise_deviations * np.sqrt(2.0 * self.freedom)
        return float(self.explained / noise)

    @property
    def worth(self) -> float:
        """By how much the fit improves, beyond two per degree of freedom (Akaike 1974)."""
        return self.explained - LIMITS.akaike * self.freedom


class Screen:
    """Coarse grids over the columns of a table, of each size once."""

    def __init__(self, signed_tables: list[tuple[Floats, float]], examples: float) -> None:
        self.signed_tables = signed_tables
        self.examples = examples
        self._grids: dict[int, tuple[NDArray[np.int16], NDArray[np.int64]]] = {}

    def gains(
        self,
        subsets: Sequence[Subset],
        grids: Sequence[int],
        left: Leftover,
        over: Callable[[], bool] = lambda: False,
    ) -> dict[Subset, Gain]:
        """The best gain of every subset over grids of so many cells per column; of none where the
        time is `over` before all were looked at.
        """
        found: dict[Subset, Gain] = {}
        most = max(1, int(LIMITS.screened_at_once / max(1, left.weights.size)))
        for first in range(0, len(subsets), most):
            found |= self._best(subsets[first : first + most], grids, left)
            if over():
                return {}
        return found

    def _best(
        self, subsets: Sequence[Subset], grids: Sequence[int], left: Leftover
    ) -> dict[Subset, Gain]:
        tried = [self._gains(subsets, bins, left) for bins in grids]
        worth = [explained - LIMITS.akaike * freedom for explained, freedom in tried]
        best = np.argmax(worth, axis=0)
        return {
            subset: Gain(float(tried[b][0][k]), float(tried[b][1][k]))
            for k, (subset, b) in enumerate(zip(subsets, best, strict=True))
        }

    def _gains(self, subsets: Sequence[Subset], bins: int, left: Leftover) -> tuple[Floats, Floats]:
        """What every subset explains, and what noise would."""
        codes, counts = self._grid(bins)
        members = np.full((len(subsets), max(map(len, subsets))), -1, dtype=np.int64)
        for k, subset in enumerate(subsets):
            members[k, : len(subset)] = subset
        with_none = np.append(counts, 1)  # member -1: no column
        cells = int(with_none[members].prod(axis=1).max())
        explained, used = np.zeros(len(subsets)), np.zeros(len(subsets), dtype=np.int64)
        mass = float(left.weights.sum())
        explained_by_cells(
            codes,
            np.array([sign for _, sign in self.signed_tables]),
            counts,
            members,
            left.weights * left.residual,
            left.weights,
            LIMITS.shrinkage * mass / self.examples,
            np.empty(codes.shape[2], dtype=np.int64),
            np.empty(COPIES * cells),
            np.empty(COPIES * cells),
            explained,
            used,
        )
        lower = (with_none - 1)[members].sum(axis=1)
        freedom = np.maximum(1.0, used - 1.0 - lower)
        return explained / (left.noise / self.examples), freedom

    def curve_gains(self, bins: int, left: Leftover, known: int) -> list[Gain]:
        """What a curve of so many parts would explain of the residual, for every column; `known`
        parts are in the model already.
        """
        columns = self.signed_tables[0][0].shape[1]
        explained, _ = self._gains([(c,) for c in range(columns)], bins, left)
        freedom = np.maximum(1.0, self._grid(bins)[1] - 1.0 - known)
        return [Gain(float(e), float(f)) for e, f in zip(explained, freedom, strict=True)]

    def _grid(self, bins: int) -> tuple[NDArray[np.int16], NDArray[np.int64]]:
        """The bin of every cell, and how many bins every column has."""
        if bins not in self._grids:
            columns = self.signed_tables[0][0].shape[1]
            edges = [self._edges(c, bins) for c in range(columns)]
            codes = np.array(
                [
                    [_bins(table[:, c], edges[c]) for c in range(columns)]
                    for table, _ in self.signed_tables
                ]
            )
            self._grids[bins] = codes, codes.max(axis=(0, 2)).astype(np.int64) + 1
        return self._grids[bins]

    @cached_property
    def _distinct(self) -> list[tuple[Floats, Floats]]:
        """The distinct values of every column, and how often each occurs."""
        table = self.signed_tables[0][0]
        every = np.ones(table.shape[0])
        return [distinct_values(table[:, c], every) for c in range(table.shape[1])]

    def _edges(self, column: int, bins: int) -> Floats:
        """Where bins begin, the first one left out; a column of few values has one bin for each."""
        finer = keypoints_among(*self._distinct[column], bins + 1)
        if finer.size > bins:
            return finer[1:-1]
        return keypoints_among(*self._distinct[column], bins)[1:]


def _bins(values: Floats, edges: Floats) -> NDArray[np.int16]:
    """Missing cells have a bin of their own, past the last."""
    found = np.searchsorted(edges, values, side="right")
    return np.where(np.isnan(values), edges.size + 1, found).astype(np.int16)
