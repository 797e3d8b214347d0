"""Convex quadratics under linear rows by alternating directions, with orders kept whole.

Rules are told apart: orders between parameters, orders between linear forms and auxiliary numbers
(constraints/nested.py), and single rows. Each is easy for copies z = forms @ w of what it speaks
of: an exact projection onto an order, or a clip. The steps alternate between the copies and w,
which minimises the quadratic plus strength / 2 |forms @ w - z + u|^2 by conjugate gradients.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from lighttouch.arrays import Indices
from lighttouch.constraints import order
from lighttouch.constraints.nested import NestedForms
from lighttouch.projections.orders.on_graphs import GraphOrders, graph_orders
from lighttouch.projections.rows import LinearSet, Orders, read_rows

Floats = NDArray[np.float64]

RELAXATION = 1.6
STRIDE = 1.9
ADAPT_EVERY = 10
CONJUGATE_STEPS = 10  # the next step goes on from there
ALIGNED = 0.98  # the cosine from which two moves count as the same direction
FARTHEST = 50.0


class Bowl(Protocol):
    """The quadratic w'Hw/2 - c.w."""

    @property
    def c(self) -> Floats: ...

    @property
    def diagonal(self) -> Floats: ...

    def apply(self, w: Floats) -> Floats: ...


@dataclass(frozen=True)
class NearestBowl:
    """|w - c|^2 / 2."""

    c: Floats

    @property
    def diagonal(self) -> Floats:
        return np.ones(self.c.size)

    def apply(self, w: Floats) -> Floats:
        return w


class Piece(Protocol):
    """What some of the copies must obey."""

    def nearest(self, z: Floats, M: Floats, warm: Any) -> tuple[Floats, Floats, Any]: ...


@dataclass(frozen=True)
class ClipPiece:
    """z <= upper."""

    upper: Floats

    def nearest(self, z: Floats, M: Floats, warm: Any) -> tuple[Floats, Floats, Any]:
        return np.minimum(z, self.upper), M, None


@dataclass(frozen=True)
class BoxPiece:
    """lower <= z <= upper."""

    lower: Floats
    upper: Floats

    def nearest(self, z: Floats, M: Floats, warm: Any) -> tuple[Floats, Floats, Any]:
        return np.clip(z, self.lower, self.upper), M, None


@dataclass(frozen=True)
class OrderPiece:
    """(z, M) in order; M goes further than to the nearest place, as it is nobody's wish that it
    stays near.
    """

    engine: GraphOrders

    def nearest(self, z: Floats, M: Floats, warm: Any) -> tuple[Floats, Floats, Any]:
        found = self.engine.nearest(np.concatenate([z, M]), warm)
        return found.w[: z.size], M + STRIDE * (found.w[z.size :] - M), found.warm


@dataclass
class Standing:
    """Where the method stands, so that the next quadratic goes on from there."""

    w: Floats
    z: Floats
    push: Floats  # the multipliers of z = forms @ w
    M: list[Floats]
    warm: list[Any]
    strength: float = 0.0
    settled: bool = False
    steps: int = 0

    def copy(self) -> Standing:
        return replace(self, M=list(self.M), warm=list(self.warm))


@dataclass(frozen=True)
class Splitting:
    """The forms, one piece after the other, and what each piece must obey."""

    forms: Any
    transposed: Any
    squares: Floats  # of every column of the forms
    pieces: tuple[tuple[slice, Piece, int], ...]
    own: tuple[tuple[slice, Indices], ...]  # copies of parameters themselves, and which

    def begin(self, w: Floats) -> Standing:
        z = np.zeros(self.forms.shape[0])
        return Standing(
            w,
            z,
            np.zeros(z.size),
            [np.zeros(nodes) for _, _, nodes in self.pieces],
            [None] * len(self.pieces),
        )

    def ordered(self, at: Standing) -> Floats:
        """w, with the copies that obey orders and bounds exactly in place of the parameters they
        are copies of.
        """
        w = at.w.copy()
        for rows, chosen in self.own:
            w[chosen] = at.z[rows]
        return w

    def minimise(
        self,
        bowl: Bowl,
        at: Standing,
        tolerance: float,
        steps: int,
        stop: Callable[[], bool] = lambda: False,
    ) -> None:
        """Up to so many steps, in place, until copies and forms agree and stand still, both to the
        tolerance.
        """
        if at.strength == 0.0:
            at.strength = (
                4.0 * float(np.mean(bowl.diagonal)) / max(1.0, float(np.mean(self.squares)))
            )
        u = at.push / at.strength
        seen: list[list[Floats]] = []
        wait = 0
        for step in range(1, steps + 1):
            at.w = self._minimise_in_w(bowl, at, u)
            formed = np.asarray(self.forms @ at.w)
            blend = RELAXATION * formed + (1.0 - RELAXATION) * at.z
            before, at.z = at.z, self._nearest(blend + u, at)
            u = u + blend - at.z
            apart = _length(formed - at.z) / max(1e-300, _length(at.z), _length(formed))
            force = max(
                _length(bowl.c), at.strength * _length(np.asarray(self.transposed @ u)), 1e-300
            )
            moved = at.strength * _length(np.asarray(self.transposed @ (at.z - before))) / force
            at.settled = apart < tolerance and moved < tolerance
            at.steps += 1
            if at.settled or (step % 8 == 0 and stop()):
                break
            if (
                step % ADAPT_EVERY == 0
                and step <= 0.75 * steps
                and not 0.3 < apart / max(moved, 1e-300) < 3.0
            ):
                change = min(5.0, max(0.2, math.sqrt(apart / max(moved, 1e-300))))
                at.strength, u = at.strength * change, u / change
                seen.clear()
            elif step % ADAPT_EVERY == 0 and step >= wait:
                at.z, u, at.M = _further(seen, [at.z, u, *at.M])
                wait = (
                    wait if seen else 2 * step
                    # longer and longer between jumps, so that they cannot keep it from coming to
                    # rest
                )
        at.push = u * at.strength

    def _nearest(self, z: Floats, at: Standing) -> Floats:
        out = np.empty_like(z)
        for k, (rows, piece, _) in enumerate(self.pieces):
            out[rows], at.M[k], at.warm[k] = piece.nearest(z[rows], at.M[k], at.warm[k])
        return out

    def _minimise_in_w(self, bowl: Bowl, at: Standing, u: Floats) -> Floats:
        """Conjugate gradients from the last w: each step needs only to be better than the one
        before.
        """

        def apply(x: Floats) -> Floats:
            return bowl.apply(x) + at.strength * np.asarray(
                self.transposed @ np.asarray(self.forms @ x)
            )

        right = bowl.c + at.strength * np.asarray(self.transposed @ (at.z - u))
        return conjugate_gradients(
            apply, right, at.w, bowl.diagonal + at.strength * self.squares, 0.05, CONJUGATE_STEPS
        )


def normal_at(splitting: Splitting, at: Standing) -> tuple[Floats, Floats, float]:
    """Copies z that obey, multipliers normal to what they obey, and by how much auxiliary numbers
    still on their way may falsify that.
    """
    target = at.z + at.push / at.strength
    z, slack = np.empty_like(target), 0.0
    for k, (rows, piece, _) in enumerate(splitting.pieces):
        z[rows], M, _ = piece.nearest(target[rows], at.M[k], at.warm[k])
        if M.size:
            far = 10.0 * float(np.abs(M).max()) + float(np.abs(z[rows]).max(initial=0.0))
            slack += at.strength * float(np.abs(M - at.M[k]).sum()) / STRIDE * far
    return z, at.strength * (target - z), slack


def _further(seen: list[list[Floats]], now: list[Floats]) -> tuple[Floats, Floats, list[Floats]]:
    """Where steps go the same way, each a constant share shorter than the last, jump to where they
    would end up.

    Alternating directions come to rest from anywhere, so that a jump in vain costs time only.
    """
    seen.append(now)
    if len(seen) >= 3:
        first, second = (
            [b - a for a, b in zip(seen[k], seen[k + 1], strict=True)] for k in (-3, -2)
        )
        cross = sum(float(a @ b) for a, b in zip(first, second, strict=True))
        squares = [sum(float(a @ a) for a in each) for each in (first, second)]
        ratio = cross / max(squares[0], 1e-300)
        if cross > 0.0 and cross**2 > ALIGNED**2 * squares[0] * squares[1] and 0.3 < ratio < 0.9995:
            seen.clear()
            reach = min(FARTHEST, ratio / (1.0 - ratio))
            now = [each + reach * change for each, change in zip(now, second, strict=True)]
    return now[0], now[1], now[2:]


def conjugate_gradients(
    apply: Callable[[Floats], Floats],
    right: Floats,
    start: Floats,
    diagonal: Floats,
    shrink: float,
    steps: int,
) -> Floats:
    """The solution of apply(w) = right, to a residual `shrink` times that of the start, scaled by
    the diagonal.
    """
    scale = 1.0 / np.maximum(diagonal, 1e-12 * float(diagonal.max(initial=1e-300)))
    w = start.copy()
    rest = right - apply(w)
    direction = scale * rest
    size = float(rest @ direction)
    goal = shrink**2 * size
    for _ in range(steps):
        if size <= goal or size == 0.0:
            break
        image = apply(direction)
        length = size / float(direction @ image)
        w += length * direction
        rest -= length * image
        scaled = scale * rest
        size, previous = float(rest @ scaled), size
        direction = scaled + (size / previous) * direction
    return w


def _length(x: Floats) -> float:
    return float(np.linalg.norm(x))


def splitting_for(
    matrix: Any,
    right: Floats,
    blocks: list[tuple[NestedForms, float]],
    lower: Any,
    upper: Any,
    room: float = 0.0,
) -> Splitting:
    """The rows matrix @ w <= right, nested forms and a box, told apart; rows that are not orders or
    bounds are asked `room` more.
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
        np.zeros((0, chosen.size)),
        nothing,
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
