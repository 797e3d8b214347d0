"""From a checked plan and examples to a model whose parameters obey every rule."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from lighttouch.constraints import LinearConstraints
from lighttouch.errors import InfeasibleConstraintsError
from lighttouch.estimators import smoothing
from lighttouch.estimators import structure as planning
from lighttouch.estimators.blocks import (
    LARGEST_FACTORED,
    BlockTrainer,
    Deadline,
    Penalised,
    Trained,
    gram,
)
from lighttouch.estimators.exact import exactly_feasible
from lighttouch.estimators.losses import PointLoss
from lighttouch.estimators.model import AdditiveModel as PieceModel
from lighttouch.estimators.proof import ConstraintReport, make_report
from lighttouch.estimators.rules import RuleRows, all_rules, stacked
from lighttouch.estimators.smoothing import SquaredProblem
from lighttouch.estimators.structure import Plan
from lighttouch.objectives import EmpiricalRisk
from lighttouch.problem import Problem
from lighttouch.projections import project
from lighttouch.result import History
from lighttouch.solve import solve

Floats = NDArray[np.float64]
# entries of a feature matrix; beyond it models too large for a factor are trained by `lt.solve`
LARGEST_PASS = 5_000_000


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
    _known: dict[int, tuple[PieceModel, Any]] = field(
        default_factory=dict, compare=False, repr=False
    )

    @property
    def count(self) -> int:
        """For deciding how much can be learnt: pairs of the same rows are not so many examples."""
        return self.y.size if self.independent is None else min(self.y.size, self.independent)

    def features(self, model: PieceModel) -> sparse.csr_matrix:
        """One row an example; kept for the model asked about last."""
        if id(model) not in self._known:
            self._known.clear()
            self._known[id(model)] = (model, self._new_features(model))
        return self._known[id(model)][1]

    def _new_features(self, model: PieceModel) -> sparse.csr_matrix:
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
class Settings:
    """How to train."""

    loss: PointLoss
    smoothing: Any
    tolerance: float
    max_iter: int
    deadline: Deadline
    rng: np.random.Generator
    report: Any = None


@dataclass(frozen=True)
class Fitted:
    """A model, its parameters in the user's units, and the proof."""

    model: PieceModel
    w: Floats
    report: ConstraintReport
    blocks: int
    status: str
    smoothing: tuple[float, float]
    history: History


def fit(plan: Plan, examples: Examples, settings: Settings, canonical: Any = None) -> Fitted:
    """Calibrators first, to find where columns interact; then everything together, under the rules.

    `canonical(model)` gives the rules that come from canonical examples.
    """
    table, weights = examples.table, examples.table_weights
    own = planning.calibrators(plan, table, weights)
    additive = PieceModel(own)
    first, strengths = _least_squares(plan, additive, examples, settings.smoothing, None)
    chosen = _choose_subsets(plan, additive, first, examples, settings.rng)
    curves = {piece.columns[0]: first[additive.part(place)] for place, piece in enumerate(own)}
    _keep_category_orders(plan, curves)
    sizes = planning.lattice_sizes(plan, examples.count, chosen)
    lattices = [
        planning.lattice_term(plan, subset, size, table, weights, curves) for subset, size in sizes
    ]
    model = PieceModel(own + lattices)
    rules = all_rules(model, plan.columns.names, plan.monotonic, plan.shapes) + (
        canonical(model) if canonical else []
    )
    return _fit_under_rules(plan, model, rules, examples, settings, (first, strengths))


def _least_squares(
    plan: Plan,
    model: PieceModel,
    examples: Examples,
    wanted: Any,
    start: tuple[float, float] | None,
) -> tuple[Floats, tuple[float, float]]:
    """Parameters without rules for squared errors, and the smoothing they were given."""
    if model.dimension > LARGEST_FACTORED:
        return np.zeros(model.dimension), smoothing.FIRST_CHOICE
    problem = _squared(model, examples)
    roughness = smoothing.penalties(model, plan.categorical, examples.count)
    strengths = _strengths(problem, roughness, wanted, start)
    return problem.fit(roughness.total(strengths))[0], strengths


def _strengths(
    problem: SquaredProblem, roughness: Any, wanted: Any, start: tuple[float, float] | None
) -> tuple[float, float]:
    if isinstance(wanted, str):
        if wanted != "auto":
            raise ValueError(
                "smoothing must be 'auto', a number or a pair of numbers (calibrators, "
                f"lattices), got {wanted!r}"
            )
        return smoothing.choose(problem, roughness, None if start is None else start[0])
    pair = np.broadcast_to(np.asarray(wanted, dtype=np.float64), 2)
    if not (np.isfinite(pair).all() and (pair >= 0.0).all()):
        raise ValueError(f"smoothing must not be negative, got {wanted!r}")
    return float(pair[0]), float(pair[1])


def _squared(model: PieceModel, examples: Examples) -> SquaredProblem:
    features = examples.features(model)
    moment = np.asarray(features.T @ (examples.weights * examples.y))
    G = gram(features, examples.weights)
    if len(examples.signed_tables) > 1:
        G[0, 0] = 1.0  # the intercept of differences is nothing; keep the matrix definite
    return SquaredProblem(
        G, moment, float(examples.weights @ np.square(examples.y)), examples.count
    )


def _choose_subsets(
    plan: Plan, additive: PieceModel, w: Floats, examples: Examples, rng: np.random.Generator
) -> list[tuple[tuple[int, ...], float]]:
    """Column subsets, each with how much it promises."""
    screen = (
        len(plan.columns) > 1
        and not plan.single
        and (isinstance(plan.lattices, str) or np.isscalar(plan.lattices))
    )
    gains = {}
    if screen and plan.lattices != 0:
        residual = examples.y - examples.features(additive) @ w
        gains = planning.interaction_gains(
            plan, examples.signed_tables, residual, examples.weights, examples.count
        )
    return planning.promises(planning.subsets(plan, gains, rng), gains)


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
    plan: Plan,
    model: PieceModel,
    rules: list[RuleRows],
    examples: Examples,
    settings: Settings,
    so_far: tuple[Floats, tuple[float, float]],
) -> Fitted:
    in_training = _in_training_units(stacked(rules, model.dimension), examples)
    start, strengths = so_far
    large = model.dimension > LARGEST_FACTORED
    if large:
        start = np.concatenate([start, np.zeros(model.dimension - start.size)])
    elif model.dimension > start.size:
        start, strengths = _least_squares(plan, model, examples, settings.smoothing, strengths)
    penalty = smoothing.penalties(model, plan.categorical, examples.count).total(strengths)
    corner = sparse.csr_matrix(([1e-9], ([0], [0])), shape=penalty.shape)
    objective = Penalised(
        examples.features(model),
        examples.y,
        examples.weights,
        settings.loss,
        sparse.csr_matrix(penalty + corner),
    )
    try:
        sampled = large and objective.features.nnz > LARGEST_PASS
        trained = (_by_solver if sampled else _by_blocks)(objective, in_training, start, settings)
        w = _unseen_missing(
            model, _in_user_units(trained.w, examples), examples.table, examples.table_weights
        )
        w, _ = exactly_feasible(w, stacked(rules, model.dimension))
    except InfeasibleConstraintsError as error:
        raise named(error, rules) from None
    report = _report(objective, rules, trained, w, examples, settings, sampled)
    return Fitted(model, w, report, trained.blocks, trained.status, strengths, trained.history)


def _by_blocks(
    objective: Penalised, rules: LinearConstraints, start: Floats, settings: Settings
) -> Trained:
    nothing = np.zeros(start.size)
    if start.size > LARGEST_FACTORED and rules.count and float(rules.values(nothing).max()) <= 0.0:
        feasible = (
            nothing  # the nearest point to a start that is no good anyway is not worth its time
        )
    else:
        feasible = project(start, rules).w if rules.count else start
    trainer = BlockTrainer(
        objective, rules, settings.tolerance, settings.max_iter, settings.deadline, settings.report
    )
    return trainer.train(feasible)


def _by_solver(
    objective: Penalised, rules: LinearConstraints, start: Floats, settings: Settings
) -> Trained:
    """Too many parameters to factor a matrix: the library's own solver, with a ridge in place of
    smoothing.
    """
    ridge = 2.0 / objective.y.size
    relative = objective.weights * objective.y.size
    risk = EmpiricalRisk(
        objective.features,
        objective.y,
        objective.loss.of_the_library,
        l2=ridge,
        sample_weight=relative,
    )
    seed, limit = int(settings.rng.integers(2**31)), settings.deadline.left
    asked = settings.deadline
    result = solve(
        Problem(risk, rules),
        start=start,
        seed=seed,
        time_limit=limit,
        callback=lambda _: asked.interrupted,
    )
    endings = {
        "CONVERGED": "converged",
        "STALLED": "converged",
        "TIME_LIMIT": "time limit",
        "INTERRUPTED": "interrupted",
    }
    status = endings.get(result.status.name, "iteration limit")
    return Trained(
        result.w, objective.value(result.w), max(1, result.iterations), status, result.history
    )


def _in_training_units(rules: LinearConstraints, examples: Examples) -> LinearConstraints:
    """The user's w is scale * w + shift in the intercept."""
    if rules.count == 0:
        return rules
    intercept = np.asarray(rules.A[:, [0]].todense()).ravel()
    scaled = LinearConstraints(rules.A, (rules.b - examples.shift * intercept) / examples.scale)
    scaled.nested = rules.nested
    return scaled


def _in_user_units(w: Floats, examples: Examples) -> Floats:
    scaled = w * examples.scale
    scaled[0] += examples.shift
    return scaled


def _unseen_missing(model: PieceModel, w: Floats, table: Floats, weights: Floats) -> Floats:
    """A column without missing cells in training: a missing cell later on counts as the column's
    average effect.
    """
    w = w.copy()
    for place, piece in enumerate(model.terms):
        if piece.calibrator and not np.isnan(table[:, piece.columns[0]]).any():
            effect = piece.evaluate(table, w[model.part(place)])
            w[model.part(place)][-1] = float(np.average(effect, weights=weights))
    return w


def _report(
    objective: Penalised,
    rules: list[RuleRows],
    trained: Trained,
    w: Floats,
    examples: Examples,
    settings: Settings,
    sampled: bool,
) -> ConstraintReport:
    rows = sum(rule.count for rule in rules)
    scaled = (w - np.eye(1, w.size)[0] * examples.shift) / examples.scale
    with_rules = objective.value(scaled)
    if rows == 0:
        return make_report(rules, w, with_rules, with_rules)
    if sampled:
        return make_report(rules, w, with_rules, None)
    trainer = BlockTrainer(
        objective, None, settings.tolerance, min(20, settings.max_iter), settings.deadline
    )
    free = trainer.train(trained.w)
    return make_report(
        rules, w, with_rules, min(free.objective, with_rules), _in_user_units(free.w, examples)
    )


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
