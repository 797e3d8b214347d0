"""Rules about columns as rows about a model's parameters."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from lighttouch import lattice
from lighttouch.constraints import LinearConstraints
from lighttouch.constraints.nested import NestedForms, NestedRows, one_after_another
from lighttouch.errors import ConstraintError
from lighttouch.estimators.model import AdditiveModel, Term
from lighttouch.estimators.rules.shapes import ShapeConstraint

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class RuleRows:
    """One rule: A w <= b, in the user's units."""

    label: str
    A: Any
    b: Floats
    nested: tuple[NestedRows, ...] = ()

    @property
    def count(self) -> int:
        return int(self.b.size)


@dataclass(frozen=True)
class BoundShape:
    """A shape constraint whose columns have been found."""

    shape: ShapeConstraint
    places: tuple[int, ...]
    pairs: tuple[tuple[int, int], ...] = ()  # category codes, lower first

    @property
    def kind(self) -> str:
        return type(self.shape).__name__


@dataclass(frozen=True)
class Part:
    """Some rows of a rule."""

    A: Any
    b: Floats
    nested: tuple[NestedRows, ...] = ()

    @property
    def count(self) -> int:
        return int(self.b.size)


def all_rules(
    model: AdditiveModel, names: list[str], monotonic: dict[int, int], shapes: list[BoundShape]
) -> list[RuleRows]:
    """Every rule the user asked for; sufficient, piece by piece, for the sum of the pieces."""
    found = []
    for column, sign in monotonic.items():
        word = "increasing" if sign > 0 else "decreasing"
        found.append(
            _joined(f"{word} in {names[column]}", _monotone(model, column, sign), model.dimension)
        )
    for bound in shapes:
        found.append(
            _joined(_label(bound, names), _BUILDERS[bound.kind](model, bound), model.dimension)
        )
    return found


def stacked(rules: list[RuleRows], dimension: int) -> LinearConstraints:
    if not rules:
        return LinearConstraints(sparse.csr_matrix((0, dimension)), np.zeros(0))
    rows = LinearConstraints(
        sparse.vstack([rule.A for rule in rules], format="csr"),
        np.concatenate([rule.b for rule in rules]),
    )
    rows.nested = one_after_another(rules)
    return rows


def _label(bound: BoundShape, names: list[str]) -> str:
    return f"{bound.kind}({', '.join(names[place] for place in bound.places)})"


def _joined(label: str, parts: list[Part], dimension: int) -> RuleRows:
    if not parts:
        return RuleRows(label, sparse.csr_matrix((0, dimension)), np.zeros(0))
    A, b = (
        sparse.vstack([part.A for part in parts], format="csr"),
        np.concatenate([part.b for part in parts]),
    )
    return RuleRows(label, A, b, one_after_another(parts))


def _from(model: AdditiveModel, place: int, rules: LinearConstraints) -> Part:
    nested = tuple(block.wide(int(model.starts[place]), model.dimension) for block in rules.nested)
    return Part(model.wide(place, rules.A), rules.b, nested)


def _with(model: AdditiveModel, *columns: int) -> Iterator[tuple[int, Term, list[int]]]:
    """Every lattice (not calibrator) over all the columns, with their axes."""
    for place, piece in enumerate(model.pieces):
        if not piece.calibrator and all(column in piece.columns for column in columns):
            yield place, piece, [piece.columns.index(column) for column in columns]


def _calibrator(model: AdditiveModel, column: int) -> tuple[int, Term] | None:
    """A column's calibrator, if it can bend or rise at all."""
    place = model.calibrator_of(column)
    return (
        None if place is None or model.pieces[place].grid[0] < 2 else (place, model.pieces[place])
    )


def _monotone(model: AdditiveModel, column: int, sign: int) -> list[Part]:
    build = lattice.increasing if sign > 0 else lattice.decreasing
    parts = [
        _from(model, place, build(piece.grid, axis))
        for place, piece, (axis,) in _with(model, column)
    ]
    own = _calibrator(model, column)
    return ([_from(model, own[0], build(own[1].grid, 0))] if own else []) + parts


def _curved(
    build: Callable[..., LinearConstraints], at_size_two: Callable[..., LinearConstraints]
) -> Callable[..., list[Part]]:
    def rows(model: AdditiveModel, bound: BoundShape) -> list[Part]:
        (column,) = bound.places
        own = _calibrator(model, column)
        parts = []
        if own and own[1].grid[0] > 2:
            parts.append(
                _from(model, own[0], build(own[1].grid, 0, own[1].vertices(0), "hypercube"))
            )
        for place, piece, (axis,) in _with(model, column):
            kind = piece.lattice.interpolation
            if piece.grid[axis] > 2:
                parts.append(
                    _from(model, place, build(piece.grid, axis, piece.vertices(axis), kind))
                )
            elif kind == "simplex":
                pairs = [(axis, other) for other in range(len(piece.grid)) if other != axis]
                parts.append(_from(model, place, at_size_two(piece.grid, pairs)))
        return parts

    return rows


def _unimodal(model: AdditiveModel, bound: BoundShape) -> list[Part]:
    (column,) = bound.places
    mode, shape = bound.shape.mode, bound.shape.shape  # type: ignore[attr-defined]
    parts = []
    own = _calibrator(model, column)
    for place, piece, axis in ([(*own, 0)] if own else []) + [
        (p, q, axes[0]) for p, q, axes in _with(model, column)
    ]:
        turn = int(np.searchsorted(piece.vertices(axis), mode))
        if 0 < turn < piece.grid[axis] - 1:
            parts.append(_from(model, place, lattice.unimodal(piece.grid, axis, turn, shape)))
        else:
            rising = (turn == 0) == (shape == "valley")
            parts.append(
                _from(
                    model,
                    place,
                    (lattice.increasing if rising else lattice.decreasing)(piece.grid, axis),
                )
            )
    return parts


def _slope(model: AdditiveModel, bound: BoundShape) -> list[Part]:
    (column,) = bound.places
    limit = float(bound.shape.limit)  # type: ignore[attr-defined]
    own = _calibrator(model, column)
    parts = []
    for place, piece, axis in ([(*own, 0)] if own else []) + [
        (p, q, axes[0]) for p, q, axes in _with(model, column)
    ]:
        falls = lattice.increasing(piece.grid, axis).A
        cells = np.moveaxis(
            np.broadcast_to(piece.spacings(axis), _cells(piece.grid, axis)), -1, axis
        ).ravel()
        for sign in (1.0, -1.0):
            parts.append(Part(model.wide(place, sign * falls), limit * cells))
    return parts


def _cells(grid: tuple[int, ...], axis: int) -> tuple[int, ...]:
    return (*(size for other, size in enumerate(grid) if other != axis), grid[axis] - 1)


def _pair_rows(
    build: Callable[[Term, list[int], BoundShape], LinearConstraints],
) -> Callable[..., list[Part]]:
    def rows(model: AdditiveModel, bound: BoundShape) -> list[Part]:
        return [
            _from(model, place, build(piece, axes, bound))
            for place, piece, axes in _with(model, *bound.places)
        ]

    return rows


def _slopes(model: AdditiveModel, column: int) -> sparse.csr_matrix:
    """One row a segment of the column's calibrator: its slope in the column's units."""
    own = _calibrator(model, column)
    if own is None:
        return sparse.csr_matrix((1, model.dimension))
    falls = lattice.increasing(own[1].grid, 0).A
    return model.wide(own[0], sparse.diags(-1.0 / own[1].spacings(0)) @ falls)


def _every_pair(first: sparse.csr_matrix, second: sparse.csr_matrix) -> Part:
    """first[s] + second[t] <= 0 for every s and t."""
    s, t = np.divmod(np.arange(first.shape[0] * second.shape[0]), second.shape[0])
    rows = first[s] + second[t]
    one = np.zeros(first.shape[0], dtype=np.int64), np.zeros(second.shape[0], dtype=np.int64)
    nothing = np.zeros(0, dtype=np.int64)
    forms = NestedForms(
        sparse.csr_matrix(first), sparse.csr_matrix(-second), *one, 1, nothing, nothing
    )
    return Part(rows, np.zeros(rows.shape[0]), (NestedRows(0, rows.shape[0], (forms,)),))


def _dominates(model: AdditiveModel, bound: BoundShape) -> list[Part]:
    dominant, weak = bound.places
    return [
        _every_pair(_slopes(model, weak), -_slopes(model, dominant)),
        *_dominates_in_lattices(model, bound),
    ]


def _jointly(model: AdditiveModel, bound: BoundShape) -> list[Part]:
    first, second = bound.places
    return [
        _every_pair(-_slopes(model, first), -_slopes(model, second)),
        *_jointly_in_lattices(model, bound),
    ]


def _range_dominates(model: AdditiveModel, bound: BoundShape) -> list[Part]:
    ends = sparse.csr_matrix((1, model.dimension))
    for column, sign in zip(bound.places, (-1.0, 1.0), strict=True):
        own = _calibrator(model, column)
        if own:
            start = int(model.starts[own[0]])
            shape = (1, model.dimension)
            ends = ends + sparse.csr_matrix(
                ([sign, -sign], ([0, 0], [start + own[1].grid[0] - 1, start])), shape=shape
            )
    return [Part(sparse.csr_matrix(ends), np.zeros(1)), *_range_dominates_in_lattices(model, bound)]


def _categories(model: AdditiveModel, bound: BoundShape) -> list[Part]:
    (column,) = bound.places
    place = model.calibrator_of(column)
    parts = [
        _from(model, p, lattice.increasing(piece.grid, axis))
        for p, piece, (axis,) in _with(model, column)
    ]
    if place is not None and bound.pairs:
        low, high = (
            int(model.starts[place]) + np.array([pair[k] for pair in bound.pairs]) for k in (0, 1)
        )
        count = len(bound.pairs)
        rows = np.repeat(np.arange(count), 2)
        columns = np.column_stack([low, high]).ravel()
        A = sparse.csr_matrix(
            (np.tile([1.0, -1.0], count), (rows, columns)), shape=(count, model.dimension)
        )
        parts.insert(0, Part(A, np.zeros(count)))
    return parts


def _sign(bound: BoundShape) -> int:
    return int(bound.shape.sign)  # type: ignore[attr-defined]


def _kind(piece: Term) -> str:
    return piece.lattice.interpolation


_dominates_in_lattices = _pair_rows(
    lambda piece, axes, bound: lattice.dominance(piece.grid, axes[0], axes[1], _kind(piece))
)
_jointly_in_lattices = _pair_rows(
    lambda piece, axes, bound: lattice.joint_monotonicity(
        piece.grid, axes[0], axes[1], _kind(piece)
    )
)
_range_dominates_in_lattices = _pair_rows(
    lambda piece, axes, bound: lattice.range_dominance(piece.grid, axes[0], axes[1], _kind(piece))
)

_BUILDERS: dict[str, Callable[[AdditiveModel, BoundShape], list[Part]]] = {
    "EdgeworthTrust": _pair_rows(
        lambda piece, axes, bound: lattice.edgeworth(piece.grid, axes[0], axes[1], _sign(bound))
    ),
    "TrapezoidTrust": _pair_rows(
        lambda piece, axes, bound: lattice.trapezoid(piece.grid, axes[0], axes[1], _sign(bound))
    ),
    "Supermodular": _pair_rows(
        lambda piece, axes, bound: lattice.supermodular(piece.grid, [(axes[0], axes[1])])
    ),
    "Submodular": _pair_rows(
        lambda piece, axes, bound: lattice.submodular(piece.grid, [(axes[0], axes[1])])
    ),
    "Dominates": _dominates,
    "RangeDominates": _range_dominates,
    "JointlyMonotonic": _jointly,
    "Convex": _curved(lattice.convex, lattice.submodular),
    "Concave": _curved(lattice.concave, lattice.supermodular),
    "Unimodal": _unimodal,
    "SlopeBound": _slope,
    "CategoryOrder": _categories,
}


def check_places(bound: BoundShape, categorical: list[bool], names: list[str]) -> None:
    """Rules about amounts need numbers; rules about categories need categories."""
    wants_categories = bound.kind == "CategoryOrder"
    for place in bound.places:
        if categorical[place] != wants_categories:
            given = "categories" if categorical[place] else "numbers"
            wanted = "categories (see categorical_features)" if wants_categories else "numbers"
            raise ConstraintError(
                f"{bound.shape} needs a column of {wanted}; column {names[place]!r} holds {given}"
            )
    if len(set(bound.places)) < len(bound.places):
        raise ConstraintError(f"{bound.shape} must name two different columns")
