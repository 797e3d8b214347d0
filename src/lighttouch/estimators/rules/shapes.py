"""Rules about columns, by name: what users put into `shape_constraints`."""

from __future__ import annotations

from lighttouch.estimators.rules.base import ShapeConstraint
from lighttouch.estimators.rules.one_column import (
    CategoryOrder,
    Concave,
    Convex,
    SlopeBound,
    Unimodal,
)
from lighttouch.estimators.rules.two_columns import (
    Dominates,
    EdgeworthTrust,
    JointlyMonotonic,
    RangeDominates,
    Submodular,
    Supermodular,
    TrapezoidTrust,
)

KINDS: dict[str, type[ShapeConstraint]] = {
    kind.__name__: kind
    for kind in (
        EdgeworthTrust,
        TrapezoidTrust,
        Dominates,
        RangeDominates,
        JointlyMonotonic,
        Supermodular,
        Submodular,
        Convex,
        Concave,
        Unimodal,
        SlopeBound,
        CategoryOrder,
    )
}

__all__ = [
    "KINDS",
    "CategoryOrder",
    "Concave",
    "Convex",
    "Dominates",
    "EdgeworthTrust",
    "JointlyMonotonic",
    "RangeDominates",
    "ShapeConstraint",
    "SlopeBound",
    "Submodular",
    "Supermodular",
    "TrapezoidTrust",
    "Unimodal",
]
