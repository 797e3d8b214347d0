"""Rules about columns, and the rows about a model's parameters that they become."""

from lighttouch.estimators.rules.base import (
    BoundShape,
    ShapeConstraint,
    all_rules,
    read_monotonic,
    read_shapes,
)
from lighttouch.estimators.rules.rows import RuleRows, stacked

__all__ = [
    "BoundShape",
    "RuleRows",
    "ShapeConstraint",
    "all_rules",
    "read_monotonic",
    "read_shapes",
    "stacked",
]
