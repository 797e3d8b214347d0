"""Which columns share a lattice."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations

import numpy as np

from lighttouch.errors import ConstraintError
from lighttouch.estimators.rules import BoundShape
from lighttouch.estimators.structure.plan import Plan
from lighttouch.validation import positive_int

MOST_LATTICES = 24
MOST_COLUMNS_IN_ONE = 12


def subsets(
    plan: Plan, gains: dict[tuple[int, int], float], rng: np.random.Generator
) -> list[tuple[int, ...]]:
    """Column subsets, one a lattice: what rules need first, then where columns interact most (or at
    random).
    """
    count = len(plan.columns)
    if plan.single:
        if count > MOST_COLUMNS_IN_ONE:
            raise ConstraintError(
                f"one lattice holds at most {MOST_COLUMNS_IN_ONE} columns, X has {count}; "
                "use lattices='auto'"
            )
        return [tuple(range(count))] if count > 1 else []
    needed = [_closed(plan, shape.places) for shape in plan.shapes if shape.shape.together]
    for subset in needed:
        _refuse_slope_bound(plan, subset)
    if isinstance(plan.lattices, str):
        if plan.lattices not in ("auto", "random"):
            raise ValueError(
                "lattices must be 'auto', 'random', 'single', a number or a list of "
                f"column subsets, got {plan.lattices!r}"
            )
        wanted, most = _wanted(plan, gains, rng), MOST_LATTICES
    elif isinstance(plan.lattices, Iterable):
        wanted = [
            _closed(plan, tuple(plan.columns.place(column, "lattices") for column in subset))
            for subset in plan.lattices
        ]
        most = len(wanted) + len(needed)
    else:
        wanted, most = (
            [pair for pair, _ in _ranked(plan, gains)],
            positive_int(plan.lattices, "lattices", least=0),
        )
    return list(
        dict.fromkeys(
            tuple(sorted(subset)) for subset in (*needed, *wanted[:most]) if len(subset) > 1
        )
    )


def _wanted(
    plan: Plan, gains: dict[tuple[int, int], float], rng: np.random.Generator
) -> list[tuple[int, ...]]:
    if plan.lattices == "random":
        every = [pair for pair in combinations(range(len(plan.columns)), 2) if _allowed(plan, pair)]
        chosen: list[tuple[int, ...]] = [every[k] for k in rng.permutation(len(every))]
    else:
        chosen = [pair for pair, gain in _ranked(plan, gains) if gain > 1.0]
    return (
        [_widened(plan, subset, gains) for subset in chosen]
        if plan.columns_per_lattice > 2
        else chosen
    )


def _ranked(plan: Plan, gains: dict[tuple[int, int], float]) -> list[tuple[tuple[int, int], float]]:
    allowed = [(pair, gain) for pair, gain in gains.items() if _allowed(plan, pair)]
    return sorted(allowed, key=lambda each: (-each[1], each[0]))


def _widened(
    plan: Plan, subset: tuple[int, ...], gains: dict[tuple[int, int], float]
) -> tuple[int, ...]:
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


def _allowed(plan: Plan, subset: tuple[int, ...]) -> bool:
    return not any(
        _missing_companion(plan, shape, subset) is not None or _bound_slope(shape, subset)
        for shape in plan.shapes
    )


def _bound_slope(shape: BoundShape, subset: tuple[int, ...]) -> bool:
    return shape.kind == "SlopeBound" and shape.places[0] in subset


def _missing_companion(plan: Plan, shape: BoundShape, subset: tuple[int, ...]) -> int | None:
    """A column without which a lattice over the subset could break the rule."""
    if shape.kind in ("TrapezoidTrust", "Dominates", "RangeDominates"):
        first, second = shape.places
        return first if second in subset and first not in subset else None
    if shape.kind == "JointlyMonotonic":
        for here, there in (shape.places, shape.places[::-1]):
            if here in subset and there not in subset and not plan.increasing(here):
                return there
    return None


def _closed(plan: Plan, subset: tuple[int, ...]) -> tuple[int, ...]:
    """The subset with every column that rules need beside it."""
    chosen = tuple(dict.fromkeys(subset))
    while True:
        missing = [
            c for shape in plan.shapes if (c := _missing_companion(plan, shape, chosen)) is not None
        ]
        if not missing:
            return chosen
        chosen += (missing[0],)


def _refuse_slope_bound(plan: Plan, subset: tuple[int, ...]) -> None:
    bounded = [shape for shape in plan.shapes if _bound_slope(shape, subset)]
    if bounded:
        rule = bounded[0].shape
        raise ConstraintError(
            f"{rule} cannot be combined with a rule that puts its column into a lattice; "
            "use lattices='single'"
        )
