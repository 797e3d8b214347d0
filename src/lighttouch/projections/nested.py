"""Nearest points under rows of which many say together what few rows with auxiliary numbers say
(see constraints/nested.py).

Alternating directions come close. Their copies of the parameters obey orders and bounds exactly;
what the other rows lack is a hair, and a hair of a step towards a point that obeys them with room
to spare gives it to them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from lighttouch.arrays import Vector
from lighttouch.constraints.nested import NestedForms
from lighttouch.projections.general_rows import RowsEngine
from lighttouch.projections.result import Nearest
from lighttouch.projections.rows import read_rows
from lighttouch.projections.splitting import (
    Splitting,
    SplittingState,
    SquaredDistance,
    splitting_for,
)
from lighttouch.running import deadline
from lighttouch.running.threads import one_blas_thread

Floats = NDArray[np.float64]

FEWEST_ROWS = 4000  # fewer are as fast one by one
CLOSE = 1e-8  # residuals of alternating directions, relative
STEPS = 1000
ROOM = 1e-4  # what a point has to spare, relative to the largest parameter
MOST_ROOM_TAKEN = 0.02


def split(
    parts: Any, fewest: int = FEWEST_ROWS
) -> tuple[NDArray[np.bool_], list[tuple[NestedForms, float]]] | None:
    """Which rows of the stacked linear families are not nested, and the forms of those that are;
    None where that is not worth it.
    """
    rest = np.ones(sum(part.count for part in parts), dtype=bool)
    blocks: list[tuple[NestedForms, float]] = []
    first, nested = 0, 0
    for part in parts:
        for rows in part.nested:
            right = rows.right(part.b)
            if right is not None:
                rest[first + rows.first : first + rows.first + rows.count] = False
                blocks += [(forms, right) for forms in rows.families]
                nested += rows.count
        first += part.count
    return (rest, blocks) if nested >= fewest else None


@dataclass(frozen=True)
class NestedEngine:
    """The rows as given, and told apart for alternating directions; `plain` takes over where those
    fail.
    """

    matrix: Any
    right: Floats
    splitting: Splitting
    roomy: Callable[
        [float], Splitting
    ]  # the same with less on the right side of all rows that are not orders
    plain: Callable[[], RowsEngine]

    def nearest(self, v: Vector, warm: Any = None) -> Nearest:
        known = isinstance(warm, SplittingState) and warm.z.size == self.splitting.forms.shape[0]
        at = warm.copy() if known else self.splitting.begin(v)
        with one_blas_thread():
            self._minimise(self.splitting, v, at, CLOSE)
            w = self.exactly(at) if at.settled else None
        if w is None:
            return self.plain().nearest(v)  # which names the rows if they contradict each other
        return Nearest(w, "alternating directions, nested rows by running maxima", None, None, at)

    def _minimise(
        self, splitting: Splitting, v: Vector, at: SplittingState, tolerance: float
    ) -> None:
        splitting.minimise(
            SquaredDistance(v), at, tolerance, STEPS, lambda: deadline.seconds_left() <= 0.0
        )
        deadline.check()

    def exactly(self, at: SplittingState) -> Vector | None:
        """A point without violation next to where alternating directions stand; None where rows
        leave no room to find one.
        """
        w = self.splitting.ordered(at)
        excess = self._excess(w)
        size = max(float(np.abs(w).max(initial=0.0)), 1e-300)
        if float(excess.max(initial=0.0)) <= 0.0:
            return w
        room = max(ROOM * size, 100.0 * float(excess.max()))
        spare = at.copy()
        self._minimise(self.roomy(room), w, spare, 0.01 * ROOM)
        inner = self.splitting.ordered(spare)
        to_spare = self._excess(inner)
        broken = excess > 0.0
        if not np.all(to_spare[broken] < 0.0):
            return None
        share = (
            float(np.max(excess[broken] / (excess[broken] - to_spare[broken])))
            + 1e-15 * size / room
        )
        while share <= MOST_ROOM_TAKEN:
            closer = (1.0 - share) * w + share * inner  # rounds without breaking orders
            if float(self._excess(closer).max()) <= 0.0:
                return closer
            share *= 2.0
        return None

    def _excess(self, w: Vector) -> Floats:
        return np.asarray(self.matrix @ w - self.right)


def nested_engine(
    matrix: Any,
    right: Floats,
    rest: NDArray[np.bool_],
    blocks: list[tuple[NestedForms, float]],
    lower: Any,
    upper: Any,
) -> NestedEngine:
    matrix = sparse.csr_matrix(matrix)
    others = matrix[rest]

    def with_room(room: float) -> Splitting:
        return splitting_for(others, right[rest], blocks, lower, upper, room)

    plain = cache(lambda: RowsEngine.of(read_rows(matrix, right, lower, upper)))
    return NestedEngine(matrix, right, with_room(0.0), with_room, plain)
