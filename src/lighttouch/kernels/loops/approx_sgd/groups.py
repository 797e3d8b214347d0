"""The active-set move of ApproxSGD: parameters tied by a tight order move by their average until
the step is used up.

Time runs from 0 to 1 over a step. A group moves with the mean of its parameters' directions, or
rests where a bound holds it. A constraint is an arc from either end: arc 2r starts at row r's
smaller parameter, 2r + 1 at its larger one; behind the rows come two arcs for the bounds of each
parameter. A group meets a resting parameter when its own way equals a key that does not depend on
its speed, so those arcs wait in heaps; of the arcs between two moving groups only the tightest
matters.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from lighttouch.kernels.compiler.compiled import lean_kernel
from lighttouch.kernels.loops.approx_sgd.heaps import (
    EXAMINED,
    MARK,
    MOVED,
    NOTHING,
    QUEUED,
    ROUND,
    add_to_all,
    dequeue,
    enqueue,
    meld,
    sift,
    with_slack,
    without_tightest,
)


class OrderLinks(NamedTuple):
    """Rows scale (w[smaller] - w[larger]) <= b, the arcs of every parameter, its bounds, and what
    orders leave of them.
    """

    smaller: np.ndarray
    larger: np.ndarray
    scale: np.ndarray
    b: np.ndarray
    room: np.ndarray  # b / scale: how far the smaller may exceed the larger
    start: np.ndarray
    arcs: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    least: np.ndarray
    most: np.ndarray
    plain: int  # 1 where every b is zero, so that tied parameters are equal


@lean_kernel
def moves(move, i):
    return move.parameters.stamp[i] == move.counts[ROUND]


@lean_kernel
def way_at(groups, g, now):
    """How far the group has gone."""
    return groups.way[g] + groups.velocity[g] * (now - groups.since[g])


@lean_kernel
def bring_up_to(groups, g, now):
    groups.way[g] = way_at(groups, g, now)
    groups.since[g] = now


@lean_kernel
def position(move, w, i, now):
    if not moves(move, i):
        return w[i]
    return w[i] + (move.parameters.lead[i] + way_at(move.groups, move.parameters.group[i], now))


@lean_kernel
def other_end(links, arc):
    return links.smaller[arc >> 1] if arc & 1 else links.larger[arc >> 1]


@lean_kernel
def slack_of(links, move, w, row, now):
    return max(
        0.0,
        links.room[row]
        - (position(move, w, links.smaller[row], now) - position(move, w, links.larger[row], now)),
    )


@lean_kernel
def renew_velocity(groups, g):
    """The mean direction; a bound holds a group only against directions that lead out of it."""
    mean = groups.total[g] / groups.members[g]
    if mean < 0.0:
        groups.held_above[g] = 0
    if mean > 0.0:
        groups.held_below[g] = 0
    groups.velocity[g] = 0.0 if groups.held_above[g] + groups.held_below[g] > 0 else mean
    groups.version[g] += 1


@lean_kernel
def found_group(move, g, i, direction):
    """Parameter i starts to move as a group of its own."""
    groups = move.groups
    groups.head[g] = i
    groups.tail[g] = i
    groups.members[g] = 1
    groups.total[g] = direction
    groups.way[g] = 0.0
    groups.since[g] = 0.0
    groups.held_above[g] = 0
    groups.held_below[g] = 0
    groups.above[g] = NOTHING
    groups.below[g] = NOTHING
    groups.shared[g] = NOTHING
    start_moving(move, i, g, 0.0)
    renew_velocity(groups, g)


@lean_kernel
def start_moving(move, i, g, lead):
    parameters = move.parameters
    parameters.stamp[i] = move.counts[ROUND]
    parameters.group[i] = g
    parameters.lead[i] = lead
    parameters.next[i] = NOTHING
    move.moved[move.counts[MOVED]] = i
    move.counts[MOVED] += 1


@lean_kernel
def share(move, g, arc):
    """Add an arc to the group's list of arcs to other moving groups."""
    move.arcs.next[arc] = move.groups.shared[g]
    move.groups.shared[g] = arc


@lean_kernel
def examine(links, move, w, i, now, joined_later):
    """Look at every constraint of a parameter that has started to move, and at its bounds."""
    groups, arcs = move.groups, move.arcs
    g = move.parameters.group[i]
    way = way_at(groups, g, now)
    for q in range(links.start[i], links.start[i + 1]):
        arc = links.arcs[q]
        j = other_end(links, arc)
        if moves(move, j):
            h = move.parameters.group[j]
            if h != g:
                share(move, g, arc)
                if joined_later:
                    share(move, h, arc ^ 1)
        elif arc & 1 == 0:
            groups.above[g] = with_slack(
                arcs, groups.above[g], arc, max(0.0, links.room[arc >> 1] - (w[i] - w[j])) + way
            )
        else:
            groups.below[g] = with_slack(
                arcs, groups.below[g], arc, max(0.0, links.room[arc >> 1] - (w[j] - w[i])) - way
            )
    move.counts[EXAMINED] += links.start[i + 1] - links.start[i]
    wall = 2 * links.smaller.size + 2 * i
    if links.upper[i] < math.inf:
        groups.above[g] = with_slack(
            arcs, groups.above[g], wall, max(0.0, links.upper[i] - w[i]) + way
        )
    if links.lower[i] > -math.inf:
        groups.below[g] = with_slack(
            arcs, groups.below[g], wall + 1, max(0.0, w[i] - links.lower[i]) - way
        )


@lean_kernel
def tightest_resting(links, move, root):
    """The root after dropping arcs whose other end has begun to move: they are shared arcs now."""
    while root != NOTHING and root < 2 * links.smaller.size and moves(move, other_end(links, root)):
        root = without_tightest(move.arcs, root)
    return root


@lean_kernel
def offer(groups, g, time, speed, arc, partner, version):
    """Keep the event if it comes before the group's best so far."""
    better = time < groups.event_time[g]
    if time == groups.event_time[g]:
        better = speed > groups.event_speed[g] or (
            speed == groups.event_speed[g] and arc < groups.event_arc[g]
        )
    if better:
        groups.event_time[g] = time
        groups.event_speed[g] = speed
        groups.event_arc[g] = arc
        groups.event_partner[g] = partner
        groups.event_version[g] = version


@lean_kernel
def find_event(links, move, w, g, now):
    """What the group meets next; its way must be up to now."""
    groups = move.groups
    groups.event_time[g] = math.inf
    groups.event_speed[g] = 0.0
    groups.event_arc[g] = move.arcs.size
    speed = groups.velocity[g]
    if speed > 0.0:
        root = tightest_resting(links, move, groups.above[g])
        groups.above[g] = root
        if root != NOTHING:
            offer(
                groups,
                g,
                now + max(0.0, move.arcs.key[root] - groups.way[g]) / speed,
                speed,
                root,
                NOTHING,
                0,
            )
    elif speed < 0.0:
        root = tightest_resting(links, move, groups.below[g])
        groups.below[g] = root
        if root != NOTHING:
            offer(
                groups,
                g,
                now + max(0.0, move.arcs.key[root] + groups.way[g]) / -speed,
                -speed,
                root,
                NOTHING,
                0,
            )
    count = keep_tightest_shared(links, move, w, g, now)
    offer_shared(move, g, now, count)


@lean_kernel
def keep_tightest_shared(links, move, w, g, now):
    """Of the arcs to every neighbouring group, keep the tightest upward and the tightest downward
    one; how many are left.
    """
    arcs, neighbours = move.arcs, move.neighbours
    move.counts[MARK] += 1
    count = 0
    arc = move.groups.shared[g]
    while arc != NOTHING:
        h = move.parameters.group[other_end(links, arc)]
        if h != g:
            slack = slack_of(links, move, w, arc >> 1, now)
            slot = 2 * h + (arc & 1)
            fresh = neighbours.mark[slot] != move.counts[MARK]
            if fresh:
                neighbours.mark[slot] = move.counts[MARK]
                move.found[count] = slot
                count += 1
            if (
                fresh
                or slack < neighbours.slack[slot]
                or (slack == neighbours.slack[slot] and arc < neighbours.tightest[slot])
            ):
                neighbours.tightest[slot] = arc
                neighbours.slack[slot] = slack
        arc = arcs.next[arc]
    move.groups.shared[g] = NOTHING
    for q in range(count):
        share(move, g, neighbours.tightest[move.found[q]])
    return count


@lean_kernel
def offer_shared(move, g, now, count):
    """Offer the meetings with the neighbours that `keep_tightest_shared` has just found."""
    groups, neighbours = move.groups, move.neighbours
    for q in range(count):
        slot = move.found[q]
        h = slot >> 1
        closing = groups.velocity[g] - groups.velocity[h]
        if slot & 1:
            closing = -closing
        if closing > 0.0:
            offer(
                groups,
                g,
                now + neighbours.slack[slot] / closing,
                closing,
                neighbours.tightest[slot],
                h,
                groups.version[h],
            )


@lean_kernel
def absorb(links, move, w, g, j, now):
    """A resting parameter joins the group that has met it."""
    groups = move.groups
    start_moving(move, j, g, -groups.way[g])
    move.parameters.next[groups.tail[g]] = j
    groups.tail[g] = j
    groups.members[g] += 1
    examine(links, move, w, j, now, True)


@lean_kernel
def unite(move, g, h, now):
    """Two groups that have met become one; returns its number. The smaller one is renamed."""
    groups, parameters, arcs = move.groups, move.parameters, move.arcs
    bring_up_to(groups, h, now)
    if groups.members[g] < groups.members[h]:
        g, h = h, g
    difference = groups.way[h] - groups.way[g]
    i = groups.head[h]
    while i != NOTHING:
        parameters.group[i] = g
        parameters.lead[i] += difference
        i = parameters.next[i]
    parameters.next[groups.tail[g]] = groups.head[h]
    groups.tail[g] = groups.tail[h]
    groups.members[g] += groups.members[h]
    groups.total[g] += groups.total[h]
    groups.held_above[g] |= groups.held_above[h]
    groups.held_below[g] |= groups.held_below[h]
    add_to_all(arcs, groups.above[h], -difference)
    add_to_all(arcs, groups.below[h], difference)
    groups.above[g] = meld(arcs, groups.above[g], groups.above[h])
    groups.below[g] = meld(arcs, groups.below[g], groups.below[h])
    arc = groups.shared[h]
    while arc != NOTHING:
        following = arcs.next[arc]
        share(move, g, arc)
        arc = following
    dequeue(move, h)
    groups.version[h] += 1
    return g


@lean_kernel
def take_event(links, move, w, g, now):
    """Tie what the group has met; returns the number of the group that goes on."""
    groups = move.groups
    arc = groups.event_arc[g]
    wall = arc - 2 * links.smaller.size
    if wall >= 0:
        if wall & 1 == 0:
            groups.held_above[g] = 1
        else:
            groups.held_below[g] = 1
        return g
    j = other_end(links, arc)
    if groups.event_partner[g] == NOTHING:
        absorb(links, move, w, g, j, now)
        return g
    return unite(move, g, move.parameters.group[j], now)


@lean_kernel
def outdated(links, move, g):
    """Whether the other side of the group's event has changed since it was found."""
    groups = move.groups
    arc = groups.event_arc[g]
    if arc >= 2 * links.smaller.size:
        return False
    j = other_end(links, arc)
    if groups.event_partner[g] == NOTHING:
        return moves(move, j)
    h = move.parameters.group[j]
    return h == g or h != groups.event_partner[g] or groups.version[h] != groups.event_version[g]


@lean_kernel
def run_events(links, move, w, count):
    """Let time run from 0 to 1 for groups 0 .. count - 1, tying what meets."""
    groups = move.groups
    move.counts[QUEUED] = 0
    for g in range(count):
        find_event(links, move, w, g, 0.0)
        enqueue(move, g)
    now = 0.0
    while move.counts[QUEUED] > 0:
        g = move.order[0]
        if not groups.event_time[g] < 1.0:
            break
        known = not outdated(links, move, g)
        if known:
            now = max(now, groups.event_time[g])
        bring_up_to(groups, g, now)
        if known:
            g = take_event(links, move, w, g, now)
            renew_velocity(groups, g)
        find_event(links, move, w, g, now)
        sift(move, groups.place[g])
