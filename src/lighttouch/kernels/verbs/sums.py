"""Weighted sums of objectives as records, and what the verbs do on them.

A part whose objective is a mean over n examples shares the N examples of the whole: an example of
it counts N weight / n times. A part of a single term is *exact*: it has no examples of its own, but
is added to every step like a penalty, which is less noisy than to meet it once in N steps.
"""

from __future__ import annotations

from typing import NamedTuple

from lighttouch.kernels.compiler.compiled import verb
from lighttouch.kernels.verbs.objectives import (
    add_gradient,
    add_loss_gradient,
    add_penalty_gradient,
    add_smooth_gradient,
    add_smooth_penalty,
    example_value,
    penalty_value,
)


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
