"""Large arrays that are nearly everywhere the same, in little space, as tensors."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

SAMPLED = 1001  # rows of which the most common one is taken for the rest


def packed(array: np.ndarray[Any, Any]) -> dict[str, Any]:
    """The most common row, and the rows that differ from it."""
    rows = array.reshape(array.shape[0], -1)
    if not rows.size:
        return {"shape": list(array.shape), "type": array.dtype.str}
    sample = rows[np.linspace(0, rows.shape[0] - 1, SAMPLED).astype(np.int64)]
    kinds, counts = np.unique(sample, axis=0, return_counts=True)
    common = kinds[counts.argmax()]
    others = np.flatnonzero((rows != common).any(axis=1))
    return {
        "shape": list(array.shape),
        "type": array.dtype.str,
        "common": torch.from_numpy(common.copy()),
        "places": torch.from_numpy(others),
        "rows": torch.from_numpy(rows[others].copy()),
    }


def unpacked(state: dict[str, Any]) -> np.ndarray[Any, Any]:
    """What `packed` was given."""
    out = np.empty(state["shape"], np.dtype(state["type"]))
    if out.size:
        rows = out.reshape(out.shape[0], -1)
        rows[:] = state["common"].cpu().numpy()
        rows[state["places"].cpu().numpy()] = state["rows"].cpu().numpy()
    return out
