"""What the parameters and attributes of the estimators mean, each said once, and which losses they
take.

`documented` writes them into the docstrings of the classes, with the defaults of their
constructors.
"""

from __future__ import annotations

import inspect
import os
import textwrap
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from lighttouch.estimators.tables import Name, Table
from lighttouch.losses import CLASSES as LOSS_CLASSES
from lighttouch.losses import LOSSES
from lighttouch.text import alternatives

Lattices = str | int | Sequence[Sequence[Name]] | None
Smoothing = str | float | tuple[float, float]
Checkpoint = str | os.PathLike[str] | None
CanonicalExamples = tuple[Table, Any] | None  # rows, and their targets, labels or worse rows

Class = TypeVar("Class")
Described = tuple[str, str]  # the type and the meaning
WIDTH = 92

# losses that the estimators take
_TAKEN = {name: row for name, row in LOSSES.items() if row.estimators}
CLASSIFICATION = tuple(name for name, row in _TAKEN.items() if row.labelled)
LOG_LINK = tuple(name for name, row in _TAKEN.items() if row.log_link)
LINEAR_REGRESSION = tuple(name for name in _TAKEN if name not in (*CLASSIFICATION, *LOG_LINK))
REGRESSION = (*LINEAR_REGRESSION, *LOG_LINK)


def choices(names: Sequence[str], default: str = "squared") -> str:
    """Losses by name and class, for a docstring: {"squared", "absolute", "quantile"}, Quantile."""
    quoted = ", ".join(f'"{name}"' for name in _in_front(default, names))
    classes = [kind.__name__ for name, kind in LOSS_CLASSES.items() if name in names]
    return f"{{{quoted}}}" + (f", {alternatives(classes)}" if classes else "")


def purposes(names: Sequence[str], default: str = "") -> str:
    """Losses and what they are for, in words: squared (default), absolute or poisson (counts)."""
    notes = {name: LOSSES[name].purpose for name in _in_front(default, names)}
    notes |= {default: "default"} if default else {}
    return alternatives([f"{name} ({note})" if note else name for name, note in notes.items()])


def _in_front(name: str, names: Sequence[str]) -> list[str]:
    return sorted(names, key=lambda other: other != name)


LATTICE_PARAMETERS: dict[str, Described] = {
    "categorical_features": (
        "str, int or sequence of them, or mask",
        "Names or positions of columns to treat as categories although they hold numbers. "
        "Columns of text always are categories.",
    ),
    "keypoints": (
        'int or "auto"',
        'The most keypoints of a column\'s curve; they lie at quantiles. "auto" begins with 20 and '
        "gives more to columns whose curve needs them.",
    ),
    "lattices": (
        '{"auto", "random", "single"}, int, None or list of column subsets',
        'Which columns share a lattice: those that interact ("auto"), pairs drawn at random, all '
        'columns in one ("single"), that many pairs, none, or the given subsets.',
    ),
    "lattice_size": (
        'int or "auto"',
        'Vertices along each axis of a lattice. "auto" makes lattices finer the more examples '
        "there are.",
    ),
    "columns_per_lattice": (
        'int or "auto"',
        "The most columns that share a lattice, unless subsets are given. Which do, and how many, "
        'is chosen by the data; "auto" looks for up to 4.',
    ),
    "interpolation": (
        '{"auto", "simplex", "hypercube"}',
        'How a lattice interpolates. "auto" is hypercube for up to four columns.',
    ),
    "trees": (
        'int or "auto"',
        "How many small trees follow what curves and lattices leave over, in the order that "
        "monotone columns ask for; columns of other rules they leave alone. "
        '"auto" has none unless they clearly lower the loss on held-out rows. More than 10 of '
        "them stand beside 0.7 of the score of curves and lattices, from its mean on. They need "
        "a smooth loss, one output and no canonical examples; where there can be none, a number "
        "has no effect, and a warning says why.",
    ),
    "smoothing": (
        '"auto", float or pair of floats',
        "How strongly roughness is punished, or a pair for (curves, lattices). "
        '"auto" chooses a strength for every curve and lattice, on the loss that is trained.',
    ),
    "random_state": (
        "int, RandomState or None",
        'The seed of what is random: subsets with lattices="random", pairs of a ranker, rows that '
        "are held out to choose how many trees there are, and rows that stand for many.",
    ),
    "verbose": ("int", "Whether to show a progress bar."),
    "warm_start": (
        "bool",
        "Whether `fit` of a fitted model starts from it: the same curves and lattices, "
        "and its parameters as the start. Where the columns are others it begins anew.",
    ),
    "shape_constraints": (
        "shape constraint or list of them",
        'Rules such as lt.Convex("age") or lt.EdgeworthTrust("rating", "n_reviews").',
    ),
}

LINEAR_PARAMETERS: dict[str, Described] = {
    "alpha": (
        "float",
        "The ridge: how many examples' worth of pull towards 0 the coefficients of standardised "
        "columns feel.",
    ),
    "shape_constraints": (
        "shape constraint or list of them",
        "lt.Dominates(a, b): coef[a] >= coef[b] >= 0. lt.RangeDominates(a, b): the same, times "
        "the columns' ranges. lt.JointlyMonotonic(a, b): coef[a] + coef[b] >= 0. "
        "lt.SlopeBound(a, limit): abs(coef[a]) <= limit.",
    ),
    "constraints": (
        "pair (A, b) or LinearConstraints",
        "Rows A @ coef <= b, in the units of the columns.",
    ),
}

COMMON_PARAMETERS: dict[str, Described] = {
    "monotonic_cst": (
        "dict or sequence of int",
        "Column names (or positions) with 1 for increasing, -1 for decreasing, 0 for neither; or "
        "one such number per column.",
    ),
    "max_iter": ("int", "The most quadratic steps of training."),
    "tol": ("float", "Training ends when a step gains less than this, relatively."),
    "time_limit": (
        "float",
        "Seconds after which `fit` ends, compilation left out; None for no limit. What there is no "
        "time for is left out: finer curves, interactions, rows beyond the first sample, the price "
        "of rules. The rules hold in any case.",
    ),
    "checkpoint": (
        "str or path",
        "A file that training is kept in: the same fit goes on from it after a crash, to the same "
        "bits. It is removed when training has ended.",
    ),
}

REGRESSION_PARAMETERS: dict[str, Described] = {
    "loss": (
        choices(LINEAR_REGRESSION),
        'What is minimised. The threshold of "huber" is 1.345 robust standard deviations of what a '
        "first fit of absolute errors leaves over; that of lt.Huber(t) is t standard deviations of "
        "y.",
    ),
    "quantile": ("float", 'The level of loss="quantile", between 0 and 1.'),
    "canonical_examples": (
        "pair (X, y)",
        "The prediction for each of these rows must lie within `canonical_margin` of y.",
    ),
    "canonical_margin": (
        "float",
        "In units of y; None for a tenth of the standard deviation of y.",
    ),
}

LATTICE_REGRESSION_PARAMETERS: dict[str, Described] = REGRESSION_PARAMETERS | {
    "loss": (
        choices(REGRESSION),
        f"What is minimised. With a log link: {purposes(LOG_LINK)}; "
        '"tweedie" is lt.Tweedie(1.5). The threshold of "huber" is '
        "1.345 robust standard deviations of what a first fit of absolute errors leaves over; that "
        "of lt.Huber(t) is t standard deviations of y.",
    ),
    "quantile": (
        "float or list of floats",
        'The level of loss="quantile", between 0 and 1; or several in ascending order, which are '
        "fitted together and predicted in columns that never cross.",
    ),
    "output_min": (
        "float",
        "No prediction is below; None for no limit. Predictions are cut off there, which keeps "
        "monotone columns and every rule that compares predictions. Rules that this would break "
        "are refused.",
    ),
    "output_max": ("float", "No prediction is above; None for no limit."),
}

CLASSIFICATION_PARAMETERS: dict[str, Described] = {
    "ordinal": (
        "bool or sequence of classes",
        "Whether more than two classes are ordered: True for their sorted order, or all of them "
        "in ascending order; of two classes the last listed one is the second.",
    ),
    "loss": (
        choices(CLASSIFICATION, "logistic"),
        "What is minimised. Only the logistic loss gives probabilities.",
    ),
    "canonical_examples": (
        "pair (X, y)",
        "Rows with labels that the model must classify right, by `canonical_margin`.",
    ),
    "canonical_margin": (
        "float",
        "The least score on the right side of 0; None for 0.001.",
    ),
}

RANKING_PARAMETERS: dict[str, Described] = {
    "loss": (
        choices(CLASSIFICATION, "logistic"),
        "Of the difference of the scores of a pair.",
    ),
    "pairs_per_query": ("int", "The most pairs per query to learn from, drawn at random."),
    "pair_weights": (
        '{"even", "gain"}',
        'What the pairs of a query count: all the same or, by "gain", by how much their order '
        "matters at the top of the list, |2^relevance - 2^relevance| as in NDCG (where relevance "
        "is grades, whole numbers from 0 to 30). Every query counts the same.",
    ),
    "canonical_examples": (
        "pair (better, worse)",
        "Row i of `better` must score above row i of `worse`, by `canonical_margin`.",
    ),
    "canonical_margin": ("float", "The least difference of scores; None for 0.001."),
}

COMMON_ATTRIBUTES: dict[str, Described] = {
    "constraint_report_": (
        "ConstraintReport",
        "Rows, violation (0) and binding rows of every rule, and what the rules cost.",
    ),
    "n_iter_": ("int", "Quadratic steps taken."),
    "status_": ("str", 'How training ended: "converged", or why it did not.'),
    "history_": ("History", "The objective while training."),
    "training_record_": (
        "TrainingRecord",
        "When, by which versions and on what it was trained; `drift` compares new rows with it.",
    ),
    "n_features_in_": ("int", "The number of columns."),
    "feature_names_in_": ("array of str", "Their names, where the training table had any."),
}

LATTICE_ATTRIBUTES: dict[str, Described] = {
    "model_": ("AdditiveModel", "The terms of the model: curves and lattices."),
    "trees_": ("Trees or None", "What is added to them: `count` trees; None for none."),
    "parameters_": (
        "array",
        "The parameters: the intercept, then those of each term; with several quantiles one line "
        "each.",
    ),
    "importances_": (
        "dict",
        "The mean size of the effects of columns and interactions on the score, the largest first.",
    ),
    "columns_": ("Columns", "Names and kinds of the columns."),
    "smoothing_": (
        "pair of floats",
        'The smoothing used, for (curves, lattices); with "auto" the geometric means.',
    ),
} | COMMON_ATTRIBUTES

LINEAR_ATTRIBUTES: dict[str, Described] = {
    "coef_": ("array", "One coefficient per column."),
    "intercept_": ("float", "What is added to every prediction."),
} | COMMON_ATTRIBUTES

CLASSES: dict[str, Described] = {"classes_": ("array of two labels", "The two classes, in order.")}

MANY_CLASSES: dict[str, Described] = {
    "classes_": ("array of labels", "The classes, in order."),
    "thresholds_": (
        "array of shape (classes - 1,)",
        "Of ordered classes, where there are more than two: the scores between them.",
    ),
    "estimators_": (
        "list of LatticeClassifier",
        "Of more than two classes without order: one model per class. The model's own attributes "
        "are theirs.",
    ),
}


def documented(
    parameters: dict[str, Described], attributes: dict[str, Described]
) -> Callable[[type[Class]], type[Class]]:
    """A class decorator: {parameters} and {attributes} in the docstring become sections."""

    def decorate(cls: type[Class]) -> type[Class]:
        signature = inspect.signature(cls)
        defaults = [(name, each.default) for name, each in signature.parameters.items()]
        listed = [
            _entry(name, f"{parameters[name][0]}, default {default!r}", parameters[name][1])
            for name, default in defaults
        ]
        told = [_entry(name, *described) for name, described in attributes.items()]
        if cls.__doc__:
            cls.__doc__ = cls.__doc__.replace("    {parameters}", "\n".join(listed)).replace(
                "    {attributes}", "\n".join(told)
            )
        return cls

    return decorate


def _entry(name: str, kind: str, meaning: str) -> str:
    wrapped = textwrap.wrap(meaning, WIDTH, initial_indent=" " * 8, subsequent_indent=" " * 8)
    return "\n".join([f"    {name} : {kind}", *wrapped])
