"""Mean losses of a linear model over examples or over pairs, and what all objectives share: value
and gradient recomputed from the record, by the kernel that fits it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse

from lighttouch.arrays import Matrix, Vector
from lighttouch.errors import DataError, NoExamplesError
from lighttouch.kernels.compiler.compiled import interpreted
from lighttouch.kernels.state.iterate import clear, new_gradient
from lighttouch.kernels.verbs.custom import examples_with_loss
from lighttouch.kernels.verbs.losses import LossRow
from lighttouch.kernels.verbs.objectives import (
    DenseExamples,
    SparseExamples,
    full_gradient,
    mean_value,
    whole_penalty,
)
from lighttouch.losses import CustomLoss, Loss, loss_of, names_losses, refuse_targets
from lighttouch.validation import finite_matrix, finite_vector, one_of, positive


class RecordObjective:
    """An objective given by a record of arrays and the verbs for its class."""

    record: Any
    examples: int
    dimension: int
    l2: float = 0.0
    interpreted: bool = False
    independent: bool = False
    cost: float = 1.0

    def value(self, w: Any) -> float:
        """The objective at w, from every example."""
        point = finite_vector(w, "w", self.dimension)
        return float(self._run(mean_value)(self.record, self.examples, self.l2, point))

    def gradient(self, w: Any) -> Vector:
        """A subgradient of the whole objective at w."""
        gathered, out = new_gradient(self.dimension), np.empty(self.dimension)
        clear(gathered)
        point = finite_vector(w, "w", self.dimension)
        self._run(full_gradient)(self.record, self.examples, self.l2, point, gathered, out)
        return out

    def penalty_value(self, w: Vector) -> float:
        """The penalties (l2, l1, roughness): what is left of the objective without examples."""
        return float(self._run(whole_penalty)(self.record, self.l2, w))

    def _run(self, kernel: Callable[..., Any]) -> Callable[..., Any]:
        return interpreted(kernel) if self.interpreted else kernel


MADE = ("loss_row", "record", "shares", "penalty_matrix", "_prepared")


@names_losses
class EmpiricalRisk(RecordObjective):
    """The (weighted) mean of loss(<w, x_i> + offset_i, y_i), plus (l2/2) ||w||^2 + l1 ||w||_1.

    Parameters
    ----------
    X : array-like or scipy sparse matrix of shape (n, d)
        One row per example.
    y : array-like of shape (n,)
        Targets: -1 and +1 for hinge and logistic loss, not negative for Poisson and Tweedie,
        positive for gamma.
    loss : str or loss, default "squared"
        {losses}
    l2 : float, default 0.0
        Strength of the ridge.
    sample_weight : array-like of shape (n,), optional
        Weights of the examples; only their proportions count.
    visits : str, default "permutations"
        How examples follow each other in stochastic methods: in repeated random "permutations", as
        in the paper's experiments, or "independent".
    roughness : sparse matrix D of shape (r, d), or a pair (D, t), optional
        Adds ||D w||^2 / 2, or ||D w - t||^2 / 2. With differences of neighbouring parameters as
        rows of D, this asks for smooth parameters.
    offset : array-like of shape (n,), optional
        A number for each example that is added to its prediction; with a log link, the logarithm
        of the exposure.
    l1 : float, default 0.0
        Strength of the l1 penalty (lasso), which draws parameters to 0.
    copy : bool, default True
        Whether X and y are copied, so that changing them later changes nothing here. Files mapped
        to memory (`np.memmap`) never are.

    Raises
    ------
    DataError
        If rows, targets, weights or offsets are not finite, of different lengths, or not
        what the loss takes.
    ValueError
        If the loss is not known, or `l1` or `l2` is negative.

    Examples
    --------
    >>> import lighttouch as lt
    >>> risk = lt.EmpiricalRisk([[1.0, 0.0], [0.0, 1.0]], [1.0, 3.0], "squared")
    >>> risk.value([1.0, 1.0])
    1.0
    """

    def __init__(
        self,
        X: Any,
        y: Any,
        loss: Loss = "squared",
        l2: float = 0.0,
        sample_weight: Any = None,
        *,
        visits: str = "permutations",
        roughness: Any = None,
        offset: Any = None,
        l1: float = 0.0,
        copy: bool = True,
    ) -> None:
        self.X: Matrix = finite_matrix(X, "X", own=copy)
        self.examples, self.dimension = self.X.shape
        if self.examples == 0 or self.dimension == 0:
            kind = NoExamplesError if self.dimension else DataError
            raise kind(f"X must hold at least one row and one column, got shape {self.X.shape}")
        self.loss = loss
        self.loss_row: LossRow = loss_of(loss)
        _refuse_other_count(self.loss_row, self.examples)
        self.y = finite_vector(y, "y", self.examples, own=copy)
        self.l2 = positive(l2, "l2", zero=True)
        self.l1 = positive(l1, "l1", zero=True)
        self.offset = (
            None if offset is None else finite_vector(offset, "offset", self.examples, own=True)
        )
        self.sample_weight = (
            None if sample_weight is None else _weights(sample_weight, self.examples)
        )
        self.independent = (
            one_of(visits, ("permutations", "independent"), "visits") == "independent"
        )
        refuse_targets(self.loss_row, self.y)
        self.roughness, self.roughness_target = _penalty_rows(roughness, self.dimension)
        self.cost = (
            float(max(1.0, self.X.nnz / self.examples))
            if scipy.sparse.issparse(self.X)
            else float(self.dimension)
        )
        self._make_record()

    def _make_record(self) -> None:
        self.record: Any = self._record()
        if isinstance(self.loss, CustomLoss):
            own = self.loss
            self.interpreted = not own.compiled
            self.record = examples_with_loss(self.record, own.value, own.slope, own.compiled)

    def __getstate__(self) -> dict[str, Any]:
        """Without what is made from the rest: kernels cannot be pickled."""
        return {name: part for name, part in vars(self).items() if name not in MADE}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self.loss_row = loss_of(self.loss)
        self._make_record()

    def _record(self) -> DenseExamples | SparseExamples:
        targets = self.y[:1] if np.all(self.y == self.y[0]) else self.y
        weights = np.zeros(0) if self.sample_weight is None else _of_mean_one(self.sample_weight)
        D = self.roughness
        l1 = np.full(self.dimension if self.l1 > 0.0 else 0, self.l1)
        offsets = np.zeros(0) if self.offset is None else self.offset
        rest = (D.data, D.indices, D.indptr, self.roughness_target, l1, offsets)
        kind, levels = self.loss_row.number, self.loss_row.levels
        if scipy.sparse.issparse(self.X):
            X = self.X
            return SparseExamples(
                X.data, X.indices, X.indptr, targets, weights, kind, levels, *rest
            )
        return DenseExamples(self.X, targets, weights, kind, levels, *rest)

    def predictions(self, w: Vector) -> Vector:
        """<w, x_i> + offset_i for every example."""
        z = np.asarray(self.X @ w)
        return z if self.offset is None else z + self.offset

    @cached_property
    def shares(self) -> Vector:
        """What each example counts; together 1."""
        if self.sample_weight is None:
            return np.full(self.examples, 1.0 / self.examples)
        return _of_mean_one(self.sample_weight) / self.examples

    @cached_property
    def penalty_matrix(self) -> Any:
        """The Hessian of what is neither loss nor l1, as a sparse matrix: l2 I + D'D."""
        D = self.roughness
        places = np.arange(self.dimension + 1)
        ridge = scipy.sparse.csr_matrix((np.full(self.dimension, self.l2), places[:-1], places))
        total = D.T.tocsr() @ D + ridge if D.shape[0] else ridge
        total.sort_indices()
        return total


class PairwiseRisk(EmpiricalRisk):
    """The (weighted) mean of loss(<w, better_i - worse_i>, +1): better rows should score above
    worse ones.

    Parameters
    ----------
    better, worse : array-likes or scipy sparse matrices of shape (n, d)
        Row i of `better` should score above row i of `worse`.
    loss : str or loss, default "hinge"
        As in `EmpiricalRisk`.
    l2 : float, default 0.0
        Strength of the ridge.
    sample_weight : array-like of shape (n,), optional
        Weights of the pairs.
    visits : str, default "permutations"
        As in `EmpiricalRisk`.
    roughness : sparse matrix D of shape (r, d), or a pair (D, t), optional
        As in `EmpiricalRisk`.
    offset : array-like of shape (n,), optional
        A number for each pair that is added to the difference of its scores.
    l1 : float, default 0.0
        As in `EmpiricalRisk`.

    Raises
    ------
    DataError
        If rows, targets, weights or offsets are not finite, of different lengths, or not
        what the loss takes.
    ValueError
        If the loss is not known, or `l1` or `l2` is negative.

    Examples
    --------
    >>> import lighttouch as lt
    >>> lt.PairwiseRisk([[1.0, 0.0]], [[0.0, 1.0]]).value([0.25, 0.0])
    0.75
    """

    def __init__(
        self,
        better: Any,
        worse: Any,
        loss: Loss = "hinge",
        l2: float = 0.0,
        sample_weight: Any = None,
        *,
        visits: str = "permutations",
        roughness: Any = None,
        offset: Any = None,
        l1: float = 0.0,
    ) -> None:
        better, worse = finite_matrix(better, "better"), finite_matrix(worse, "worse")
        if better.shape != worse.shape:
            raise DataError(
                f"better and worse must have the same shape, got {better.shape} and {worse.shape}"
            )
        with np.errstate(over="ignore"):
            difference = finite_matrix(better - worse, "better - worse")
        if scipy.sparse.issparse(difference):
            difference.eliminate_zeros()
        ones = np.ones(better.shape[0])
        super().__init__(
            difference,
            ones,
            loss,
            l2,
            sample_weight,
            visits=visits,
            roughness=roughness,
            offset=offset,
            l1=l1,
            copy=False,
        )


def _refuse_other_count(row: LossRow, examples: int) -> None:
    if np.ndim(row.level) and row.levels.size != examples:
        raise DataError(
            f"{row.parameter} must be a number or have one entry for each of the {examples} "
            f"examples, got {row.levels.size}"
        )


def _penalty_rows(roughness: Any, dimension: int) -> tuple[Any, Vector]:
    """The rows D as a CSR matrix with no rows where there is no penalty, and their targets."""
    if roughness is None:
        return scipy.sparse.csr_matrix((0, dimension)), np.zeros(0)
    D, target = roughness if isinstance(roughness, tuple) else (roughness, None)
    rows = scipy.sparse.csr_matrix(finite_matrix(D, "roughness"))
    if rows.shape[1] != dimension:
        raise DataError(
            f"roughness must have {dimension} columns, one per parameter, got shape {rows.shape}"
        )
    if target is None:
        return rows, np.zeros(rows.shape[0])
    return rows, finite_vector(target, "the target of roughness", rows.shape[0])


def _weights(sample_weight: Any, examples: int) -> Vector:
    weights = finite_vector(sample_weight, "sample_weight", examples, own=True)
    if (weights < 0).any():
        row = int(np.argmax(weights < 0))
        raise DataError(f"sample_weight must not be negative, got {weights[row]} in row {row}")
    if not weights.any():
        raise DataError(
            "sample_weight must not be zero everywhere: give at least one example a positive weight"
        )
    return weights


def _of_mean_one(weights: Vector) -> Vector:
    relative = weights / weights.max()  # first, so that no sum of weights overflows
    return np.asarray(relative * (relative.size / relative.sum()))
