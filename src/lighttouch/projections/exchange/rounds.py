"""Nearest points by blocks: an active-set method whose groups are projected by workers, and rounds
of Dykstra's algorithm where groups grow too large for that.

Groups (`Run.settled`): parameters that constraints hold together are a group. If nothing holds two
groups together, each is a projection of its own, which a worker solves exactly. At first every
parameter is alone. Constraints that the groups' points break join groups, tight ones keep them
together, others let go, until none is broken. The answer then obeys all constraints, and the
multipliers inside the groups prove that it is the nearest point: weak duality, group by group. This
is pooling of adjacent violators (M. Ayer and others 1955) for any linear constraints.

Rounds: R. Dykstra, JASA 78, 1983, is coordinate ascent in the dual of the projection, one block of
constraints after the other. With one layer of blocks eliminated and a gradient step in the others
it is accelerated as in A. Chambolle and T. Pock, "A remark on accelerated block coordinate descent
for computing the proximity operators of a sum of convex functions", SMAI Journal of Computational
Mathematics 1, 2015, with the restarts of B. O'Donoghue and E. Candes, Foundations of Computational
Mathematics 15, 2015. The point that they reach is a better guess of the groups.

What is computed depends on the blocks, never on the number of workers or the engine.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lighttouch.arrays import Booleans, Floats, Indices, Vector
from lighttouch.kernels.numerics.momentum import next_momentum
from lighttouch.projections.costs import COSTS
from lighttouch.projections.exchange.cuts import Cut, forget_blocks, nearest_in_block
from lighttouch.result import Nearest, certified, not_certified
from lighttouch.running import OutOfTimeError, Shared, check_deadline, current_engine


@dataclass(frozen=True)
class Known:
    """What an earlier projection leaves: the duals of all layers but the first, and the groups."""

    duals: Floats
    groups: Indices


@dataclass(frozen=True)
class ByBlocks:
    """A set in blocks."""

    cut: Cut

    def nearest(self, v: Vector, warm: object = None) -> Nearest:
        engine = current_engine()
        handles = {
            block.key: engine.share((block.constraints, block.domain), lasting=True)
            for layer in self.cut.layers
            for block in layer
        }
        start = np.where(self.cut.uncovered(), self.cut.alone(v), v)
        try:
            return Run(self.cut, handles, start, warm).nearest()
        finally:
            for handle in handles.values():
                handle.release()
            forget_blocks()


@dataclass(frozen=True)
class Layer:
    """The nearest points of one layer and the sum of the gaps of its blocks."""

    w: Vector
    gap: float


class Run:
    """One projection of v."""

    def __init__(self, cut: Cut, handles: dict[str, Shared], v: Vector, warm: object) -> None:
        self.cut, self.handles, self.v = cut, handles, v
        self.others = max(0, len(cut.layers) - 1)
        shape = (self.others, v.size)
        known = warm if isinstance(warm, Known) and warm.duals.shape == shape else None
        self.duals = np.zeros(shape) if known is None else known.duals
        self.ahead, self.momentum = self.duals.copy(), 1.0
        self.groups = None if known is None else known.groups
        self.rounds = self.steps = 0
        self.best: Nearest | None = None  # of the points with a bound
        self.rank = (True, math.inf)
        self.relaxed: Vector | None = None  # the nearest under the constraints inside the groups

    def nearest(self) -> Nearest:
        try:
            found = self._nearest()
        except OutOfTimeError:
            if self.relaxed is not None:
                for w in self.cut.repaired(self.relaxed, self.v, 0.0):
                    self._consider(w, self._gap_to_relaxed)
            found = None
            if self.best is None:
                raise
        assert found is not None or self.best is not None
        return found or self.best  # type: ignore[return-value]

    def _nearest(self) -> Nearest | None:
        found = None
        if self.groups is not None and self._fits(self.groups):
            found = self.settled(self.groups)
        if found is None:
            found = self.settled(np.arange(self.v.size))
        look = COSTS.first_exchange
        while found is None and self.rounds < COSTS.exchange_rounds:
            reached = self._round()
            if self.rounds >= min(look, COSTS.exchange_rounds):
                look *= 2
                found = self._ending(reached)
        return found

    # -- rounds -----------------------------------------------------------------------------

    def _round(self) -> Reached:
        """One step of FISTA in the duals of all layers but the first, which is eliminated."""
        check_deadline()
        ahead, step = self.ahead, 1.0 / max(1, self.others)
        first = self._project(0, self.v - ahead.sum(axis=0))
        points, new, gaps = np.empty_like(ahead), np.empty_like(ahead), [first.gap]
        for k in range(self.others):
            found = self._project(k + 1, first.w + ahead[k] / step)
            points[k], new[k] = found.w, ahead[k] + step * (first.w - found.w)
            gaps.append(found.gap)
        if float(np.vdot(ahead - new, new - self.duals)) > 0.0:
            self.momentum = 1.0
        self.momentum, speed = next_momentum(self.momentum)
        own = self.v - ahead.sum(axis=0) - first.w
        self.ahead = new + speed * (new - self.duals)
        self.duals = new
        self.rounds += 1
        return Reached(np.vstack([first.w, points]), np.vstack([own, new]), np.array(gaps))

    def _project(self, layer: int, z: Vector) -> Layer:
        """Every block of a layer by the engine; parameters without a block stay where they are."""
        blocks = self.cut.layers[layer]
        w, gap = z.copy(), 0.0
        before, after = self.cut.view(z), self.cut.view(w)
        items = [
            (block.key, self.handles[block.key], before[block.place].ravel()) for block in blocks
        ]
        names = [f"block {k} of layer {layer} of a projection" for k in range(len(blocks))]
        answers = current_engine().map(nearest_in_block, items, names)
        for block, (found, own) in zip(blocks, answers, strict=True):
            after[block.place] = found.reshape(after[block.place].shape)
            gap += own
        return Layer(w, gap)

    # -- the end ----------------------------------------------------------------------------

    def _ending(self, reached: Reached) -> Nearest | None:
        """The exact point, or one whose bound is small enough; keeps the best one known."""
        first, residual = reached.points[0], reached.residual
        groups = self._groups_that_fit(first, residual, COSTS.tie_shares)
        found = None if groups is None else self.settled(groups)
        if found is not None:
            return found
        for w in self.cut.repaired(first, self.v, residual):
            self._consider(w, reached.gap_at)
        return self.best if self._is_close_enough(residual) else None

    def _is_close_enough(self, residual: float) -> bool:
        """Whether the best point has a small gap, or is certified and further rounds gain nothing
        because the layers agree.
        """
        if self.best is None or self.best.gap is None or not self.best.certificate.holds:
            return False
        away = self.best.w - self.v
        agree = residual <= COSTS.row_tolerance * float(np.abs(self.v).max(initial=1.0))
        return agree or bool(self.best.gap <= COSTS.exchange_gap * float(away @ away))

    def settled(self, groups: Indices) -> Nearest | None:
        """The nearest point, from a guess of the groups: an active-set method by groups.

        Every group is projected by itself. Constraints broken between the points of groups join
        these, those that are tight keep parameters together, and all others let them go. The
        distance grows from step to step, because no constraint with a multiplier is dropped.
        """
        rounding = self.cut.rounding(self.v)
        chosen, w = np.ones(self.v.size, dtype=bool), self.cut.alone(self.v)
        for _ in range(COSTS.group_steps):
            self.steps += 1
            w, gap = self._by_groups(groups, chosen, w)
            self.relaxed, excess = w, self.cut.excess(w)
            if excess <= rounding and chosen.all():
                return self._proven(w, gap, groups)
            if excess <= rounding:  # once more all of them, for their gaps
                chosen, w = np.ones(w.size, dtype=bool), self.cut.alone(self.v)
                continue
            before, fitting = groups, self._groups_that_fit(w, excess, COSTS.broken_shares)
            if fitting is None:
                return None
            groups, chosen = fitting, self.cut.unsettled(w, fitting)
            if np.array_equal(groups, before):  # as near as the groups' own projections come
                w, gap = self._by_groups(groups, np.ones(w.size, dtype=bool), w)
                near = self.cut.excess(w) <= self._allowed(w)
                return self._proven(w, gap, groups) if near else None
        return None

    def _proven(self, w: Vector, gap: float, groups: Indices) -> Nearest:
        sure = not_certified() if math.isnan(gap) else certified(gap)
        kept = Known(self.duals, groups)
        return Nearest(self.cut.last(w), self._words(), sure, warm=kept)

    def _allowed(self, w: Vector) -> float:
        """The excess that an answer may have."""
        distance = float(np.linalg.norm(w - self.v))
        return max(self.cut.rounding(self.v), COSTS.accepted_excess * distance)

    def _groups_that_fit(self, w: Vector, scale: float, shares: Sequence[float]) -> Indices | None:
        """Groups at the first of these tolerances that a worker can hold one by one."""
        for share in shares:
            groups = self.cut.tied(w, share * scale)
            if self._fits(groups):
                return groups
        return None

    def _fits(self, groups: Indices) -> bool:
        return int(np.bincount(groups).max(initial=0)) <= self.cut.most_tied

    def _by_groups(self, groups: Indices, chosen: Booleans, w: Vector) -> tuple[Vector, float]:
        """w with every chosen group at its own nearest point, and the sum of their gaps."""
        w, gap = w.copy(), 0.0
        parts = list(chunks(groups, chosen, self.cut.most_tied))
        tasks = [self.cut.task_of(part, groups[part]) for part in parts]
        items = [(*task, self.v[part]) for task, part in zip(tasks, parts, strict=True)]
        names = [f"groups {k} of a projection" for k in range(len(parts))]
        answers = current_engine().map(apply, items, names)
        for part, (found, own) in zip(parts, answers, strict=True):
            w[part] = found
            gap += own
        return w, gap

    def _consider(self, w: Vector, bound: Callable[[Vector, Vector], float]) -> None:
        """Keep w if it is the best so far: obeys the constraints, and has the smaller gap."""
        gap, excess = bound(w, self.v), self.cut.excess(w)
        outside = excess > self._allowed(w)
        rank = (outside, excess if outside else gap)
        if self.best is not None and rank >= self.rank:
            return
        square = float((w - self.v) @ (w - self.v))
        sure = not outside and gap <= COSTS.accepted_gap * square
        certificate = certified(gap) if sure else not_certified(gap, excess or math.nan)
        kept = Known(self.duals, self.cut.tied(w, 0.0))
        self.rank = rank
        self.best = Nearest(self.cut.last(w), self._words(), certificate, warm=kept)

    def _gap_to_relaxed(self, w: Vector, v: Vector) -> float:
        """The point of the groups is the nearest one under some of the constraints, so no point
        that obeys all is nearer.
        """
        assert self.relaxed is not None
        nearer = self.relaxed - v
        return max(0.0, 0.5 * float((w - v) @ (w - v)) - 0.5 * float(nearer @ nearer))

    def _words(self) -> str:
        blocks = " + ".join(str(len(layer)) for layer in self.cut.layers)
        words = f"active set by groups on {blocks} blocks, {self.steps} steps"
        return words + (f", {self.rounds} rounds of accelerated Dykstra" if self.rounds else "")


@dataclass(frozen=True)
class Reached:
    """The point of every layer, its dual, and the sum of the gaps of its blocks, after a round."""

    points: Floats
    duals: Floats
    gaps: Floats

    @property
    def residual(self) -> float:
        return float(np.max(np.abs(self.points - self.points[0])))

    def gap_at(self, w: Vector, v: Vector) -> float:
        """A bound on |w - v|^2 / 2 minus its optimum, for a w that obeys all constraints.

        The dual y_k of a layer is normal to it at its point x_k, so weak duality bounds the gap by
        |w - v + sum y_k|^2 / 2 + sum y_k (x_k - w), without cancellation. A block's point is exact
        up to its own gap g: its true dual is within sqrt(2 g) of y_k, and its value within g.
        """
        off = np.sqrt(2.0 * self.gaps)
        apart = np.linalg.norm(w - v + self.duals.sum(axis=0)) + off.sum()
        gap = 0.5 * float(apart) ** 2
        for x, y, g, error in zip(self.points, self.duals, self.gaps, off, strict=True):
            gap += max(0.0, float(y @ (x - w))) + g + error * float(np.linalg.norm(x - w))
        return float(gap)


def apply(task: Callable[..., Any], arguments: tuple[Any, ...], v: Vector) -> Any:
    """What `Cut.task_of` says, for these numbers."""
    return task(*arguments, v)


def chunks(groups: Indices, chosen: Booleans, most: int) -> Iterator[Indices]:
    """Chosen members of groups of two and more, sorted: whole groups, about `most` parameters at
    once.
    """
    sizes = np.bincount(groups, minlength=groups.size)
    members = np.flatnonzero(chosen & (sizes[groups] > 1))
    members = members[np.argsort(groups[members], kind="stable")]
    begins = np.flatnonzero(np.diff(groups[members], prepend=-1))
    half = max(1, most // 2)  # a chunk ends with the group that crosses a multiple of it
    firsts = begins[np.flatnonzero(np.diff(begins // half, prepend=-1))]
    yield from map(np.sort, np.split(members, firsts[1:]) if members.size else [])
