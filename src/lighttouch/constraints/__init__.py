"""What must hold: convex functions g_j(w) <= 0, any number of them."""

from lighttouch.constraints.base import Aggregated
from lighttouch.constraints.curved import NormConstraints, QuadraticConstraints
from lighttouch.constraints.custom import ConvexConstraints, GeneratedRows
from lighttouch.constraints.linear import (
    LinearConstraints,
    LinearEqualities,
    bounds,
    canonical_examples,
    order,
    ordering,
)
from lighttouch.constraints.stacked import Stacked, stack

__all__ = [
    "Aggregated",
    "ConvexConstraints",
    "GeneratedRows",
    "LinearConstraints",
    "LinearEqualities",
    "NormConstraints",
    "QuadraticConstraints",
    "Stacked",
    "bounds",
    "canonical_examples",
    "order",
    "ordering",
    "stack",
]
