"""Automatic minibatching (Section 5.2): how many losses, drawn constraints and remembered
constraints an iteration looks at.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from lighttouch.kernels.compiler.compiled import lean_kernel

LOSS, PUSH, LEARN = 0, 1, 2  # the three gradients: k_f, k_g, k_p


class Batches(NamedTuple):
    """Sizes [k_f, k_g, k_p]; averaged variances and mean costs of single samples; `memory` is nu,
    `weight` its running sum.
    """

    sizes: np.ndarray
    variances: np.ndarray
    costs: np.ndarray
    weight: np.ndarray
    memory: float


def first_batches(costs: np.ndarray, memory: float, constraints: int) -> Batches:
    """The smallest sizes, before any variance is known."""
    sizes = np.array([2, 2 if constraints else 0, min(1, constraints)], np.int64)
    return Batches(sizes, np.zeros(3), np.asarray(costs, float), np.zeros(1), memory)


@lean_kernel
def remember_variances(batches, of_loss, of_push, of_learning):
    """v-bar^(t+1) is proportional to v^(t) + nu v-bar^(t)."""
    batches.weight[0] = 1.0 + batches.memory * batches.weight[0]
    share = 1.0 / batches.weight[0]
    batches.variances[LOSS] += (of_loss - batches.variances[LOSS]) * share
    batches.variances[PUSH] += (of_push - batches.variances[PUSH]) * share
    batches.variances[LEARN] += (of_learning - batches.variances[LEARN]) * share


@lean_kernel
def choose_sizes(batches, step, weight_step, constraints):
    """[k_f, k_g, k_p] proportional to sqrt(step * variance / cost), scaled so that k_f = 2,
    rounded, at least [2, 2, 1].
    """
    loss = math.sqrt(step * batches.variances[LOSS] / batches.costs[LOSS])
    push = math.sqrt(step * batches.variances[PUSH] / batches.costs[PUSH])
    learn = math.sqrt(weight_step * batches.variances[LEARN] / batches.costs[LEARN])
    batches.sizes[PUSH] = scaled_size(push, loss, 2, max(2, constraints))
    batches.sizes[LEARN] = scaled_size(learn, loss, 1, constraints)


@lean_kernel
def scaled_size(impact, loss_impact, least, most):
    if impact == 0.0:
        return least
    if 2.0 * impact >= most * loss_impact:
        return most
    return min(most, max(least, int(0.5 + 2.0 * impact / loss_impact)))
