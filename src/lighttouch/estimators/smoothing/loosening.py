"""Less smoothing where labels are determined by the columns, by cross-validation."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from lighttouch import losses
from lighttouch.arrays import Floats
from lighttouch.estimators.smoothing.costs import COSTS
from lighttouch.estimators.smoothing.marginal_likelihood import Smoothed, smooth
from lighttouch.estimators.smoothing.problem import Examples


def determined(residual: Floats, weights: Floats) -> bool:
    """Whether labels are hardly random: what is left over is much less than their variance."""
    return float(weights @ np.square(residual)) <= COSTS.determined


def loosened(
    examples: Examples,
    smoothed: Smoothed,
    sweeps: int,
    over: Callable[[], bool] = lambda: False,
) -> Smoothed:
    """Smoothed less where labels are determined by the columns: a marginal likelihood that takes
    them for drawn at random keeps the log-odds too small. By how much is cross-validated; not
    at all where the time is `over` before the end.
    """
    if not determined(*examples.residual(smoothed.w)):
        return smoothed
    rows = np.random.default_rng(0).permutation(examples.y.size)
    needed = min(COSTS.folds, math.ceil(COSTS.enough * COSTS.folds / rows.size))
    parts = [np.sort(rows[fold :: COSTS.folds]) for fold in range(needed)]

    def error(strengths: Floats) -> float:
        return sum(
            _held_out(examples, smoothed, strengths, np.setdiff1d(rows, part), part, sweeps)
            for part in parts
            if not over()
        )

    best, least = smoothed.strengths, error(smoothed.strengths)
    for strength in COSTS.looser:
        tried = smoothed.roughness.uniform((strength, strength))
        found = error(tried)
        if over():
            return smoothed
        if found >= least:
            break
        best, least = tried, found
    if best is smoothed.strengths:
        return smoothed
    return replace(
        smooth(examples, smoothed.roughness, best, smoothed.w, sweeps, choose=False),
        freedom=smoothed.freedom,
        terms=smoothed.terms,
    )


def _held_out(
    examples: Examples,
    smoothed: Smoothed,
    strengths: Floats,
    rows: NDArray[np.int64],
    others: NDArray[np.int64],
    sweeps: int,
) -> float:
    """The loss on other rows of a fit to some of them."""
    some = examples.part(rows)
    if some is None:
        return math.inf
    w = smooth(some, smoothed.roughness, strengths, smoothed.w, sweeps, choose=False).w
    z = np.asarray(examples.features[others] @ w)
    assert examples.row is not None
    lost = losses.values(examples.row, z, examples.y[others], 0.0)
    return float(examples.weights[others] @ lost)
