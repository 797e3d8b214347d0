"""Nearest points under rows of which many say together what few rows with auxiliary numbers say
(see constraints/nested.py).

Alternating directions (ADMM, `projections/splitting.py`) come close. Their copies of the parameters
obey orders and bounds exactly. What the other rows lack is small: a convex combination with a
strictly feasible point gives it to them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from scipy import sparse

from lighttouch.arrays import Booleans, Floats, Matrix, Vector
from lighttouch.constraints.base import RecordConstraints
from lighttouch.constraints.nested import NestedForms
from lighttouch.projections.costs import COSTS, TINY
from lighttouch.projections.result import Nearest, certified
from lighttouch.projections.rows.kinds import Side, read_rows
from lighttouch.projections.rows.portfolio import GeneralRows
from lighttouch.projections.splitting import (
    Splitting,
    SplittingState,
    SquaredDistance,
    splitting_for,
)
from lighttouch.running import deadline
from lighttouch.running.threads import one_blas_thread


def without_nested(
    parts: Sequence[RecordConstraints], fewest: int
) -> tuple[Booleans, list[tuple[NestedForms, float]]] | None:
    """Which rows of the stacked linear families are not nested, and the forms of those that are;
    None where fewer than `fewest` are.
    """
    rest = np.ones(sum(part.count for part in parts), dtype=bool)
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
        first += part.count
    return (rest, blocks) if nested >= fewest else None


def split_by_kind(
    parts: Sequence[RecordConstraints], matrix: Matrix, right: Floats, lower: Any, upper: Any
) -> Splitting:
    """Linear rows and a box for ADMM: one piece per kind of rule, nested rows however few."""
    found = without_nested(parts, fewest=0)
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
            self._minimise(self.splitting, v, at, COSTS.splitting_tolerance)
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
            COSTS.splitting_steps,
            lambda: deadline.seconds_left() <= 0.0,
        )
        deadline.check()

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
        room = max(COSTS.room * size, COSTS.room_per_excess * float(excess.max()))
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
