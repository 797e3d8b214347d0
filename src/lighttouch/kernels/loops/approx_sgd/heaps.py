"""What one step of ApproxSGD works with, and its heaps.

Every moving group has a skew heap of the slacks of its arcs (Sleator and Tarjan 1986), whose keys
can all be moved at once; a binary heap orders the groups by their next events. The records are
structured arrays, one array per kind of thing: a dozen plain arrays in their place took numba 20 s
to compile.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lighttouch.kernels.compiler.compiled import lean_kernel

NOTHING = -1
MOVED, ROUND, EXAMINED, QUEUED, MARK = 0, 1, 2, 3, 4  # what `counts` counts

PARAMETER = np.dtype(
    [("stamp", "i8"), ("group", "i8"), ("next", "i8"), ("lead", "f8"), ("before", "f8")], align=True
)
GROUP = np.dtype(
    [
        (name, "i8")
        for name in (
            "head",
            "tail",
            "members",
            "held_above",
            "held_below",
            "above",
            "below",
            "shared",
            "version",
        )
    ]
    + [(name, "f8") for name in ("total", "velocity", "way", "since")]
    + [(name, "i8") for name in ("event_arc", "event_partner", "event_version", "place")]
    + [(name, "f8") for name in ("event_time", "event_speed")],
    align=True,
)
ARC = np.dtype(
    [("key", "f8"), ("pending", "f8"), ("left", "i8"), ("right", "i8"), ("next", "i8")], align=True
)
NEIGHBOUR = np.dtype([("mark", "i8"), ("tightest", "i8"), ("slack", "f8")], align=True)


class Move(NamedTuple):
    """Nothing of it outlives a step, except that marks and rounds go on counting."""

    # group, way relative to the group's, value before the step; where stamp is the current round
    parameters: np.ndarray
    groups: np.ndarray
    arcs: np.ndarray
    neighbours: (
        np.ndarray
    )  # two per group, above and below, while one group looks for its next event
    moved: np.ndarray
    found: np.ndarray
    order: np.ndarray  # binary heap of groups by their events
    counts: np.ndarray


def new_move(dimension: int, rows: int) -> Move:
    def records(size: int, kind: np.dtype) -> np.ndarray:
        return np.zeros(size, kind).view(np.recarray)

    arcs = records(2 * rows + 2 * dimension, ARC)
    integers = (np.zeros(size, np.int64) for size in (dimension, 2 * dimension, dimension, 5))
    return Move(
        records(dimension, PARAMETER),
        records(dimension, GROUP),
        arcs,
        records(2 * dimension, NEIGHBOUR),
        *integers,
    )


@lean_kernel
def tighter(arcs, a, b):
    return arcs.key[a] < arcs.key[b] or (arcs.key[a] == arcs.key[b] and a < b)


@lean_kernel
def hand_down(arcs, root):
    """Add to the children's keys what is pending at the root."""
    extra = arcs.pending[root]
    if extra != 0.0:
        for child in (arcs.left[root], arcs.right[root]):
            if child != NOTHING:
                arcs.key[child] += extra
                arcs.pending[child] += extra
        arcs.pending[root] = 0.0


@lean_kernel
def meld(arcs, a, b):
    """The root of two skew heaps of arcs in one, in O(log n) amortised."""
    if a == NOTHING:
        return b
    if b == NOTHING:
        return a
    if tighter(arcs, b, a):
        a, b = b, a
    root = a
    while True:
        hand_down(arcs, a)
        rest = arcs.right[a]
        arcs.right[a] = arcs.left[a]
        if rest == NOTHING:
            arcs.left[a] = b
            return root
        if tighter(arcs, b, rest):
            rest, b = b, rest
        arcs.left[a] = rest
        a = rest


@lean_kernel
def with_slack(arcs, root, arc, key):
    """The root after one more arc."""
    arcs.key[arc] = key
    arcs.pending[arc] = 0.0
    arcs.left[arc] = NOTHING
    arcs.right[arc] = NOTHING
    return meld(arcs, root, arc)


@lean_kernel
def without_tightest(arcs, root):
    hand_down(arcs, root)
    return meld(arcs, arcs.left[root], arcs.right[root])


@lean_kernel
def add_to_all(arcs, root, extra):
    if root != NOTHING:
        arcs.key[root] += extra
        arcs.pending[root] += extra


@lean_kernel
def sooner(groups, g, h):
    """Earliest first, then fastest closing, then the first row."""
    if groups.event_time[g] != groups.event_time[h]:
        return groups.event_time[g] < groups.event_time[h]
    if groups.event_speed[g] != groups.event_speed[h]:
        return groups.event_speed[g] > groups.event_speed[h]
    return groups.event_arc[g] < groups.event_arc[h]


@lean_kernel
def put(move, place, group):
    move.order[place] = group
    move.groups.place[group] = place


@lean_kernel
def sift(move, place):
    """Restore the heap of events around one place whose event has changed."""
    order, groups = move.order, move.groups
    group = order[place]
    while place > 0 and sooner(groups, group, order[(place - 1) // 2]):
        put(move, place, order[(place - 1) // 2])
        place = (place - 1) // 2
    while 2 * place + 1 < move.counts[QUEUED]:
        child = 2 * place + 1
        if child + 1 < move.counts[QUEUED] and sooner(groups, order[child + 1], order[child]):
            child += 1
        if not sooner(groups, order[child], group):
            break
        put(move, place, order[child])
        place = child
    put(move, place, group)


@lean_kernel
def enqueue(move, group):
    put(move, move.counts[QUEUED], group)
    move.counts[QUEUED] += 1
    sift(move, move.counts[QUEUED] - 1)


@lean_kernel
def dequeue(move, group):
    place = move.groups.place[group]
    move.counts[QUEUED] -= 1
    if place < move.counts[QUEUED]:
        put(move, place, move.order[move.counts[QUEUED]])
        sift(move, place)
