"""From a checked plan and examples to a model whose parameters obey every rule."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from lighttouch.constraints import LinearConstraints
from lighttouch.errors import InfeasibleConstraintsError
from lighttouch.estimators import smoothing, structure
from lighttouch.estimators.feasible_rounding import exactly_feasible
from lighttouch.estimators.model import AdditiveModel
from lighttouch.estimators.outputs import ONE_SCORE, Outputs, ScoreProblem
from lighttouch.estimators.proof import ConstraintReport, make_report
from lighttouch.estimators.rules import RuleRows, all_rules, stacked
from lighttouch.estimators.structure import Plan
from lighttouch.estimators.training import COSTS, Settings, train, train_without_rules
from lighttouch.objectives import EmpiricalRisk
from lighttouch.projections import project
from lighttouch.result import Result
from lighttouch.solvers.quadratic_steps import gram

Floats = NDArray[np.float64]
Strengths = tuple[float, float]


@dataclass(frozen=True)
class Examples:
    """Tables that enter the predictions with a sign: one, or better minus worse; targets in
    training units.
    """

    signed_tables: list[tuple[Floats, float]]
    y: Floats
    weights: Floats  # adding up to 1
    scale: float = 1.0  # one training unit in the user's units
    shift: float = 0.0
    independent: int | None = None  # how many of them tell something of their own; None: all
    source: tuple[Floats, list[NDArray[np.int64]]] | None = (
        None  # the rows that the signed tables repeat, and which each takes
    )
    offset: Floats | None = None  # what is added to the scores: the logarithm of the exposure
    nearby: tuple[Floats, Floats] | None = None
    """Targets and weights of squared errors that stand for the loss while the structure is chosen;
    None for y and its weights."""
    outputs: Outputs = ONE_SCORE
    _known: dict[int, tuple[AdditiveModel, Any]] = field(
        default_factory=dict, compare=False, repr=False
    )

    @property
    def count(self) -> int:
        """For deciding how much can be learnt. Rows without weight do not count, and pairs of the
        same rows are not so many examples.
        """
        weighted = int(np.count_nonzero(self.weights))
        return weighted if self.independent is None else min(weighted, self.independent)

    def features(self, model: AdditiveModel) -> sparse.csr_matrix:
        """One row an example; kept for the model asked about last."""
        if id(model) not in self._known:
            self._known.clear()
            self._known[id(model)] = (model, self._new_features(model))
        return self._known[id(model)][1]

    def _new_features(self, model: AdditiveModel) -> sparse.csr_matrix:
        if self.source is None:
            parts = [sign * model.features(table) for table, sign in self.signed_tables]
        else:
            once = model.features(self.source[0])
            parts = [
                sign * once[rows]
                for rows, (_, sign) in zip(self.source[1], self.signed_tables, strict=True)
            ]
        total = parts[0] if len(parts) == 1 else sparse.csr_matrix(sum(parts[1:], parts[0]))
        total.sort_indices()
        return total

    @property
    def squares(self) -> tuple[Floats, Floats]:
        """Targets and weights of the squared errors by which the structure is chosen."""
        return (self.y, self.weights) if self.nearby is None else self.nearby

    @cached_property
    def table(self) -> Floats:
        return (
            np.vstack([table for table, _ in self.signed_tables])
            if self.source is None
            else self.source[0]
        )

    @cached_property
    def table_weights(self) -> Floats:
        if self.source is None:
            return np.concatenate([self.weights] * len(self.signed_tables))
        count = self.source[0].shape[0]
        return np.asarray(
            sum(np.bincount(rows, self.weights, minlength=count) for rows in self.source[1]),
            dtype=np.float64,
        )


@dataclass(frozen=True)
class Smoothed:
    """Parameters without rules for squared errors, their roughness and how strongly it counts."""

    w: Floats
    roughness: smoothing.Roughness
    strengths: Strengths


@dataclass(frozen=True)
class Fitted:
    """A model, its parameters in the user's units, how training ended, and the proof."""

    model: AdditiveModel
    w: Floats
    report: ConstraintReport
    result: Result
    smoothing: Strengths


@dataclass(frozen=True)
class Earlier:
    """A fitted model to start from, its parameters in the user's units."""

    model: AdditiveModel
    w: Floats
    smoothing: Strengths


def fit(
    plan: Plan,
    examples: Examples,
    settings: Settings,
    wanted: Any,
    canonical: Callable[[AdditiveModel], list[RuleRows]] | None = None,
    earlier: Earlier | None = None,
) -> Fitted:
    """Calibrators first, to find where columns interact; then everything together, under the rules.

    `wanted` is the smoothing that the user asked for; `canonical(model)` gives the rules that come
    from canonical examples. With an `earlier` model its terms are taken, and nothing is chosen.
    """
    given = smoothing.read_strengths(wanted)
    if earlier is not None:
        model = earlier.model
        roughness = smoothing.roughness_of(model, plan.categorical, examples.count)
        start = (earlier.w - _lift(earlier.w.size, model, examples)) / examples.scale
        first = Smoothed(start, roughness, given or earlier.smoothing)
        return _fit_under_rules(model, _rules(plan, model, canonical), examples, settings, first)
    table, weights = examples.table, examples.table_weights
    own = structure.calibrators(plan, table, weights)
    additive = AdditiveModel(own)
    first = _least_squares(plan, additive, examples, given, None, settings.rng)
    chosen = _choose_subsets(plan, additive, first.w, examples, settings.rng)
    curves = {piece.columns[0]: first.w[additive.part(place)] for place, piece in enumerate(own)}
    _keep_category_orders(plan, curves)
    sizes = structure.lattice_sizes(plan, examples.count, chosen)
    lattices = [
        structure.lattice_term(plan, subset, size, table, weights, curves) for subset, size in sizes
    ]
    model = AdditiveModel(own + lattices)
    if lattices:
        known = first.strengths[0]
        first = _least_squares(plan, model, examples, given, known, settings.rng)
    return _fit_under_rules(model, _rules(plan, model, canonical), examples, settings, first)


def _rules(
    plan: Plan, model: AdditiveModel, canonical: Callable[[AdditiveModel], list[RuleRows]] | None
) -> list[RuleRows]:
    return all_rules(model, plan.columns.names, plan.monotonic, plan.shapes) + (
        canonical(model) if canonical else []
    )


def _least_squares(
    plan: Plan,
    model: AdditiveModel,
    examples: Examples,
    given: Strengths | None,
    known: float | None,
    rng: np.random.Generator,
) -> Smoothed:
    """`known` is the strength for calibrators, where it is known already."""
    problem = _squared_errors(model, examples, rng)
    roughness = smoothing.roughness_of(model, plan.categorical, examples.count)
    strengths = given or smoothing.choose(problem, roughness, known)
    return Smoothed(problem.fit(roughness, strengths)[0], roughness, strengths)


def _squared_errors(
    model: AdditiveModel, examples: Examples, rng: np.random.Generator
) -> smoothing.SquaredErrors:
    dense = model.dimension <= COSTS.largest_gram
    features = examples.features(model)
    targets, shares = examples.squares
    rows = smoothing.judged_rows(features, shares, dense, rng)
    features, y, weights = features[rows], targets[rows], shares[rows]
    weights = weights if y.size == examples.y.size else weights / weights.sum()
    share = y.size / examples.y.size
    if not dense:
        return smoothing.SampledErrors(features, y, weights, examples.count, share)
    moment = np.asarray(features.T @ (weights * y))
    G = gram(features, weights)
    if len(examples.signed_tables) > 1:
        G[0, 0] = 1.0  # the intercept of differences is nothing; keep the matrix definite
    energy = float(weights @ np.square(y))
    return smoothing.GramErrors(G, moment, energy, examples.count, share)


def _choose_subsets(
    plan: Plan, additive: AdditiveModel, w: Floats, examples: Examples, rng: np.random.Generator
) -> list[tuple[tuple[int, ...], float]]:
    """Column subsets, each with how much it promises."""
    screen = (
        len(plan.columns) > 1
        and not plan.single
        and (isinstance(plan.lattices, str) or np.isscalar(plan.lattices))
    )
    gains = {}
    if screen and plan.lattices != 0:
        targets, shares = examples.squares
        residual = targets - examples.features(additive) @ w
        gains = structure.interaction_gains(
            plan, examples.signed_tables, residual, shares, examples.count
        )
    return structure.promises(structure.subsets(plan, gains, rng), gains)


def _keep_category_orders(plan: Plan, curves: dict[int, Floats]) -> None:
    """Effects of categories that obey the declared order, so that a lattice axis built from them
    can too.
    """
    for bound in plan.shapes:
        if bound.kind == "CategoryOrder" and bound.pairs:
            (column,) = bound.places
            count = curves[column].size
            A = sparse.csr_matrix((len(bound.pairs), count)).tolil()
            for row, (low, high) in enumerate(bound.pairs):
                A[row, low], A[row, high] = 1.0, -1.0
            curves[column] = project(
                curves[column], LinearConstraints(A.tocsr(), np.zeros(len(bound.pairs)))
            ).w


def _fit_under_rules(
    model: AdditiveModel,
    rules: list[RuleRows],
    examples: Examples,
    settings: Settings,
    smoothed: Smoothed,
) -> Fitted:
    one = ScoreProblem(
        examples.features(model),
        examples.y,
        examples.weights,
        examples.offset,
        settings.loss,
        smoothed.roughness.rows(smoothed.strengths),
        smoothed.w,
    )
    objective, start = examples.outputs.problem(one)
    rules = examples.outputs.rules(rules, model.dimension)
    everything = stacked(rules, objective.dimension)
    lift = _lift(objective.dimension, model, examples)
    try:
        wanted = _in_training_units(everything, lift, examples.scale)
        result = train(objective, wanted, start, settings)
        w = result.w * examples.scale + lift
        for scores in examples.outputs.scores(w, model.dimension):
            _unseen_missing(model, scores, examples.table, examples.table_weights)
        w, _ = exactly_feasible(w, everything)
    except InfeasibleConstraintsError as error:
        raise named(error, rules) from None
    report = _report(objective, rules, result, w, lift, examples.scale, settings)
    return Fitted(model, w, report, result, smoothed.strengths)


def _lift(dimension: int, model: AdditiveModel, examples: Examples) -> Floats:
    """The user's w is scale * w + lift: the targets' origin lies in the intercepts."""
    lift = np.zeros(dimension)
    lift[examples.outputs.intercepts(model.dimension)] = examples.shift
    return lift


def _in_training_units(rules: LinearConstraints, lift: Floats, scale: float) -> LinearConstraints:
    if rules.count == 0:
        return rules
    right = (rules.b - np.asarray(rules.A @ lift)) / scale
    return LinearConstraints(rules.A, right, nested=rules.nested, copy=False)


def _unseen_missing(model: AdditiveModel, w: Floats, table: Floats, weights: Floats) -> None:
    """A column without missing cells in training: a missing cell later on counts as the column's
    average effect. Changes w.
    """
    for place, piece in enumerate(model.terms):
        if piece.calibrator and not np.isnan(table[:, piece.columns[0]]).any():
            effect = piece.evaluate(table, w[model.part(place)])
            w[model.part(place)][-1] = float(np.average(effect, weights=weights))


def _report(
    objective: EmpiricalRisk,
    rules: list[RuleRows],
    result: Result,
    w: Floats,
    lift: Floats,
    scale: float,
    settings: Settings,
) -> ConstraintReport:
    """What the rules cost: the objective with them and without them."""
    with_rules = objective.value((w - lift) / scale)
    if not sum(rule.count for rule in rules):
        return make_report(rules, w, with_rules, with_rules)
    free = train_without_rules(objective, result, settings)
    if free is None:
        return make_report(rules, w, with_rules, None)
    without = min(free.objective, with_rules)
    return make_report(rules, w, with_rules, without, free.w * scale + lift)


def named(error: InfeasibleConstraintsError, rules: list[RuleRows]) -> InfeasibleConstraintsError:
    """The same error with the rules' names in place of row numbers."""
    ends = np.cumsum([rule.count for rule in rules])
    culprits = list(
        dict.fromkeys(
            rules[int(np.searchsorted(ends, row, side="right"))].label
            for row in error.rows
            if row < ends[-1]
        )
    )
    told = (
        f"the rules contradict each other: {'; '.join(culprits)}. Drop or relax one of them"
        if culprits
        else str(error)
    )
    return InfeasibleConstraintsError(told, error.rows)
