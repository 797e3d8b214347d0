"""Pairs of inequalities that are one equality: no point is strictly inside of both."""

from __future__ import annotations

import numpy as np

from lighttouch.arrays import Indices, Matrix, Vector


def opposite_rows(rows: Matrix, right: Vector) -> tuple[Indices, Indices]:
    """Pairs of rows a x <= b and -a x <= -b: they share a key but for its sign, and are compared
    entry by entry.
    """
    key = np.asarray(rows @ np.random.default_rng(0).standard_normal(rows.shape[1]))
    order = np.lexsort((np.sign(key), np.sign(key) * right, np.abs(key)))
    one, two = order[:-1], order[1:]
    alike = (key[one] == -key[two]) & (key[one] != 0.0) & (right[one] == -right[two])
    alike[1:] &= ~alike[:-1]  # a row has one partner
    one, two = one[alike], two[alike]
    different = abs(rows[one] + rows[two]).sum(axis=1) if one.size else np.zeros(0)
    same = np.asarray(different).ravel() == 0.0
    return one[same], two[same]
