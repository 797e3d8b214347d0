"""What the lattice estimators share."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from lighttouch.checkpoints import checkpointing
from lighttouch.errors import DataError, ModelFileError
from lighttouch.estimators.costs import LIMITS
from lighttouch.estimators.examples import AnyExamples
from lighttouch.estimators.explaining import Explained, even_background
from lighttouch.estimators.fitting import Earlier, Fitted, fit
from lighttouch.estimators.model import AdditiveModel, Term
from lighttouch.estimators.outputs import OneScore, Outputs, outputs_from
from lighttouch.estimators.proof import (
    ConstraintReport,
    RuleReport,
    check_rule,
    checked_excess,
)
from lighttouch.estimators.record import RECORD
from lighttouch.estimators.rules import BoundShape, RuleRows, all_rules, probing
from lighttouch.estimators.rules.base import read_monotonic, read_shapes
from lighttouch.estimators.rules.probing import Probe
from lighttouch.estimators.saving import (
    SavedEstimator,
    bound_from,
    bound_state,
    columns_from,
    columns_state,
    rows_from,
    rows_state,
)
from lighttouch.estimators.streaming.fitting import FitsFiles
from lighttouch.estimators.structure import Plan
from lighttouch.estimators.tables import (
    Columns,
    as_table,
    known_columns,
    learn_columns,
    read_table,
)
from lighttouch.estimators.training import COSTS as TRAINING
from lighttouch.estimators.training import Settings, ending, has_ended, warn_about, warn_user
from lighttouch.estimators.trees import COSTS as TREES
from lighttouch.estimators.trees import Trees
from lighttouch.kernels.verbs.losses import LossRow
from lighttouch.losses import given_as
from lighttouch.signals import Interrupts
from lighttouch.validation import flag, one_of, positive, positive_int

Floats = NDArray[np.float64]
LOG = logging.getLogger("lighttouch")


class LatticeBase(FitsFiles, Explained, SavedEstimator, BaseEstimator):  # type: ignore[misc]
    """Calibrators and lattices fitted together under the rules; subclasses say what is
    minimised.
    """

    columns_: Columns
    model_: AdditiveModel
    parameters_: Floats
    trees_: Trees | None
    constraint_report_: ConstraintReport

    def _plan(self, X: Any) -> Plan:
        return self._plan_of(learn_columns(self, X, self.categorical_features))

    def _plan_of(self, columns: Columns) -> Plan:
        monotonic = read_monotonic(self.monotonic_cst, columns)
        shapes = read_shapes(self.shape_constraints, columns, monotonic)
        size = (
            self.lattice_size
            if self.lattice_size == "auto"
            else positive_int(self.lattice_size, "lattice_size", least=2)
        )
        if isinstance(size, int) and size > LIMITS.largest_axis:
            raise ValueError(
                f"lattice_size must be at most {LIMITS.largest_axis} vertices per axis, got "
                f"{size}; the curves of single columns take keypoints"
            )
        return Plan(
            columns=columns,
            monotonic=monotonic,
            shapes=shapes,
            keypoints=_number_or_auto(self.keypoints, "keypoints"),
            lattices=0 if self.lattices is None else self.lattices,
            lattice_size=size,
            columns_per_lattice=_number_or_auto(self.columns_per_lattice, "columns_per_lattice"),
            interpolation=one_of(
                self.interpolation, ("auto", "simplex", "hypercube"), "interpolation"
            ),
            trees=_number_or_auto(getattr(self, "trees", 0), "trees", least=0),
        )

    def _settings(self, loss: LossRow, interrupts: Interrupts) -> Settings:
        seed = (
            check_random_state(self.random_state).randint(2**31 - 1)
            if self.random_state is not None
            else 0
        )
        return Settings(
            loss=given_as(loss),
            tolerance=positive(self.tol, "tol"),
            max_iter=positive_int(self.max_iter, "max_iter"),
            time_limit=(
                None if self.time_limit is None else positive(self.time_limit, "time_limit")
            ),
            rng=np.random.default_rng(seed),
            interrupts=interrupts,
            verbose=positive_int(self.verbose, "verbose", least=0) > 0,
        )

    def _train(
        self, plan: Plan, examples: AnyExamples, loss: LossRow, canonical: Any = None
    ) -> None:
        """A signal ends training early; with a usable model, it then goes on its way."""
        examples = examples.that_count()
        _warn_about_constant_columns(plan, examples)
        with Interrupts(deliver=True) as interrupts, checkpointing(self.checkpoint) as file:
            LOG.info(
                "%s: %d rows, %s", type(self).__name__, examples.table_size, plan.columns.names
            )
            settings = self._settings(loss, interrupts)
            warm = flag(self.warm_start, "warm_start")
            earlier = self._earlier(plan, examples.outputs) if warm else None
            fitted = fit(plan, examples, settings, self.smoothing, canonical, earlier)
            self._keep(plan, fitted, canonical, examples.outputs)
            self._learn_importances(examples, settings.over)
            LOG.info("%s: %s; %s", type(self).__name__, self.status_, self.constraint_report_)
            self.training_record_ = examples.record(
                plan.columns, self.recorded_scores, RECORD.rows_for(settings.over)
            )
            warn_about(self.status_)
            if plan.trees and self.trees_ is None and has_ended(self.status_):
                why = _why_no_trees(plan, examples, loss, canonical is not None, fitted.model)
                warn_user(f"trees={plan.trees} has no effect: {why}")
            if self.checkpoint is not None and file is not None and has_ended(self.status_):
                file.remove()

    def _earlier(self, plan: Plan, outputs: Outputs) -> Earlier | None:
        """The fitted model, where it is about the same columns, and both have one output."""
        known = getattr(self, "columns_", None)
        if known is None or known.columns != plan.columns.columns:
            return None
        if not (self._has_one_score and isinstance(outputs, OneScore)):
            return None
        return Earlier(self.model_, self.parameters_)

    @property
    def _has_one_score(self) -> bool:
        return getattr(self, "parameters_", np.zeros((0, 0))).ndim == 1

    def _keep(self, plan: Plan, fitted: Fitted, canonical: Any, outputs: Outputs) -> None:
        self.columns_, self.model_ = plan.columns, fitted.model
        self._take(fitted.w, outputs)
        self.trees_ = fitted.trees
        self.smoothing_ = fitted.smoothing
        self.n_iter_ = max(1, fitted.result.iterations)
        self.status_ = ending(fitted.result)
        self.history_ = fitted.result.history
        self._rules = (
            plan.monotonic,
            plan.shapes,
            [] if canonical is None else canonical(fitted.model),
        )
        rules = tuple(self._with_trees(list(fitted.report.rules)))
        report = fitted.report.of_training(self.status_)
        self.constraint_report_ = replace(report, rules=rules)

    def _with_trees(self, checked: list[RuleReport]) -> list[RuleReport]:
        """The rules, of which the first are about monotone columns, as the trees obey them too."""
        if self.trees_ is not None:
            for place, (column, sign) in enumerate(self._rules[0].items()):
                excess = self.trees_.excess(column, sign)
                rule, worst = checked[place], float(excess.max(initial=0.0))
                checked[place] = replace(
                    rule, rows=rule.rows + excess.size, violation=max(rule.violation, worst)
                )
        return checked

    def _take(self, w: Floats, outputs: Outputs) -> None:
        """Keep trained parameters, as attributes for the user."""
        self._outputs = outputs
        scores = outputs.scores(w, self.model_.dimension)
        self.parameters_ = scores[0] if outputs.single else np.array(scores)

    def _trained(self) -> Floats:
        """What `_take` was given."""
        return self.parameters_.ravel()

    def _scores(self, X: Any) -> Floats:
        check_is_fitted(self, "parameters_")
        return self.scores_of(read_table(self, X, self.columns_))

    @property
    def fitted_columns(self) -> Columns:
        """Names and kinds of the columns of the training table."""
        return self.columns_

    def read_rows(self, X: Any) -> Floats:
        """Rows of X as plain numbers: categories as codes, missing cells as NaN."""
        return self.columns_.read(known_columns(as_table(X), self.columns_))

    def scores_of(self, table: Floats) -> Floats:
        """Scores of rows of plain numbers, as `read_rows` gives them; where there are several
        outputs, one column each.
        """
        if hasattr(self, "estimators_"):  # one model per class
            return np.column_stack([each.scores_of(table) for each in self.estimators_])
        if self.parameters_.ndim == 1:
            smooth = self.model_.evaluate(table, self.parameters_)
            return smooth if self.trees_ is None else smooth + self.trees_.evaluate(table)
        return np.column_stack([self.model_.evaluate(table, w) for w in self.parameters_])

    def check_constraints(self, X: Any = None) -> ConstraintReport:
        """Check every rule again on the stored parameters.

        Parameters
        ----------
        X : table, optional
            Rows around which predictions are checked as well, for every kind of rule: the columns
            of a rule are moved within their ranges, all others stay as they are. Monotone
            columns, Unimodal, TrapezoidTrust, CategoryOrder and the order of several quantiles or
            classes are checked on the predictions themselves, to the last bit; all others on the
            score, to rounding.

        Returns
        -------
        ConstraintReport
            One line per rule, and with X another for its predictions.
        """
        check_is_fitted(self, "parameters_")
        monotonic, shapes, canonical = self._rules
        rules: list[RuleRows] = self._outputs.rules(
            all_rules(self.model_, self.columns_.names, monotonic, shapes) + canonical,
            self.model_.dimension,
        )
        checked = self._with_trees([check_rule(rule, self._trained()) for rule in rules])
        if X is not None:
            checked += self._probed(read_table(self, X, self.columns_), monotonic, shapes)
        known = self.constraint_report_
        return replace(known, rules=tuple(checked))

    def _probed(
        self, table: Floats, monotonic: dict[int, int], shapes: list[BoundShape]
    ) -> list[RuleReport]:
        """Every rule tested on predictions for rows like those of the table, on its scale."""
        on_scores = self._probe(table, self.scores_of)
        on_predictions = self._probe(table, lambda rows: self._image(self.scores_of(rows)))
        names = self.columns_.names
        found = [
            checked_excess(
                f"predictions on X monotone in {names[column]}",
                probing.monotone(on_predictions, column, sign),
                about_order=True,
            )
            for column, sign in monotonic.items()
        ]
        for bound in shapes:
            probe = on_predictions if bound.shape.exact_on_predictions else on_scores
            label = f"predictions on X: {bound.label(names)}"
            excess = bound.shape.excess_on(probe, bound)
            found.append(checked_excess(label, excess, bound.shape.about_order))
        if self._outputs.in_order is not None:
            name, sign = self._outputs.in_order
            values = self._image(self.scores_of(table))
            excess = probing.rises(values[:, :-1], values[:, 1:], sign=sign)
            found.append(checked_excess(f"predictions on X: {name}", excess, about_order=True))
        return found

    def _probe(self, table: Floats, scores: Callable[[Floats], Floats]) -> Probe:
        """Columns move within their training ranges. Axes that share a unit with another column can
        be longer than that, so the range is what all terms have in common that bend along the
        column: a column that acts through lattices only has one keypoint in its curve.
        """
        low = np.full(len(self.columns_), -np.inf)
        high = np.full(len(self.columns_), np.inf)
        for term in self.model_.terms:
            for column, each in zip(term.columns, term.maps, strict=True):
                if each.keypoints.size > 1:
                    low[column] = max(low[column], each.keypoints[0])
                    high[column] = min(high[column], each.keypoints[-1])
        absent = ~np.isfinite(low)
        return Probe(scores, table, np.where(absent, 0.0, low), np.where(absent, 0.0, high))

    def _image(self, scores: Floats) -> Floats:
        """What users see of the scores: an increasing function of them."""
        return scores

    def _canonical_rows(self, plan: Plan, X: Any, label: str) -> tuple[Floats, str]:
        table = as_table(X)
        given = table.shape[1]
        if given != len(plan.columns):
            raise DataError(f"{label} must have the {len(plan.columns)} columns of X, got {given}")
        return plan.columns.read(table), label

    def _fitted_state(self) -> dict[str, Any]:
        monotonic, shapes, canonical = self._rules
        return {
            "columns": columns_state(self.columns_),
            "pieces": [piece.state() for piece in self.model_.terms],
            "parameters": self._trained(),
            "outputs": self._outputs.state(),
            "trees": None if self.trees_ is None else self.trees_.state(),
            "smoothing": list(self.smoothing_),
            "background": self._background,
            "importances": [list(self.importances_), list(self.importances_.values())],
            "monotonic": [[column, sign] for column, sign in monotonic.items()],
            "shapes": [bound_state(shape) for shape in shapes],
            "canonical": [rows_state(rule) for rule in canonical],
        }

    def _restore_fitted(self, state: dict[str, Any]) -> None:
        self.columns_ = columns_from(state["columns"])
        self.model_ = AdditiveModel([Term.from_state(piece) for piece in state["pieces"]])
        w, outputs = state["parameters"], outputs_from(state.get("outputs"))
        if w.shape != (outputs.size(self.model_.dimension),) or not np.isfinite(w).all():
            raise ModelFileError("the parameters do not belong to the model")
        self._take(w, outputs)
        self.trees_ = Trees.from_state(state.get("trees"), len(self.columns_))
        self._background = state.get("background") or even_background(self.model_)
        names, sizes = state.get("importances") or ([], [])
        self.importances_ = {
            str(name): float(size) for name, size in zip(names, sizes, strict=True)
        }
        self.smoothing_ = (float(state["smoothing"][0]), float(state["smoothing"][1]))
        monotonic = {int(column): int(sign) for column, sign in state["monotonic"]}
        self._rules = (
            monotonic,
            [bound_from(shape) for shape in state["shapes"]],
            [rows_from(rule) for rule in state["canonical"]],
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        return tags


def _number_or_auto(given: object, name: str, least: int = 2) -> int | None:
    """A number that is not too small, or None for "auto"."""
    auto = isinstance(given, str) and given == "auto"
    return None if auto else positive_int(given, name, least=least)


def _why_no_trees(
    plan: Plan, examples: AnyExamples, loss: LossRow, canonical: bool, model: AdditiveModel
) -> str:
    """Why a model has no trees although a number of them was asked for, and what to do."""
    ruled = {place for bound in plan.shapes for place in bound.places}
    count, without = len(plan.columns), "leave trees out"
    found = (
        (canonical, f"trees could break canonical_examples; {without}, or the examples"),
        (
            not isinstance(examples.outputs, OneScore),
            f"trees need one output, not several quantiles or ordered classes; {without}",
        ),
        (
            loss.kinked,
            f"trees need a smooth loss, and {loss.name!r} has kinks; {without}, or change loss",
        ),
        (loss.users is not None, f"trees need a loss of lighttouch's own; {without}"),
        (
            len(ruled) == count,
            f"trees split columns without shape_constraints, and there are none; {without}",
        ),
        (
            count > TREES.columns,
            f"trees take up to {TREES.columns} columns, and X has {count:,}; {without}",
        ),
        (
            model.dimension > TRAINING.largest_gram,
            f"the model of curves and lattices is too large for trees beside it; {without}",
        ),
        (
            True,
            f"no column has a split that lowers the loss with {TREES.least_rows} rows on each side "
            f"(categories that differ by noise are not split); {without}, or give more rows",
        ),
    )
    return next(why for holds, why in found if holds)


def _warn_about_constant_columns(plan: Plan, examples: AnyExamples) -> None:
    rows = examples.table_size
    constant = [plan.columns[place].name for place in examples.constant_columns() if rows > 1]
    if constant:
        shown = ", ".join(repr(name) for name in constant[:5]) + (
            " ..." if len(constant) > 5 else ""
        )
        warnings.warn(
            f"columns without two different values have no effect: {shown}",
            UserWarning,
            stacklevel=4,
        )
