"""ApproxSGD (Section 6.1): a stochastic step taken along the boundary of the order constraints, always feasible."""

from __future__ import annotations

import math

import numpy as np

from lighttouch.kernels.approx_sgd_groups import examine, found_group, run_events, way_at
from lighttouch.kernels.approx_sgd_heaps import EXAMINED, MOVED, ROUND
from lighttouch.kernels.compiled import kernel
from lighttouch.kernels.full_touch import CHECKS, ITERATION, SAMPLES
from lighttouch.kernels.gradient import add_dense, clear
from lighttouch.kernels.iterate import ADAGRAD, settle, step_length
from lighttouch.kernels.objectives import add_gradient
from lighttouch.kernels.visits import next_example


@kernel
def approx_sgd(objective, l2, links, rule, eta, batch, iterate, visits, gradient, move, counters, steps, rng):
    w = iterate.w
    for _ in range(steps):
        t = counters[ITERATION] + 1
        clear(gradient)
        for _ in range(batch):
            add_gradient(objective, next_example(visits, rng), w, 1.0 / batch, gradient)
        if l2 > 0.0:
            add_dense(gradient, w, l2)
        if not take_direction(gradient, iterate, rule, eta, t):
            w[gradient.touched[0]] = math.nan  # the driver sees it and calls the run diverged
            break
        examined = move_along(links, move, gradient, w)
        write(links, move, iterate, t)
        counters[ITERATION] = t
        counters[CHECKS] += examined
        counters[SAMPLES] += batch


@kernel
def take_direction(gradient, iterate, rule, eta, t):
    """Turn the gradient into the step that SGD would take; whether it is finite."""
    length = step_length(rule, eta, t)
    for q in range(gradient.cursor[0]):
        j = gradient.touched[q]
        value = gradient.values[j]
        if rule == ADAGRAD and value != 0.0:
            iterate.squares[j] += value * value
            length = eta / math.sqrt(iterate.squares[j]) if iterate.squares[j] > 0.0 else 0.0  # a square may vanish, so may its step
        gradient.values[j] = -length * value
        if not math.isfinite(gradient.values[j]):
            return False
    return True


@kernel
def move_along(links, move, direction, w):
    """Run the step; positions stay in `move`. Returns how many constraints were examined."""
    counts = move.counts
    counts[MOVED] = 0
    counts[EXAMINED] = 0
    counts[ROUND] += 1
    count = 0
    for q in range(direction.cursor[0]):
        i = direction.touched[q]
        if direction.values[i] != 0.0:
            found_group(move, count, i, direction.values[i])
            count += 1
    for q in range(count):
        examine(links, move, w, move.moved[q], 0.0, False)
    run_events(links, move, w, count)
    return counts[EXAMINED]


@kernel
def write(links, move, iterate, t):
    """The positions at the end of the step become w; where rounding leaves no feasible neighbour, w stays what it was."""
    parameters, groups, w, count = move.parameters, move.groups, iterate.w, move.counts[MOVED]
    for q in range(count):
        i = move.moved[q]
        settle(iterate, i, t)
        parameters.before[i] = w[i]
    for q in range(count):
        i = move.moved[q]
        g = parameters.group[i]
        leader = groups.head[g] if links.plain else i  # tied parameters are equal to the last bit
        w[i] = parameters.before[leader] + (parameters.base[leader] + way_at(groups, g, 1.0))
    if not remove_rounding(links, w, move.moved, count):
        for q in range(count):
            w[move.moved[q]] = parameters.before[move.moved[q]]


@kernel
def excess(links, w, row):
    """The constraint in both ways in which it is checked elsewhere, as an order or as a sparse row, operation for operation."""
    scale = links.scale[row]
    low = w[links.smaller[row]]
    high = w[links.larger[row]]
    return max(scale * (low - high) - links.b[row], (scale * low - scale * high) - links.b[row])


@kernel
def remove_rounding(links, w, moved, count):
    """Make the moved parameters feasible to the last bit, moving only them; whether that succeeded.

    Lowering to what lies above and then raising to what lies below settles for plain orders, as all else was feasible before.
    """
    for q in range(count):
        i = moved[q]
        w[i] = min(max(w[i], links.lower[i]), links.upper[i])
    for side in range(2):
        for _ in range(count + 1):
            if not fit(links, w, moved, count, side):
                break
    for q in range(count):
        i = moved[q]
        if not links.lower[i] <= w[i] <= links.upper[i]:
            return False
        for k in range(links.start[i], links.start[i + 1]):
            if not excess(links, w, links.arcs[k] >> 1) <= 0.0:
                return False
    return True


@kernel
def fit(links, w, moved, count, side):
    """One pass over the moved parameters: lower them to what lies above (side 0) or raise them to what lies below (side 1)."""
    changed = False
    for q in range(count):
        i = moved[q]
        for k in range(links.start[i], links.start[i + 1]):
            arc = links.arcs[k]
            if arc & 1 == side and excess(links, w, arc >> 1) > 0.0:
                row = arc >> 1
                if side == 0:
                    w[i] = w[links.larger[row]] + links.room[row]
                else:
                    w[i] = w[links.smaller[row]] - links.room[row]
                outward = -math.inf if side == 0 else math.inf
                for _ in range(4):
                    if excess(links, w, row) <= 0.0:
                        break
                    w[i] = np.nextafter(w[i], outward)
                changed = True
    return changed


@kernel
def tighten_bounds(smaller, larger, room, lower, upper):
    """Carry bounds along the orders, in place: nothing may rise above what lies over it can reach."""
    rows = smaller.size
    for sweep in range(2 * lower.size + 2):
        changed = False
        for q in range(rows):
            row = q if sweep % 2 == 0 else rows - 1 - q
            i = smaller[row]
            j = larger[row]
            if upper[j] + room[row] < upper[i]:
                upper[i] = upper[j] + room[row]
                changed = True
            if lower[i] - room[row] > lower[j]:
                lower[j] = lower[i] - room[row]
                changed = True
        if not changed:
            break
