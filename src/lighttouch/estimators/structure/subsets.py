"""Which columns share a lattice."""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import combinations

import numpy as np

from lighttouch.errors import ConstraintError
from lighttouch.estimators.rules.base import BoundShape
from lighttouch.estimators.structure.limits import LIMITS
from lighttouch.estimators.structure.plan import Plan
from lighttouch.validation import positive_int

Subset = tuple[int, ...]


def named_subsets(plan: Plan, rng: np.random.Generator) -> list[Subset]:
    """Column subsets that do not depend on what the data show: what rules need first, then what the
    user names, or pairs at random.
    """
    if plan.single:
        return _one_subset(len(plan.columns))
    needed = [_closed(plan, bound.places) for bound in plan.shapes if bound.shape.together]
    for subset in needed:
        _refuse_column_alone(plan, subset)
    wanted = _wanted(plan, rng)
    sorted_subsets = (tuple(sorted(subset)) for subset in (*needed, *wanted) if len(subset) > 1)
    return list(dict.fromkeys(sorted_subsets))


def _one_subset(count: int) -> list[Subset]:
    if count > LIMITS.columns_in_one:
        raise ConstraintError(
            f"one lattice holds at most {LIMITS.columns_in_one} columns, X has {count}; "
            "use lattices='auto'"
        )
    return [tuple(range(count))] if count > 1 else []


def _wanted(plan: Plan, rng: np.random.Generator) -> list[Subset]:
    """What the parameter `lattices` asks for: a way to choose, subsets, or a number of pairs."""
    if isinstance(plan.lattices, str):
        if plan.lattices not in ("auto", "random"):
            raise ValueError(
                "lattices must be 'auto', 'random', 'single', a number or a list of "
                f"column subsets, got {plan.lattices!r}"
            )
        return _at_random(plan, rng) if plan.lattices == "random" else []
    if isinstance(plan.lattices, Iterable):
        return [
            _closed(plan, tuple(plan.columns.place(column, "lattices") for column in subset))
            for subset in plan.lattices
        ]
    positive_int(plan.lattices, "lattices", least=0)
    return []


def most_subsets(plan: Plan, trees_follow: bool = False) -> int:
    """How many subsets the data may choose; 0 where the user has named them."""
    if isinstance(plan.lattices, str):
        most = LIMITS.lattices_beside_trees if trees_follow else LIMITS.lattices
        return most if plan.lattices == "auto" else 0
    return 0 if isinstance(plan.lattices, Iterable) else int(plan.lattices)


def candidates(
    plan: Plan, size: int, chosen: Iterable[Subset], refused: Iterable[Subset] = ()
) -> list[Subset]:
    """Subsets of so many columns that may share a lattice: all of them, or, where they are too
    many, those that extend a chosen one; none that is chosen or was refused.
    """
    columns = range(len(plan.columns))
    if size == 2 or math.comb(len(columns), size) <= LIMITS.all_triples:
        found: Iterable[Subset] = combinations(columns, size)
    else:
        smaller = [subset for subset in chosen if len(subset) == size - 1]
        found = sorted(
            {tuple(sorted((*subset, c))) for subset in smaller for c in columns if c not in subset}
        )
    taken = {*chosen, *refused}
    return [subset for subset in found if subset not in taken and allowed(plan, subset)]


def _at_random(plan: Plan, rng: np.random.Generator) -> list[Subset]:
    every = [pair for pair in combinations(range(len(plan.columns)), 2) if allowed(plan, pair)]
    chosen: list[Subset] = [every[k] for k in rng.permutation(len(every))]
    if plan.columns_per_lattice is not None and plan.columns_per_lattice > 2:
        chosen = [_widened(plan, subset, rng) for subset in chosen]
    return chosen[: LIMITS.lattices]


def _widened(plan: Plan, subset: Subset, rng: np.random.Generator) -> Subset:
    """More columns, at random."""
    chosen = tuple(subset)
    for column in rng.permutation(len(plan.columns)):
        wider = (*chosen, int(column))
        if len(chosen) < plan.columns_together and column not in chosen and allowed(plan, wider):
            chosen = wider
    return chosen


def allowed(plan: Plan, subset: Subset) -> bool:
    return not any(
        bound.missing_companion(subset, plan.monotonic) is not None or _alone(bound, subset)
        for bound in plan.shapes
    )


def _alone(bound: BoundShape, subset: Subset) -> bool:
    """Whether a column of the subset may not enter a lattice."""
    return bound.shape.alone and bound.places[0] in subset


def _closed(plan: Plan, subset: Subset) -> Subset:
    """The subset with every column that rules need beside it."""
    chosen = tuple(dict.fromkeys(subset))
    while True:
        companions = (bound.missing_companion(chosen, plan.monotonic) for bound in plan.shapes)
        missing = next((column for column in companions if column is not None), None)
        if missing is None:
            return chosen
        chosen += (missing,)


def _refuse_column_alone(plan: Plan, subset: Subset) -> None:
    for bound in plan.shapes:
        if _alone(bound, subset):
            raise ConstraintError(
                f"{bound.shape} cannot be combined with a rule that puts its column into a "
                "lattice; use lattices='single'"
            )
