"""Where a round begins after another one whose rows are mostly the same.

A point on the path of the round before, not yet near its end, is near the path of this one as well
(Gondzio 1998, "Warm start of the primal-dual method applied in the cutting plane scheme"). Only
rows that are new have no slack and no slope yet.
"""

from __future__ import annotations

import numpy as np

from lighttouch.arrays import Booleans
from lighttouch.interior.path import Point
from lighttouch.interior.program import Program


def point_again(program: Program, earlier: Point, known: Booleans) -> Point:
    """The earlier point for this program; rows that are not `known` are new inequalities, and what
    the point says of them counts for nothing.

    They get the mean product of the others, and as much slack as their excess, or as a slope of
    the same size leaves them.
    """
    pairs = np.count_nonzero(program.below[known]) + np.count_nonzero(program.above[known])
    products = earlier.n * earlier.low + earlier.p * earlier.high
    product = float(products[known].sum()) / max(1, int(pairs))
    excess = np.abs(program.forward(earlier.x) - program.centre)
    n = np.where(known, earlier.n, np.maximum(excess, np.sqrt(product)))
    low = np.where(known, earlier.low, product / n)
    s = np.where(known, earlier.s, low)
    high, p = np.where(known, earlier.high, 1.0), np.where(known, earlier.p, 0.0)
    return Point(earlier.x.copy(), s, low, high, n, p)
