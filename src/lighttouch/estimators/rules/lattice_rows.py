"""Rows that make an additive model of curves and lattices obey a rule.

Rules are asked of every term of the model. That is sufficient for the sum of the terms, and nearly
necessary: `moves` says why.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from scipy import sparse

from lighttouch import lattice
from lighttouch.arrays import Floats, Matrix
from lighttouch.constraints import LinearConstraints
from lighttouch.constraints.nested import NestedForms, NestedRows
from lighttouch.estimators.model import AdditiveModel, Term
from lighttouch.estimators.rules.rows import RuleRows

Build = Callable[..., LinearConstraints]
PairBuild = Callable[[Term, int, int], LinearConstraints]


def monotone(model: AdditiveModel, column: int, sign: int) -> list[RuleRows]:
    """The model never falls (sign 1) or never rises (sign -1) along a column."""
    build = lattice.increasing if sign > 0 else lattice.decreasing
    return [
        _of_term(model, place, term.of_present(build(term.grid, axis), axis))
        for place, term, axis in _along(model, column)
    ]


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
