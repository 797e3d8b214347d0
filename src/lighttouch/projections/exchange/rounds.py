"""Nearest points by blocks: accelerated rounds of Dykstra's algorithm, then an exact end.

Rounds: R. Dykstra, JASA 78, 1983, is coordinate ascent in the dual of the projection, one block of
constraints after the other. With one layer of blocks eliminated exactly and a gradient step in the
others it is accelerated as in A. Chambolle and T. Pock, "A remark on accelerated block coordinate
descent for computing the proximity operators of a sum of convex functions", SMAI Journal of
Computational Mathematics 1, 2015; restarts by B. O'Donoghue and E. Candes, Foundations of
Computational Mathematics 15, 2015.

The end (`Run.settled`): parameters that the constraints hold together are groups. If no constraint
holds two groups together, each is a projection of its own, which a worker solves exactly. Groups
are guessed from the point that the rounds have reached. A guess is right if the point that it leads
to obeys all constraints: the multipliers inside the groups then prove it.

What is computed depends on the blocks, never on the number of workers or the engine.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from lighttouch.arrays import Floats, Indices, Vector
from lighttouch.mapping import Shared, current_engine
from lighttouch.projections.costs import COSTS, TINY
from lighttouch.projections.exchange.cuts import Cut
from lighttouch.projections.exchange.tasks import forget_blocks, nearest_in_block
from lighttouch.projections.result import Nearest, certified, not_certified
from lighttouch.running import OutOfTimeError, check_deadline


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
        try:
            return Run(self.cut, handles, self.cut.alone(v), warm).nearest()
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
        fits = isinstance(warm, Known) and warm.duals.shape == shape
        self.known = warm if fits and isinstance(warm, Known) else None
        self.duals = np.zeros(shape) if self.known is None else self.known.duals
        self.ahead, self.momentum = self.duals.copy(), 1.0
        self.groups: Indices | None = None if self.known is None else self.known.groups
        self.rounds = 0
        self.best: Nearest | None = None

    def nearest(self) -> Nearest:
        try:
            return self._nearest()
        except OutOfTimeError:
            if self.best is None:
                raise
            return self.best

    def _nearest(self) -> Nearest:
        found = self.settled(self.cut.tied(self.v, 0.0, None))
        if found is None and self.groups is not None:
            found = self.settled(self.groups)
        look = COSTS.first_exchange
        while found is None and self.rounds < COSTS.exchange_rounds:
            state = self._round()
            if self.rounds >= min(look, COSTS.exchange_rounds):
                look *= 2
                found = self._ending(state)
        return self.best if found is None and self.best is not None else found

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
        following = 0.5 * (1.0 + math.sqrt(1.0 + 4.0 * self.momentum**2))
        speed = (self.momentum - 1.0) / following
        own = self.v - ahead.sum(axis=0) - first.w
        self.ahead = new + speed * (new - self.duals)
        self.duals, self.momentum = new, following
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
        for share in COSTS.tie_shares:
            groups = self.cut.tied(reached.points[0], share * reached.residual, None)
            if self._fits(groups):
                found = self.settled(groups)
                if found is not None:
                    return found
                break
        for w in (reached.points[0], self._pooled(groups)):
            self._consider(self.cut.repaired(w), reached)
        assert self.best is not None
        return self.best if self.best.certificate.holds else None

    def settled(self, groups: Indices) -> Nearest | None:
        """The nearest point, if these groups are the right ones, or become so by joining those
        between which a constraint is broken.
        """
        rounding = self.cut.rounding(self.v)
        for _ in range(COSTS.order_repairs):
            if not self._fits(groups):
                return None
            w, gap = self._by_groups(groups)
            if self.cut.excess(w) <= rounding:
                sure = certified(gap) if gap == gap else not_certified()
                return Nearest(w, self._words(groups), sure, warm=Known(self.duals, groups))
            joined = self.cut.tied(w, min(-rounding, -TINY), groups)
            if np.array_equal(joined, groups):
                return None
            groups = joined
        return None

    def _fits(self, groups: Indices) -> bool:
        return int(np.bincount(groups).max(initial=0)) <= self.cut.most_tied

    def _by_groups(self, groups: Indices) -> tuple[Vector, float]:
        """Every group's own nearest point, and the sum of their gaps; single parameters stay."""
        w, gap = self.v.copy(), 0.0
        parts = list(chunks(groups, self.cut.most_tied))
        tasks = [self.cut.task_of(part, groups[part]) for part in parts]
        items = [(*task, self.v[part]) for task, part in zip(tasks, parts, strict=True)]
        names = [f"groups {k} of a projection" for k in range(len(parts))]
        for part, (found, own) in zip(
            parts, current_engine().map(apply, items, names), strict=True
        ):
            w[part] = found
            gap += own
        return self.cut.within_bounds(w), gap

    def _pooled(self, groups: Indices) -> Vector:
        """The mean of v over every group."""
        sums = np.bincount(groups, weights=self.v, minlength=self.v.size)
        counts = np.bincount(groups, minlength=self.v.size)
        return np.asarray((sums / np.maximum(counts, 1))[groups])

    def _consider(self, w: Vector, reached: Reached) -> None:
        """Keep w if its bound is the best so far."""
        gap = reached.gap_at(w, self.v)
        w = self.cut.within_bounds(w)
        if self.best is not None and not gap < (self.best.gap or 0.0):
            return
        excess, square = self.cut.excess(w), float((w - self.v) @ (w - self.v))
        allowed = max(self.cut.rounding(self.v), COSTS.accepted_excess * math.sqrt(square))
        sure = excess <= allowed and gap <= COSTS.exchange_gap * square
        certificate = certified(gap) if sure else not_certified(gap, excess or math.nan)
        groups = self.cut.tied(w, 0.0, None)
        self.best = Nearest(w, self._words(), certificate, warm=Known(self.duals, groups))

    def _words(self, groups: Indices | None = None) -> str:
        blocks = " + ".join(str(len(layer)) for layer in self.cut.layers)
        rounds = f"{self.rounds} round{'s' if self.rounds != 1 else ''}"
        end = "" if groups is None else ", then groups of tied parameters exactly"
        return f"accelerated Dykstra over {blocks} blocks, {rounds}{end}"


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


def apply(task: Callable[..., Any], *arguments: Any) -> Any:
    """A task that is itself an argument: items of one map may have different ones."""
    return task(*arguments[0], *arguments[1:])


def chunks(groups: Indices, most: int) -> Iterator[Indices]:
    """Members of groups of two and more, sorted: whole groups, about `most` parameters at once."""
    sizes = np.bincount(groups, minlength=groups.size)
    members = np.flatnonzero(sizes[groups] > 1)
    members = members[np.argsort(groups[members], kind="stable")]
    begins = np.flatnonzero(np.diff(groups[members], prepend=-1))
    half = max(1, most // 2)  # a chunk ends with the group that crosses a multiple of it
    firsts = begins[np.flatnonzero(np.diff(begins // half, prepend=-1))]
    for first, stop in zip(firsts, [*firsts[1:], members.size], strict=True):
        yield np.sort(members[first:stop])
