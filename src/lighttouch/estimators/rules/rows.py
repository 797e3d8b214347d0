"""A rule as linear rows about a model's parameters: the rows of every kind of rule for a model of
curves and lattices, the moves that make them rules on the sum of its terms, and the rows of
canonical examples.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from lighttouch import lattice
from lighttouch.arrays import Booleans, Floats, Indices, Matrix
from lighttouch.constraints import LinearConstraints
from lighttouch.constraints.base import NestedForms, NestedRows, one_after_another
from lighttouch.errors import ConstraintError
from lighttouch.estimators.model import AdditiveModel, InputMap, Term
from lighttouch.validation import positive, refuse_if_too_large


@dataclass(frozen=True)
class RuleRows:
    """A rule, or a part of one: A w <= b, in the user's units.

    A rule that is `about_order` only compares predictions, so it holds for every increasing
    function of the score too: for a classifier's probability, not only for its log-odds. One that
    holds for the `exponential` of the score holds for a mean that is modelled by its logarithm.
    """

    label: str
    A: Matrix
    b: Floats
    nested: tuple[NestedRows, ...] = ()
    about_order: bool = False
    exponential: bool = False

    @property
    def count(self) -> int:
        return int(self.b.size)


def joined(
    label: str,
    parts: Sequence[RuleRows],
    dimension: int,
    about_order: bool = False,
    exponential: bool = False,
) -> RuleRows:
    """One rule made of all rows of its parts."""
    if not parts:
        empty = sparse.csr_matrix((0, dimension))
        return RuleRows(label, empty, np.zeros(0), (), about_order, exponential)
    A = sparse.vstack([part.A for part in parts], format="csr")
    b = np.concatenate([part.b for part in parts])
    return RuleRows(label, A, b, one_after_another(parts), about_order, exponential)


def with_more_columns(rule: RuleRows, more: int) -> RuleRows:
    """The rule about parameters of which the last ones do not matter."""
    A = sparse.csr_matrix(rule.A)
    width = A.shape[1] + more
    A = sparse.csr_matrix((A.data, A.indices, A.indptr), shape=(A.shape[0], width))
    nested = tuple(block.wide(0, width) for block in rule.nested)
    return RuleRows(rule.label, A, rule.b, nested, rule.about_order, rule.exponential)


def stacked(rules: Sequence[RuleRows], dimension: int) -> LinearConstraints:
    """All rows of all rules, one rule after the other."""
    if not rules:
        return LinearConstraints(sparse.csr_matrix((0, dimension)), np.zeros(0))
    return LinearConstraints(
        sparse.vstack([rule.A for rule in rules], format="csr"),
        np.concatenate([rule.b for rule in rules]),
        nested=one_after_another(rules),
        copy=False,
    )


# -------------------------------------------------------------------------------------------------
# Rows that make an additive model of curves and lattices obey a rule.
#
# Rules are asked of every term of the model. That is sufficient for the sum of the terms, and
# nearly necessary: `Moves` says why.


Build = Callable[..., LinearConstraints]
PairBuild = Callable[[Term, int, int], LinearConstraints]


def monotone(model: AdditiveModel, signs: Mapping[int, int]) -> list[Matrix]:
    """For every column the rows by which the model never falls (sign 1) or never rises (sign -1)
    along it, compared with 0.
    """
    pairs = [_neighbours(model, column) for column in signs]
    count = sum(len(each) for each in pairs)
    advice = "use a smaller lattice, or a solver that does not store the rows"
    refuse_if_too_large(count * 60, f"storing {count:,} monotonicity rows", advice, ConstraintError)
    found = []
    for each, sign in zip(pairs, signs.values(), strict=True):
        values, ends = np.tile([1.0, -1.0], len(each)), np.arange(0, each.size + 1, 2)
        shape = (len(each), model.dimension)
        found.append(sparse.csr_matrix((sign * values, each.ravel(), ends), shape=shape))
    return found


def curved(model: AdditiveModel, column: int, build: Build, at_size_two: Build) -> list[RuleRows]:
    """Convex or concave along a column; `at_size_two` makes a simplex lattice of one cell so."""
    parts = []
    for place, term, axis in _along(model, column):
        kind = "hypercube" if term.calibrator else term.lattice.interpolation
        if term.grid[axis] > 2:
            rows = build(term.grid, axis, term.vertices(axis), kind)
            parts.append(_of_term(model, place, rows))
        elif kind == "simplex":
            pairs = [(axis, other) for other in range(len(term.grid)) if other != axis]
            parts.append(_of_term(model, place, at_size_two(term.grid, pairs)))
    return parts


def unimodal(model: AdditiveModel, column: int, mode: float, shape: str) -> list[RuleRows]:
    """One turn, at `mode`; a term whose range does not hold the mode is monotone."""
    parts = []
    for place, term, axis in _along(model, column):
        turn = int(np.searchsorted(term.vertices(axis), mode))
        if 0 < turn < term.grid[axis] - 1:
            rows = lattice.unimodal(term.grid, axis, turn, shape)
        else:
            rising = (turn == 0) == (shape == "valley")
            rows = (lattice.increasing if rising else lattice.decreasing)(term.grid, axis)
        parts.append(_of_term(model, place, rows))
    return parts


def slope_bound(model: AdditiveModel, column: int, limit: float) -> list[RuleRows]:
    """|f(v + e) - f(v)| <= limit * (the distance of the vertices, in the column's units)."""
    parts = []
    for place, term, axis in _along(model, column):
        falls = lattice.increasing(term.grid, axis).A
        room = limit * _cell_widths(term, axis)
        parts += [_part(model.wide(place, sign * falls), room) for sign in (1.0, -1.0)]
    return parts


def in_lattices(model: AdditiveModel, columns: tuple[int, ...], build: PairBuild) -> list[RuleRows]:
    """The rows `build(term, first axis, second axis)` of every lattice over both columns."""
    return [
        _of_term(model, place, build(term, axes[0], axes[1]))
        for place, term, axes in _lattices_over(model, *columns)
    ]


def dominance(model: AdditiveModel, dominant: int, weak: int) -> list[RuleRows]:
    """The slope along `dominant` is at least the slope along `weak`: in curves and in lattices."""

    def rows(term: Term, i: int, j: int) -> LinearConstraints:
        return lattice.dominance(term.grid, i, j, term.lattice.interpolation)

    curves = _every_pair(_slopes(model, weak), -_slopes(model, dominant))
    return [curves, *in_lattices(model, (dominant, weak), rows)]


def joint_monotonicity(model: AdditiveModel, first: int, second: int) -> list[RuleRows]:
    """The slopes along both columns add up to at least 0: in curves and in lattices."""

    def rows(term: Term, i: int, j: int) -> LinearConstraints:
        return lattice.joint_monotonicity(term.grid, i, j, term.lattice.interpolation)

    curves = _every_pair(-_slopes(model, first), -_slopes(model, second))
    return [curves, *in_lattices(model, (first, second), rows)]


def range_dominance(model: AdditiveModel, dominant: int, weak: int) -> list[RuleRows]:
    """The rise over the range of `dominant` is at least that over the range of `weak`."""

    def rows(term: Term, i: int, j: int) -> LinearConstraints:
        return lattice.range_dominance(term.grid, i, j, term.lattice.interpolation)

    ends = sparse.csr_matrix((1, model.dimension))
    for column, sign in ((dominant, -1.0), (weak, 1.0)):
        own = _curve(model, column)
        if own:
            start = int(model.starts[own[0]])
            places = [start + own[1].grid[0] - 1, start]
            ends = ends + sparse.csr_matrix(([sign, -sign], ([0, 0], places)), shape=ends.shape)
    curves = _part(sparse.csr_matrix(ends), np.zeros(1))
    return [curves, *in_lattices(model, (dominant, weak), rows)]


def category_order(
    model: AdditiveModel, column: int, pairs: Sequence[tuple[int, int]]
) -> list[RuleRows]:
    """The effect of the first category of a pair is at most that of the second.

    Lattice axes hold the categories in the order of their effects, so lattices must increase.
    """
    place = model.calibrator_of(column)
    parts = []
    if place is not None and pairs:
        columns = int(model.starts[place]) + np.array(pairs, dtype=np.int64).ravel()
        entries = np.tile([1.0, -1.0], len(pairs)), (np.repeat(np.arange(len(pairs)), 2), columns)
        A = sparse.csr_matrix(entries, shape=(len(pairs), model.dimension))
        parts.append(_part(A, np.zeros(len(pairs))))
    return parts + [
        _of_term(model, place, lattice.increasing(term.grid, axis))
        for place, term, (axis,) in _lattices_over(model, column)
    ]


def _part(A: Matrix, b: Floats, nested: tuple[NestedRows, ...] = ()) -> RuleRows:
    return RuleRows("", A, b, nested)


def _of_term(model: AdditiveModel, place: int, rows: LinearConstraints) -> RuleRows:
    """Rows about the parameters of one term as rows about all parameters."""
    nested = tuple(block.wide(int(model.starts[place]), model.dimension) for block in rows.nested)
    return _part(model.wide(place, rows.A), rows.b, nested)


def _lattices_over(model: AdditiveModel, *columns: int) -> Iterator[tuple[int, Term, list[int]]]:
    """Every lattice (not curve) over all the columns, with their axes."""
    for place, term in enumerate(model.terms):
        if not term.calibrator and all(column in term.columns for column in columns):
            yield place, term, [term.columns.index(column) for column in columns]


def _curve(model: AdditiveModel, column: int) -> tuple[int, Term] | None:
    """A column's own curve, if it can bend or rise at all."""
    place = model.calibrator_of(column)
    return None if place is None or model.terms[place].grid[0] < 2 else (place, model.terms[place])


def _along(model: AdditiveModel, column: int) -> Iterator[tuple[int, Term, int]]:
    """Every term with the column, its own curve first, and the axis of the column there."""
    own = _curve(model, column)
    if own:
        yield (*own, 0)
    for place, term, (axis,) in _lattices_over(model, column):
        yield place, term, axis


def _neighbours(model: AdditiveModel, column: int) -> Indices:
    """Parameters of vertices next to each other along a column, the lower one first, of every term
    with the column; without the vertices of missing cells.
    """
    found = [np.zeros((0, 2), dtype=np.int64)]
    for place, term, axis in _along(model, column):
        first = int(model.starts[place])
        vertices = np.arange(first, first + math.prod(term.grid)).reshape(term.grid)
        before, present = (slice(None),) * axis, term.grid[axis] - (axis in term.gaps)
        lower = vertices[(*before, slice(0, present - 1))]
        upper = vertices[(*before, slice(1, present))]
        found.append(np.column_stack([lower.ravel(), upper.ravel()]))
    return np.concatenate(found)


def _cell_widths(term: Term, axis: int) -> Floats:
    """For every cell along an axis, in the order of `lattice.increasing`, its width."""
    others = tuple(size for other, size in enumerate(term.grid) if other != axis)
    widths = np.broadcast_to(term.spacings(axis), (*others, term.grid[axis] - 1))
    return np.moveaxis(widths, -1, axis).ravel()


def _slopes(model: AdditiveModel, column: int) -> Matrix:
    """One row per segment of the column's curve: its slope in the column's units."""
    own = _curve(model, column)
    if own is None:
        return sparse.csr_matrix((1, model.dimension))
    falls = lattice.increasing(own[1].grid, 0).A
    return model.wide(own[0], sparse.diags(-1.0 / own[1].spacings(0)) @ falls)


def _every_pair(first: Matrix, second: Matrix) -> RuleRows:
    """first[s] + second[t] <= 0 for every s and t."""
    s, t = np.divmod(np.arange(first.shape[0] * second.shape[0]), second.shape[0])
    rows = first[s] + second[t]
    at = np.zeros(first.shape[0], dtype=np.int64), np.zeros(second.shape[0], dtype=np.int64)
    no_edges = np.zeros(0, dtype=np.int64)
    below, above = sparse.csr_matrix(first), sparse.csr_matrix(-second)
    forms = NestedForms(below, above, *at, 1, no_edges, no_edges)
    count = int(rows.shape[0])
    return _part(rows, np.zeros(count), (NestedRows(0, count, (forms,)),))


# -------------------------------------------------------------------------------------------------
# Rules on the sum: what a lattice says about one column alone may lie in that column's curve.
#
# Rules are asked of every term, which is sufficient for their sum. It is necessary too once parts
# of the terms may move. Let s_p be the least slope of lattice p along a column, a number for each
# of its cells there. If lattices share no other column, all of these slopes are reached at once, so
# the sum rises exactly where the curve's slope and all s_p add up to at least 0. Take from every
# lattice the function of the column whose slopes are s_p, and add it to the curve: no prediction
# changes, and now every term rises. Its knots are those of the lattice, so the curve can hold it
# where the lattice bends only where the curve does.
#
# Roughness is not the same before and after a move. So the moves m are trained with the parameters
# w: rules are asked of w, roughness is that of w + T m, and predictions do not depend on m. A model
# keeps w only, whose terms obey the rules one by one, to the last bit.


@dataclass(frozen=True)
class Moves:
    """The matrix T: each of its columns moves one function of one column from a lattice to a curve.

    What is trained has the parameters of the terms first, then one number per move, then those of
    thresholds. Without moves everything stays as it is.
    """

    matrix: sparse.csr_matrix  # (parameters of the terms, moves)

    @property
    def count(self) -> int:
        return int(self.matrix.shape[1])

    @property
    def _first(self) -> int:
        return int(self.matrix.shape[0])

    def roughness(self, D: Any) -> Any:
        """D (w + T m) as rows about (w, m)."""
        if not self.count:
            return D
        moved = sparse.csr_matrix(D @ self.matrix)
        moved.eliminate_zeros()
        return sparse.hstack([D, moved], format="csr")

    def rules(self, rows: LinearConstraints) -> LinearConstraints:
        """Rules about w and thresholds as rules about (w, m) and thresholds."""
        if not self.count:
            return rows
        A, width = rows.A, rows.dimension + self.count
        columns = np.where(A.indices < self._first, A.indices, A.indices + self.count)
        wide = sparse.csr_matrix((A.data, columns, A.indptr), shape=(rows.count, width))
        nested = [block.wide(0, width) for block in rows.nested]
        return LinearConstraints(wide, rows.b, nested=nested, copy=False)

    def with_none(self, w: Floats) -> Floats:
        """Parameters with moves of 0."""
        return np.insert(w, self._first, np.zeros(self.count)) if self.count else w

    def kept(self, trained: Floats) -> Floats:
        """Trained parameters without the moves."""
        return np.delete(trained, self._first + np.arange(self.count)) if self.count else trained


def no_moves(dimension: int) -> Moves:
    return Moves(sparse.csr_matrix((dimension, 0)))


def moves_of(model: AdditiveModel, ruled: Iterable[int], categorical: Sequence[bool]) -> Moves:
    """All moves along the columns that rules are about.

    One for every vertex of a lattice axis but the first: a constant needs no move.
    """
    moved, places, values, count = [], [], [], 0
    for column in sorted(set(ruled)):
        own = model.calibrator_of(column)
        if own is None or model.terms[own].grid[0] < 2:
            continue
        knots = model.terms[own].maps[0].keypoints
        for place, term in enumerate(model.terms):
            if term.calibrator or column not in term.columns:
                continue
            axis = term.columns.index(column)
            if _within(term.maps[axis], knots, categorical[column]):
                for vertex, parameter, value in _moves(model, own, place, axis):
                    moved.append(vertex + count - 1)
                    places.append(parameter)
                    values.append(value)
                count += term.lattice.sizes[axis] - 1
    if not count:
        return no_moves(model.dimension)
    entries = np.concatenate(values), (np.concatenate(places), np.concatenate(moved))
    return Moves(sparse.csr_matrix(entries, shape=(model.dimension, count)))


def _within(each: InputMap, knots: Floats, categories: bool) -> bool:
    """Whether a lattice bends along an axis only at the knots of the column's curve: at its own
    keypoints, and at every vertex between them.
    """
    if each.keypoints.size < 2 or not np.isin(each.keypoints, knots).all():
        return False
    low = np.minimum(each.positions[:-1], each.positions[1:])
    high = np.maximum(each.positions[:-1], each.positions[1:])
    return categories or bool((np.ceil(high) - np.floor(low) <= 1.0).all())


def _moves(
    model: AdditiveModel, own: int, place: int, axis: int
) -> Iterator[tuple[Indices, Indices, Floats]]:
    """Into the lattice a function of one of its columns, out of the curve the same: vertices along
    the axis from the second on, parameters and values.
    """
    curve, term = model.terms[own], model.terms[place]
    sizes = term.lattice.sizes
    vertex = np.indices(sizes)[axis].ravel()
    parameter = np.flatnonzero(vertex)
    yield vertex[parameter], int(model.starts[place]) + parameter, np.ones(parameter.size)
    values = np.append(curve.maps[0].keypoints, np.nan)  # the last vertex is for missing cells
    vertices = np.arange(1, sizes[axis])
    positions = np.clip(term.maps[axis](values), 0.0, vertices[-1])
    along = np.maximum(0.0, 1.0 - np.abs(positions[:, None] - vertices))
    knot, vertex = np.nonzero(along)
    yield 1 + vertex, int(model.starts[own]) + knot, -along[knot, vertex]


# -------------------------------------------------------------------------------------------------
# Canonical examples: rows whose prediction must lie within limits, or in a given order.


# canonical examples are asked for this much more, so that predictions keep them to the last bit
ROUNDING = 1e-9
SMALLEST_MARGIN = 1e-3  # of scores, where the user gives none

Featuriser = Callable[[Floats], Matrix]
"""From a table to a matrix with one row per example and one column per parameter."""


@dataclass(frozen=True)
class Limits:
    """least <= prediction <= most for every row of a table; infinite where there is no limit."""

    label: str
    table: Floats
    least: Floats
    most: Floats
    about_order: bool = False

    def rows(self, features_of: Featuriser) -> RuleRows:
        features = sparse.csr_matrix(features_of(self.table))
        low, high = np.isfinite(self.least), np.isfinite(self.most)
        least, most = self.least[low], self.most[high]
        b = [-(least + ROUNDING * (1.0 + np.abs(least))), most - ROUNDING * (1.0 + np.abs(most))]
        A = sparse.vstack([-features[low], features[high]], format="csr")
        return RuleRows(self.label, A, np.concatenate(b), about_order=self.about_order)


@dataclass(frozen=True)
class Ordered:
    """The prediction for every row of `better` is above that for the same row of `worse`, by
    `margin`.
    """

    label: str
    better: Floats
    worse: Floats
    margin: float

    def rows(self, features_of: Featuriser) -> RuleRows:
        A = features_of(self.worse) - features_of(self.better)
        return RuleRows(self.label, A, np.full(self.better.shape[0], -self.margin))


@dataclass(frozen=True)
class CanonicalRules:
    """All rules that come from canonical examples; called with a model, they are its rows."""

    parts: tuple[Limits | Ordered, ...]

    def __call__(self, model: AdditiveModel) -> list[RuleRows]:
        return [part.rows(model.features) for part in self.parts]


def margin_of(given: float | None, default: float) -> float:
    """The parameter `canonical_margin`."""
    return default if given is None else positive(given, "canonical_margin")


def class_limits(label: str, table: Floats, positives: Booleans, margin: float) -> Limits:
    """The score of every row is at least `margin` on the right side of 0."""
    least = np.where(positives, margin, -np.inf)
    most = np.where(positives, np.inf, -margin)
    return Limits(label, table, least, most, about_order=True)
