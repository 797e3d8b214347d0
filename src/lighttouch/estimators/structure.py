"""Which terms a model has: a curve for every column, and lattices over columns that interact.

The plan is what the user asked for, which columns may share a lattice, and how fine each is.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, pairwise, zip_longest

import numpy as np
from numpy.typing import NDArray

from lighttouch.arrays import Floats
from lighttouch.errors import ConstraintError
from lighttouch.estimators.costs import LIMITS
from lighttouch.estimators.model import (
    SMALLEST_GAP,
    InputMap,
    Term,
    distinct_values,
    keypoints_among,
    quantile_keypoints,
    whole_positions,
)
from lighttouch.estimators.rules.base import AxisKind, BoundShape
from lighttouch.estimators.tables import Columns, Name
from lighttouch.kernels.numerics.cells import COPIES, explained_by_cells
from lighttouch.lattice import Lattice
from lighttouch.validation import positive_int

Subset = tuple[int, ...]

ROUNDING = 1e-9  # of the spread of whole numbers about their mean, relative to their weight


@dataclass(frozen=True)
class Plan:
    """What the user asked for, checked."""

    columns: Columns
    monotonic: dict[int, int]
    shapes: list[BoundShape]
    keypoints: int | None  # None: chosen by the data
    lattices: str | int | Sequence[Sequence[Name]]  # "auto", "single", a number, or subsets
    lattice_size: int | str  # "auto" or a number
    columns_per_lattice: int | None  # None: chosen by the data
    interpolation: str
    trees: int | None = 0  # None: chosen by the data

    @property
    def categorical(self) -> list[bool]:
        return [column.categorical for column in self.columns.columns]

    def kinds(self, column: int) -> int:
        """How many categories a column has; 0 for numbers."""
        return len(self.columns[column].categories or ())

    def shares_vertices(self, column: int) -> bool:
        """Whether it has more categories than an axis of a lattice has vertices."""
        return self.kinds(column) > LIMITS.finest

    @property
    def single(self) -> bool:
        return isinstance(self.lattices, str) and self.lattices == "single"

    @property
    def ruled(self) -> set[int]:
        """The columns that rules are about."""
        return set(self.monotonic) | {place for bound in self.shapes for place in bound.places}

    def shapes_of(self, column: int) -> list[BoundShape]:
        """The shape constraints about a column."""
        return [bound for bound in self.shapes if column in bound.places]

    def has_axis_kind(self, column: int, kind: AxisKind) -> bool:
        """Whether a shape constraint wants the column to lie along lattice axes in this way."""
        return any(bound.shape.axis_kind == kind for bound in self.shapes_of(column))

    def fixed_vertices(self, column: int) -> list[float]:
        """Values of the column that shape constraints need as vertices."""
        return [value for bound in self.shapes_of(column) for value in bound.shape.vertices]

    def without_curve(self, column: int) -> bool:
        """Whether a column acts through lattices only, for the sake of a shape constraint."""
        return any(
            column in bound.shape.columns_without_curve(bound.places, self.single)
            for bound in self.shapes
        )

    def missing_apart(self, column: int) -> bool:
        """Whether missing cells may have a vertex of their own along lattice axes: where no shape
        constraint is about the column, and one lattice does not hold all columns.
        """
        return not self.single and not self.shapes_of(column)

    @property
    def wide(self) -> bool:
        """Whether columns are so many that their curves begin with fewer keypoints."""
        return len(self.columns) * LIMITS.keypoints > LIMITS.first_keypoints

    def affordable(self, keypoints: int) -> int:
        """Fewer keypoints per column where columns are many, so that all curves together stay of a
        size that can be factored.
        """
        return max(2, min(keypoints, LIMITS.all_keypoints // max(1, len(self.columns))))

    @property
    def columns_together(self) -> int:
        """The most columns of a lattice that is chosen by the data."""
        most = self.columns_per_lattice or LIMITS.columns_together
        return min(most, len(self.columns))


# -------------------------------------------------------------------------------------------------
# Which columns share a lattice.


def named_subsets(plan: Plan, rng: np.random.Generator) -> list[Subset]:
    """Column subsets that do not depend on what the data show: what rules need first, then what the
    user names, or pairs at random.
    """
    if plan.single:
        return _one_subset(len(plan.columns))
    needed = [_closed(plan, bound.places) for bound in plan.shapes if bound.shape.together]
    for subset in needed:
        _refuse_column_alone(plan, subset)
    wanted = _wanted(plan, rng)
    sorted_subsets = (tuple(sorted(subset)) for subset in (*needed, *wanted) if len(subset) > 1)
    return list(dict.fromkeys(sorted_subsets))


def _one_subset(count: int) -> list[Subset]:
    if count > LIMITS.columns_in_one:
        raise ConstraintError(
            f"one lattice holds at most {LIMITS.columns_in_one} columns, X has {count}; "
            "use lattices='auto'"
        )
    return [tuple(range(count))] if count > 1 else []


def _wanted(plan: Plan, rng: np.random.Generator) -> list[Subset]:
    """What the parameter `lattices` asks for: a way to choose, subsets, or a number of pairs."""
    if isinstance(plan.lattices, str):
        if plan.lattices not in ("auto", "random"):
            raise ValueError(
                "lattices must be 'auto', 'random', 'single', a number or a list of "
                f"column subsets, got {plan.lattices!r}"
            )
        return _at_random(plan, rng) if plan.lattices == "random" else []
    if isinstance(plan.lattices, Iterable):
        return [
            _closed(plan, tuple(plan.columns.place(column, "lattices") for column in subset))
            for subset in plan.lattices
        ]
    positive_int(plan.lattices, "lattices", least=0)
    return []


def most_subsets(plan: Plan, trees_follow: bool = False) -> int:
    """How many subsets the data may choose; 0 where the user has named them."""
    if isinstance(plan.lattices, str):
        most = LIMITS.lattices_beside_trees if trees_follow else LIMITS.lattices
        return most if plan.lattices == "auto" else 0
    return 0 if isinstance(plan.lattices, Iterable) else int(plan.lattices)


def candidates(
    plan: Plan,
    columns: Sequence[int],
    size: int,
    chosen: Iterable[Subset],
    refused: Iterable[Subset] = (),
) -> list[Subset]:
    """Subsets of so many of the columns that may share a lattice: all of them, or, where they are
    too many, those that extend a chosen one; none that is chosen or was refused.
    """
    if size == 2 or math.comb(len(columns), size) <= LIMITS.all_triples:
        found: Iterable[Subset] = combinations(columns, size)
    else:
        smaller = [subset for subset in chosen if len(subset) == size - 1]
        found = sorted(
            {tuple(sorted((*subset, c))) for subset in smaller for c in columns if c not in subset}
        )
    taken = {*chosen, *refused}
    return [subset for subset in found if subset not in taken and allowed(plan, subset)]


def _at_random(plan: Plan, rng: np.random.Generator) -> list[Subset]:
    every = [pair for pair in combinations(range(len(plan.columns)), 2) if allowed(plan, pair)]
    chosen: list[Subset] = [every[k] for k in rng.permutation(len(every))]
    if plan.columns_per_lattice is not None and plan.columns_per_lattice > 2:
        chosen = [_widened(plan, subset, rng) for subset in chosen]
    return chosen[: LIMITS.lattices]


def _widened(plan: Plan, subset: Subset, rng: np.random.Generator) -> Subset:
    """More columns, at random."""
    chosen = tuple(subset)
    for column in rng.permutation(len(plan.columns)):
        wider = (*chosen, int(column))
        if len(chosen) < plan.columns_together and column not in chosen and allowed(plan, wider):
            chosen = wider
    return chosen


def allowed(plan: Plan, subset: Subset) -> bool:
    return not any(
        bound.missing_companion(subset, plan.monotonic) is not None or _alone(bound, subset)
        for bound in plan.shapes
    )


def _alone(bound: BoundShape, subset: Subset) -> bool:
    """Whether a column of the subset may not enter a lattice."""
    return bound.shape.alone and bound.places[0] in subset


def _closed(plan: Plan, subset: Subset) -> Subset:
    """The subset with every column that rules need beside it."""
    chosen = tuple(dict.fromkeys(subset))
    while True:
        companions = (bound.missing_companion(chosen, plan.monotonic) for bound in plan.shapes)
        missing = next((column for column in companions if column is not None), None)
        if missing is None:
            return chosen
        chosen += (missing,)


def _refuse_column_alone(plan: Plan, subset: Subset) -> None:
    for bound in plan.shapes:
        if _alone(bound, subset):
            raise ConstraintError(
                f"{bound.shape} cannot be combined with a rule that puts its column into a "
                "lattice; use lattices='single'"
            )


# -------------------------------------------------------------------------------------------------
# How fine each lattice is.


def rows_to_search(columns: int, labels: bool) -> int:
    """On how many rows a model of a table of so many columns is looked for."""
    most = LIMITS.searched_labels if labels else LIMITS.searched
    return max(LIMITS.least_searched, min(most, LIMITS.searched_cells // columns))


def room_for(examples: float, curves: int) -> int:
    """Parameters of all lattices together: the more, the more examples there are, and the fewer the
    curves have.
    """
    wanted, most = LIMITS.parameters_per_row * examples, LIMITS.most_parameters - curves
    return int(max(LIMITS.least_parameters, min(wanted, most)))


def room_while_searching(lattices: int, known: int) -> int:
    """Parameters of so many new lattices, beside those that are known."""
    left = (LIMITS.most_parameters - known) // lattices
    return lattices * max(LIMITS.least_cells, min(left, LIMITS.searched_parameters))


def column_apart(plan: Plan, subset: Subset) -> int | None:
    """The column of a pair whose categories may each have a slope of their own along the other one,
    a number or two categories: so many that they would share vertices, but not too many.
    """
    if len(subset) != 2 or plan.lattice_size != "auto":
        return None
    few, many = sorted(subset, key=plan.kinds)
    fits = plan.shares_vertices(many) and 2 * (plan.kinds(many) + 1) <= LIMITS.most_apart
    return many if fits and plan.kinds(few) <= 2 and plan.missing_apart(many) else None


def lattice_sizes(
    plan: Plan,
    examples: float,
    chosen: dict[Subset, float],
    levels: dict[int, int],
    room: int,
    held: dict[Subset, float],
    apart: Collection[Subset] = (),
) -> list[tuple[Subset, tuple[int, ...]]]:
    """Vertices along each axis: finer with more examples and where a subset is worth more, as long
    as all of them have room; never more than a column has levels, or than the degrees of freedom
    that a coarser fit `held` ask for. Those with categories `apart` have room of their own.
    """
    if apart:
        others = {subset: worth for subset, worth in chosen.items() if subset not in apart}
        found = {subset: sizes_apart(plan, subset, levels) for subset in apart}
        if others:
            found |= dict(lattice_sizes(plan, examples, others, levels, room, held))
        return [(subset, found[subset]) for subset in chosen]
    if plan.lattice_size != "auto" or plan.single:
        size = 2 if plan.lattice_size == "auto" else int(plan.lattice_size)
        return [(subset, (size,) * len(subset)) for subset in chosen]
    cells = max(examples / LIMITS.examples_per_cell, float(LIMITS.least_cells))
    best = max([*chosen.values(), 1.0])
    asked = [
        (
            subset,
            (max(worth, 1.0) / best) ** 0.5,
            max(LIMITS.cells_per_freedom * held.get(subset, np.inf), LIMITS.least_cells),
        )
        for subset, worth in chosen.items()
    ]
    while True:
        sizes = [
            (subset, _sizes(plan, subset, min(cells * share, most), levels))
            for subset, share, most in asked
        ]
        parameters = sum(int(np.prod(size)) for _, size in sizes)
        if parameters <= room or cells <= 1.0:
            return sizes
        cells *= LIMITS.narrowing


def sizes_apart(plan: Plan, subset: Subset, levels: dict[int, int]) -> tuple[int, ...]:
    """A vertex for every category and one for all others; along the other column two or three."""
    many = column_apart(plan, subset)
    count = max(plan.kinds(c) for c in subset) + 1
    most = min(3, LIMITS.most_apart // count)
    return tuple(count if c == many else max(2, min(most, levels[c])) for c in subset)


def _sizes(plan: Plan, subset: Subset, cells: float, levels: dict[int, int]) -> tuple[int, ...]:
    """Axes of equal size, but for columns of few levels, which leave room to the others."""
    cells = max(cells, 1.0)
    if any(plan.has_axis_kind(column, "common unit") for column in subset):
        size = int(np.clip(round(cells ** (1.0 / len(subset))), 2, LIMITS.finest))
        return (size,) * len(subset)
    sizes: dict[int, int] = {}
    for place, column in enumerate(sorted(subset, key=lambda c: (levels[c], c))):
        even = cells ** (1.0 / (len(subset) - place))
        most = min(levels[column], LIMITS.finest)
        sizes[column] = max(2, min(most, round(even)))
        cells = max(1.0, cells / sizes[column])
    return tuple(sizes[column] for column in subset)


# -------------------------------------------------------------------------------------------------
# Which columns interact: how much of the residual they explain together on coarse grids.


@dataclass(frozen=True)
class Leftover:
    """What a fit leaves over for every example, its weight, and the variance of its noise."""

    residual: Floats
    weights: Floats
    noise: float


@dataclass(frozen=True)
class Gain:
    """What a subset explains of the residual, in units of the noise of one example."""

    explained: float
    freedom: float  # what noise would explain
    shared: Gain | None = None
    """Where each category has a slope of its own: what a lattice explains in which they share
    vertices."""

    def significance(self, candidates: int = 1) -> float:
        """Above 1: more than noise would, three deviations included, and more than the best of so
        many candidates would by noise alone, about (Laurent and Massart 2000, Lemma 1).
        """
        usual = LIMITS.noise_deviations * math.sqrt(2.0 * self.freedom)
        surprise = max(0.0, math.log(candidates / LIMITS.lucky))
        best = 2.0 * math.sqrt(self.freedom * surprise) + 2.0 * surprise
        return float(self.explained / (self.freedom + max(usual, best)))

    @property
    def worth(self) -> float:
        """By how much the fit improves, beyond two per degree of freedom (Akaike 1974)."""
        return self.explained - LIMITS.akaike * self.freedom


class Screen:
    """Coarse grids over the columns of a table, of each size once.

    Of tables that repeat rows of one `source`, the grids lie over that, and what examples leave
    over is added up by its rows.
    """

    def __init__(
        self,
        signed_tables: list[tuple[Floats, float]],
        examples: float,
        source: tuple[Floats, list[NDArray[np.int64]]] | None = None,
    ) -> None:
        self.signed_tables = signed_tables if source is None else [(source[0], 1.0)]
        self.examples = examples
        self._takes = (
            []
            if source is None
            else [(rows, sign) for rows, (_, sign) in zip(source[1], signed_tables, strict=True)]
        )
        self._grids: dict[int, tuple[NDArray[np.int16], NDArray[np.int64]]] = {}

    def gains(
        self,
        subsets: Sequence[Subset],
        grids: Sequence[int],
        left: Leftover,
        over: Callable[[], bool] = lambda: False,
    ) -> dict[Subset, Gain]:
        """The best gain of every subset over grids of so many cells per column; of none where the
        time is `over` before all were looked at.
        """
        found: dict[Subset, Gain] = {}
        most = max(1, int(LIMITS.screened_at_once / max(1, left.weights.size)))
        for first in range(0, len(subsets), most):
            found |= self._best(subsets[first : first + most], grids, left)
            if over():
                return {}
        return found

    def _best(
        self, subsets: Sequence[Subset], grids: Sequence[int], left: Leftover
    ) -> dict[Subset, Gain]:
        tried = np.array([self._gains(subsets, bins, left) for bins in grids])
        explained, freedom = tried[:, 0], tried[:, 1]
        best = np.argmax(explained - LIMITS.akaike * freedom, axis=0), np.arange(len(subsets))
        found = zip(subsets, explained[best].tolist(), freedom[best].tolist(), strict=True)
        return {subset: Gain(most, noise) for subset, most, noise in found}

    def _gains(self, subsets: Sequence[Subset], bins: int, left: Leftover) -> tuple[Floats, Floats]:
        """What every subset explains, and what noise would."""
        codes, counts = self._grid(bins)
        members = np.array(list(zip_longest(*subsets, fillvalue=-1)), dtype=np.int64).T.copy()
        with_none = np.append(counts, 1)  # member -1: no column
        cells = int(with_none[members].prod(axis=1).max())
        explained, used = np.zeros(len(subsets)), np.zeros(len(subsets), dtype=np.int64)
        mass = float(left.weights.sum())
        pulls, weights = self._by_rows(left)
        explained_by_cells(
            codes,
            np.array([sign for _, sign in self.signed_tables]),
            counts,
            members,
            pulls,
            weights,
            LIMITS.shrinkage * mass / self.examples,
            np.empty(codes.shape[2], dtype=np.int64),
            np.empty(COPIES * cells),
            np.empty(COPIES * cells),
            explained,
            used,
        )
        lower = (with_none - 1)[members].sum(axis=1)
        freedom = np.maximum(1.0, used - 1.0 - lower)
        return explained / (left.noise / self.examples), freedom

    def gains_apart(
        self, many: int, kinds: int, others: Sequence[int], left: Leftover
    ) -> dict[Subset, Gain]:
        """What slopes of their own along each of the other columns explain, one for each of the
        `kinds` categories of the column `many`, beside its effect; along the bins of the other
        column, so that its ends do not outweigh the rest.
        """
        codes = self._grid(LIMITS.cells_apart)[0][0]
        pulls, weights = self._by_rows(left)
        column = self.signed_tables[0][0][:, many]
        known = (column >= 0.0) & (column < kinds)
        category = np.where(known, column, kinds).astype(np.int64)
        mass = np.bincount(category, weights, kinds + 1)
        unit = left.noise / self.examples
        found: dict[Subset, Gain] = {}
        for other in others:
            sums = np.bincount(category, weights * codes[other], kinds + 1)
            along = codes[other] - (sums / np.maximum(mass, SMALLEST_GAP))[category]
            pulled = np.bincount(category, pulls * along, kinds + 1)[:kinds]
            spread = np.bincount(category, weights * np.square(along), kinds + 1)[:kinds]
            told = spread > ROUNDING * mass[:kinds]  # others lie in one bin
            explained = float((np.square(pulled[told]) / spread[told]).sum()) / unit
            freedom = max(1.0, np.count_nonzero(told) - 1.0)
            found[min(many, other), max(many, other)] = Gain(explained, freedom)
        return found

    @property
    def one_table(self) -> bool:
        """Whether every example is a row, or two of one table that are known apart."""
        return len(self.signed_tables) == 1

    def varying(self, bins: int) -> list[int]:
        """Columns that fill more than one bin."""
        return [int(column) for column in np.flatnonzero(self._grid(bins)[1] > 1)]

    def _by_rows(self, left: Leftover) -> tuple[Floats, Floats]:
        """Residuals times weights, and weights, of the rows of the tables."""
        pulls = left.weights * left.residual
        if not self._takes:
            return pulls, left.weights
        summed, weights = np.zeros((2, self.signed_tables[0][0].shape[0]))
        for rows, sign in self._takes:
            summed += sign * np.bincount(rows, pulls, minlength=summed.size)
            weights += np.bincount(rows, left.weights, minlength=weights.size)
        return summed, weights

    def curve_gains(self, bins: int, left: Leftover, known: int) -> list[Gain]:
        """What a curve of so many parts would explain of the residual, for every column; `known`
        parts are in the model already.
        """
        columns = self.signed_tables[0][0].shape[1]
        explained, _ = self._gains([(c,) for c in range(columns)], bins, left)
        freedom = np.maximum(1.0, self._grid(bins)[1] - 1.0 - known)
        return [Gain(float(e), float(f)) for e, f in zip(explained, freedom, strict=True)]

    def _grid(self, bins: int) -> tuple[NDArray[np.int16], NDArray[np.int64]]:
        """The bin of every cell, and how many bins every column has."""
        if bins not in self._grids:
            rows, columns = self.signed_tables[0][0].shape
            codes = np.empty((len(self.signed_tables), columns, rows), dtype=np.int16)
            for c in range(columns):
                edges = self._edges(c, bins)
                for found, (table, _) in zip(codes, self.signed_tables, strict=True):
                    found[c] = _bins(table[:, c], edges)
            self._grids[bins] = codes, codes.max(axis=(0, 2)).astype(np.int64) + 1
        return self._grids[bins]

    @cached_property
    def _distinct(self) -> list[tuple[Floats, Floats]]:
        """The distinct values of every column, and how often each occurs."""
        table = self.signed_tables[0][0]
        every = np.ones(table.shape[0])
        return [distinct_values(table[:, c], every) for c in range(table.shape[1])]

    def _edges(self, column: int, bins: int) -> Floats:
        """Where bins begin, the first one left out; a column of few values has one bin for each."""
        finer = keypoints_among(*self._distinct[column], bins + 1)
        if finer.size > bins:
            return finer[1:-1]
        return keypoints_among(*self._distinct[column], bins)[1:]


def _bins(values: Floats, edges: Floats) -> NDArray[np.int64]:
    """Missing cells have a bin of their own, past the last."""
    return edges.searchsorted(values, side="right") + np.isnan(values)  # NaN is sorted last


# -------------------------------------------------------------------------------------------------
# The inputs of calibrators and lattices: which values of a column lie at which vertices.


def calibrators(
    plan: Plan, table: Floats, weights: Floats, keypoints: dict[int, int]
) -> list[Term]:
    """Curves of some columns, of at most so many keypoints each."""
    return [
        _calibrator(plan, column, table[:, column], weights, count)
        for column, count in keypoints.items()
    ]


def _calibrator(plan: Plan, column: int, values: Floats, weights: Floats, count: int) -> Term:
    categories = plan.columns[column].categories
    if categories is not None:
        keypoints = np.arange(max(1, len(categories)), dtype=np.float64)
    elif plan.without_curve(column):
        keypoints = quantile_keypoints(values, weights, 2)[:1]
    else:
        keypoints = _keypoints(plan, column, values, weights, plan.affordable(count))
    return Term((column,), (whole_positions(keypoints),), Lattice((keypoints.size + 1,)))


def _keypoints(plan: Plan, column: int, values: Floats, weights: Floats, count: int) -> Floats:
    """Quantiles, and the vertices that rules need, where they lie inside the column's range."""
    distinct, mass = distinct_values(values, weights)
    wanted = plan.fixed_vertices(column) if distinct.size else []
    inside = tuple(value for value in wanted if distinct[0] < value < distinct[-1])
    return keypoints_among(distinct, mass, count, inside)


def lattice_term(
    plan: Plan,
    subset: tuple[int, ...],
    sizes: tuple[int, ...],
    table: Floats,
    weights: Floats,
    curves: dict[int, tuple[Term, Floats]],
    apart: bool = False,
) -> Term:
    """A lattice over some columns; `curves` holds each column's own curve and its parameters."""
    many = column_apart(plan, subset) if apart else None
    axes = [
        _axis_apart(size)
        if column == many
        else _axis(plan, column, size, table, weights, *curves[column])
        for column, size in zip(subset, sizes, strict=True)
    ]
    interpolation = plan.interpolation
    if interpolation == "auto":
        interpolation = "hypercube" if len(subset) <= LIMITS.columns_together else "simplex"
    counts = tuple(count for _, count in axes)
    return Term(subset, tuple(each for each, _ in axes), Lattice(counts, interpolation))


def _axis(
    plan: Plan,
    column: int,
    size: int,
    table: Floats,
    weights: Floats,
    own: Term,
    curve: Floats,
) -> tuple[InputMap, int]:
    values = table[:, column]
    gaps = plan.missing_apart(column) and bool(np.isnan(values).any())
    if plan.columns[column].categorical:
        return _categories_axis(curve, size, gaps)
    if plan.has_axis_kind(column, "common unit"):
        return _common_unit_axis(plan, column, size, table), size
    turns = bool(plan.fixed_vertices(column))
    if plan.single and size == 2 and not turns:
        return _one_cell_axis(plan, column, values, weights, own, curve), 2
    if turns or plan.without_curve(column):
        keypoints = _keypoints(plan, column, values, weights, max(size, 3) if turns else size)
    else:
        keypoints = _some_of(own.maps[0].keypoints, size, curve)
    if keypoints.size < 2:
        return InputMap(keypoints, np.zeros(1), 1.0 if gaps else 0.0), 2
    if gaps:  # a vertex of their own, past the last
        return whole_positions(keypoints), int(keypoints.size) + 1
    return whole_positions(keypoints, missing=0.5 * (keypoints.size - 1)), int(keypoints.size)


def _some_of(keypoints: Floats, count: int, curve: Floats) -> Floats:
    """Some of a curve's keypoints, the ends included: a part of them spread evenly, more where the
    curve bends, because an interaction often begins where a column's own effect does.

    Because a lattice bends only where the column's curve does, a part of the lattice that depends
    on this column alone can move into the curve. A rule about the sum of both is then no stricter
    when it is asked of each (`rules.rows.Moves`).
    """
    last = keypoints.size - 1
    if keypoints.size <= count:
        return keypoints
    bends = np.zeros(keypoints.size)
    if curve.size == keypoints.size + 1:
        bends[1:-1] = np.abs(np.diff(curve[:-1], n=2))
    gaps = bends[:-1] + bends[1:]
    share = LIMITS.vertices_at_bends if gaps.sum() > 0.0 else 0.0
    weights = (1.0 - share) / last + share * gaps / max(float(gaps.sum()), SMALLEST_GAP)
    mass = np.concatenate([[0.0], np.cumsum(weights)])
    chosen = [0, last]
    while len(chosen) < count:  # halve the heaviest part that can be cut
        parts = [(mass[b] - mass[a], a, b) for a, b in pairwise(chosen) if b - a > 1]
        _, a, b = max(parts, key=lambda part: (part[0], -part[1]))
        middle = int(np.argmin(np.abs(mass[a + 1 : b] - 0.5 * (mass[a] + mass[b])))) + a + 1
        chosen = sorted([*chosen, middle])
    return keypoints[chosen]


def _categories_axis(curve: Floats, size: int, gaps: bool) -> tuple[InputMap, int]:
    """Categories in the order of their own effects, equal ones at the same place; others (missing,
    unseen) at a vertex of their own where there are `gaps`, otherwise where their effect puts them.
    """
    effects = curve[:-1]
    levels, rank = np.unique(effects, return_inverse=True)
    count = max(2, min(size, levels.size))
    positions = np.minimum(rank * ((count - 1) / max(1, levels.size - 1)), count - 1.0)
    if gaps:
        places = np.arange(effects.size, dtype=np.float64)
        return InputMap(places, positions.astype(np.float64), float(count)), count + 1
    elsewhere = (
        float(np.interp(curve[-1], levels, np.linspace(0.0, count - 1, levels.size)))
        if levels.size > 1
        else 0.0
    )
    return InputMap(
        np.arange(effects.size, dtype=np.float64), positions.astype(np.float64), elsewhere
    ), count


def _axis_apart(size: int) -> tuple[InputMap, int]:
    """Every category at a vertex of its own; others at the first one."""
    places = np.arange(size - 1, dtype=np.float64)
    return InputMap(places, places + 1.0, 0.0), size


def _common_unit_axis(plan: Plan, column: int, size: int, table: Floats) -> InputMap:
    """Straight, with one lattice unit worth the same amount for all columns that are compared with
    this one.
    """
    group = {column}
    while True:
        more = {
            c
            for bound in plan.shapes
            if bound.shape.axis_kind == "common unit" and group & set(bound.places)
            for c in bound.places
        } | group
        if more == group:
            break
        group = more
    width = max(_range(table[:, c])[1] - _range(table[:, c])[0] for c in group)
    low = _range(table[:, column])[0]
    return InputMap(
        np.array([low, low + (width if width > 0.0 else 1.0)]), np.array([0.0, size - 1.0]), 0.0
    )


def _range(values: Floats) -> tuple[float, float]:
    present = values[~np.isnan(values)]
    return (float(present.min()), float(present.max())) if present.size else (0.0, 1.0)


def _one_cell_axis(
    plan: Plan, column: int, values: Floats, weights: Floats, own: Term, curve: Floats
) -> InputMap:
    """From 0 to 1 along a whole column: straight where a rule is about amounts, otherwise bent as
    the column's own effect bends.
    """
    low, high = _range(values)
    if plan.has_axis_kind(column, "straight"):
        return InputMap(
            np.array([low, high if high > low else low + 1.0]), np.array([0.0, 1.0]), 0.5
        )
    keypoints = own.maps[0].keypoints
    if plan.without_curve(column):
        keypoints = _keypoints(plan, column, values, weights, plan.affordable(LIMITS.keypoints))
    if keypoints.size < 2:
        return InputMap(keypoints, np.zeros(1), 0.0)
    rank = np.linspace(0.0, 1.0, keypoints.size)
    free = column not in plan.monotonic and not any(column in bound.places for bound in plan.shapes)
    effect = curve[:-1] if curve.size == keypoints.size + 1 else rank
    if not free:
        ascending = np.maximum.accumulate(effect * (plan.monotonic.get(column) or 1))
        effect = ascending if column in plan.monotonic else rank
    spread = float(effect.max() - effect.min())
    shaped = (effect - effect.min()) / spread if spread > 0.0 else rank
    positions = shaped if free else 0.5 * (shaped + rank)
    return InputMap(keypoints, np.clip(positions, 0.0, 1.0), float(np.mean(positions)))
