"""Which terms a model has, found by fitting: curves first, then lattices where the fit leaves
something over, each time fitted together with all others (forward selection; Friedman 1991).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from lighttouch.constraints import LinearConstraints
from lighttouch.estimators import smoothing, structure
from lighttouch.estimators.costs import LIMITS
from lighttouch.estimators.examples import AnyExamples, Examples
from lighttouch.estimators.judged import Judged
from lighttouch.estimators.large_smoothing import choose_strengths
from lighttouch.estimators.model import AdditiveModel, Term, TermStore
from lighttouch.estimators.penalties import Key, Pair, Roughness, roughness_of
from lighttouch.estimators.smoothing import Smoothed
from lighttouch.estimators.structure import Gain, Leftover, Plan, Screen
from lighttouch.kernels.verbs.losses import LossRow
from lighttouch.projections import project
from lighttouch.running import OutOfTimeError, out_of_time

Floats = NDArray[np.float64]
Subset = tuple[int, ...]

CURVE_SWEEPS = 6
"""Steps of the strengths of curves alone. Tuning: measured once; with 3 as accurate, no faster."""

ROUND_SWEEPS = 2
"""Steps of the strengths after lattices were added. Tuning: not measured."""

LOOSER_SWEEPS = 5
"""Newton steps with less smoothing. Tuning: not measured."""

LAST_SWEEPS = 2
"""Steps of the strengths of all terms together, from those of the search. Tuning: not measured."""


@dataclass
class Growth:
    """What is known while a model grows."""

    plan: Plan
    examples: Examples  # those that it is looked for in
    row: LossRow | None
    given: Pair | None
    largest_gram: int
    rng: np.random.Generator
    trees_follow: bool = False
    """Whether trees may take what is left over; otherwise lattices are looked for longer, unless
    rows are few."""
    selects: bool = False
    """Whether columns whose curve explains next to nothing go without one."""
    own: list[Term] = field(default_factory=list)
    """Curves, of some columns or of all."""
    chosen: dict[Subset, float] = field(default_factory=dict)  # each with its worth
    strengths: dict[Key, float] = field(default_factory=dict)
    parameters: dict[Subset, Floats] = field(default_factory=dict)
    """The last fit of every term, by its columns."""
    keypoints: dict[int, int] = field(default_factory=dict)
    """Of every column's own curve, at most; columns that are not here have none."""
    known_curves: dict[tuple[int, int], Term] = field(default_factory=dict)
    """By column and keypoints: features of the same term are computed once."""
    held: dict[Subset, float] = field(default_factory=dict)
    """Degrees of freedom of every lattice in the last fit of the search."""
    cut_short: bool = False
    """Whether something was left out because the time was over."""
    rest: float = 0.0
    """Seconds that what follows the search will take, about."""
    lattices: dict[Subset, Term] = field(default_factory=dict)
    """Of the search: each keeps its size, so that what is known about it stays known."""
    apart: set[Subset] = field(default_factory=set)
    """Chosen pairs whose lattice has a vertex for every category."""
    refused: set[Subset] = field(default_factory=set)
    """Subsets whose lattice was smoothed away: they are not tried again."""
    promising: dict[int, set[Subset]] = field(default_factory=dict)
    """Subsets of each size that explained most when all of them were looked at."""
    curvature: Floats | None = None
    """Weights of the last Gram matrix of the search."""

    def over(self) -> bool:
        """Whether time is up, or the user has interrupted; what is then left out is noted."""
        self.cut_short = self.cut_short or out_of_time()
        return self.cut_short

    @cached_property
    def screen(self) -> Screen:
        return Screen(self.examples.signed_tables, self.examples.count, self.examples.source)

    @cached_property
    def store(self) -> TermStore:
        return TermStore(self.examples.signed_tables, self.examples.source)

    def forget(self) -> None:
        """Let go of what only the search needs: features of its rows, and their cells."""
        for kept in ("screen", "store"):
            self.__dict__.pop(kept, None)

    def search(self, model: AdditiveModel, sweeps: int) -> Smoothed:
        """A fit without rules to the examples in which the model is looked for."""
        if model.dimension > self.largest_gram:
            return self.fit(model, self.examples, sweeps)
        features = self.store.features(model)
        problem = self.examples.searched(features, self.row, self.curvature)
        found = self._smoothed(model, problem, 1.0, 1 if self.over() else sweeps, last=False)
        self.curvature = problem.last_curvature
        self.strengths |= found.roughness.known(found.strengths)
        self.begin_with(model, found.w)
        return found

    def leftover(self, model: AdditiveModel) -> Leftover:
        """What the last fit of a model's terms leaves over."""
        return self.examples.leftover(self.store.features(model), self.row, self.start(model))

    def knows_little(self, left: Leftover) -> bool:
        """Whether labels are hardly random: a likelihood of random ones knows little about them."""
        logistic = self.row is not None and self.row.name == "logistic"
        return logistic and smoothing.determined(left.residual, left.weights)

    def search_model(self) -> AdditiveModel:
        """Curves, and a lattice over every chosen subset."""
        new = {
            subset: worth for subset, worth in self.chosen.items() if subset not in self.lattices
        }
        if new:
            known = AdditiveModel(self.own + list(self.lattices.values())).dimension
            room = structure.room_while_searching(len(new), known)
            for term in self.model(self.examples, room, new).terms[len(self.own) :]:
                self.lattices[term.columns] = term
        return AdditiveModel(self.own + [self.lattices[subset] for subset in self.chosen])

    def fit(
        self, model: AdditiveModel, examples: AnyExamples, sweeps: int, last: bool = False
    ) -> Smoothed:
        """Without rules; what it finds is where the next fit begins."""
        if model.dimension > self.largest_gram:
            roughness = roughness_of(model, self.plan.categorical, examples.count)
            found = self._fit_large(model, examples, roughness)
        else:
            problem, share = examples.judged(model, self.row, self.rng)
            sweeps = 1 if self.over() else sweeps
            found = self._smoothed(model, problem, share, sweeps, last)
            logistic = self.row is not None and self.row.name == "logistic"
            if last and self.given is None and logistic and not self.over():
                found = smoothing.loosened(problem, found, LOOSER_SWEEPS, self.over)
            found = found.scaled(share)
        self.strengths |= found.roughness.known(found.strengths)
        self.begin_with(model, found.w)
        return found

    def _smoothed(
        self,
        model: AdditiveModel,
        problem: Judged,
        share: float,
        sweeps: int,
        last: bool,
    ) -> Smoothed:
        """`problem` holds a share of the examples."""
        count = problem.count / share
        roughness = roughness_of(model, self.plan.categorical, count)
        given = None if self.given is None else roughness.uniform(self.given)
        begin = roughness.begin(self.strengths) if given is None else given
        start = self.start(model)
        return smoothing.smooth(
            problem, roughness, begin / share, start, sweeps, given is None, last, self.over
        )

    def unfitted(self, model: AdditiveModel) -> Smoothed:
        """What is known of a model without another fit: the last fit of each of its terms."""
        roughness = roughness_of(model, self.plan.categorical, self.examples.count)
        given = None if self.given is None else roughness.uniform(self.given)
        strengths = roughness.begin(self.strengths) if given is None else given
        return Smoothed(self.start(model), roughness, strengths)

    def _fit_large(
        self, model: AdditiveModel, examples: AnyExamples, roughness: Roughness
    ) -> Smoothed:
        problem = examples.sampled_errors(model, self.rng)
        pair = self.given or choose_strengths(
            problem, roughness, any(not term.calibrator for term in model.terms)
        )
        strengths = roughness.uniform(pair)
        return Smoothed(problem.fit(roughness, pair)[0], roughness, strengths)

    def begin_with(self, model: AdditiveModel, w: Floats) -> None:
        """Fits begin with these parameters."""
        self.parameters = {(): w[:1]} | {
            term.columns: w[model.part(place)] for place, term in enumerate(model.terms)
        }

    def start(self, model: AdditiveModel) -> Floats:
        """The last parameters of every term; 0 where it is new."""
        w = np.zeros(model.dimension)
        w[:1] = self.parameters.get((), 0.0)
        for place, term in enumerate(model.terms):
            known = self.parameters.get(term.columns)
            if known is not None and known.size == term.size:
                w[model.part(place)] = known
        return w

    def has_room_apart(self, subset: Subset) -> bool:
        """Whether one more lattice with a vertex for every category may be taken."""
        pairs = [*self.apart, subset]
        levels = {column: 3 for pair in pairs for column in pair}
        sizes = [structure.sizes_apart(self.plan, pair, levels) for pair in pairs]
        return sum(math.prod(size) for size in sizes) <= LIMITS.most_apart

    def take_curves(self, keypoints: dict[int, int]) -> None:
        """Give these columns curves of at most so many keypoints, and others none."""
        self.keypoints = dict(sorted(keypoints.items()))
        new = {c: count for c, count in keypoints.items() if (c, count) not in self.known_curves}
        table, weights = self.examples.table, self.examples.table_weights
        for term in structure.calibrators(self.plan, table, weights, new):
            column = term.columns[0]
            self.known_curves[column, new[column]] = term
        self.own = [self.known_curves[each] for each in self.keypoints.items()]

    def with_all_curves(self, model: AdditiveModel) -> AdditiveModel:
        """The same, with a curve for every column that has none."""
        columns = range(len(self.plan.columns))
        none = [column for column in columns if model.calibrator_of(column) is None]
        if not none:
            return model
        wanted = dict.fromkeys(none, _enough_keypoints(self))
        table, weights = self.examples.table, self.examples.table_weights
        return AdditiveModel(
            [*model.terms, *structure.calibrators(self.plan, table, weights, wanted)]
        )

    def explained(self, left: Leftover) -> dict[int, float]:
        """What every column's own curve explains, in units of the noise of one example."""
        model = AdditiveModel(self.own)
        spreads = self.store.features(model).spreads(self.start(model), left.weights)
        unit = left.noise / self.examples.count
        return {
            term.columns[0]: float(spread / unit)
            for term, spread in zip(self.own, spreads, strict=True)
        }

    def curves(self) -> dict[int, tuple[Term, Floats]]:
        """Every column's own curve and its parameters, categories in the order that rules ask."""
        model = AdditiveModel(self.own)
        w = self.start(model)
        found = {
            term.columns[0]: (term, w[model.part(place)]) for place, term in enumerate(self.own)
        }
        for bound in self.plan.shapes:
            if bound.kind == "CategoryOrder" and bound.pairs:
                term, curve = found[bound.places[0]]
                found[bound.places[0]] = term, _ordered(curve, bound.pairs)
        return found

    def model(
        self, examples: AnyExamples, room: int, chosen: dict[Subset, float] | None = None
    ) -> AdditiveModel:
        """Curves, and lattices over the chosen subsets, as fine as there is room."""
        chosen = self.chosen if chosen is None else chosen
        if not chosen:
            return AdditiveModel(self.own)
        curves = self.curves()
        levels = {column: self._levels(column, *own) for column, own in curves.items()}
        apart = self.apart & chosen.keys()
        sizes = structure.lattice_sizes(
            self.plan, examples.count, chosen, levels, room, self.held, apart
        )
        table, weights = self.examples.table, self.examples.table_weights
        return AdditiveModel(
            self.own
            + [
                structure.lattice_term(
                    self.plan, subset, size, table, weights, curves, subset in apart
                )
                for subset, size in sizes
            ]
        )

    def _levels(self, column: int, own: Term, curve: Floats) -> int:
        if self.plan.columns[column].categorical:
            return int(np.unique(curve[:-1]).size)
        return LIMITS.finest if self.plan.without_curve(column) else own.grid[0]


def _ordered(curve: Floats, pairs: Sequence[tuple[int, int]]) -> Floats:
    """Effects of categories that obey the declared order, so that a lattice axis built from them
    can too.
    """
    A = sparse.lil_matrix((len(pairs), curve.size))
    for row, (low, high) in enumerate(pairs):
        A[row, low], A[row, high] = 1.0, -1.0
    return np.asarray(project(curve, LinearConstraints(A.tocsr(), np.zeros(len(pairs)))).w)


def grow(growth: Growth) -> None:
    """Curves as fine as the data ask, then lattices, from the first fit of curves."""
    plan = growth.plan
    growth.chosen = dict.fromkeys(structure.named_subsets(plan, growth.rng), 0.0)
    _select_curves(growth)
    limit = structure.most_subsets(plan, growth.trees_follow)
    if limit == 0 or len(plan.columns) < 2:
        return
    left = growth.leftover(AdditiveModel(growth.own))
    fitted, counted, exhausted = None, not isinstance(plan.lattices, str), None
    for sizes in ((2,),) if counted else _rounds(growth):
        more = {} if sizes == exhausted else _worth_adding(growth, left, sizes, limit, counted)
        found = _fitted_with(growth, more)
        if growth.over():
            return
        if found is None:
            exhausted = sizes
            continue
        fitted, left = found
        if not growth.knows_little(left):
            _drop_smoothed_away(growth, fitted)
            if not growth.chosen.keys() & more.keys():
                exhausted = sizes  # the next best explain less
    if fitted is not None and not growth.knows_little(left):
        _drop_smoothed_away(growth, fitted, last=True)
        growth.take_curves({column: growth.keypoints[column] for column in _busy(growth, left)})


def _rounds(growth: Growth) -> tuple[tuple[int, ...], ...]:
    alone = not growth.trees_follow and growth.examples.count >= LIMITS.rows_alone
    return LIMITS.rounds_alone if alone else LIMITS.rounds


def _fitted_with(growth: Growth, more: dict[Subset, float]) -> tuple[Smoothed, Leftover] | None:
    """The model with lattices over more subsets, fitted, and what it leaves over; None where there
    are none, or no time.
    """
    if not more or growth.over():
        return None
    before, growth.chosen = growth.chosen, growth.chosen | more
    without = {column for subset in more for column in subset} - growth.keypoints.keys()
    growth.take_curves(growth.keypoints | dict.fromkeys(without, _enough_keypoints(growth)))
    try:
        model = growth.search_model()
        fitted = growth.search(model, ROUND_SWEEPS)
    except OutOfTimeError:
        growth.cut_short, growth.chosen = True, before
        return None
    return fitted, growth.leftover(model)


def first_curves(growth: Growth) -> Smoothed:
    """A curve for every column: where columns are many, a coarse one."""
    columns = range(len(growth.plan.columns))
    growth.take_curves(dict.fromkeys(columns, _first_keypoints(growth)))
    return growth.search(AdditiveModel(growth.own), CURVE_SWEEPS)


def _first_keypoints(growth: Growth) -> int:
    """Of a curve: no more in all together than there are rows, or than are quickly fitted."""
    together = min(growth.examples.count, LIMITS.first_keypoints)
    share = int(together / len(growth.plan.columns))
    return growth.plan.keypoints or max(LIMITS.least_keypoints, min(LIMITS.keypoints, share))


def _enough_keypoints(growth: Growth) -> int:
    """Of a curve that stays."""
    return growth.plan.keypoints or max(LIMITS.enough_keypoints, _first_keypoints(growth))


def _select_curves(growth: Growth) -> None:
    """Curves for columns that explain something only, finer where what is left over asks for it."""
    if growth.over():
        return
    left = growth.leftover(AdditiveModel(growth.own))
    wanted = dict.fromkeys(_busy(growth, left), _enough_keypoints(growth))
    if growth.plan.keypoints is None:
        wanted |= _finer(growth, left)
    refined = not wanted.items() <= growth.keypoints.items()
    growth.take_curves(wanted)
    if refined:
        growth.search(AdditiveModel(growth.own), ROUND_SWEEPS)


def _busy(growth: Growth, left: Leftover) -> list[int]:
    """Columns whose curve explains something, or that must have one: those of rules and of
    lattices, and categories, which trees and lattices take in the order of their effects.
    """
    if not growth.selects or growth.knows_little(left):
        return list(growth.keypoints)
    needed = growth.plan.ruled.union(*growth.chosen)
    return [
        column
        for column, explained in growth.explained(left).items()
        if explained >= LIMITS.idle or column in needed or growth.plan.columns[column].categorical
    ]


def _finer(growth: Growth, left: Leftover) -> dict[int, int]:
    """Keypoints of curves whose columns explain something of what is left over: few of them find
    weak smooth shapes, many of them steps.
    """
    first, enough = _first_keypoints(growth), _enough_keypoints(growth)
    fine = int(min(LIMITS.fine_keypoints, growth.examples.count / LIMITS.rows_per_keypoint))
    found = dict.fromkeys(_asking(growth, left, enough) if enough > first else [], enough)
    asking = _asking(growth, left, fine) if fine > first else []
    others = sum(term.size for term in growth.own if term.columns[0] not in asking)
    share = (LIMITS.finer_keypoints - others) // max(1, len(asking))
    return found | dict.fromkeys(asking, max(enough, min(fine, share)))


def _asking(growth: Growth, left: Leftover, count: int) -> list[int]:
    """Columns that ask for a curve of so many keypoints."""
    gains = growth.screen.curve_gains(count, left, _first_keypoints(growth))
    return [column for column, gain in enumerate(gains) if gain.significance() > 1.0]


def _worth_adding(
    growth: Growth, left: Leftover, sizes: tuple[int, ...], limit: int, counted: bool
) -> dict[Subset, float]:
    """Subsets of so many columns that explain most of what is left over, each column once, so that
    the same interaction is not bought twice under the names of columns that go together. One that
    explains less than a part of it is left out.
    """
    room = limit - len(growth.chosen)
    if room <= 0 or growth.over():
        return {}
    gains: dict[Subset, Gain] = {}
    for size in sizes:
        if size <= growth.plan.columns_together:
            gains |= _gains(growth, left, size)
    worthy = [each for each in gains.items() if counted or each[1].worth > 0.0]
    ranked = [
        (subset, gain)
        for subset, gain in sorted(worthy, key=lambda each: (-each[1].worth, each[0]))
        if gain.worth > _worth_within(subset, gains)
    ]
    found: dict[Subset, float] = {}
    least = LIMITS.comparable * ranked[0][1].worth if ranked else 0.0
    for subset, best in ranked:
        gain = best
        if best.shared is not None and not growth.has_room_apart(subset):
            gain = best.shared
        significant = gain.significance(len(gains)) > 1.0 and gain.worth > least
        if len(found) >= room or not (counted or (significant and not _shares(subset, found))):
            continue
        if gain.shared is not None:
            growth.apart.add(subset)
        found[subset] = max(gain.worth, 1.0) if counted else gain.worth
    return found


def _worth_within(subset: Subset, gains: dict[Subset, Gain]) -> float:
    """The largest worth of the subsets with one column less, as far as it is known."""
    smaller = (gains.get(each) for each in combinations(subset, len(subset) - 1))
    return max((gain.worth for gain in smaller if gain is not None), default=-math.inf)


def _gains(growth: Growth, left: Leftover, size: int) -> dict[Subset, Gain]:
    """What subsets of so many columns explain of what is left over; after the first time, those
    that explained most then.
    """
    columns = growth.screen.varying(max(LIMITS.grids[min(size, 4)]))
    candidates = structure.candidates(growth.plan, columns, size, growth.chosen, growth.refused)
    if size in growth.promising:
        candidates = [subset for subset in candidates if subset in growth.promising[size]]
    gains = growth.screen.gains(candidates, LIMITS.grids[min(size, 4)], left, growth.over)
    if size == 2:
        gains = _with_slopes(growth, left, gains)
    best = sorted(gains, key=lambda subset: (-gains[subset].worth, subset))[: LIMITS.promising]
    growth.promising.setdefault(size, set(best))
    return gains


def _with_slopes(growth: Growth, left: Leftover, gains: dict[Subset, Gain]) -> dict[Subset, Gain]:
    """The same, where slopes of categories are worth more than a lattice in the order of their
    effects (random slopes; Laird and Ware 1982).
    """
    pairs: dict[int, list[Subset]] = {}
    crowded = any(map(growth.plan.shares_vertices, range(len(growth.plan.columns))))
    for pair in gains if crowded and growth.screen.one_table else ():
        many = structure.column_apart(growth.plan, pair)
        if many is not None:
            pairs.setdefault(many, []).append(pair)
    found: dict[Subset, Gain] = {}
    for many, each in pairs.items():
        others = [column for pair in each for column in pair if column != many]
        found |= growth.screen.gains_apart(many, growth.plan.kinds(many), others, left)
        if growth.over():
            return gains
    better = {
        pair: replace(gain, shared=gains[pair])
        for pair, gain in found.items()
        if gain.worth > max(0.0, gains[pair].worth)
    }
    return gains | better


def _shares(subset: Subset, others: Iterable[Subset]) -> bool:
    """Whether the subset has more than one column in common with one of the others, or any where
    it has two.
    """
    common = len(subset) - 1
    return any(len(set(subset) & set(other)) >= common for other in others)


def _drop_smoothed_away(growth: Growth, fitted: Smoothed, last: bool = False) -> None:
    """Lattices that the data do not ask for leave the model; until the last fit only those that
    are clearly so, and smoothed more than at first: others may hold more in the next one.
    """
    if fitted.terms is None:
        return
    needed = set(structure.named_subsets(growth.plan, growth.rng))
    found = zip(fitted.roughness.penalties, fitted.terms, fitted.strengths, strict=True)
    for penalty, held, strength in found:
        subset = penalty.key[0]
        if not penalty.lattice:
            continue
        growth.held[subset] = float(held)
        going = last or (strength > penalty.first and held < LIMITS.clearly_held)
        if held < LIMITS.held and going and subset not in needed:
            growth.chosen.pop(subset, None)
            growth.apart.discard(subset)
            growth.refused.add(subset)
