"""Objectives as records, and the verbs every objective offers: the gradient of one example and its
value.

Records of examples may carry a penalty: ||D w - t||^2 / 2 with a sparse matrix D of rows (in CSR
form: `penalty_data`, `penalty_indices`, `penalty_indptr`) and targets t, and the sum of
`l1`_j |w_j|; without them, `penalty_target` and `l1` are empty. `add_gradient` of one example
includes the penalty's gradient, so that the mean over examples is the gradient of the whole;
`add_loss_gradient` leaves it out.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lighttouch.kernels.compiler.compiled import lean_kernel, verb
from lighttouch.kernels.state.iterate import add, add_dense, add_sparse, dot
from lighttouch.kernels.verbs.loss_functions import rounded_size
from lighttouch.kernels.verbs.losses import level_of, loss, slope, smooth_loss


class DenseExamples(NamedTuple):
    X: np.ndarray
    targets: np.ndarray  # one per row, or a single one for all
    weights: np.ndarray  # of mean 1, or empty
    kind: int
    levels: np.ndarray  # the loss's parameter: one per row, or a single one for all
    penalty_data: np.ndarray
    penalty_indices: np.ndarray
    penalty_indptr: np.ndarray
    penalty_target: np.ndarray
    l1: np.ndarray  # one per parameter, or empty
    offsets: np.ndarray  # one per row, or empty


class SparseExamples(NamedTuple):
    data: np.ndarray
    indices: np.ndarray
    indptr: np.ndarray
    targets: np.ndarray
    weights: np.ndarray
    kind: int
    levels: np.ndarray  # the loss's parameter: one per row, or a single one for all
    penalty_data: np.ndarray
    penalty_indices: np.ndarray
    penalty_indptr: np.ndarray
    penalty_target: np.ndarray
    l1: np.ndarray  # one per parameter, or empty
    offsets: np.ndarray  # one per row, or empty


class DenseQuadratic(NamedTuple):
    P: np.ndarray
    q: np.ndarray


class SparseQuadratic(NamedTuple):
    data: np.ndarray
    indices: np.ndarray
    indptr: np.ndarray
    q: np.ndarray


@verb
def add_gradient(objective, example, w, scale, gradient):
    """Add scale times a subgradient of one example's term at w."""


@verb
def example_value(objective, example, w):
    """One example's term at w; the objective is the mean over examples (plus the l2 term)."""


@verb
def add_smooth_gradient(objective, example, w, scale, width, out):
    """Add scale times the gradient of one example's term, its kinks rounded over `width`, to a
    dense vector; returns the rounded term.
    """


@verb
def add_loss_gradient(objective, example, w, scale, gradient):
    """Add scale times a subgradient of one example's loss at w, without the penalty."""


@verb
def penalty_value(objective, w):
    """||D w - t||^2 / 2 + sum_j l1_j |w_j|, or 0 where the objective has no penalty."""


@verb
def add_penalty_gradient(objective, w, scale, gradient):
    """Add scale times a subgradient of the penalty."""


@verb
def add_smooth_penalty(objective, w, scale, width, out):
    """Add scale times the gradient of the penalty to a dense vector; returns scale times its value.

    |w_j| is rounded such that all of them together lose at most half the width.
    """


@lean_kernel
def target_of(targets, example):
    return targets[example] if targets.size > 1 else targets[0]


@lean_kernel
def weight_of(weights, example):
    return weights[example] if weights.size > 0 else 1.0


@lean_kernel
def shifted(z, offsets, example):
    return z + offsets[example] if offsets.size > 0 else z


@lean_kernel
def sparse_dot(data, indices, start, stop, w):
    return gathered_dot(
        data[start:stop], indices[start:stop], w
    )  # counted from 0, no index can be negative: a question less


@lean_kernel
def gathered_dot(row, places, w):
    s0 = 0.0
    s1 = 0.0
    s2 = 0.0
    s3 = 0.0
    fours = row.size // 4
    for q in range(fours):
        k = 4 * q
        s0 += row[k] * w[places[k]]
        s1 += row[k + 1] * w[places[k + 1]]
        s2 += row[k + 2] * w[places[k + 2]]
        s3 += row[k + 3] * w[places[k + 3]]
    for k in range(4 * fours, row.size):
        s0 += row[k] * w[places[k]]
    return (s0 + s1) + (s2 + s3)


@lean_kernel
def penalty_residual(objective, row, w):
    """Row r of D w - t."""
    start = objective.penalty_indptr[row]
    stop = objective.penalty_indptr[row + 1]
    return (
        sparse_dot(objective.penalty_data, objective.penalty_indices, start, stop, w)
        - objective.penalty_target[row]
    )


def _penalty_value(objective, w):
    total = 0.0
    for row in range(objective.penalty_target.size):
        residual = penalty_residual(objective, row, w)
        total += residual * residual
    value = 0.5 * total
    for j in range(objective.l1.size):
        value += objective.l1[j] * abs(w[j])
    return value


def _add_penalty_gradient(objective, w, scale, gradient):
    for row in range(objective.penalty_target.size):
        add_sparse(
            gradient,
            objective.penalty_data,
            objective.penalty_indices,
            objective.penalty_indptr[row],
            objective.penalty_indptr[row + 1],
            scale * penalty_residual(objective, row, w),
        )
    for j in range(objective.l1.size):
        if w[j] != 0.0:
            add(gradient, j, scale * (objective.l1[j] if w[j] > 0.0 else -objective.l1[j]))


def _add_smooth_penalty(objective, w, scale, width, out):
    total = 0.0
    for row in range(objective.penalty_target.size):
        residual = penalty_residual(objective, row, w)
        total += residual * residual
        for k in range(objective.penalty_indptr[row], objective.penalty_indptr[row + 1]):
            out[objective.penalty_indices[k]] += scale * residual * objective.penalty_data[k]
    value = 0.5 * total
    for j in range(objective.l1.size):
        strength = objective.l1[j]
        if strength > 0.0 and w[j] != 0.0:
            size, steepness = rounded_size(w[j], width / (strength * w.size))
            value += strength * size
            out[j] += scale * strength * steepness
    return scale * value


def _gradient_with_penalty(objective, example, w, scale, gradient):
    add_loss_gradient(objective, example, w, scale, gradient)
    add_penalty_gradient(objective, w, scale, gradient)


def register_penalties(record_class):
    """For records with the fields of a penalty."""
    penalty_value.register(record_class)(_penalty_value)
    add_penalty_gradient.register(record_class)(_add_penalty_gradient)
    add_smooth_penalty.register(record_class)(_add_smooth_penalty)
    add_gradient.register(record_class)(_gradient_with_penalty)


register_penalties(DenseExamples)
register_penalties(SparseExamples)


@penalty_value.register(object)
def _no_penalty_value(objective, w):
    return 0.0


@add_penalty_gradient.register(object)
def _add_no_penalty_gradient(objective, w, scale, gradient):
    return None


@add_smooth_penalty.register(object)
def _add_no_smooth_penalty(objective, w, scale, width, out):
    return 0.0


@add_loss_gradient.register(object)
def _whole_gradient(objective, example, w, scale, gradient):
    add_gradient(objective, example, w, scale, gradient)


@lean_kernel
def dense_prediction(objective, example, w):
    return shifted(dot(objective.X[example], w), objective.offsets, example)


@lean_kernel
def sparse_prediction(objective, example, w):
    start = objective.indptr[example]
    stop = objective.indptr[example + 1]
    z = sparse_dot(objective.data, objective.indices, start, stop, w)
    return shifted(z, objective.offsets, example)


@add_loss_gradient.register(DenseExamples)
def _dense_gradient(objective, example, w, scale, gradient):
    row = objective.X[example]
    level = level_of(objective.levels, example)
    z = shifted(dot(row, w), objective.offsets, example)
    steepness = slope(objective.kind, level, z, target_of(objective.targets, example))
    steepness *= weight_of(objective.weights, example) * scale
    if steepness != 0.0:
        add_dense(gradient, row, steepness)


@example_value.register(DenseExamples)
def _dense_value(objective, example, w):
    z = dense_prediction(objective, example, w)
    level = level_of(objective.levels, example)
    return weight_of(objective.weights, example) * loss(
        objective.kind, level, z, target_of(objective.targets, example)
    )


@add_loss_gradient.register(SparseExamples)
def _sparse_gradient(objective, example, w, scale, gradient):
    start = objective.indptr[example]
    stop = objective.indptr[example + 1]
    level = level_of(objective.levels, example)
    z = sparse_dot(objective.data, objective.indices, start, stop, w)
    z = shifted(z, objective.offsets, example)
    steepness = slope(objective.kind, level, z, target_of(objective.targets, example))
    steepness *= weight_of(objective.weights, example) * scale
    if steepness != 0.0:
        add_sparse(gradient, objective.data, objective.indices, start, stop, steepness)


@example_value.register(SparseExamples)
def _sparse_value(objective, example, w):
    z = sparse_prediction(objective, example, w)
    level = level_of(objective.levels, example)
    return weight_of(objective.weights, example) * loss(
        objective.kind, level, z, target_of(objective.targets, example)
    )


@add_gradient.register(DenseQuadratic)
def _dense_quadratic_gradient(objective, example, w, scale, gradient):
    add_dense(gradient, objective.q, scale)
    for j in range(w.size):
        gradient.values[j] += scale * dot(objective.P[j], w)


@example_value.register(DenseQuadratic)
def _dense_quadratic_value(objective, example, w):
    total = dot(objective.q, w)
    for j in range(w.size):
        total += 0.5 * w[j] * dot(objective.P[j], w)
    return total


@add_gradient.register(SparseQuadratic)
def _sparse_quadratic_gradient(objective, example, w, scale, gradient):
    add_dense(gradient, objective.q, scale)
    for j in range(w.size):
        gradient.values[j] += scale * sparse_dot(
            objective.data, objective.indices, objective.indptr[j], objective.indptr[j + 1], w
        )


@example_value.register(SparseQuadratic)
def _sparse_quadratic_value(objective, example, w):
    total = dot(objective.q, w)
    for j in range(w.size):
        total += (
            0.5
            * w[j]
            * sparse_dot(
                objective.data, objective.indices, objective.indptr[j], objective.indptr[j + 1], w
            )
        )
    return total


@add_smooth_gradient.register(DenseExamples)
def _dense_smooth_gradient(objective, example, w, scale, width, out):
    row = objective.X[example]
    weight = weight_of(objective.weights, example)
    level = level_of(objective.levels, example)
    z = shifted(dot(row, w), objective.offsets, example)
    value, steepness = smooth_loss(
        objective.kind, level, width, z, target_of(objective.targets, example)
    )
    steepness *= weight * scale
    if steepness != 0.0:
        for j in range(w.size):
            out[j] += steepness * row[j]
    return weight * value


@add_smooth_gradient.register(SparseExamples)
def _sparse_smooth_gradient(objective, example, w, scale, width, out):
    start = objective.indptr[example]
    stop = objective.indptr[example + 1]
    weight = weight_of(objective.weights, example)
    level = level_of(objective.levels, example)
    z = sparse_dot(objective.data, objective.indices, start, stop, w)
    z = shifted(z, objective.offsets, example)
    value, steepness = smooth_loss(
        objective.kind, level, width, z, target_of(objective.targets, example)
    )
    steepness *= weight * scale
    if steepness != 0.0:
        for k in range(start, stop):
            out[objective.indices[k]] += steepness * objective.data[k]
    return weight * value


@add_smooth_gradient.register(DenseQuadratic)
def _dense_quadratic_smooth_gradient(objective, example, w, scale, width, out):
    value = 0.0
    for j in range(w.size):
        image = dot(objective.P[j], w)
        out[j] += scale * (image + objective.q[j])
        value += w[j] * (0.5 * image + objective.q[j])
    return value


@add_smooth_gradient.register(SparseQuadratic)
def _sparse_quadratic_smooth_gradient(objective, example, w, scale, width, out):
    value = 0.0
    for j in range(w.size):
        image = sparse_dot(
            objective.data, objective.indices, objective.indptr[j], objective.indptr[j + 1], w
        )
        out[j] += scale * (image + objective.q[j])
        value += w[j] * (0.5 * image + objective.q[j])
    return value


@lean_kernel
def smooth_value_and_gradient(objective, examples, l2, width, w, out):
    """The whole objective with its kinks rounded over `width`, and its gradient in `out`."""
    total = 0.0
    out[:] = 0.0
    for example in range(examples):
        total += add_smooth_gradient(objective, example, w, 1.0 / examples, width, out)
    if l2 > 0.0:
        for j in range(w.size):
            out[j] += l2 * w[j]
    penalty = add_smooth_penalty(objective, w, 1.0, width, out)
    return total / examples + 0.5 * l2 * dot(w, w) + penalty


@lean_kernel
def smooth_value(objective, examples, l2, width, w, spare):
    """The same without the gradient: scaled by 0, examples leave `spare` as it is."""
    total = 0.0
    for example in range(examples):
        total += add_smooth_gradient(objective, example, w, 0.0, width, spare)
    penalty = add_smooth_penalty(objective, w, 1.0, width, spare)
    return total / examples + 0.5 * l2 * dot(w, w) + penalty


@lean_kernel
def mean_value(objective, examples, l2, w):
    """The whole objective at w, recomputed from every example."""
    total = 0.0
    for example in range(examples):
        total += example_value(objective, example, w)
    mean = total / examples + penalty_value(objective, w)
    return mean + 0.5 * l2 * dot(w, w) if l2 > 0.0 else mean


@lean_kernel
def full_gradient(objective, examples, l2, w, gradient, out):
    """A subgradient of the whole objective at w, in `out`; `gradient` is for gathering."""
    for example in range(examples):
        add_loss_gradient(objective, example, w, 1.0 / examples, gradient)
    if l2 > 0.0:
        add_dense(gradient, w, l2)
    for j in range(w.size):
        out[j] = gradient.values[j] if gradient.stamp[j] == gradient.cursor[1] else 0.0
    add_smooth_penalty(objective, w, 1.0, 0.0, out)


@lean_kernel
def whole_penalty(objective, l2, w):
    """The part of the objective that no example has a share in."""
    return 0.5 * l2 * dot(w, w) + penalty_value(objective, w)


@lean_kernel
def sampled_mean(objective, rows, w):
    """The mean of the given examples' terms."""
    total = 0.0
    for example in rows:
        total += example_value(objective, example, w)
    return total / rows.size


# -------------------------------------------------------------------------------------------------
# Weighted sums of objectives as records, and what the verbs do on them.
#
# A part whose objective is a mean over n examples shares the N examples of the whole: an example of
# it counts N weight / n times. A part of a single term is *exact*: it has no examples of its own,
# but is added to every step like a penalty, which is less noisy than to meet it once in N steps.


class SampledPart(NamedTuple):
    """A part of which examples are drawn; each counts `factor`, its penalty `weight`."""

    part: NamedTuple
    factor: float
    weight: float


class ExactPart(NamedTuple):
    """A part of one term that counts `weight` in every step."""

    part: NamedTuple
    weight: float


class JoinedParts(NamedTuple):
    """Two parts, or a part and more of them; `split` is the count of the first one's examples."""

    first: NamedTuple
    second: NamedTuple
    split: int


@verb
def add_unvisited_penalty(objective, w, out):
    """Add the gradient of a penalty that has no rows to be visited one by one."""


@add_unvisited_penalty.register(object)
def _add_nothing_unvisited(objective, w, out):
    return None


def _add_whole_penalty(objective, w, out):
    add_smooth_penalty(objective, w, 1.0, 0.0, out)


def _gradient_of_sum(objective, example, w, scale, gradient):
    add_loss_gradient(objective, example, w, scale, gradient)
    add_penalty_gradient(objective, w, scale, gradient)


for _record in (SampledPart, ExactPart, JoinedParts):
    add_unvisited_penalty.register(_record)(_add_whole_penalty)
    add_gradient.register(_record)(_gradient_of_sum)


# ------------------------------------------------------------------------------ examples of a part


@example_value.register(SampledPart)
def _sampled_value(objective, example, w):
    return objective.factor * example_value(objective.part, example, w)


@add_loss_gradient.register(SampledPart)
def _sampled_gradient(objective, example, w, scale, gradient):
    add_loss_gradient(objective.part, example, w, scale * objective.factor, gradient)


@add_smooth_gradient.register(SampledPart)
def _sampled_smooth_gradient(objective, example, w, scale, width, out):
    factor = objective.factor
    return factor * add_smooth_gradient(objective.part, example, w, scale * factor, width, out)


@penalty_value.register(SampledPart)
def _sampled_penalty(objective, w):
    return objective.weight * penalty_value(objective.part, w)


@add_penalty_gradient.register(SampledPart)
def _sampled_penalty_gradient(objective, w, scale, gradient):
    add_penalty_gradient(objective.part, w, scale * objective.weight, gradient)


@add_smooth_penalty.register(SampledPart)
def _sampled_smooth_penalty(objective, w, scale, width, out):
    return add_smooth_penalty(objective.part, w, scale * objective.weight, width, out)


# -------------------------------------------------------------------- the one term of an exact part


@example_value.register(ExactPart)
def _exact_value(objective, example, w):
    return 0.0


@add_loss_gradient.register(ExactPart)
def _exact_gradient(objective, example, w, scale, gradient):
    return None


@add_smooth_gradient.register(ExactPart)
def _exact_smooth_gradient(objective, example, w, scale, width, out):
    return 0.0


@penalty_value.register(ExactPart)
def _exact_penalty(objective, w):
    part = objective.part
    return objective.weight * (example_value(part, 0, w) + penalty_value(part, w))


@add_penalty_gradient.register(ExactPart)
def _exact_penalty_gradient(objective, w, scale, gradient):
    add_gradient(objective.part, 0, w, scale * objective.weight, gradient)


@add_smooth_penalty.register(ExactPart)
def _exact_smooth_penalty(objective, w, scale, width, out):
    part = objective.part
    scale *= objective.weight
    value = scale * add_smooth_gradient(part, 0, w, scale, width, out)
    return value + add_smooth_penalty(part, w, scale, width, out)


# --------------------------------------------------------------------------------------- two parts


@example_value.register(JoinedParts)
def _joined_value(objective, example, w):
    if example < objective.split:
        return example_value(objective.first, example, w)
    return example_value(objective.second, example - objective.split, w)


@add_loss_gradient.register(JoinedParts)
def _joined_gradient(objective, example, w, scale, gradient):
    if example < objective.split:
        add_loss_gradient(objective.first, example, w, scale, gradient)
    else:
        add_loss_gradient(objective.second, example - objective.split, w, scale, gradient)


@add_smooth_gradient.register(JoinedParts)
def _joined_smooth_gradient(objective, example, w, scale, width, out):
    if example < objective.split:
        return add_smooth_gradient(objective.first, example, w, scale, width, out)
    return add_smooth_gradient(objective.second, example - objective.split, w, scale, width, out)


@penalty_value.register(JoinedParts)
def _joined_penalty(objective, w):
    return penalty_value(objective.first, w) + penalty_value(objective.second, w)


@add_penalty_gradient.register(JoinedParts)
def _joined_penalty_gradient(objective, w, scale, gradient):
    add_penalty_gradient(objective.first, w, scale, gradient)
    add_penalty_gradient(objective.second, w, scale, gradient)


@add_smooth_penalty.register(JoinedParts)
def _joined_smooth_penalty(objective, w, scale, width, out):
    first = add_smooth_penalty(objective.first, w, scale, width, out)
    return first + add_smooth_penalty(objective.second, w, scale, width, out)
