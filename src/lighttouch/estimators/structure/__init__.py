"""Which terms a model has: a curve for every column, and lattices over columns that interact."""

from lighttouch.estimators.structure.axes import calibrators, lattice_term
from lighttouch.estimators.structure.limits import LIMITS
from lighttouch.estimators.structure.plan import (
    Plan,
    candidates,
    lattice_sizes,
    most_subsets,
    named_subsets,
    room_for,
    room_while_searching,
    rows_to_search,
)
from lighttouch.estimators.structure.screening import Gain, Screen

__all__ = [
    "LIMITS",
    "Gain",
    "Plan",
    "Screen",
    "calibrators",
    "candidates",
    "lattice_sizes",
    "lattice_term",
    "most_subsets",
    "named_subsets",
    "room_for",
    "room_while_searching",
    "rows_to_search",
]
