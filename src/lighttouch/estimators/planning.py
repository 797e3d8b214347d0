"""Which pieces a model has: calibrators for all columns, and lattices over the subsets where
columns interact.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lighttouch.errors import ConstraintError
from lighttouch.estimators.columns import Columns
from lighttouch.estimators.inputs import InputMap, quantile_keypoints, whole_positions
from lighttouch.estimators.pieces import Piece
from lighttouch.estimators.rules import BoundShape
from lighttouch.lattice import Lattice
from lighttouch.validation import positive_int

Floats = NDArray[np.float64]
MOST_LATTICES = 24
MOST_COLUMNS_IN_ONE = 12
BINS = (3, 8)
MOST_SCREENED = 40
ALL_KEYPOINTS = 1500  # of all curves together
ROOM = 1600  # parameters of all lattices of an ensemble together


@dataclass(frozen=True)
class Plan:
    """What the user asked for, checked."""

    columns: Columns
    monotonic: dict[int, int]
    shapes: list[BoundShape]
    keypoints: int
    lattices: Any  # "auto", "single", a number, or subsets
    lattice_size: Any  # "auto" or a number
    columns_per_lattice: int
    interpolation: str

    @property
    def categorical(self) -> list[bool]:
        return [column.categorical for column in self.columns.columns]

    @property
    def single(self) -> bool:
        return isinstance(self.lattices, str) and self.lattices == "single"

    def of_column(self, column: int, *kinds: str) -> list[BoundShape]:
        return [shape for shape in self.shapes if column in shape.places and shape.kind in kinds]

    @property
    def affordable_keypoints(self) -> int:
        """Fewer keypoints a column where columns are many, so that all curves together stay of a
        size that can be factored.
        """
        return max(2, min(self.keypoints, ALL_KEYPOINTS // max(1, len(self.columns))))

    def increasing(self, column: int) -> bool:
        return self.monotonic.get(column, 0) > 0


def calibrators(plan: Plan, table: Floats, weights: Floats) -> list[Piece]:
    return [
        _calibrator(plan, column, table[:, column], weights) for column in range(len(plan.columns))
    ]


def _calibrator(plan: Plan, column: int, values: Floats, weights: Floats) -> Piece:
    categories = plan.columns[column].categories
    if categories is not None:
        keypoints = np.arange(max(1, len(categories)), dtype=np.float64)
    elif _flat(plan, column):
        keypoints = quantile_keypoints(values, weights, 2)[:1]
    else:
        keypoints = _with_modes(plan, column, values, weights, plan.affordable_keypoints)
    return Piece((column,), (whole_positions(keypoints),), Lattice((keypoints.size + 1,)))


def _flat(plan: Plan, column: int) -> bool:
    """Whether a column may act only through lattices, because its own calibrator could not keep a
    rule about two columns.
    """
    conditional = any(
        shape.places[1] == column for shape in plan.of_column(column, "TrapezoidTrust")
    )
    return conditional or (plan.single and bool(plan.of_column(column, "SlopeBound")))


def _with_modes(plan: Plan, column: int, values: Floats, weights: Floats, count: int) -> Floats:
    modes = [float(shape.shape.mode) for shape in plan.of_column(column, "Unimodal")]  # type: ignore[attr-defined]
    ends = quantile_keypoints(values, weights, 2)
    inside = tuple(mode for mode in modes if ends[0] < mode < ends[-1])
    return quantile_keypoints(values, weights, count, inside)


# --- which columns share a lattice
# -------------------------------------------------------------------------------------------


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
            _closed(plan, tuple(plan.columns.place(column) for column in subset))
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


def promises(
    chosen: list[tuple[int, ...]], gains: dict[tuple[int, int], float]
) -> list[tuple[tuple[int, ...], float]]:
    """Each subset with the largest gain of its pairs (1 where nothing was measured)."""
    return [
        (subset, max([gains.get(_pair(a, b), 0.0) for a, b in combinations(subset, 2)] + [1.0]))
        for subset in chosen
    ]


def lattice_sizes(
    plan: Plan, examples: int, chosen: list[tuple[tuple[int, ...], float]]
) -> list[tuple[tuple[int, ...], int]]:
    """How fine each lattice is: finer with more examples and where it promises more, as long as all
    of them have room.
    """
    if plan.lattice_size != "auto" or plan.single:
        return [
            (subset, 2 if plan.lattice_size == "auto" else int(plan.lattice_size))
            for subset, _ in chosen
        ]
    finest = float(np.clip(np.sqrt(examples / 40.0), 3.0, 20.0))
    best = max((gain for _, gain in chosen), default=1.0)
    while True:
        wanted = [(subset, finest * (gain / best) ** 0.25) for subset, gain in chosen]
        sizes = [
            (
                subset,
                int(
                    max(2, np.clip(round(size), 3, 20) if len(subset) == 2 else min(4, size / 2.0))
                ),
            )
            for subset, size in wanted
        ]
        if sum(size ** len(subset) for subset, size in sizes) <= ROOM or finest <= 2.0:
            return sizes
        finest *= 0.9


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


def interaction_gains(
    plan: Plan,
    signed_tables: list[tuple[Floats, float]],
    residual: Floats,
    weights: Floats,
    examples: int,
) -> dict[tuple[int, int], float]:
    """How much of the residual each pair of columns explains on a coarse grid, in units of what
    noise would (above 1: it interacts).

    A grid of few cells finds weak smooth interactions, one of many cells finds strong local ones:
    the better of the two counts.
    """
    count = len(plan.columns)
    screened = (
        list(range(count))
        if count <= MOST_SCREENED
        else _most_varied(signed_tables, residual, weights)
    )
    gains = dict.fromkeys(combinations(screened, 2), 0.0)
    for bins in BINS:
        cells = [{c: _bins(table[:, c], bins) for c in screened} for table, _ in signed_tables]
        for i, j in gains:
            signed = [
                (columns[i] * (bins + 1) + columns[j], sign)
                for columns, (_, sign) in zip(cells, signed_tables, strict=True)
            ]
            gains[i, j] = max(
                gains[i, j], _gain(signed, (bins + 1) ** 2, residual, weights, examples)
            )
    return gains


def _gain(
    signed_cells: list[tuple[NDArray[np.int64], float]],
    count: int,
    residual: Floats,
    weights: Floats,
    examples: int,
) -> float:
    """The explained part of the residual's variance over what its degrees of freedom would explain
    by chance, three deviations included.
    """
    sums, mass = np.zeros(count), np.zeros(count)
    for cells, sign in signed_cells:
        sums += sign * np.bincount(cells, weights * residual, minlength=count)
        mass += np.bincount(cells, weights, minlength=count)
    used = mass > 0.0
    variance = max(float(weights @ np.square(residual)), 1e-300)
    explained = (
        float(np.sum(np.square(sums[used]) / (mass[used] + 4.0 / examples))) * examples / variance
    )
    bins = round(count**0.5) - 1
    freedom = max(1.0, float(used.sum()) - 2 * bins + 1)
    return float(explained / (freedom + 3.0 * np.sqrt(2.0 * freedom)))


def _bins(values: Floats, bins: int) -> NDArray[np.int64]:
    edges = quantile_keypoints(values, np.ones(values.size), bins + 1)[1:-1]
    return np.where(np.isnan(values), bins, np.searchsorted(edges, values, side="right")).astype(
        np.int64
    )


def _most_varied(
    signed_tables: list[tuple[Floats, float]], residual: Floats, weights: Floats
) -> list[int]:
    """The columns whose parts differ most in their residuals, by the weights of squares of
    column-wise binned sums.
    """
    table = signed_tables[0][0]
    scores = []
    for column in range(table.shape[1]):
        place = _bins(table[:, column], max(BINS))
        sums, mass = np.bincount(place, weights * residual), np.bincount(place, weights)
        scores.append(float(np.sum(np.square(sums[mass > 0]) / mass[mass > 0])))
    return sorted(int(c) for c in np.argsort(scores)[::-1][:MOST_SCREENED])


# --- lattices and their inputs
# -----------------------------------------------------------------------------------------------


def lattice_piece(
    plan: Plan,
    subset: tuple[int, ...],
    size: int,
    table: Floats,
    weights: Floats,
    curves: dict[int, Floats],
) -> Piece:
    """A lattice over some columns; `curves` holds each column's own calibrator at its vertices."""
    maps, sizes = [], []
    for column in subset:
        axis, count = _axis(plan, column, size, table, weights, curves[column])
        maps.append(axis)
        sizes.append(count)
    interpolation = plan.interpolation
    if interpolation == "auto":
        interpolation = "hypercube" if len(subset) <= 3 else "simplex"
    return Piece(subset, tuple(maps), Lattice(tuple(sizes), interpolation))


def _axis(
    plan: Plan, column: int, size: int, table: Floats, weights: Floats, curve: Floats
) -> tuple[InputMap, int]:
    values = table[:, column]
    if plan.columns[column].categorical:
        return _categories_axis(curve, size)
    if plan.of_column(column, "Dominates", "JointlyMonotonic"):
        return _common_unit_axis(plan, column, size, table), size
    modes = plan.of_column(column, "Unimodal")
    if plan.single and size == 2 and not modes:
        return _one_cell_axis(plan, column, values, weights, curve), 2
    keypoints = _with_modes(plan, column, values, weights, max(size, 3) if modes else size)
    if keypoints.size < 2:
        return InputMap(keypoints, np.zeros(1), 0.0), 2
    return whole_positions(keypoints, missing=0.5 * (keypoints.size - 1)), int(keypoints.size)


def _categories_axis(curve: Floats, size: int) -> tuple[InputMap, int]:
    """Categories in the order of their own effects, equal ones at the same place; others (missing,
    unseen) where their effect puts them.
    """
    effects = curve[:-1]
    levels, rank = np.unique(effects, return_inverse=True)
    count = max(2, min(size, levels.size))
    positions = rank * ((count - 1) / max(1, levels.size - 1))
    elsewhere = (
        float(np.interp(curve[-1], levels, np.linspace(0.0, count - 1, levels.size)))
        if levels.size > 1
        else 0.0
    )
    return InputMap(
        np.arange(effects.size, dtype=np.float64), positions.astype(np.float64), elsewhere
    ), count


def _common_unit_axis(plan: Plan, column: int, size: int, table: Floats) -> InputMap:
    """Straight, with one lattice unit worth the same amount for all columns that are compared with
    this one.
    """
    group = {column}
    while True:
        more = {
            c for s in plan.shapes if s.shape.same_unit and group & set(s.places) for c in s.places
        } | group
        if more == group:
            break
        group = more
    width = max(_range(table[:, c])[1] - _range(table[:, c])[0] for c in group)
    low = _range(table[:, column])[0]
    return InputMap(
        np.array([low, low + (width if width > 0.0 else 1.0)]), np.array([0.0, size - 1.0]), 0.0
    )


def _range(values: Floats) -> tuple[float, float]:
    present = values[~np.isnan(values)]
    return (float(present.min()), float(present.max())) if present.size else (0.0, 1.0)


def _one_cell_axis(
    plan: Plan, column: int, values: Floats, weights: Floats, curve: Floats
) -> InputMap:
    """From 0 to 1 along a whole column: straight where a rule is about amounts, otherwise bent as
    the column's own effect bends.
    """
    low, high = _range(values)
    if plan.of_column(column, "Convex", "Concave", "SlopeBound"):
        return InputMap(
            np.array([low, high if high > low else low + 1.0]), np.array([0.0, 1.0]), 0.5
        )
    keypoints = _with_modes(plan, column, values, weights, plan.affordable_keypoints)
    if keypoints.size < 2:
        return InputMap(keypoints, np.zeros(1), 0.0)
    rank = np.linspace(0.0, 1.0, keypoints.size)
    free = column not in plan.monotonic and not any(column in shape.places for shape in plan.shapes)
    effect = curve[:-1] if curve.size == keypoints.size + 1 else rank
    if not free:
        ascending = np.maximum.accumulate(effect * (plan.monotonic.get(column) or 1))
        effect = ascending if column in plan.monotonic else rank
    spread = float(effect.max() - effect.min())
    shaped = (effect - effect.min()) / spread if spread > 0.0 else rank
    positions = shaped if free else 0.5 * (shaped + rank)
    return InputMap(keypoints, np.clip(positions, 0.0, 1.0), float(np.mean(positions)))
