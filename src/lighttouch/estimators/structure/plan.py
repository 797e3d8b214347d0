"""The plan that the structure of a model is made from: what the user asked for, which columns share
a lattice, and how fine each lattice is.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from lighttouch.errors import ConstraintError
from lighttouch.estimators.rules.base import AxisKind, BoundShape
from lighttouch.estimators.structure.limits import LIMITS
from lighttouch.estimators.tables import Columns, Name
from lighttouch.validation import positive_int

Subset = tuple[int, ...]


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
    plan: Plan, size: int, chosen: Iterable[Subset], refused: Iterable[Subset] = ()
) -> list[Subset]:
    """Subsets of so many columns that may share a lattice: all of them, or, where they are too
    many, those that extend a chosen one; none that is chosen or was refused.
    """
    columns = range(len(plan.columns))
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


def rows_to_search(columns: int) -> int:
    """On how many rows a model of a table of so many columns is looked for."""
    wanted = LIMITS.searched_cells // columns
    return max(LIMITS.least_searched, min(LIMITS.searched, wanted))


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


def lattice_sizes(
    plan: Plan,
    examples: float,
    chosen: dict[Subset, float],
    levels: list[int],
    room: int,
    held: dict[Subset, float],
) -> list[tuple[Subset, tuple[int, ...]]]:
    """Vertices along each axis: finer with more examples and where a subset is worth more, as long
    as all of them have room; never more than a column has levels, or than the degrees of freedom
    that a coarser fit `held` ask for.
    """
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


def _sizes(plan: Plan, subset: Subset, cells: float, levels: list[int]) -> tuple[int, ...]:
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
