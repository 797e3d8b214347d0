"""Trees on what curves and lattices leave over: local structure that no smooth term follows.

Small trees are added one by one, each fitted to the slopes and curvatures of the loss at the score
so far (gradient boosting; Friedman 2001). Their order along monotone columns is kept exactly: what
a split separates stays separated in all levels below it. Columns of other rules are not split.
Whether trees are needed, and how many, is judged on held-out rows.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lighttouch import losses
from lighttouch.arrays import Floats
from lighttouch.constraints import LinearConstraints
from lighttouch.errors import ModelFileError
from lighttouch.estimators import smoothing
from lighttouch.estimators.examples import AnyExamples, Examples
from lighttouch.estimators.judged import Judged
from lighttouch.estimators.model import AdditiveModel
from lighttouch.estimators.outputs import OneScore
from lighttouch.estimators.smoothing import Smoothed
from lighttouch.estimators.structure import Plan
from lighttouch.estimators.training import COSTS as TRAINING
from lighttouch.estimators.training import feasible_nearby
from lighttouch.kernels.numerics.trees import BLOCK, NO_CUT, Room, add_trees, fill_codes, grow_tree
from lighttouch.kernels.verbs.losses import LossRow
from lighttouch.running import check_deadline


@dataclass(frozen=True)
class TreeCosts:
    """How trees are grown, and how many.

    Chosen on held-out training rows: phonemes, bikes, magic and housing, three splits each. Without
    `least_share` the loss falls by .107, .114, .019 and .018 of itself; below, what else it falls
    by.
    """

    depth: int = 7
    """Splits on the way to a leaf. With 6: .096, .112, .017, .020; with 8: .114, .122, .017, .021,
    and files twice as large. Tuning: measured once."""
    kept: float = 0.7
    """Share of the score of curves and lattices, from its mean on, that more trees begin beside:
    curves and lattices follow the noise of the training rows, and where local structure is strong,
    their score is in the way. On held-out training rows of three splits, with 0, 0.25, 0.5, 0.75
    and 1: bikes 29.1, 28.9, 28.7, 28.8, 30.1, magic .2973, .2965, .2957, .2974, .2992, housing
    .494, .480, .471, .464, .469, phonemes .262, .260, .260, .260, .264, adult .303, .301, .300,
    .299, .300. Tuning: measured once."""
    pull: float = 10.0
    """Examples' worth of pull towards 0 on the value of a leaf. With 5: .091, .108, .015, .014;
    with 20: .114, .116, .016, .016. Tuning: measured once."""
    rate: float = 0.2
    """Share of a Newton step that a leaf takes. With 0.3: .113, .109, .015, .014; with 0.1 twice as
    many trees (and 20 rows per leaf: .090, .102, .018, .017). Tuning: measured once."""
    least_rows: int = 10
    """Of a leaf, counted by their share of its node's curvature, and of a category on average. With
    20: .096, .101, .016, .017; with 5: .117, .120, .015, .012. Tuning: measured once."""
    least_share: float = 0.05
    """Of a node's rows, on each side of its split. Curves have taken what single columns explain,
    so that the first splits would cut off a few rows at the ends of a column. With 0.05: .114,
    .131, .016 and .020, and fewer trees; with 0.2: .125, .135, .006 and .022. Tuning: measured
    once."""
    least_held: float = 0.15
    """Degrees of freedom per category that the curve of a column must hold, or it is not split:
    less is the noise of its categories. With 0, 0.1, 0.15, 0.25 and 0.4, on held-out training rows
    of 35 tables with categories, four splits each: the mean loss 1, .995, .995, .995 and .998;
    churn (51 states, 0.09) 1 and then .84, hotel (agents, 0.68) 1, 1, .999, .999 and 1.06. A curve
    holds about one in any case, so that up to seven categories are split. Tuning: measured once."""
    deepest: int = 12
    """Depth of a tree that a file may hold: 4,096 leaves. Memory."""
    bins: int = 128
    """Of a column: cuts are looked for between them. Convention: a power of two; 255 at most."""
    most: int = 500
    """Trees: the size of a model file, and the time of a prediction, grow with them. Budget."""
    few: int = 10
    """Trees that are grown beside all of the score of curves and lattices, and tried first: where
    none of them lowers the loss on held-out rows, no more are tried; where all of them raise it by
    `deviations`, nor on further rows (23 of 183 splits of 61 tables; none of them has trees by the
    second part). Budget."""
    patience: int = 10
    """Trees that do not lower the loss on held-out rows further, before no more are tried. With 20:
    1.08 times as long, as accurate (twelve tables, three splits of their training rows each).
    Tuning: measured once."""
    overtaken: int = 60
    """Trees within which those that are grown beside a part of the score must gain more than the
    few beside all of it, or no more are tried: where labels are determined by the columns, they
    gain for ever, by less and less. Tuning: not measured alone."""
    flat: float = 0.01
    """Standard errors by which it must fall meanwhile: where labels are determined by the columns,
    it falls for ever, by less and less. Tuning: not measured alone."""
    rows: int = 50_000
    """The most rows that trees are grown on, drawn at random. Budget."""
    least: int = 100
    """Rows below which there are none: held-out ones would be too few to tell. With 500, losses on
    120 tables of 180 to 400 rows were 1.2% larger in the mean (29 smaller by 1% with 100, 7 larger;
    1.19 times as long), and with 200 on 75 tables of 400 to 700 rows, 1.7% smaller than with 500
    (13 smaller by 1%, 5 larger). Tuning: measured on tables that nothing is reported of."""
    columns: int = 500
    """Columns up to which trees are grown: sums of their bins take 400 kB each. Memory."""
    folds: int = 5
    """Parts of the rows, of which one or two are held out in turn, to choose how many trees.
    Tuning: not measured alone."""
    copies: float = 10.0
    """Rows per different one, above which rows that agree are not copies. Convention."""
    mixed: float = 0.01
    """Share of the rows that are there more than once, of which some may have different targets,
    or they are not copies: those of levels, ages or grades agree by chance. Tuning: not measured
    alone."""
    trials: int = 2
    """Of them, at most. With one on seven tables, six splits of the training rows each: losses 0.1%
    larger, 0.84 of the time. Tuning: measured once."""
    rarest: int = 3
    """Held-out rows of the rarer class, or of other than the most frequent count: with fewer there
    are no trees. With 0, 1, 2, 3 and 5, of 600 tables of noise with 120 to 1,000 rows, 3 to 25 of
    them of the rarer class, 64, 29, 9, 3 and 0 have trees; on 67 tables of 180 to 700 rows with two
    classes the mean loss is the same with 0 and 3, and 1% larger with 5. Tuning: measured once."""
    enough: int = 1000
    """Held-out rows that can decide alone ... Tuning: not measured alone."""
    clearly: float = 3.0
    """... where what trees gain is so many standard errors: then no further part is held out.
    Tuning: not measured alone."""
    deviations: float = 1.0
    """Standard errors by which the loss on held-out rows must fall, or there are no trees. With 2,
    bikes and housing had none on one split of three (RMSE 31.8 for 31.3, .482 for .480). Of seven
    tables without local structure, three splits each, one of 21 passes, with eight trees. Tuning:
    measured once."""


COSTS = TreeCosts()


# -------------------------------------------------------------------------------------------------
# Whether trees are needed beside the terms of a model, and how many.


def can_have_trees(plan: Plan, examples: AnyExamples, row: LossRow) -> bool:
    """Whether trees may follow: the user has not asked for none, one score with a smooth loss of
    ours, columns that rules let them split, not too many, and not too many categories; enough rows,
    where their number is chosen.
    """
    count = len(plan.columns)
    categories = sum(map(plan.kinds, range(count)))  # a parameter each, beside the intercept
    enough = plan.trees is not None or examples.count >= COSTS.least
    return (
        plan.trees != 0
        and enough
        and not row.kinked
        and row.users is None
        and isinstance(examples.outputs, OneScore)
        and not examples.differences
        and len(_barred(plan)) < count <= COSTS.columns
        and categories < TRAINING.largest_gram
    )


def grown_on_all(examples: AnyExamples) -> bool:
    """Whether trees are grown on all examples."""
    return examples.size <= COSTS.rows


def _barred(plan: Plan) -> set[int]:
    """Columns of rules that steps would break."""
    return {place for bound in plan.shapes for place in bound.places}


@dataclass(frozen=True)
class WithoutTrees:
    """A fitted model, and the examples of which it leaves something over."""

    plan: Plan
    model: AdditiveModel
    w: Floats  # in the user's units
    rules: LinearConstraints  # about w
    smoothed: Smoothed  # without rules, in training units
    examples: AnyExamples

    def with_trees(self, row: LossRow, rng: np.random.Generator) -> tuple[Floats, Trees | None]:
        """The parameters beside trees, and as many trees as the user asked for, or as held-out rows
        ask for; None for none.
        """
        asked = self.plan.trees
        if self.model.dimension > TRAINING.largest_gram:
            return self.w, None
        part = self.examples.some(COSTS.rows, rng, seldom=True)
        barred, table = _barred(self.plan) | self._noisy(part.size), part.table
        bins, signs = Bins.of(table, self._ranks(self.w), barred), self._signs()
        codes = bins.codes(table)
        check_deadline()
        score = (self.model.evaluate(table, self.w) - part.shift) / part.scale
        del table  # it may be a copy
        rows = TreeRows(codes, score, part.y, part.weights, part.offset)
        eased, kept = self._eased(rows.centre * part.scale + part.shift)
        if asked is None and part.size >= COSTS.least:
            asked = wanted_count(self._trials(part, bins, codes, row, rng), kept, signs, row)
        if not asked:
            return self.w, None
        w, rows = (self.w, rows) if asked <= COSTS.few else (eased, rows.eased(kept))
        found = grown(rows, bins, signs, row, asked)
        return (w, found.times(part.scale)) if found.used else (self.w, None)

    def _in_training_units(self, part: Examples) -> Floats:
        w = self.w / part.scale
        w[0] -= part.shift / part.scale
        return w

    def _eased(self, centre: float) -> tuple[Floats, float]:
        """Parameters that leave a part of the score to trees, nearer by it to a constant, and the
        share of the score that they keep: all of it where a constant breaks a rule.
        """
        eased = COSTS.kept * self.w
        eased[0] += (1.0 - COSTS.kept) * centre
        met = feasible_nearby(eased, self.rules)
        return (self.w, 1.0) if met is None else (met, COSTS.kept)

    def _signs(self) -> NDArray[np.int64]:
        signs = np.zeros(len(self.plan.columns), dtype=np.int64)
        for column, sign in self.plan.monotonic.items():
            signs[column] = sign
        return signs

    def _noisy(self, rows: int) -> set[int]:
        """Columns whose categories differ by little more than noise, so that their order is that
        of the noise of the training rows; or have too few rows to tell.
        """
        held = self.smoothed.held
        kinds = {
            place: len(column.categories)
            for place, column in enumerate(self.plan.columns.columns)
            if column.categories is not None
        }
        return {
            place
            for place, count in kinds.items()
            if held.get((place,), math.inf) < COSTS.least_held * (count - 1)
            or rows < COSTS.least_rows * count
        }

    def _ranks(self, w: Floats) -> list[Floats | None]:
        """The categories of a column in the order of its own curve; None for numbers."""
        found: list[Floats | None] = []
        for place, column in enumerate(self.plan.columns.columns):
            own = self.model.calibrator_of(place)
            if column.categories is None or own is None:
                found.append(None)
                continue
            table = np.zeros((len(column.categories), len(self.plan.columns)))
            table[:, place] = np.arange(len(table))
            effect = self.model.terms[own].evaluate(table, w[self.model.part(own)])
            found.append(np.argsort(np.argsort(effect, kind="stable")).astype(np.float64))
        return found

    def _trials(
        self,
        part: Examples,
        bins: Bins,
        codes: NDArray[np.uint8],
        row: LossRow,
        rng: np.random.Generator,
    ) -> Iterator[Trial]:
        """Rows scored by the model without the held-out ones, which come apart. Categories are
        brought in order without them too: the order of many categories tells much of the targets.
        """
        loss = None if row.name == "squared" else row
        features, offset = part.features_at_need(self.model, loss is None), part.offset
        seen = Judged(features, part.y, part.weights, loss, part.count, offset=offset)
        share = part.count / self.examples.count
        fitted = self.smoothed.scaled(1.0 / share)
        table = part.signed_tables[0][0]  # it is read column by column, and not copied
        folds = _folds(table, part.y, rng)
        known = self.smoothed.matrix if share == 1.0 else None
        if part.stands_for_another:  # smoothed on other targets: the trained model is nearer
            fitted, known = replace(fitted, w=self._in_training_units(part)), None
        for fold in range(COSTS.trials):
            held = folds == fold
            check_deadline()
            w, score = smoothing.fit_without(seen, fitted, held, known)
            bins, codes = bins.reordered(self._ranks(w), part.table, codes)
            rows = TreeRows(codes, score, part.y, part.weights, offset)
            yield Trial(bins, rows.part(~held), rows.part(held))


def _folds(table: Floats, y: Floats, rng: np.random.Generator) -> NDArray[np.int64]:
    """The part that every example belongs to, at random. Copies belong to one part, because trees
    would know the held-out ones by heart: rows that agree, where hardly any of them have different
    targets. Where very many agree, or one row very often, it is by chance.
    """
    keys = _keys(table)
    which, counts = _equal(keys)
    different, often = counts.size, int((counts > 1).sum())
    copied = (
        often > 0
        and y.size <= COSTS.copies * different
        and counts.max() <= y.size / COSTS.folds
        and _equal(keys + _mixed(y, table.shape[1]))[1].size - different <= COSTS.mixed * often
    )
    if not copied:
        return rng.permutation(y.size) % COSTS.folds
    return (rng.permutation(different) % COSTS.folds)[which]


def _equal(keys: Any) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Which of the different keys each is, and how often each of them is there."""
    _, which, counts = np.unique(keys, return_inverse=True, return_counts=True)
    return which, counts


def _keys(table: Floats) -> Any:
    """A number for every row, the same for rows that agree."""
    keys = np.zeros(table.shape[0], dtype=np.uint64)
    for place in range(table.shape[1]):
        keys += _mixed(table[:, place], place)
    return keys


def _mixed(column: Floats, place: int) -> Any:
    """What the cells of a column add to the keys of their rows."""
    factor = np.random.default_rng(place).integers(2**63, dtype=np.uint64) | np.uint64(1)
    bits = (column + 0.0).view(np.uint64)  # -0.0 is 0.0
    bits ^= bits >> np.uint64(32)  # those of small integers end in zeros
    bits *= factor
    return bits


# -------------------------------------------------------------------------------------------------
# How trees grow, what they predict, and how they are kept in files.


@dataclass(frozen=True)
class Bins:
    """How the cells of every column become small numbers: by edges, after categories were brought
    in order.
    """

    edges: tuple[Floats, ...]
    ranks: tuple[Floats | None, ...]  # of the categories of a column; None for numbers
    gaps: tuple[int, ...]
    """The bins of missing cells and unknown categories: 0 where there were some, the median's
    elsewhere."""

    @classmethod
    def of(cls, table: Floats, ranks: Sequence[Floats | None], barred: set[int]) -> Bins:
        """Columns that are barred have one bin, which cannot be split."""
        columns = _ordered(table, ranks).T
        edges = [
            np.empty(0) if place in barred else _edges(column)
            for place, column in enumerate(columns)
        ]
        return cls(tuple(edges), tuple(ranks), tuple(map(_gap, columns, edges)))

    def reordered(
        self, ranks: Sequence[Floats | None], table: Floats, codes: Any
    ) -> tuple[Bins, Any]:
        """The bins of a table whose categories have another order, and its codes, of which `codes`
        are those until now: columns that have not changed are taken as they are.
        """
        pairs = zip(self.ranks, ranks, self.edges, strict=True)
        changed = [
            place
            for place, (before, after, edges) in enumerate(pairs)
            if edges.size and before is not None and after is not None and (before != after).any()
        ]
        if not changed:
            return self, codes
        some = table[:, changed]
        new = Bins.of(some, [ranks[place] for place in changed], set())
        edges, gaps, codes = list(self.edges), list(self.gaps), codes.copy()
        for place, each, gap in zip(changed, new.edges, new.gaps, strict=True):
            edges[place], gaps[place] = each, gap
        codes[:, changed] = new.codes(some)
        return Bins(tuple(edges), tuple(ranks), tuple(gaps)), codes

    @cached_property
    def counts(self) -> Any:
        return np.array([each.size for each in self.edges], dtype=np.int64)

    @cached_property
    def _padded(self) -> Floats:
        out = np.full((len(self.edges), max(1, int(self.counts.max(initial=0)))), math.inf)
        for row, each in zip(out, self.edges, strict=True):
            row[: each.size] = each
        return out

    def codes(self, table: Floats) -> Any:
        """The bin of every cell."""
        out, at = np.empty(table.shape, dtype=np.uint8), np.empty(BLOCK, dtype=np.uint32)
        ordered = np.ascontiguousarray(_ordered(table, self.ranks))
        gaps = np.array(self.gaps, dtype=np.uint8)
        fill_codes(ordered, self._padded, self.counts, gaps, at, out)
        return out


def _ordered(table: Floats, ranks: Sequence[Floats | None]) -> Floats:
    if all(each is None for each in ranks):
        return table
    out = table.copy()
    for place, each in enumerate(ranks):
        if each is not None:
            known = (table[:, place] >= 0) & (table[:, place] < each.size)
            codes = np.where(known, table[:, place], 0.0).astype(np.int64)
            out[:, place] = np.where(known, each[codes], np.nan)
    return out


def _edges(column: Floats) -> Floats:
    """Between distinct values, at most one less than there are bins."""
    present, counts = np.unique(column[~np.isnan(column)], return_counts=True)
    if present.size < 2:
        return np.empty(0)
    below = np.arange(present.size - 1)
    if below.size > COSTS.bins - 2:
        shares = np.arange(1, COSTS.bins - 1) / (COSTS.bins - 1)
        reached = np.searchsorted(np.cumsum(counts), shares * counts.sum())
        below = np.unique(np.minimum(reached, present.size - 2))
    middle = 0.5 * present[below] + 0.5 * present[below + 1]
    return np.unique(middle)  # between neighbouring doubles there is none: they share an end


def _gap(column: Floats, edges: Floats) -> int:
    if edges.size == 0 or np.isnan(column).any():
        return 0
    half = column.size // 2
    return int(np.searchsorted(edges, np.partition(column, half)[half])) + 1


@dataclass(frozen=True, eq=False)
class Trees:
    """Trees whose leaves are added to the score, in its own units."""

    bins: Bins
    columns: Any  # of every tree and node
    cuts: Any
    values: Floats  # of every tree and leaf
    mean: float = 0.0  # over the training rows

    @property
    def count(self) -> int:
        return int(self.columns.shape[0])

    def evaluate(self, table: Floats) -> Floats:
        """What they add to the score of every row."""
        return self.at(self.bins.codes(table))

    def at(self, codes: Any) -> Floats:
        """The same, of rows that are binned already."""
        out = np.zeros(codes.shape[0])
        _add(codes, self.columns, self.cuts, self.values, out)
        return out

    def times(self, factor: float) -> Trees:
        return replace(self, values=factor * self.values, mean=factor * self.mean)

    @property
    def used(self) -> tuple[int, ...]:
        """The columns that are split."""
        return tuple(int(c) for c in np.unique(self.columns[self.cuts < NO_CUT]))

    def excess(self, column: int, sign: int) -> Floats:
        """For every split of a column by how much a leaf on its first side is above one on its
        second, times the sign: at most 0 where the trees are monotone.
        """
        tree, node = np.nonzero((self.columns == column) & (self.cuts < NO_CUT))
        first, second = 2 * node + 1, 2 * node + 2
        lower, upper = (first, second) if sign > 0 else (second, first)
        low, high = self._extremes
        return np.asarray(high[tree, lower] - low[tree, upper])

    @cached_property
    def _extremes(self) -> tuple[Floats, Floats]:
        """The least and the largest leaf below every node."""
        inner = self.columns.shape[1]
        low = np.hstack([np.zeros((self.count, inner)), self.values])
        high = low.copy()
        for node in reversed(range(inner)):
            low[:, node] = low[:, 2 * node + 1 : 2 * node + 3].min(axis=1)
            high[:, node] = high[:, 2 * node + 1 : 2 * node + 3].max(axis=1)
        return low, high

    def state(self) -> dict[str, Any]:
        """As plain values, for a model file."""
        return {
            "edges": list(self.bins.edges),
            "ranks": list(self.bins.ranks),
            "gaps": list(self.bins.gaps),
            "columns": self.columns,
            "cuts": self.cuts,
            "values": self.values,
            "mean": self.mean,
        }

    @classmethod
    def from_state(cls, state: dict[str, Any] | None, count: int) -> Trees | None:
        """What `state` gave, checked; files of lighttouch 0.1 have none."""
        if state is None:
            return None
        edges, ranks, values = state["edges"], state["ranks"], state["values"]
        columns, cuts, mean = state["columns"], state["cuts"], float(state["mean"])
        gaps = [int(gap) for gap in state.get("gaps", [0] * count)]  # older files have none
        if not (
            len(edges) == len(ranks) == len(gaps) == count
            and all(_finite(each, 1) and each.size < COSTS.bins for each in edges)
            and all((np.diff(each) > 0.0).all() for each in edges)
            and all(
                0 <= gap <= each.size + (each.size > 0)
                for gap, each in zip(gaps, edges, strict=True)
            )
            and all(each is None or _finite(each, 1) for each in ranks)
            and _finite(values, 2)
            and values.shape[1] in (2**depth for depth in range(1, COSTS.deepest + 1))
            and _whole(columns, count)
            and _whole(cuts, NO_CUT + 1)
            and columns.shape == cuts.shape == (values.shape[0], values.shape[1] - 1)
            and math.isfinite(mean)
        ):
            raise ModelFileError("the trees contradict themselves; save the model again")
        bins = Bins(tuple(edges), tuple(ranks), tuple(gaps))
        return cls(bins, columns.astype(np.int16), cuts.astype(np.uint8), values, mean)


def _whole(array: object, above: int) -> bool:
    """Whether it holds numbers from 0 on that are below a limit, for every tree and node."""
    return (
        isinstance(array, np.ndarray)
        and array.dtype.kind in "iu"
        and array.ndim == 2
        and bool(array.min(initial=0) >= 0)
        and bool(array.max(initial=0) < above)
    )


def _finite(array: object, dimensions: int) -> bool:
    return (
        isinstance(array, np.ndarray)
        and array.dtype == np.float64
        and array.ndim == dimensions
        and bool(np.isfinite(array).all())
    )


@dataclass(frozen=True, eq=False)
class TreeRows:
    """Examples that trees are grown on: bins, the model's score so far, targets, weights, and what
    is added to every score.
    """

    codes: Any
    score: Floats
    y: Floats
    weights: Floats
    offset: Floats | None = None

    def part(self, chosen: Any) -> TreeRows:
        weights = self.weights[chosen]
        offset = None if self.offset is None else self.offset[chosen]
        return TreeRows(
            self.codes[chosen], self.score[chosen], self.y[chosen], weights / weights.sum(), offset
        )

    @property
    def centre(self) -> float:
        """The mean score."""
        return float(self.weights @ self.score)

    @property
    def predictions(self) -> Floats:
        """What the loss is of."""
        return self.score.copy() if self.offset is None else self.score + self.offset

    def eased(self, kept: float, centre: float | None = None) -> TreeRows:
        """With a share of the score's distance from the mean score, or from another `centre`."""
        middle = self.centre if centre is None else centre
        return replace(self, score=kept * self.score + (1.0 - kept) * middle)


class Ground:
    """Bins of rows as trees read them, and scratch: the same for all trees on these rows."""

    def __init__(self, codes: Any, bins: Bins) -> None:
        n, inner = codes.shape[0], 2**COSTS.depth - 1
        split = np.flatnonzero(bins.counts > 0)  # other columns have one bin
        self.split = split if split.size else np.zeros(1, dtype=np.int64)
        self.starts = np.concatenate([[0], np.cumsum(bins.counts[self.split] + 2)])
        self.room = Room(
            np.empty(n, dtype=np.uint32),
            np.empty(n, dtype=np.uint32),
            np.empty((COSTS.depth, int(self.starts[-1]), 2)),
            np.empty((COSTS.depth + 1, 2), dtype=np.int64),
            np.empty((2 * inner + 1, 2), dtype=np.int64),
            np.empty((2 * inner + 1, 2)),
        )
        self.by_column = np.ascontiguousarray(codes.T[self.split])
        firsts = self.starts[:-1].astype(np.uint16)  # of 500 columns with 128 bins at most
        self.places = np.empty((n, self.split.size), dtype=np.uint16)
        np.add(self.by_column.T, firsts, out=self.places)
        self.steps = np.empty((n, 2))


def boosted(
    rows: TreeRows, score: Floats, ground: Ground, signs: Any, row: LossRow
) -> Iterator[tuple[Any, Any, Floats]]:
    """One tree after the other: the columns, cuts and leaves that lower the loss most beside these
    predictions of the rows, to which each is added.
    """
    y, weights, split = rows.y, rows.weights, ground.split
    inner, signs, pull = 2**COSTS.depth - 1, signs[split], COSTS.pull / y.size
    while True:
        check_deadline()
        slopes, curvatures = losses.quadratic(row, score, y, 0.0)
        np.multiply(weights, slopes, out=ground.steps[:, 0])
        np.multiply(weights, curvatures, out=ground.steps[:, 1])
        del slopes, curvatures
        columns = np.empty(inner, dtype=np.int16)
        cuts, values = np.empty(inner, dtype=np.uint8), np.empty(inner + 1)
        grow_tree(
            ground.places,
            ground.by_column,
            ground.starts,
            signs,
            ground.steps,
            pull,
            COSTS.least_rows,
            COSTS.least_share,
            COSTS.rate,
            ground.room,
            columns,
            cuts,
            values,
            score,
        )
        yield split[columns].astype(np.int16), cuts, values


def grown(rows: TreeRows, bins: Bins, signs: Any, row: LossRow, count: int) -> Trees:
    """So many trees."""
    before, after = rows.predictions, rows.predictions
    growing = boosted(rows, after, Ground(rows.codes, bins), signs, row)
    found = list(itertools.islice(growing, count))
    columns, cuts, values = (np.array(part) for part in zip(*found, strict=True))
    return Trees(bins, columns, cuts, values, float(rows.weights @ (after - before)))


def with_as_many(unfitted: Any, fitted: Any) -> Any:
    """An estimator that will have as many trees as a fitted one, if it can have any."""
    if "trees" in unfitted.get_params(deep=False):
        trees = getattr(fitted, "trees_", None)
        unfitted.set_params(trees=0 if trees is None else trees.count)
    return unfitted


@dataclass(frozen=True)
class Trial:
    """Rows to grow trees on, rows that are held out, and the bins of both."""

    bins: Bins
    rows: TreeRows
    held: TreeRows

    @property
    def can_tell(self) -> bool:
        """Whether there are enough held-out rows whose target is not the most frequent one: without
        any, whatever predicts that one gains. Rows of weight 0 are none (`AnyExamples.some`).
        """
        _, counts = np.unique(self.held.y, return_counts=True)
        return bool(self.held.y.size - counts.max() >= COSTS.rarest)

    @cached_property
    def ground(self) -> Ground:
        return Ground(self.rows.codes, self.bins)


class Course:
    """Trees that are grown one after the other beside a share of the score, and what they gain on
    held-out rows: the mean over the rows, and the mean square.
    """

    def __init__(self, trial: Trial, kept: float, signs: Any, row: LossRow) -> None:
        rows, held = trial.rows, trial.held
        self.row, self.y, self.weights, self.codes = row, held.y, held.weights, held.codes
        self.before = losses.values(row, held.predictions, held.y)
        self.score = held.eased(kept, rows.centre).predictions
        self.growing = boosted(rows, rows.eased(kept).predictions, trial.ground, signs, row)
        self.gains: list[tuple[float, float]] = []

    def gain(self, count: int) -> tuple[float, float]:
        """Of so many trees."""
        while len(self.gains) < count:
            _add_tree(self.codes, next(self.growing), self.score)
            each = self.before - losses.values(self.row, self.score, self.y)
            self.gains.append((float(self.weights @ each), float(self.weights @ np.square(each))))
        return self.gains[count - 1]


@dataclass(frozen=True)
class Tried:
    """So many trees: what they gain on held-out rows, and its standard error."""

    count: int
    gain: float
    error: float

    @property
    def sure(self) -> bool:
        return self.gain > COSTS.deviations * self.error

    @property
    def clear(self) -> bool:
        return self.gain > COSTS.clearly * self.error


NO_TREES = Tried(0, 0.0, math.inf)


def wanted_count(trials: Iterable[Trial], kept: float, signs: Any, row: LossRow) -> int:
    """How many trees held-out rows ask for, by as many trials as that takes: none where the first
    ones clearly raise the loss in the first trial.
    """
    best, beside_all, beside_part = NO_TREES, list[Course](), list[Course]()
    for trial in trials:
        if not trial.can_tell:
            return 0
        beside_all.append(Course(trial, 1.0, signs, row))
        few = _best_count(beside_all, range(1, COSTS.few + 1))
        if few.gain <= -COSTS.deviations * few.error:
            return 0
        beside_part.append(Course(trial, kept, signs, row))
        best = _wanted(few, beside_part)
        if best.clear and trial.held.y.size >= COSTS.enough:
            break
    return best.count


def _wanted(few: Tried, beside_part: list[Course]) -> Tried:
    """The number of trees that lower the loss on held-out rows most: a few beside all of the score,
    or more beside the share of it that may be kept. None where the first ones are of no use, or
    where what they gain may be chance.
    """
    more = COSTS.folds / (COSTS.folds - 1.0)  # all rows determine more trees than those of a trial
    if few.gain <= 0.0:
        return NO_TREES
    many = _best_count(beside_part, range(COSTS.few + 1, COSTS.most + 1), few.gain)
    if many.sure and many.gain > few.gain:
        return replace(many, count=min(COSTS.most, round(more * many.count)))
    return replace(few, count=min(COSTS.few, round(more * few.count))) if few.sure else NO_TREES


def _best_count(courses: list[Course], counts: range, known: float = -math.inf) -> Tried:
    """Which of some numbers of trees has the least loss on held-out rows; no more are tried where
    they do not overtake what is known to be gained otherwise.
    """
    shares = sum(float(np.square(course.weights).sum()) for course in courses) / len(courses) ** 2
    best, reached, since = Tried(0, -math.inf, math.inf), -math.inf, 0
    for count in counts:
        both = [course.gain(count) for course in courses]
        gain, square = (sum(each) / len(courses) for each in zip(*both, strict=True))
        tried = Tried(count, gain, math.sqrt(max(square - gain**2, 0.0) * shares))
        if gain > best.gain:
            best = tried
        if gain > reached + COSTS.flat * tried.error:
            reached, since = gain, count
        if count >= since + COSTS.patience or (count >= COSTS.overtaken and best.gain <= known):
            break
    return best


def _add_tree(codes: Any, tree: tuple[Any, Any, Floats], score: Floats) -> None:
    columns, cuts, values = tree
    _add(codes, columns[None], cuts[None], values[None], score)


def _add(codes: Any, columns: Any, cuts: Any, values: Floats, score: Floats) -> None:
    at = np.empty(BLOCK, dtype=np.uint32)
    add_trees(codes, columns.astype(np.uint16), cuts, values, at, score)
