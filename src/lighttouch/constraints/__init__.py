"""What must hold: convex functions g_j(w) <= 0, any number of them."""

from lighttouch.constraints.base import Aggregated
from lighttouch.constraints.builders import bounds, canonical_examples, order, ordering
from lighttouch.constraints.convex import ConvexConstraints
from lighttouch.constraints.curved import NormConstraints, QuadraticConstraints
from lighttouch.constraints.equalities import LinearEqualities
from lighttouch.constraints.generated import GeneratedRows
from lighttouch.constraints.linear import LinearConstraints
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
