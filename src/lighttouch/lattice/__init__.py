"""Lattices: interpolated look-up tables, and the rules they can be made to obey."""

from lighttouch.lattice.curvature import (
    concave,
    convex,
    edgeworth,
    submodular,
    supermodular,
    trapezoid,
)
from lighttouch.lattice.model import Lattice
from lighttouch.lattice.orders import bounds, decreasing, increasing, slope, unimodal
from lighttouch.lattice.pairs import dominance, joint_monotonicity, range_dominance

__all__ = [
    "Lattice",
    "bounds",
    "concave",
    "convex",
    "decreasing",
    "dominance",
    "edgeworth",
    "increasing",
    "joint_monotonicity",
    "range_dominance",
    "slope",
    "submodular",
    "supermodular",
    "trapezoid",
    "unimodal",
]
