"""Which pairs of columns interact: how much of the residual they explain on coarse grids."""

from __future__ import annotations

from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from lighttouch.arrays import Floats
from lighttouch.estimators.model import quantile_keypoints
from lighttouch.estimators.structure.limits import LIMITS
from lighttouch.estimators.structure.plan import Plan


def interaction_gains(
    plan: Plan,
    signed_tables: list[tuple[Floats, float]],
    residual: Floats,
    weights: Floats,
    examples: int,
) -> dict[tuple[int, int], float]:
    """How much of the residual each pair of columns explains on a coarse grid, in units of what
    noise would (above 1: it interacts).

    A grid of few cells finds weak smooth interactions, one of many cells finds strong local ones:
    the better of the two counts.
    """
    count = len(plan.columns)
    screened = (
        list(range(count))
        if count <= LIMITS.screened
        else _most_varied(signed_tables, residual, weights)
    )
    gains = dict.fromkeys(combinations(screened, 2), 0.0)
    for bins in LIMITS.bins:
        cells = [{c: _bins(table[:, c], bins) for c in screened} for table, _ in signed_tables]
        for i, j in gains:
            signed = [
                (columns[i] * (bins + 1) + columns[j], sign)
                for columns, (_, sign) in zip(cells, signed_tables, strict=True)
            ]
            gains[i, j] = max(
                gains[i, j], _gain(signed, (bins + 1) ** 2, residual, weights, examples)
            )
    return gains


def _gain(
    signed_cells: list[tuple[NDArray[np.int64], float]],
    count: int,
    residual: Floats,
    weights: Floats,
    examples: int,
) -> float:
    """The explained part of the residual's variance over what its degrees of freedom would explain
    by chance, three deviations included.
    """
    sums, mass = np.zeros(count), np.zeros(count)
    for cells, sign in signed_cells:
        sums += sign * np.bincount(cells, weights * residual, minlength=count)
        mass += np.bincount(cells, weights, minlength=count)
    used = mass > 0.0
    variance = max(float(weights @ np.square(residual)), 1e-300)
    explained = (
        float(np.sum(np.square(sums[used]) / (mass[used] + LIMITS.shrinkage / examples)))
        * examples
        / variance
    )
    bins = round(count**0.5) - 1
    freedom = max(1.0, float(used.sum()) - 2 * bins + 1)
    return float(explained / (freedom + LIMITS.noise_deviations * np.sqrt(2.0 * freedom)))


def _bins(values: Floats, bins: int) -> NDArray[np.int64]:
    edges = quantile_keypoints(values, np.ones(values.size), bins + 1)[1:-1]
    return np.where(np.isnan(values), bins, np.searchsorted(edges, values, side="right")).astype(
        np.int64
    )


def _most_varied(
    signed_tables: list[tuple[Floats, float]], residual: Floats, weights: Floats
) -> list[int]:
    """The columns whose parts differ most in their residuals, by the weights of squares of
    column-wise binned sums.
    """
    table = signed_tables[0][0]
    scores = []
    for column in range(table.shape[1]):
        place = _bins(table[:, column], max(LIMITS.bins))
        sums, mass = np.bincount(place, weights * residual), np.bincount(place, weights)
        scores.append(float(np.sum(np.square(sums[mass > 0]) / mass[mass > 0])))
    return sorted(int(c) for c in np.argsort(scores)[::-1][: LIMITS.screened])
