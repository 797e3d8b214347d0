"""Lines that several of the paper's algorithms share."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lighttouch.kernels.compiler.compiled import lean_kernel
from lighttouch.kernels.compiler.intrinsics import prefetch
from lighttouch.kernels.state.distribution import Distribution, fetch_changes, learn
from lighttouch.kernels.state.iterate import CHECKS, SAMPLES, add_dense, next_example
from lighttouch.kernels.verbs.constraints import (
    Groups,
    add_subgradient,
    fetch_constraint,
    fetch_entries,
    group_stop,
    worst,
)
from lighttouch.kernels.verbs.objectives import add_gradient


class Learning(NamedTuple):
    """What Algorithms 2 to 4 learn with: p over the groups of constraints, and room for what is
    found on S. A loop takes it apart before it begins.
    """

    groups: Groups
    distribution: Distribution
    found: np.ndarray


@lean_kernel
def sample_losses(objective, steps, w, visits, gradient, counters, rng):
    """Add a stochastic subgradient of f at w: the mean over the next k_f examples."""
    for _ in range(steps.batch):
        add_gradient(objective, next_example(visits, rng), w, 1.0 / steps.batch, gradient)
    if steps.l2 > 0.0:
        add_dense(gradient, w, steps.l2)
    counters[SAMPLES] += steps.batch


@lean_kernel
def push(constraints, groups, i, w, scale, gradient, counters):
    """Add scale times a subgradient of max{0, g_i(w)}."""
    first = i * groups.size
    stop = group_stop(i, groups.size, groups.members)
    violation, member = worst(constraints, first, stop, w)
    if violation > 0.0:
        add_subgradient(constraints, member, w, scale, gradient)
    counters[CHECKS] += stop - first


@lean_kernel
def fetch_set(constraints, groups, distribution, size):
    """Ask for the rows of S, and what is remembered of them, before they are evaluated.

    Where they lie is asked for first and their entries second, so that no question waits for the
    answer to another.
    """
    chosen = distribution.chosen
    for q in range(size):
        j = np.int64(chosen[q])
        fetch_constraint(constraints, j * groups.size)
        prefetch(distribution.law, j)
    for q in range(size):
        fetch_entries(constraints, chosen[q] * groups.size)


@lean_kernel
def look(constraints, groups, distribution, size, w, found, counters):
    """max{0, g_j(w)} of every j in S; what learning it will change is asked for at once."""
    for q in range(size):
        j = np.int64(distribution.chosen[q])
        first = j * groups.size
        stop = group_stop(j, groups.size, groups.members)
        violation, _ = worst(constraints, first, stop, w)
        found[q] = max(0.0, violation)
        counters[CHECKS] += stop - first
        fetch_changes(distribution, j, found[q])


@lean_kernel
def learn_set(distribution, size, found):
    """ln p += eta_p (gamma mu + (gamma m / k) sum over S of e_j (max{0, g_j} - mu_j)), then mu_j =
    max{0, g_j} on S.

    The distribution holds eta_p gamma, and lets ln p grow along eta_p gamma mu by itself.
    """
    share = distribution.law.shape[0] / size
    for q in range(size):
        learn(distribution, np.int64(distribution.chosen[q]), found[q], share)
