"""ApproxSGD (Section 6.1): a stochastic step taken along the boundary of the order constraints,
always feasible.
"""

from __future__ import annotations

import math

import numpy as np

from lighttouch.kernels.compiler.compiled import lean_kernel
from lighttouch.kernels.loops.approx_sgd.groups import (
    examine,
    found_group,
    moves,
    run_events,
    way_at,
)
from lighttouch.kernels.loops.approx_sgd.heaps import EXAMINED, MOVED, ROUND
from lighttouch.kernels.loops.touch import sample_losses
from lighttouch.kernels.state.iterate import ADAGRAD, CHECKS, ITERATION, clear, settle, step_length


@lean_kernel
def approx_sgd(objective, links, steps, iterate, visits, gradient, move, counters, iterations, rng):
    """Iterations from counters[ITERATION] + 1 on: a stochastic gradient, then its step along the
    boundary.
    """
    w = iterate.w
    for _ in range(iterations):
        t = counters[ITERATION] + 1
        clear(gradient)
        sample_losses(objective, steps, w, visits, gradient, counters, rng)
        if not take_direction(gradient, iterate, steps, t):
            w[gradient.touched[0]] = math.nan  # the driver sees it and calls the run diverged
            break
        examined = move_along(links, move, gradient, w)
        write(links, move, iterate, t)
        counters[ITERATION] = t
        counters[CHECKS] += examined


@lean_kernel
def take_direction(gradient, iterate, steps, t):
    """Turn the gradient into the step that SGD would take; whether it is finite."""
    length = step_length(steps.rule, steps.eta, t)
    for q in range(gradient.cursor[0]):
        j = gradient.touched[q]
        value = gradient.values[j]
        if steps.rule == ADAGRAD and value != 0.0:
            iterate.squares[j] += value * value
            squares = iterate.squares[j]  # may vanish, and so may the step
            length = steps.eta / math.sqrt(squares) if squares > 0.0 else 0.0
        gradient.values[j] = -length * value
        if not math.isfinite(gradient.values[j]):
            return False
    return True


@lean_kernel
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


@lean_kernel
def write(links, move, iterate, t):
    """The positions at the end of the step become w; where rounding leaves no feasible neighbour, w
    stays what it was.
    """
    parameters, groups, w, count = move.parameters, move.groups, iterate.w, move.counts[MOVED]
    for q in range(count):
        i = move.moved[q]
        settle(iterate, i, t)
        parameters.before[i] = w[i]
    for q in range(count):
        i = move.moved[q]
        g = parameters.group[i]
        leader = groups.head[g] if links.plain else i  # tied parameters are equal to the last bit
        w[i] = parameters.before[leader] + (parameters.lead[leader] + way_at(groups, g, 1.0))
    remove_rounding(links, w, move.moved, count)
    for q in range(count):
        if breaks_a_rule(links, move, w, move.moved[q]):
            for k in range(count):
                w[move.moved[k]] = parameters.before[move.moved[k]]
            break


@lean_kernel
def breaks_a_rule(links, move, w, i):
    """Whether a bound or a constraint of a moved parameter is broken, and was not before by as
    much.
    """
    if not links.lower[i] <= w[i] <= links.upper[i]:
        return True
    for q in range(links.start[i], links.start[i + 1]):
        row = links.arcs[q] >> 1
        found = excess(links, row, w[links.smaller[row]], w[links.larger[row]])
        if not found <= 0.0:
            before = excess(
                links,
                row,
                value_before(move, w, links.smaller[row]),
                value_before(move, w, links.larger[row]),
            )
            if not found <= before:
                return True
    return False


@lean_kernel
def value_before(move, w, i):
    return move.parameters.before[i] if moves(move, i) else w[i]


@lean_kernel
def excess(links, row, low, high):
    """The constraint in both ways in which it is checked elsewhere, as an order or as a sparse row,
    operation for operation.
    """
    scale = links.scale[row]
    return max(scale * (low - high) - links.b[row], (scale * low - scale * high) - links.b[row])


@lean_kernel
def remove_rounding(links, w, moved, count):
    """Make the moved parameters feasible to the last bit, moving only them, if all else is.

    Lowering to what lies above and then raising to what lies below settles plain orders for sure;
    margins between bounds may take more rounds, or have no solution in floating point.
    """
    quiet = 0
    for attempt in range(8):
        for q in range(count):
            i = moved[q]
            w[i] = min(max(w[i], links.least[i]), links.most[i])
        for _ in range(count + 1):
            if not fit(links, w, moved, count, attempt % 2):
                break
            quiet = -1
        quiet += 1
        if quiet == 2:
            break


@lean_kernel
def fit(links, w, moved, count, side):
    """One pass over the moved parameters: lower them to what lies above (side 0) or raise them to
    what lies below (side 1).
    """
    changed = False
    for q in range(count):
        i = moved[q]
        for k in range(links.start[i], links.start[i + 1]):
            row = links.arcs[k] >> 1
            if (
                links.arcs[k] & 1 == side
                and excess(links, row, w[links.smaller[row]], w[links.larger[row]]) > 0.0
            ):
                if side == 0:
                    w[i] = w[links.larger[row]] + links.room[row]
                else:
                    w[i] = w[links.smaller[row]] - links.room[row]
                for _ in range(4):
                    if excess(links, row, w[links.smaller[row]], w[links.larger[row]]) <= 0.0:
                        break
                    w[i] = np.nextafter(w[i], -math.inf if side == 0 else math.inf)
                changed = True
    return changed


@lean_kernel
def carry_bounds(smaller, larger, room, lower, upper):
    """Carry bounds along the orders, in place: nothing can rise above what lies over it may
    reach.
    """
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
