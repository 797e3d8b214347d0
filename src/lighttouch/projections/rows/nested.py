"""Nearest points under rows of which many say together what few rows with auxiliary numbers say
(see constraints/base.py).

ADMM (alternating directions, Boyd et al. 2011; `projections/splitting.py`) comes close. Its copies
of the parameters obey orders and bounds exactly. The other rows are broken by little. A convex
combination with a strictly feasible point satisfies them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from scipy import sparse

from lighttouch.arrays import Booleans, Floats, Indices, Matrix, Vector
from lighttouch.constraints import order
from lighttouch.constraints.base import NestedForms, RecordConstraints
from lighttouch.projections.costs import COSTS, TINY
from lighttouch.projections.orders import graph_orders
from lighttouch.projections.rows.kinds import LinearSet, Orders, Side, read_rows
from lighttouch.projections.rows.portfolio import GeneralRows
from lighttouch.projections.splitting import (
    BoxPiece,
    ClipPiece,
    OrderPiece,
    Piece,
    Splitting,
    SplittingState,
    SquaredDistance,
)
from lighttouch.result import Nearest, certified
from lighttouch.running import check_deadline, one_blas_thread, seconds_left


def without_nested(
    parts: Sequence[RecordConstraints], fewest: int, domain_rows: int = 0
) -> tuple[Booleans, list[tuple[NestedForms, float]]] | None:
    """Which rows of the stacked linear families are not nested, and the forms of those that are;
    None where fewer than `fewest` are. Rows of the domain come last.
    """
    rest = np.ones(sum(part.row_count for part in parts) + domain_rows, dtype=bool)
    blocks: list[tuple[NestedForms, float]] = []
    first, nested = 0, 0
    for part in parts:
        rows = part.linear_rows() if part.nested else None
        for block in part.nested:
            right = None if rows is None else block.right(rows[1])
            if right is not None:
                rest[first + block.first : first + block.first + block.count] = False
                blocks += [(forms, right) for forms in block.families]
                nested += block.count
        first += part.row_count
    return (rest, blocks) if nested >= fewest else None


def split_by_kind(
    parts: Sequence[RecordConstraints], matrix: Matrix, right: Floats, lower: Any, upper: Any
) -> Splitting:
    """Linear rows and a box for ADMM: one piece per kind of rule, nested rows however few."""
    domain_rows = right.size - sum(part.row_count for part in parts)
    found = without_nested(parts, 0, domain_rows)
    rest, blocks = (np.ones(right.size, dtype=bool), []) if found is None else found
    return splitting_for(sparse.csr_matrix(matrix)[rest], right[rest], blocks, lower, upper)


@dataclass(frozen=True)
class SplitRows:
    """The rows as given, and split for alternating directions; `plain` takes over where those
    fail.
    """

    matrix: Matrix
    right: Floats
    splitting: Splitting
    tightened: Callable[[float], Splitting]  # rows that are not orders ask for so much more
    plain: Callable[[], GeneralRows]
    lower: Side  # of the box
    upper: Side

    def nearest(self, v: Vector, warm: Any = None) -> Nearest:
        known = isinstance(warm, SplittingState) and warm.z.size == self.splitting.forms.shape[0]
        at = warm.copy() if known else self.splitting.begin(v)
        with one_blas_thread():
            self._minimise(self.splitting, v, at, COSTS.nested_tolerance)
            w = self.with_all_rows(at) if at.settled else None
        if w is None:
            return self.plain().nearest(v)  # which names the rows if they contradict each other
        how = "alternating directions, nested rows by running maxima"
        return Nearest(w, how, certified(), None, at)

    def _minimise(
        self, splitting: Splitting, v: Vector, at: SplittingState, tolerance: float
    ) -> None:
        splitting.minimise(
            SquaredDistance(v),
            at,
            tolerance,
            COSTS.nested_steps,
            lambda: seconds_left() <= 0.0,
        )
        check_deadline()

    def with_all_rows(self, at: SplittingState) -> Vector | None:
        """A point without violation next to where alternating directions stand; None where rows
        leave no interior to find one.

        With w the copies that obey the orders, and s a strictly feasible point, (1 - t) w + t s
        obeys every row from t = excess(w) / (excess(w) - excess(s)) on.
        """
        w = self.splitting.ordered(at)
        excess = self._excess(w)
        size = max(float(np.abs(w).max(initial=0.0)), TINY)
        if float(excess.max(initial=0.0)) <= 0.0:
            return w
        room = max(COSTS.nested_room * size, COSTS.nested_room_per_excess * float(excess.max()))
        spare = at.copy()
        self._minimise(self.tightened(room), w, spare, COSTS.tightened_tolerance)
        inner = self.splitting.ordered(spare)
        to_spare, broken = self._excess(inner), excess > 0.0
        if not np.all(to_spare[broken] < 0.0):
            return None
        needed = float(np.max(excess[broken] / (excess[broken] - to_spare[broken])))
        return self._combined(w, inner, needed + COSTS.rounding_share * size / room)

    def _combined(self, w: Vector, inner: Vector, share: float) -> Vector | None:
        """The point on the way to the inner one that obeys every row; None where it is too far."""
        while share <= COSTS.most_room_taken:
            # rounding keeps orders, as it is monotone, but may step over the box by the last bit
            closer = np.clip((1.0 - share) * w + share * inner, self.lower, self.upper)
            if float(self._excess(closer).max()) <= 0.0:
                return closer
            share *= 2.0
        return None

    def _excess(self, w: Vector) -> Floats:
        return np.asarray(self.matrix @ w - self.right)


def split_rows(
    matrix: Matrix,
    right: Floats,
    rest: Booleans,
    blocks: list[tuple[NestedForms, float]],
    lower: Side,
    upper: Side,
) -> SplitRows:
    matrix = sparse.csr_matrix(matrix)
    others = matrix[rest]

    def tightened(room: float) -> Splitting:
        return splitting_for(others, right[rest], blocks, lower, upper, room)

    plain = cache(lambda: GeneralRows.of(read_rows(matrix, right, lower, upper)))
    return SplitRows(matrix, right, tightened(0.0), tightened, plain, lower, upper)


def splitting_for(
    matrix: Any,
    right: Floats,
    blocks: list[tuple[NestedForms, float]],
    lower: Any,
    upper: Any,
    room: float = 0.0,
) -> Splitting:
    """The rows matrix @ w <= right, nested forms and a box, by kind; rows that are not orders or
    bounds are asked to hold with `room` to spare.
    """
    rows = read_rows(matrix, right, lower, upper)
    parts, chosen = _own_orders(rows)
    if rows.source.size:
        parts.append((sparse.csr_matrix(rows.matrix), ClipPiece(rows.right - room), 0))
    parts += [_nested_orders(forms, side - room) for forms, side in blocks]
    ends = np.cumsum([0, *(part.shape[0] for part, _, _ in parts)])
    pieces = tuple(
        (slice(int(a), int(b)), piece, nodes)
        for a, b, (_, piece, nodes) in zip(ends[:-1], ends[1:], parts, strict=True)
    )
    forms = sparse.vstack(
        [sparse.csr_matrix((0, matrix.shape[1])), *(part for part, _, _ in parts)], format="csr"
    )
    squares = np.asarray(forms.multiply(forms).sum(axis=0)).ravel()
    own = ((pieces[0][0], chosen),) if chosen.size else ()
    return Splitting(forms, forms.T.tocsr(), squares, pieces, own)


def _own_orders(rows: LinearSet) -> tuple[list[tuple[Any, Piece, int]], Indices]:
    """Orders and bounds of the parameters themselves, and the parameters that the first piece has
    copies of.
    """
    orders, bounds = rows.orders, rows.bounds
    spoken_of = np.isfinite(bounds.lower) | np.isfinite(bounds.upper)
    if orders.source.size:
        spoken_of[orders.lower] = True
        spoken_of[orders.upper] = True
    chosen = np.flatnonzero(spoken_of)
    if not chosen.size:
        return [], chosen
    copies = _selection(chosen, rows.dimension)
    place = np.full(rows.dimension, -1, dtype=np.int64)
    place[chosen] = np.arange(chosen.size)
    engine = graph_orders(_only_orders(rows, chosen, place)) if orders.source.size else None
    if engine is not None:
        return [(copies, OrderPiece(engine), 0)], chosen
    parts: list[tuple[Any, Piece, int]] = [
        (copies, BoxPiece(bounds.lower[chosen], bounds.upper[chosen]), 0)
    ]
    if orders.source.size:
        count = orders.source.size
        ends = np.concatenate([orders.lower, orders.upper])
        pairs = sparse.csr_matrix(
            (np.repeat([1.0, -1.0], count), (np.tile(np.arange(count), 2), ends)),
            shape=(count, rows.dimension),
        )
        parts.append((pairs, ClipPiece(-orders.margin), 0))
    return parts, chosen


def _only_orders(rows: LinearSet, chosen: Indices, place: Indices) -> LinearSet:
    orders, bounds = rows.orders, rows.bounds
    kept = type(bounds)(*(getattr(bounds, name)[chosen] for name in bounds.__dataclass_fields__))
    own = Orders(
        place[orders.lower],
        place[orders.upper],
        orders.margin,
        orders.scale,
        np.arange(orders.source.size),
    )
    nothing = np.empty(0)
    return LinearSet(
        chosen.size,
        own.source.size,
        kept,
        own,
        (sparse.csr_matrix((0, chosen.size)), nothing),
        nothing,
        np.empty(0, dtype=np.int64),
    )


def _selection(chosen: Indices, dimension: int) -> Any:
    return sparse.csr_matrix(
        (np.ones(chosen.size), (np.arange(chosen.size), chosen)), shape=(chosen.size, dimension)
    )


def _nested_orders(forms: NestedForms, side: float) -> tuple[Any, Piece, int]:
    """Copies of (below, above), in units of a typical form; nodes are numbered below, above, M."""
    below, above = forms.below.shape[0], forms.above.shape[0]
    unit = forms.scale / math.sqrt(2.0)
    lower = np.concatenate(
        [np.arange(below), below + above + forms.above_at, below + above + forms.lower]
    )
    upper = np.concatenate(
        [below + above + forms.below_at, below + np.arange(above), below + above + forms.upper]
    )
    margin = np.concatenate([np.full(below, -side / unit), np.zeros(above + forms.lower.size)])
    pairs = order(lower, upper, margin, dimension=below + above + forms.nodes)
    engine = graph_orders(read_rows(pairs.A, pairs.b, -np.inf, np.inf))
    if engine is None:
        raise ArithmeticError("an order without cycles has a potential")  # pragma: no cover
    return (
        sparse.vstack([forms.below, forms.above], format="csr") / unit,
        OrderPiece(engine),
        forms.nodes,
    )
