"""From a checked plan and examples to a model whose parameters obey every rule."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lighttouch.checkpoints import ambient
from lighttouch.constraints import LinearConstraints
from lighttouch.errors import InfeasibleConstraintsError
from lighttouch.estimators import structure
from lighttouch.estimators.costs import PULL
from lighttouch.estimators.examples import AnyExamples, Examples
from lighttouch.estimators.growing import LAST_SWEEPS, Growth, first_curves, grow
from lighttouch.estimators.model import AdditiveModel
from lighttouch.estimators.outputs import OneScore
from lighttouch.estimators.penalties import read_strengths
from lighttouch.estimators.proof import ConstraintReport, checked_again, make_report
from lighttouch.estimators.rules import RuleRows, all_rules, stacked
from lighttouch.estimators.rules.rows import Moves, moves_of, no_moves
from lighttouch.estimators.smoothing import Smoothed
from lighttouch.estimators.structure import Plan
from lighttouch.estimators.training import (
    COSTS,
    NORMAL,
    Risk,
    Settings,
    ending,
    exactly_feasible,
    has_ended,
    solver_for,
    train,
    train_without_rules,
)
from lighttouch.estimators.trees import Trees, WithoutTrees, can_have_trees, grown_on_all
from lighttouch.kernels.verbs.losses import LossRow
from lighttouch.losses import loss_of
from lighttouch.objectives import FactoredSquares
from lighttouch.result import Result, Status
from lighttouch.running import OutOfTimeError, Stopwatch, check_deadline, prepared
from lighttouch.solvers import QuadraticSteps
from lighttouch.solvers.quadratic_steps import NEAR, SQUARES

Floats = NDArray[np.float64]
Strengths = tuple[float, float]

__all__ = ["Earlier", "Examples", "Fitted", "fit", "named"]


@dataclass(frozen=True)
class Fitted:
    """A model, its parameters in the user's units, the rules about them, how training ended, and
    the proof.
    """

    model: AdditiveModel
    w: Floats
    rows: LinearConstraints
    report: ConstraintReport
    result: Result
    smoothing: Strengths
    trees: Trees | None = None


@dataclass(frozen=True)
class Earlier:
    """A fitted model to start from, its parameters in the user's units."""

    model: AdditiveModel
    w: Floats


def fit(
    plan: Plan,
    examples: AnyExamples,
    settings: Settings,
    wanted: Any,
    canonical: Callable[[AdditiveModel], list[RuleRows]] | None = None,
    earlier: Earlier | None = None,
) -> Fitted:
    """Calibrators first, to find where columns interact; then everything together, under the rules.
    What is chosen is chosen on a part of the examples, what is trained is trained on all; on that
    part where the time limit leaves no time for more.

    `wanted` is the smoothing that the user asked for; `canonical(model)` gives the rules that come
    from canonical examples. With an `earlier` model its terms are taken, and nothing is chosen.
    """
    rows = structure.rows_to_search(len(plan.columns), loss_of(settings.loss).labelled)
    growth = Growth(
        plan,
        examples.some(rows, settings.rng),
        None if examples.stands_for_another else _smooth_loss(settings),
        read_strengths(wanted),
        COSTS.largest_gram,
        settings.rng,
        canonical is None and can_have_trees(plan, examples, loss_of(settings.loss)),
        canonical is None and plan.wide and _searched_as_trained(examples, settings),
    )
    model, smoothed = (
        _found(growth, examples, settings)
        if earlier is None
        else _from_earlier(growth, earlier, examples, settings)
    )
    growth.forget()
    rules = all_rules(model, plan.columns.names, plan.monotonic, plan.shapes) + (
        canonical(model) if canonical else []
    )
    cut_short = settings.ending_so_far  # then training converges on what was found until then
    if growth.cut_short and cut_short is None:
        cut_short = Status.TIME_LIMIT
    moves = (
        no_moves(model.dimension)
        if settings.over
        else moves_of(model, plan.ruled, plan.categorical)
    )
    share = _share_in_time(growth, settings, smoothed)
    if share < 1.0:
        examples = examples.fewer(share, growth.examples, settings.rng)
        smoothed = replace(smoothed, squares=None, near=None, minimum=False)  # they are of all
        cut_short = cut_short or Status.TIME_LIMIT
    file = ambient()
    if cut_short is not None and file is not None:
        file.leave_off()
    objective, moves = _objective(model, moves, examples, settings, smoothed)
    asked_again = growth.trees_follow and grown_on_all(examples)
    if isinstance(objective, FactoredSquares) and not asked_again:  # it says as much as they do
        examples.forget()
        smoothed = replace(smoothed, squares=None)
    fitted = _fit_under_rules(
        model, rules, moves, examples, growth.examples, objective, settings, smoothed
    )
    trees_follow, given = growth.trees_follow, growth.given
    del growth, objective  # with a copy of the rows that were searched, and with sums
    if not asked_again:  # nothing else asks about all of them
        examples.forget()
        smoothed = replace(smoothed, squares=None, near=None)
    whole = cut_short is None and has_ended(ending(fitted.result))
    if whole and trees_follow and not settings.over:
        try:
            with settings.limited():
                fitted = _with_trees(fitted, plan, rules, smoothed, examples, settings)
        except OutOfTimeError:
            cut_short = settings.ending_so_far or Status.TIME_LIMIT
    if cut_short is not None:
        fitted = replace(fitted, result=replace(fitted.result, status=cut_short))
    return fitted if given is None else replace(fitted, smoothing=given)


def _with_trees(
    fitted: Fitted,
    plan: Plan,
    rules: list[RuleRows],
    smoothed: Smoothed,
    examples: AnyExamples,
    settings: Settings,
) -> Fitted:
    """The model with trees, where held-out rows ask for some; its rules are checked again."""
    smooth = WithoutTrees(plan, fitted.model, fitted.w, fitted.rows, smoothed, examples)
    w, trees = smooth.with_trees(loss_of(settings.loss), settings.rng)
    return replace(fitted, w=w, trees=trees, report=checked_again(fitted.report, rules, w))


def _share_in_time(growth: Growth, settings: Settings, smoothed: Smoothed) -> float:
    """The share of the examples that can be trained on until the time limit."""
    summed = smoothed.squares is not None and not growth.cut_short  # training reads sums only
    if summed or settings.left >= growth.rest:
        return 1.0
    if settings.left <= 0.0:
        return 0.0
    return COSTS.surely_in_time * settings.left / growth.rest


def _found(
    growth: Growth, examples: AnyExamples, settings: Settings
) -> tuple[AdditiveModel, Smoothed]:
    """The model that the examples ask for, as far as there is time to look for it, and its fit
    without rules.
    """
    try:
        with settings.limited():
            clock = Stopwatch()
            curves = first_curves(growth)
        growth.rest = clock.seconds * _later_work(curves.w.size, growth, examples, settings)
        with settings.limited(kept=growth.rest):
            grow(growth)
            check_deadline()
            room = structure.room_for(examples.count, AdditiveModel(growth.own).dimension)
            model = growth.model(examples, room)
            growth.forget()
            smoothed = growth.fit(model, examples, LAST_SWEEPS, last=True)
            if loss_of(settings.loss).name == "quantile" and growth.given is None:
                smoothed = _smooth_enough_for_spread(growth, model, examples, smoothed)
    except OutOfTimeError:
        growth.cut_short = True
        model = growth.search_model()
        smoothed = growth.unfitted(model)
    return model, smoothed


def _later_work(dimension: int, growth: Growth, examples: AnyExamples, settings: Settings) -> float:
    """What follows the search for terms, in units of the first fit of curves."""
    share = growth.examples.size / examples.size
    scores = examples.outputs.size(dimension) / dimension
    each = COSTS.rest_of_kinks if loss_of(settings.loss).kinked else COSTS.rest
    return each * scores / share


def _from_earlier(
    growth: Growth, earlier: Earlier, examples: AnyExamples, settings: Settings
) -> tuple[AdditiveModel, Smoothed]:
    """The terms and the parameters of an earlier model, smoothed as these examples ask. Columns
    that had no curve of their own have one that begins at 0: they may matter now.
    """
    lift = _lift(earlier.w.size, earlier.model, examples)
    growth.begin_with(earlier.model, (earlier.w - lift) / examples.scale)
    model = growth.with_all_curves(earlier.model)
    start = growth.start(model)
    try:
        with settings.limited():
            check_deadline()
            smoothed = growth.fit(model, examples, LAST_SWEEPS)
    except OutOfTimeError:
        growth.cut_short = True
        smoothed = growth.unfitted(model)
    return model, replace(smoothed, w=start, minimum=False)


def _smooth_enough_for_spread(
    growth: Growth, model: AdditiveModel, examples: AnyExamples, smoothed: Smoothed
) -> Smoothed:
    """Quantiles also follow how the targets spread: no term is smoothed more than for the sizes of
    what the means leave over.
    """
    if model.dimension > COSTS.largest_gram:
        return smoothed
    other = growth.fit(model, examples.spread(model, smoothed.w), LAST_SWEEPS)
    strengths = np.minimum(smoothed.strengths, other.strengths)
    return replace(smoothed, strengths=strengths, minimum=False)


def _smooth_loss(settings: Settings) -> LossRow | None:
    """The loss on which smoothing is chosen: the one that is trained where it is smooth, otherwise
    squared errors (None).
    """
    row = loss_of(settings.loss)
    own = not row.kinked and row.users is None and np.ndim(row.level) == 0
    return row if own and row.name != "squared" else None


def _searched_as_trained(examples: AnyExamples, settings: Settings) -> bool:
    """Whether the loss that is trained decides what the search finds: then what is idle there has
    no other use.
    """
    smooth = _smooth_loss(settings) is not None or loss_of(settings.loss).name == "squared"
    return smooth and not examples.stands_for_another and isinstance(examples.outputs, OneScore)


def _fit_under_rules(
    model: AdditiveModel,
    rules: list[RuleRows],
    moves: Moves,
    examples: AnyExamples,
    some: Examples,
    objective: Risk,
    settings: Settings,
    smoothed: Smoothed,
) -> Fitted:
    """`some` examples give the point to start from."""
    outputs = examples.outputs
    start = outputs.start(lambda: some.score_problem(model, settings.loss), smoothed.w)
    own = type(outputs) is OneScore and smoothed.share == 1.0
    squares, near = smoothed.squares, smoothed.near
    if own and squares is not None and not isinstance(objective, FactoredSquares):
        prepared(objective, SQUARES, lambda: squares)
    if own and near is not None:
        prepared(objective, NEAR, lambda: (moves.with_none(near[0]), near[1]))
    rules = outputs.rules(rules, model.dimension)
    lift = _lift(objective.dimension, model, examples)
    try:
        rows = stacked(rules, objective.dimension - moves.count)
        wanted = _in_training_units(moves.rules(rows), lift, examples.scale)
        result = train(objective, wanted, moves.with_none(start), settings)
        w = moves.kept(result.w * examples.scale + lift)
        averaged = some if settings.over else examples
        _unseen_missing(model, outputs.scores(w, model.dimension), averaged)
        w, _ = exactly_feasible(w, rows)
    except InfeasibleConstraintsError as error:
        raise named(error, rules) from None
    known = smoothed.minimum and smoothed.terms is not None
    exact = own and known and not loss_of(settings.loss).kinked
    free = moves.with_none(smoothed.w) if exact else None

    def kept(trained: Floats) -> Floats:
        return moves.kept(trained * examples.scale + lift)

    report = _report(objective, rules, result, w, kept, settings, free)
    typical = smoothed.roughness.typical(smoothed.strengths)
    ended = replace(result, state=None)  # which holds the features of all examples
    return Fitted(model, w, rows, report, ended, typical)


def _objective(
    model: AdditiveModel,
    moves: Moves,
    examples: AnyExamples,
    settings: Settings,
    smoothed: Smoothed,
) -> tuple[Risk, Moves]:
    """What is trained, with the moves; without them where there are several scores, whose order is
    asked of every parameter, or where training with them would not be by quadratic steps.
    """
    if not examples.outputs.single or model.dimension + moves.count > COSTS.largest_gram:
        moves = no_moves(model.dimension)
    D, pull = smoothed.rows, PULL
    objective = examples.objective(model, settings.loss, moves.roughness(D), pull)
    if moves.count and not isinstance(solver_for(objective, settings.tolerance), QuadraticSteps):
        return examples.objective(model, settings.loss, D, pull), no_moves(model.dimension)
    return objective, moves


def _lift(dimension: int, model: AdditiveModel, examples: AnyExamples) -> Floats:
    """The user's w is scale * w + lift: the targets' origin lies in the intercepts."""
    lift = np.zeros(dimension)
    lift[examples.outputs.intercepts(model.dimension)] = examples.shift
    return lift


def _in_training_units(rules: LinearConstraints, lift: Floats, scale: float) -> LinearConstraints:
    if rules.count == 0:
        return rules
    right = (rules.b - np.asarray(rules.A @ lift)) / scale
    return LinearConstraints(rules.A, right, nested=rules.nested, copy=False)


def _unseen_missing(model: AdditiveModel, scores: list[Floats], examples: AnyExamples) -> None:
    """A column without missing cells in training: a missing cell later on counts as the column's
    average effect. Changes the scores' parameters.
    """
    for w, averages in zip(scores, examples.average_effects(model, scores), strict=True):
        for place, average in enumerate(averages):
            if not np.isnan(average):
                w[model.part(place)][-1] = average


def _report(
    objective: Risk,
    rules: list[RuleRows],
    result: Result,
    w: Floats,
    kept: Callable[[Floats], Floats],
    settings: Settings,
    free: Floats | None,
) -> ConstraintReport:
    """What the rules cost: the objective with them and without them; `free` are the parameters
    without rules where they are known, and `kept` makes of trained parameters those of the model.
    """
    with_rules = objective.value(result.w)
    if not sum(rule.count for rule in rules):
        return make_report(rules, w, with_rules, with_rules)
    if free is None or ending(result) not in NORMAL:
        trained = train_without_rules(objective, result, settings)
        if trained is None:
            return make_report(rules, w, with_rules, None)
        free = trained.w
    without = min(objective.value(free), with_rules)
    return make_report(rules, w, with_rules, without, kept(free))


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
