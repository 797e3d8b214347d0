"""Quadratic models of a mean loss whose examples are in shards: sums of what each shard says.

Every function here makes one pass over the shards. A matrix and a vector are added up for a model,
a number for an objective, and a vector for a bound, so that the driver holds no examples at all.
The models are those of Newton's method, or lie above the loss where its curvature is bounded
(Boehning and Lindsay 1988).
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from lighttouch import losses
from lighttouch.arrays import Vector
from lighttouch.objectives import EmpiricalRisk, ShardedRisk
from lighttouch.problem import Problem
from lighttouch.projections.splitting import BlockDiagonal, Blocks, row_blocks
from lighttouch.running import prepared, remembered
from lighttouch.solvers.bounds import DualSums, bound_of_sums, dual_sums
from lighttouch.solvers.costs import COSTS
from lighttouch.solvers.quadratic_model import (
    LAST,
    SQUARES,
    Curvature,
    QuadraticModel,
    QuadraticState,
    admm_normal,
    forced_minimum,
    given_matrix,
    gram,
    keeps_matrix,
    tangent_point,
    value_at,
)


@dataclass(frozen=True)
class SummedModel(QuadraticModel):
    """A model that is known by its matrix only."""

    @cached_property
    def by_blocks(self) -> BlockDiagonal:
        squares = self._whole.wide
        parts = ((here, squares[here, here]) for _, here in self.blocks)
        return BlockDiagonal(tuple(parts)).plus(self.penalty)

    def hessian_of_losses(self, w: Vector) -> Vector:
        assert isinstance(self._whole, Curvature)
        return self._whole.hessian_of_losses(w)


def shard_model(risk: ShardedRisk, w: Vector, state: QuadraticState) -> QuadraticModel:
    """The model at w; of squared errors the matrix is the same everywhere, and summed once."""
    template: EmpiricalRisk = risk.template
    if template.loss_row.name == "squared":
        squares, c = _of_squares(risk)
        known = Curvature(template.penalty_matrix, squares)
    elif shards_keep_matrix(risk):
        known, c = _near(risk, w, state)
    else:
        squares, c = risk.mean(model_part, w, state.width)
        known = Curvature(template.penalty_matrix, squares)
    if template.roughness.shape[0]:
        c = c + template.roughness.T @ template.roughness_target
    none = np.zeros(0)
    penalty, blocks = template.penalty_matrix, blocks_of_shards(risk)
    return SummedModel(None, None, none, penalty, c, True, blocks, known)


def shards_keep_matrix(risk: ShardedRisk) -> bool:
    return keeps_matrix(risk.template.loss_row, blocks_of_shards(risk))


def _near(risk: ShardedRisk, w: Vector, state: QuadraticState) -> tuple[Curvature, Vector]:
    """The matrix of the last model while the curvatures are near, and X'(k X w - s)."""
    seen = look(risk, w, state.reference, state.width)
    if seen.change > COSTS.model_stale * seen.curved:
        state.reference = w.copy()
    known = _known(risk, state.reference)
    if known is None:
        matrix = risk.mean(matrix_part, state.reference, state.width)
        known = _keep(risk, state.reference, matrix)
    return known, known.hessian_of_losses(w) - seen.pull


def _last(risk: ShardedRisk) -> dict[str, Any]:
    return prepared(risk, LAST, dict)


def _keep(risk: ShardedRisk, point: Vector, matrix: Vector) -> Curvature:
    """The matrix with the curvatures of a point, for the next models."""
    known = Curvature(risk.template.penalty_matrix, matrix)
    _last(risk).update(point=point, matrix=matrix, known=known)
    return known


def _known(risk: ShardedRisk, point: Vector) -> Curvature | None:
    """The matrix with the curvatures of a point, from the last model or from a fit before."""
    last, given = _last(risk), given_matrix(risk)
    if "point" in last and np.array_equal(last["point"], point):
        found: Curvature = last["known"]
        return found
    if given is None or not np.array_equal(given[0], point):
        return None
    return _keep(risk, point, given[1])


@dataclass(frozen=True)
class Look:
    """What one pass says about a point: the rounded objective, the objective, X'(a s) with the
    slopes s, how far the curvatures are from those of the reference, and their sum there.
    """

    rounded: float
    plain: float
    pull: Vector
    change: float
    curved: float


def look(risk: ShardedRisk, w: Vector, reference: Vector, width: float) -> Look:
    """One pass, or none where the same was asked before; with a look at the reference itself comes
    its matrix.
    """

    def looked() -> Look:
        if not np.array_equal(w, reference) or _known(risk, w) is not None:
            return Look(*risk.mean(look_part, w, reference, width))
        *seen, matrix = risk.mean(look_and_matrix_part, w, width)
        _keep(risk, w.copy(), matrix)
        return Look(*seen)

    found = remembered(risk, "looks", np.concatenate([w, reference, [width]]), looked)
    remembered(risk, "values", w, lambda: found.plain)  # for the record of the run
    return found


def look_part(
    part: EmpiricalRisk, w: Vector, reference: Vector, width: float
) -> tuple[float, float, Vector, float, float]:
    z = part.predictions(w)
    slopes, curvatures = losses.quadratic(part.loss_row, z, part.y, width)
    there = losses.quadratic(part.loss_row, part.predictions(reference), part.y, width)[1]
    plain = float(part.value(w))
    return (
        plain if width == 0.0 else value_at(part, z, w, width),
        plain,
        np.asarray(part.X.T @ (part.shares * slopes)),
        float(part.shares @ np.abs(curvatures - there)),
        float(part.shares @ there),
    )


def look_and_matrix_part(
    part: EmpiricalRisk, w: Vector, width: float
) -> tuple[float, float, Vector, float, float, Vector]:
    return *look_part(part, w, w, width), matrix_part(part, w, width)


def matrix_part(part: EmpiricalRisk, w: Vector, width: float) -> Vector:
    curvatures = losses.quadratic(part.loss_row, part.predictions(w), part.y, width)[1]
    return gram(part.X, part.shares * curvatures)


def blocks_of_shards(risk: ShardedRisk) -> Blocks:
    return prepared(risk, "blocks", lambda: common_blocks(risk))


def common_blocks(risk: ShardedRisk) -> Blocks:
    """Ranges of parameters that no example connects; of rows nothing is said. Only examples with
    levels of their own are asked: several quantiles are as many models.
    """
    cuts = {0}
    if np.ndim(risk.template.loss_row.level):
        known = [set(found) for found in risk.each(cuts_part) if found is not None]
        cuts |= set.intersection(*known)
    ends = [*sorted(cuts), risk.dimension]
    return tuple((slice(0, 0), slice(*pair)) for pair in itertools.pairwise(ends))


def cuts_part(part: EmpiricalRisk) -> list[int]:
    return [int(here.start) for _, here in row_blocks(part.X, part.penalty_matrix)]


def model_part(part: EmpiricalRisk, w: Vector, width: float) -> tuple[Vector, Vector]:
    """X' diag(a k) X and X'(a (k X w - s)), with the slopes s and curvatures k at w."""
    z = part.predictions(w)
    slopes, curvatures = losses.quadratic(part.loss_row, z, part.y, width)
    curved = part.shares * curvatures
    moved = z if part.offset is None else z - part.offset
    return gram(part.X, curved), np.asarray(part.X.T @ (curved * moved - part.shares * slopes))


def _of_squares(risk: ShardedRisk) -> tuple[Vector, Vector]:
    """Matrix and vector of squared errors, the same in every model: one pass, or none."""
    known: dict[str, Vector] = vars(risk).get("_prepared", {})
    if SQUARES in known:  # from a fit that needed it before
        return known[SQUARES], prepared(risk, FORCE, lambda: risk.mean(force_part))
    squares, c = risk.mean(squares_part)
    prepared(risk, FORCE, lambda: c)
    return prepared(risk, SQUARES, lambda: squares), c


FORCE = "X' diag(shares) y"


def squares_part(part: EmpiricalRisk) -> tuple[Vector, Vector]:
    """What `model_part` is for squared errors: their curvature is 1."""
    return gram(part.X, part.shares), force_part(part)


def force_part(part: EmpiricalRisk) -> Vector:
    centre = part.y if part.offset is None else part.y - part.offset
    return np.asarray(part.X.T @ (part.shares * centre))


def shard_values(
    risk: ShardedRisk, w: Vector, reference: Vector, width: float
) -> tuple[float, float]:
    """The rounded objective at w, and the objective."""
    if shards_keep_matrix(risk):
        seen = look(risk, w, reference, width)  # the next model asks for the rest of it
        return seen.rounded, seen.plain
    rounded, plain = risk.mean(values_part, w, width)
    remembered(risk, "values", w, lambda: float(plain))  # for the record of the run
    return float(rounded), float(plain)


def values_part(part: EmpiricalRisk, w: Vector, width: float) -> tuple[float, float]:
    plain = float(part.value(w))
    return (plain if width == 0.0 else value_at(part, part.predictions(w), w, width)), plain


def shard_move(risk: ShardedRisk, state: QuadraticState, proposed: Vector) -> tuple[float, float]:
    """Move to the proposed point, or halfway and so on until the rounded objective does not rise;
    both objectives there.
    """
    change, share = proposed - state.w, 1.0
    while share > COSTS.model_least_share:
        w = proposed if share == 1.0 else state.w + share * change
        rounded, plain = shard_values(risk, w, state.reference, state.width)
        if rounded <= state.value:
            state.w = w
            return rounded, plain
        share *= 0.5
    return shard_values(risk, state.w, state.reference, state.width)


def shard_residual(risk: ShardedRisk, w: Vector) -> float:
    """The mean size of what the predictions miss, each example counted once."""
    found = [each for each in risk.each(residual_part, w) if each is not None]
    return float(sum(size for size, _ in found) / sum(count for _, count in found))


def residual_part(part: EmpiricalRisk, w: Vector) -> tuple[float, int]:
    typical = losses.typical_residual(part.loss_row, part.predictions(w), part.y)
    return typical * part.examples, part.examples


def shard_bound(
    problem: Problem, state: QuadraticState, model: QuadraticModel, before: Vector
) -> float:
    """Fenchel's bound, as in `quadratic_steps.lower_bound`, from sums over the shards."""
    risk = problem.objective
    assert isinstance(risk, ShardedRisk)
    w = forced_minimum(state, model)
    if w is None:
        return -math.inf
    curved_at = state.reference if shards_keep_matrix(risk) else before
    sums = DualSums(*risk.mean(dual_part, before, curved_at, w, state.width))
    normal = admm_normal(problem, state)
    template: EmpiricalRisk = risk.template
    force = sums.pull + normal.vector - template.roughness.T @ template.roughness_target
    u = tangent_point(model, force)
    return -math.inf if u is None else bound_of_sums(template, sums, normal, u)


def dual_part(
    part: EmpiricalRisk, before: Vector, curved_at: Vector, w: Vector, width: float
) -> tuple[Vector, Vector, float, float]:
    """The sums of a bound from the slopes at w of the model at `before`, with the curvatures of
    another point.
    """
    z, other = part.predictions(before), part.predictions(curved_at)
    slopes = losses.quadratic(part.loss_row, z, part.y, width)[0]
    curvatures = losses.quadratic(part.loss_row, other, part.y, width)[1]
    slopes += curvatures * (part.predictions(w) - z)
    sums = dual_sums(part, slopes)
    return sums.pull, sums.size, sums.conjugates, sums.offsets
