"""How a column's values become positions along a lattice axis."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class InputMap:
    """Piecewise linear through (keypoints, positions), constant outside; missing cells (NaN) go to
    `missing`.

    Computed so that positions keep the order of the values to the last bit wherever `positions`
    ascend.
    """

    keypoints: Floats
    positions: Floats
    missing: float

    def __call__(self, values: Floats) -> Floats:
        found = (
            np.full(values.shape, self.positions[0])
            if self.keypoints.size == 1
            else self._between(values)
        )
        return np.where(np.isnan(values), self.missing, found)

    def _between(self, values: Floats) -> Floats:
        cell = np.clip(
            np.searchsorted(self.keypoints, values, side="right") - 1, 0, self.keypoints.size - 2
        )
        below, above = self.keypoints[cell], self.keypoints[cell + 1]
        share = np.clip((values - below) / (above - below), 0.0, 1.0)
        low, high = self.positions[cell], self.positions[cell + 1]
        return np.clip(low + share * (high - low), np.minimum(low, high), np.maximum(low, high))

    def state(self) -> dict[str, Any]:
        return {
            "keypoints": self.keypoints,
            "positions": self.positions,
            "missing": float(self.missing),
        }

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> InputMap:
        return cls(state["keypoints"], state["positions"], float(state["missing"]))


def whole_positions(keypoints: Floats, missing: float | None = None) -> InputMap:
    """A vertex at every keypoint; missing cells go one place past the last, a vertex of their own,
    unless told otherwise.
    """
    return InputMap(
        keypoints,
        np.arange(keypoints.size, dtype=np.float64),
        float(keypoints.size) if missing is None else missing,
    )


def quantile_keypoints(
    values: Floats, weights: Floats, count: int, include: tuple[float, ...] = ()
) -> Floats:
    """At most `count` distinct values that cut the present cells into parts of equal weight, ends
    included.
    """
    present = ~np.isnan(values) & (weights > 0.0)
    if not present.any():
        return np.array([0.0])
    distinct, group = np.unique(values[present], return_inverse=True)
    if distinct.size <= count:
        chosen = distinct
    else:
        share = np.cumsum(_capped(np.bincount(group, weights[present]).astype(np.float64), count))
        places = np.searchsorted(share, np.linspace(0.0, share[-1], count) * (1.0 - 1e-12))
        chosen = distinct[
            np.unique(
                np.concatenate([np.clip(places, 0, distinct.size - 1), [0, distinct.size - 1]])
            )
        ]
    return _well_apart(np.unique(np.concatenate([chosen, np.asarray(include, dtype=np.float64)])))


def _capped(mass: Floats, count: int) -> Floats:
    """No value heavier than one part, so that a value most rows share does not use up the keypoints
    of all others.
    """
    capped = mass
    for _ in range(4):
        capped = np.minimum(mass, capped.sum() / count)
    return capped


def _well_apart(keypoints: Floats) -> Floats:
    """Without keypoints so close that dividing by their distance would be meaningless."""
    if keypoints.size < 2:
        return keypoints
    least = 1e-9 * (keypoints[-1] - keypoints[0])
    kept = [keypoints[0]]
    for point in keypoints[1:]:
        if point - kept[-1] > least:
            kept.append(point)
    return np.array(kept)
