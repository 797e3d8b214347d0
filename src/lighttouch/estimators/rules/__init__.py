"""Rules about columns, and the rows about a model's parameters that they become."""

from lighttouch.estimators.rules.lattice_rows import (
    BoundShape,
    RuleRows,
    all_rules,
    check_places,
    stacked,
)

__all__ = ["BoundShape", "RuleRows", "all_rules", "check_places", "stacked"]
