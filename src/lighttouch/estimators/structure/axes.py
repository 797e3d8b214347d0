"""The inputs of calibrators and lattices: which values of a column lie at which vertices."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from lighttouch.arrays import Floats
from lighttouch.estimators.model import (
    SMALLEST_GAP,
    InputMap,
    Term,
    distinct_values,
    keypoints_among,
    quantile_keypoints,
    whole_positions,
)
from lighttouch.estimators.structure.limits import LIMITS
from lighttouch.estimators.structure.plan import Plan
from lighttouch.lattice import Lattice


def calibrators(plan: Plan, table: Floats, weights: Floats, keypoints: list[int]) -> list[Term]:
    """A curve for every column, of at most so many keypoints each."""
    return [
        _calibrator(plan, column, table[:, column], weights, keypoints[column])
        for column in range(len(plan.columns))
    ]


def _calibrator(plan: Plan, column: int, values: Floats, weights: Floats, count: int) -> Term:
    categories = plan.columns[column].categories
    if categories is not None:
        keypoints = np.arange(max(1, len(categories)), dtype=np.float64)
    elif plan.without_curve(column):
        keypoints = quantile_keypoints(values, weights, 2)[:1]
    else:
        keypoints = _keypoints(plan, column, values, weights, plan.affordable(count))
    return Term((column,), (whole_positions(keypoints),), Lattice((keypoints.size + 1,)))


def _keypoints(plan: Plan, column: int, values: Floats, weights: Floats, count: int) -> Floats:
    """Quantiles, and the vertices that rules need, where they lie inside the column's range."""
    distinct, mass = distinct_values(values, weights)
    wanted = plan.fixed_vertices(column) if distinct.size else []
    inside = tuple(value for value in wanted if distinct[0] < value < distinct[-1])
    return keypoints_among(distinct, mass, count, inside)


def lattice_term(
    plan: Plan,
    subset: tuple[int, ...],
    sizes: tuple[int, ...],
    table: Floats,
    weights: Floats,
    curves: dict[int, tuple[Term, Floats]],
) -> Term:
    """A lattice over some columns; `curves` holds each column's own curve and its parameters."""
    axes = [
        _axis(plan, column, size, table, weights, *curves[column])
        for column, size in zip(subset, sizes, strict=True)
    ]
    interpolation = plan.interpolation
    if interpolation == "auto":
        interpolation = "hypercube" if len(subset) <= LIMITS.columns_together else "simplex"
    counts = tuple(count for _, count in axes)
    return Term(subset, tuple(each for each, _ in axes), Lattice(counts, interpolation))


def _axis(
    plan: Plan,
    column: int,
    size: int,
    table: Floats,
    weights: Floats,
    own: Term,
    curve: Floats,
) -> tuple[InputMap, int]:
    values = table[:, column]
    gaps = plan.missing_apart(column) and bool(np.isnan(values).any())
    if plan.columns[column].categorical:
        return _categories_axis(curve, size, gaps)
    if plan.has_axis_kind(column, "common unit"):
        return _common_unit_axis(plan, column, size, table), size
    turns = bool(plan.fixed_vertices(column))
    if plan.single and size == 2 and not turns:
        return _one_cell_axis(plan, column, values, weights, own, curve), 2
    if turns or plan.without_curve(column):
        keypoints = _keypoints(plan, column, values, weights, max(size, 3) if turns else size)
    else:
        keypoints = _some_of(own.maps[0].keypoints, size, curve)
    if keypoints.size < 2:
        return InputMap(keypoints, np.zeros(1), 1.0 if gaps else 0.0), 2
    if gaps:  # a vertex of their own, past the last
        return whole_positions(keypoints), int(keypoints.size) + 1
    return whole_positions(keypoints, missing=0.5 * (keypoints.size - 1)), int(keypoints.size)


def _some_of(keypoints: Floats, count: int, curve: Floats) -> Floats:
    """Some of a curve's keypoints, the ends included: a part of them spread evenly, more where the
    curve bends, because an interaction often begins where a column's own effect does.

    Because a lattice bends only where the column's curve does, a part of the lattice that depends
    on this column alone can move into the curve. A rule about the sum of both is then no stricter
    when it is asked of each (`rules.rows.Moves`).
    """
    last = keypoints.size - 1
    if keypoints.size <= count:
        return keypoints
    bends = np.zeros(keypoints.size)
    if curve.size == keypoints.size + 1:
        bends[1:-1] = np.abs(np.diff(curve[:-1], n=2))
    gaps = bends[:-1] + bends[1:]
    share = LIMITS.vertices_at_bends if gaps.sum() > 0.0 else 0.0
    weights = (1.0 - share) / last + share * gaps / max(float(gaps.sum()), SMALLEST_GAP)
    mass = np.concatenate([[0.0], np.cumsum(weights)])
    chosen = [0, last]
    while len(chosen) < count:  # halve the heaviest part that can be cut
        parts = [(mass[b] - mass[a], a, b) for a, b in pairwise(chosen) if b - a > 1]
        _, a, b = max(parts, key=lambda part: (part[0], -part[1]))
        middle = int(np.argmin(np.abs(mass[a + 1 : b] - 0.5 * (mass[a] + mass[b])))) + a + 1
        chosen = sorted([*chosen, middle])
    return keypoints[chosen]


def _categories_axis(curve: Floats, size: int, gaps: bool) -> tuple[InputMap, int]:
    """Categories in the order of their own effects, equal ones at the same place; others (missing,
    unseen) at a vertex of their own where there are `gaps`, otherwise where their effect puts them.
    """
    effects = curve[:-1]
    levels, rank = np.unique(effects, return_inverse=True)
    count = max(2, min(size, levels.size))
    positions = rank * ((count - 1) / max(1, levels.size - 1))
    if gaps:
        places = np.arange(effects.size, dtype=np.float64)
        return InputMap(places, positions.astype(np.float64), float(count)), count + 1
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
            c
            for bound in plan.shapes
            if bound.shape.axis_kind == "common unit" and group & set(bound.places)
            for c in bound.places
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
    plan: Plan, column: int, values: Floats, weights: Floats, own: Term, curve: Floats
) -> InputMap:
    """From 0 to 1 along a whole column: straight where a rule is about amounts, otherwise bent as
    the column's own effect bends.
    """
    low, high = _range(values)
    if plan.has_axis_kind(column, "straight"):
        return InputMap(
            np.array([low, high if high > low else low + 1.0]), np.array([0.0, 1.0]), 0.5
        )
    keypoints = own.maps[0].keypoints
    if plan.without_curve(column):
        keypoints = _keypoints(plan, column, values, weights, plan.affordable(LIMITS.keypoints))
    if keypoints.size < 2:
        return InputMap(keypoints, np.zeros(1), 0.0)
    rank = np.linspace(0.0, 1.0, keypoints.size)
    free = column not in plan.monotonic and not any(column in bound.places for bound in plan.shapes)
    effect = curve[:-1] if curve.size == keypoints.size + 1 else rank
    if not free:
        ascending = np.maximum.accumulate(effect * (plan.monotonic.get(column) or 1))
        effect = ascending if column in plan.monotonic else rank
    spread = float(effect.max() - effect.min())
    shaped = (effect - effect.min()) / spread if spread > 0.0 else rank
    positions = shaped if free else 0.5 * (shaped + rank)
    return InputMap(keypoints, np.clip(positions, 0.0, 1.0), float(np.mean(positions)))
