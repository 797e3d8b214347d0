"""The learned distribution p over the constraints: exact, in the log domain, and without O(m) work
per iteration.

Between two looks at constraint j its log-weight grows linearly in t, with slope rate * mu_j, so
only what is looked at changes. Draws descend a tree of sums, whose leaves are *upper bounds* of
the weights; a draw is kept with probability weight / bound (rejection sampling, von Neumann 1951).
A bound holds until it expires; a timer wheel says when.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from lighttouch.kernels.compiler.compiled import lean_kernel
from lighttouch.kernels.compiler.intrinsics import prefetch

LOG_2 = math.log(2.0)
TINIEST, LARGEST = -700.0, 700.0  # exponents outside are zero, or ask for a new reference
ABSURD = 1e250  # an exponent that only a diverged run learns
LOG_WEIGHT, SINCE, REMEMBERED = 0, 1, 2  # columns of `law`, before the wheel's links
NOW, REJECTED, RENEWED, REFERENCES, WORK = 0, 1, 2, 3, 4  # entries of `clock`


class Distribution(NamedTuple):
    """p_j is proportional to exp(law[j, LOG_WEIGHT] + (t - law[j, SINCE]) * rate * law[j,
    REMEMBERED]).

    A row of `law` is everything about one constraint, in one cache line. `tree` holds the bounds
    and, level by level from `offsets`, their sums; `heads` are the slots of the wheel; `shuffled`
    is a permutation from which large sets S are drawn, `chosen` begins with the last S; `scalars`
    are [rate, reference exponent, log of a share 1/m]; `clock` is [t, rejected draws, renewed
    bounds, new references, rejections and renewals since the last of these].
    """

    law: np.ndarray
    tree: np.ndarray
    offsets: np.ndarray
    heads: np.ndarray
    shuffled: np.ndarray
    chosen: np.ndarray
    scalars: np.ndarray
    clock: np.ndarray


def new_distribution(
    violations: np.ndarray, rate: float, logs: np.ndarray | float = 0.0
) -> Distribution:
    """The distribution at t = 1 with these log-weights, uniform where none are given, remembering
    the given mu_j = max(0, g_j(w)); rate is eta_p * gamma.
    """
    count = violations.size
    offsets = level_offsets(count)
    index = np.int32 if count < 2**31 - 1 else np.int64
    law = np.zeros((count, LINE))
    law[:, LOG_WEIGHT] = logs
    law[:, SINCE] = 1.0
    law[:, REMEMBERED] = np.minimum(violations, ABSURD / max(1.0, rate))
    law[:, NEXT : SLOT + 1] = -1.0
    distribution = Distribution(
        law,
        np.zeros(offsets[-1]),
        offsets.astype(np.int64),
        empty_slots(count, index),
        np.arange(count, dtype=index),
        np.zeros(count, index),
        np.array([rate, 0.0, -math.log(max(1, count))]),
        np.array([1, 0, 0, 0, 0], np.int64),
    )
    if count:
        set_reference(distribution)
    return distribution


def probabilities(distribution: Distribution) -> np.ndarray:
    """All of p, exactly: O(m), for results and tests."""
    return normalised(log_weights(distribution))


def log_weights(distribution: Distribution) -> np.ndarray:
    """The logarithms of all weights now, those that were given as 0 and never changed still 0."""
    law, t = distribution.law, distribution.clock[NOW]
    growth = distribution.scalars[0] * law[:, REMEMBERED]
    return np.asarray(law[:, LOG_WEIGHT] + (t - law[:, SINCE]) * growth)


def normalised(logs: np.ndarray) -> np.ndarray:
    """The probabilities with these logarithms of weights."""
    if logs.size == 0:
        return logs
    weights = np.exp(logs - logs.max())
    return np.asarray(weights / weights.sum())


@lean_kernel
def log_weight(distribution, j, t):
    """ln of the weight of j at time t, up to the common reference."""
    growth = distribution.scalars[0] * distribution.law[j, REMEMBERED]
    return (
        distribution.law[j, LOG_WEIGHT]
        + (t - distribution.law[j, SINCE]) * growth
        - distribution.scalars[1]
    )


@lean_kernel
def draw(distribution, rng):
    """One index from p^(t)."""
    while True:
        j = descend(distribution, rng.random())
        if is_kept(distribution, j, rng):
            return j


@lean_kernel
def is_kept(distribution, j, rng):
    """Whether a leaf drawn by its bound is a draw from p: with probability weight / bound."""
    if distribution.law[j, REMEMBERED] == 0.0:
        return True
    if not rng.random() * distribution.tree[j] > math.exp(
        log_weight(distribution, j, distribution.clock[NOW])
    ):
        return True
    distribution.clock[REJECTED] += 1
    distribution.clock[WORK] += 1
    if overdue(distribution):
        set_reference(distribution)
    return False


@lean_kernel
def overdue(distribution):
    """Whether more draws were rejected and bounds renewed than a new reference, with tight bounds,
    costs.
    """
    return distribution.clock[WORK] > max(64, distribution.law.shape[0])


@lean_kernel
def fetch_bound(distribution, j):
    """Ask for what renewing the bound of j reads and changes; j is -1 where there is none."""
    if j >= 0:
        prefetch(distribution.law, j)
        fetch_leaves(distribution.tree, j)


@lean_kernel
def fetch_changes(distribution, j, violation):
    """Ask for what `learn` will change, if it will change anything."""
    law = distribution.law
    if violation == law[j, REMEMBERED]:
        return
    fetch_leaves(distribution.tree, j)
    if law[j, SLOT] >= 0.0:
        if law[j, NEXT] >= 0.0:
            prefetch(law, int(law[j, NEXT]))
        if law[j, PREVIOUS] >= 0.0:
            prefetch(law, int(law[j, PREVIOUS]))


@lean_kernel
def draw_set(distribution, size, rng):
    """A uniformly random set of `size` constraints without repetition: the first entries of
    `chosen`.

    A small set is drawn one by one, repetitions again, which touches no memory far away; a large
    one by shuffling.
    """
    chosen = distribution.chosen
    shuffled = distribution.shuffled
    if size * size <= shuffled.size:
        for place in range(size):
            chosen[place] = fresh_index(chosen, place, shuffled.size, rng)
        return
    for place in range(size):
        other = place + int(rng.random() * (shuffled.size - place))
        chosen[place] = shuffled[other]
        shuffled[other] = shuffled[place]
        shuffled[place] = chosen[place]


@lean_kernel
def fresh_index(chosen, place, count, rng):
    """A random index that is not among the first `place` chosen ones."""
    while True:
        j = int(rng.random() * count)
        same = 0
        for q in range(place):  # counted to the end, which vectorises; an early exit would not
            same += chosen[q] == j
        if same == 0:
            return j


@lean_kernel
def learn(distribution, j, violation, factor):
    """Constraint j is in S^(t): ln p_j += rate * (mu_j + factor * (violation - mu_j)), mu_j =
    violation; valid from t + 1.
    """
    law = distribution.law
    if violation == law[j, REMEMBERED]:
        return
    t = distribution.clock[NOW] + 1
    rate = distribution.scalars[0]
    grown = (t - law[j, SINCE]) * (rate * law[j, REMEMBERED])
    learnt = law[j, LOG_WEIGHT] + grown + rate * factor * (violation - law[j, REMEMBERED])
    if (
        not abs(learnt) + rate * violation < ABSURD
    ):  # w has diverged; until the driver sees that, p must stay one
        return
    law[j, LOG_WEIGHT] = learnt
    law[j, SINCE] = t
    law[j, REMEMBERED] = violation
    renew(distribution, j, t)


@lean_kernel
def tick(distribution):
    """t becomes t + 1: renew the bounds that have expired, and the reference exponent when it has
    drifted away.
    """
    distribution.clock[NOW] += 1
    t = distribution.clock[NOW]
    slot = t % distribution.heads.size
    j = np.int64(distribution.heads[slot])
    distribution.heads[slot] = -1
    while j >= 0:
        following = int(distribution.law[j, NEXT])
        fetch_bound(distribution, following)
        distribution.law[j, SLOT] = -1.0
        distribution.clock[RENEWED] += 1
        distribution.clock[WORK] += 1
        renew(distribution, j, t)
        j = following
    fetch_bound(distribution, np.int64(distribution.heads[(t + 1) % distribution.heads.size]))
    root = distribution.tree[distribution.offsets[distribution.offsets.size - 2]]
    if root > 1e300 or root < 1e-250 or overdue(distribution):
        set_reference(distribution)
    elif root > 1e260:
        lift_reference(distribution, math.log(root))


@lean_kernel
def lift_reference(distribution, by):
    """Measure all weights against a larger one: every bound shrinks by the same factor, and most
    were zero already.
    """
    tree = distribution.tree
    offsets = distribution.offsets
    shrink = math.exp(-by)
    distribution.scalars[1] += by
    if offsets.size == 2:
        tree[0] *= shrink
        return
    nodes = (distribution.law.shape[0] + WIDTH - 1) // WIDTH
    for node in range(nodes):
        if tree[offsets[1] + node] > 0.0:
            for leaf in range(node * WIDTH, (node + 1) * WIDTH):
                tree[leaf] *= shrink
    sum_levels(distribution)


@lean_kernel
def renew(distribution, j, t):
    set_leaf(distribution, j, expiring_bound(distribution, j, t))


@lean_kernel
def expiring_bound(distribution, j, t):
    """A bound on the weight of j that holds until it doubles, or reaches 1/m of the reference;
    entered in the wheel.

    The 1/m is of the largest weight when the reference was set, so all bounds together were then at
    most four times all weights. A share of the bounds themselves would feed on itself: every
    renewal would raise the next.
    """
    now = log_weight(distribution, j, t)
    growth = distribution.scalars[0] * distribution.law[j, REMEMBERED]
    slot = int(distribution.law[j, SLOT])
    if growth > 0.0:
        wheel = distribution.heads.size
        span = math.floor(
            min(wheel - 2.0, (max(now, distribution.scalars[2]) + LOG_2 - now) / growth)
        )
        wait = (slot - t) % wheel
        if slot >= 0 and wait <= span + 1.0:
            # it is renewed soon enough where it stands: moving it would cost four cache misses
            span = max(0.0, wait - 1.0)
        else:
            unlink(distribution, j)
            link(distribution, j, (t + int(span) + 1) % wheel)
        now += span * growth
    elif slot >= 0:
        unlink(distribution, j)
    # above LARGEST this understates, but the root is then so large that `tick` sets a new reference
    # before the next draw
    return math.exp(min(now, LARGEST)) if now > TINIEST else 0.0


@lean_kernel
def set_reference(distribution):
    """Measure all weights against the largest one, and rebuild every bound: O(m), when exponents
    have drifted by hundreds.
    """
    count = distribution.law.shape[0]
    t = distribution.clock[NOW]
    distribution.clock[REFERENCES] += 1
    distribution.clock[WORK] = 0
    distribution.scalars[1] = 0.0
    largest = -math.inf
    for j in range(count):
        largest = max(largest, log_weight(distribution, j, t))
    distribution.scalars[1] = largest
    distribution.heads[:] = -1
    distribution.law[:, SLOT] = -1.0
    tree = distribution.tree
    tree[:] = 0.0
    # most constraints were never violated and share one log-weight: one exponential serves them all
    same = math.nan
    weight = 0.0
    for j in range(count):
        if distribution.law[j, REMEMBERED] > 0.0:
            tree[j] = expiring_bound(distribution, j, t)
            continue
        if distribution.law[j, LOG_WEIGHT] != same:
            same = distribution.law[j, LOG_WEIGHT]
            weight = expiring_bound(distribution, j, t)
        tree[j] = weight
    sum_levels(distribution)


# -------------------------------------------------------------------------------------------------
# A tree of sums with 32 children per node: draws a leaf in proportion to what it holds.
#
# `tree` holds the leaves and, level by level from `offsets`, the sums of their 32 children. Sums
# are taken again, never corrected, so that rounding errors do not pile up.


WIDTH = 32  # children of a node
LINE = 8  # numbers in a cache line


def level_offsets(leaves: int) -> np.ndarray:
    """Where each level begins, the leaves first; the last entry is the length of the tree."""
    sizes = [leaves]
    while sizes[-1] > 1:
        sizes.append(-(-sizes[-1] // WIDTH))
    return np.cumsum([0] + [-(-size // WIDTH) * WIDTH for size in sizes])


@lean_kernel
def descend(distribution, u):
    """The leaf in which a share u of the sum of all bounds lies."""
    tree = distribution.tree
    levels = distribution.offsets.size - 1
    rest = u * tree[distribution.offsets[levels - 1]]
    node = 0
    for level in range(levels - 2, -1, -1):
        first = distribution.offsets[level] + node * WIDTH
        if level == 0:
            fetch_leaves(tree, first)
        child, rest = child_of(tree, first, rest)
        node = node * WIDTH + child
    return node


@lean_kernel
def child_of(tree, first, rest):
    """Which of the children that begin at `first` a share `rest` of their sum lies in, and what is
    left of it there.
    """
    child = 0
    while child < WIDTH - 1 and rest >= tree[first + child]:
        rest -= tree[first + child]
        child += 1
    while child > 0 and tree[first + child] == 0.0:  # rounding may step past the last weight
        child -= 1
    return child, rest


@lean_kernel
def descend_together(distribution, count, rng, rests, leaves):
    """`count` independent leaves, as by `descend`: all go down one level before any goes on, so
    that each finds its next children in the cache.
    """
    tree = distribution.tree
    levels = distribution.offsets.size - 1
    for q in range(count):
        rests[q] = rng.random() * tree[distribution.offsets[levels - 1]]
        leaves[q] = 0
    for level in range(levels - 2, -1, -1):
        for q in range(count):
            first = distribution.offsets[level] + leaves[q] * WIDTH
            child, rests[q] = child_of(tree, first, rests[q])
            leaves[q] = leaves[q] * WIDTH + child
            if level > 0:
                fetch_leaves(tree, distribution.offsets[level - 1] + leaves[q] * WIDTH)
            else:
                prefetch(distribution.law, leaves[q])


@lean_kernel
def set_leaf(distribution, j, bound):
    tree = distribution.tree
    if tree[j] == bound:
        return
    tree[j] = bound
    node = j
    for level in range(distribution.offsets.size - 2):
        node //= WIDTH
        tree[distribution.offsets[level + 1] + node] = sum_of_children(
            tree, distribution.offsets[level] + node * WIDTH
        )


@lean_kernel
def sum_levels(distribution):
    """Every sum of the tree, from the leaves up."""
    tree = distribution.tree
    size = distribution.law.shape[0]
    for level in range(distribution.offsets.size - 2):
        size = (size + WIDTH - 1) // WIDTH
        for node in range(size):
            tree[distribution.offsets[level + 1] + node] = sum_of_children(
                tree, distribution.offsets[level] + node * WIDTH
            )


@lean_kernel
def sum_of_children(tree, first):
    s0 = 0.0
    s1 = 0.0
    s2 = 0.0
    s3 = 0.0
    for child in range(first, first + WIDTH, 4):
        s0 += tree[child]
        s1 += tree[child + 1]
        s2 += tree[child + 2]
        s3 += tree[child + 3]
    return (s0 + s1) + (s2 + s3)


@lean_kernel
def fetch_leaves(tree, leaf):
    """Ask for the bounds of a leaf and its siblings, whose sum is taken again when it changes."""
    first = leaf - leaf % WIDTH
    for place in range(first, first + WIDTH, LINE):
        prefetch(tree, place)


# -------------------------------------------------------------------------------------------------
# A timer wheel: which constraints are due at which iteration.
#
# Varghese and Lauck (1987); the calendar queue of Brown (1988) with one iteration per day. Slot
# t mod size is the head of a doubly linked list, whose links are three columns of `law`.


# the longest wait, in iterations; as long as there are constraints, where there are more
WHEEL = 4096
LARGEST_WHEEL = 1 << 20  # but no longer than this
NEXT, PREVIOUS, SLOT = 3, 4, 5  # columns of `law`: whole numbers, -1 for none


def empty_slots(constraints: int, index: type) -> np.ndarray:
    longest = min(LARGEST_WHEEL, 1 << constraints.bit_length())
    return np.full(max(WHEEL, longest), -1, index)


@lean_kernel
def link(distribution, j, slot):
    law = distribution.law
    head = np.int64(distribution.heads[slot])
    law[j, NEXT] = head
    law[j, PREVIOUS] = -1.0
    law[j, SLOT] = slot
    if head >= 0:
        law[head, PREVIOUS] = j
    distribution.heads[slot] = j


@lean_kernel
def unlink(distribution, j):
    law = distribution.law
    slot = int(law[j, SLOT])
    if slot < 0:
        return
    following = int(law[j, NEXT])
    before = int(law[j, PREVIOUS])
    if before >= 0:
        law[before, NEXT] = following
    else:
        distribution.heads[slot] = following
    if following >= 0:
        law[following, PREVIOUS] = before
    law[j, SLOT] = -1.0
