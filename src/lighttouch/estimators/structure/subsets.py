"""Which columns share a lattice."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations

import numpy as np

from lighttouch.errors import ConstraintError
from lighttouch.estimators.rules.base import BoundShape
from lighttouch.estimators.structure.limits import LIMITS
from lighttouch.estimators.structure.plan import Plan
from lighttouch.validation import positive_int

Subset = tuple[int, ...]
Gains = dict[tuple[int, int], float]


def subsets(plan: Plan, gains: Gains, rng: np.random.Generator) -> list[Subset]:
    """Column subsets, one per lattice: what rules need first, then where columns interact most (or
    at random).
    """
    if plan.single:
        return _one_subset(len(plan.columns))
    needed = [_closed(plan, bound.places) for bound in plan.shapes if bound.shape.together]
    for subset in needed:
        _refuse_column_alone(plan, subset)
    wanted = _wanted(plan, gains, rng)
    sorted_subsets = (tuple(sorted(subset)) for subset in (*needed, *wanted) if len(subset) > 1)
    return list(dict.fromkeys(sorted_subsets))


def _one_subset(count: int) -> list[Subset]:
    if count > LIMITS.columns_in_one:
        raise ConstraintError(
            f"one lattice holds at most {LIMITS.columns_in_one} columns, X has {count}; "
            "use lattices='auto'"
        )
    return [tuple(range(count))] if count > 1 else []


def _wanted(plan: Plan, gains: Gains, rng: np.random.Generator) -> list[Subset]:
    """What the parameter `lattices` asks for: a way to choose, subsets, or a number of pairs."""
    if isinstance(plan.lattices, str):
        if plan.lattices not in ("auto", "random"):
            raise ValueError(
                "lattices must be 'auto', 'random', 'single', a number or a list of "
                f"column subsets, got {plan.lattices!r}"
            )
        return _chosen(plan, gains, rng)[: LIMITS.lattices]
    if isinstance(plan.lattices, Iterable):
        return [
            _closed(plan, tuple(plan.columns.place(column, "lattices") for column in subset))
            for subset in plan.lattices
        ]
    count = positive_int(plan.lattices, "lattices", least=0)
    return [*(pair for pair, _ in _ranked(plan, gains)[:count])]


def _chosen(plan: Plan, gains: Gains, rng: np.random.Generator) -> list[Subset]:
    if plan.lattices == "random":
        every = [pair for pair in combinations(range(len(plan.columns)), 2) if _allowed(plan, pair)]
        chosen: list[Subset] = [every[k] for k in rng.permutation(len(every))]
    else:
        chosen = [pair for pair, gain in _ranked(plan, gains) if gain > 1.0]
    return (
        [_widened(plan, subset, gains) for subset in chosen]
        if plan.columns_per_lattice > 2
        else chosen
    )


def _ranked(plan: Plan, gains: Gains) -> list[tuple[tuple[int, int], float]]:
    allowed = [(pair, gain) for pair, gain in gains.items() if _allowed(plan, pair)]
    return sorted(allowed, key=lambda each: (-each[1], each[0]))


def _widened(plan: Plan, subset: Subset, gains: Gains) -> Subset:
    """More columns, those that interact most with the ones there."""
    chosen = tuple(subset)
    while len(chosen) < min(plan.columns_per_lattice, len(plan.columns)):
        candidates = [
            column
            for column in range(len(plan.columns))
            if column not in chosen and _allowed(plan, (*chosen, column))
        ]
        if not candidates:
            break
        chosen += (
            max(
                candidates,
                key=lambda column: sum(gains.get(_pair(column, other), 0.0) for other in chosen),
            ),
        )
    return chosen


def _pair(a: int, b: int) -> tuple[int, int]:
    return (a, b) if a < b else (b, a)


def _allowed(plan: Plan, subset: Subset) -> bool:
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
