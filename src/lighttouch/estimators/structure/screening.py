"""Which columns interact: how much of the residual they explain together on coarse grids."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lighttouch.arrays import Floats
from lighttouch.estimators.model import quantile_keypoints
from lighttouch.estimators.structure.limits import LIMITS
from lighttouch.kernels.numerics.cells import explained_by_cells

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
    ) -> dict[Subset, Gain]:
        """The best gain of every subset over grids of so many cells per column."""
        found: dict[Subset, Gain] = {}
        for bins in grids:
            for subset, gain in self._gains(subsets, bins, left):
                if subset not in found or gain.worth > found[subset].worth:
                    found[subset] = gain
        return found

    def _gains(
        self, subsets: Sequence[Subset], bins: int, left: Leftover
    ) -> list[tuple[Subset, Gain]]:
        codes, counts = self._grid(bins)
        if not subsets:
            return []
        members = np.full((len(subsets), max(map(len, subsets))), -1, dtype=np.int64)
        for k, subset in enumerate(subsets):
            members[k, : len(subset)] = subset
        cells = max(int(np.prod(counts[list(subset)])) for subset in subsets)
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
            np.empty(cells),
            np.empty(cells),
            explained,
            used,
        )
        variance = left.noise / self.examples
        lower = [float(np.sum(counts[list(subset)] - 1)) for subset in subsets]
        return [
            (subset, Gain(float(explained[k] / variance), max(1.0, used[k] - 1.0 - lower[k])))
            for k, subset in enumerate(subsets)
        ]

    def curve_gains(self, bins: int, left: Leftover, known: int) -> list[Gain]:
        """What a curve of so many parts would explain of the residual, for every column; `known`
        parts are in the model already.
        """
        columns = self.signed_tables[0][0].shape[1]
        found = self._gains([(c,) for c in range(columns)], bins, left)
        counts = self._grid(bins)[1]
        return [
            Gain(gain.explained, max(1.0, float(counts[c] - 1 - known))) for (c,), gain in found
        ]

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

    def _edges(self, column: int, bins: int) -> Floats:
        """Where bins begin, the first one left out; a column of few values has one bin for each."""
        values = self.signed_tables[0][0][:, column]
        every = np.ones(values.size)
        few = quantile_keypoints(values, every, bins)
        distinct = quantile_keypoints(values, every, bins + 1)
        return few[1:] if distinct.size <= bins else distinct[1:-1]


def _bins(values: Floats, edges: Floats) -> NDArray[np.int16]:
    """Missing cells have a bin of their own, past the last."""
    found = np.searchsorted(edges, values, side="right")
    return np.where(np.isnan(values), edges.size + 1, found).astype(np.int16)
