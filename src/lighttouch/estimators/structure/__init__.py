"""Which terms a model has: a curve for every column, and lattices over columns that interact."""

from lighttouch.estimators.structure.axes import calibrators, lattice_term
from lighttouch.estimators.structure.plan import Plan
from lighttouch.estimators.structure.screening import interaction_gains
from lighttouch.estimators.structure.sizes import lattice_sizes, promises
from lighttouch.estimators.structure.subsets import subsets

__all__ = [
    "Plan",
    "calibrators",
    "interaction_gains",
    "lattice_sizes",
    "lattice_term",
    "promises",
    "subsets",
]
