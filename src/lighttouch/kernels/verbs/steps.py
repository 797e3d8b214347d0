"""Steps of sampled AdaGrad on one record: over a run of sparse examples, and onto the violated
members of a range of constraints.
"""

from __future__ import annotations

import math

from lighttouch.kernels.compiler.compiled import lean_kernel, verb
from lighttouch.kernels.compiler.intrinsics import prefetch, stream
from lighttouch.kernels.state.iterate import clear
from lighttouch.kernels.verbs.constraints import (
    OrderRows,
    add_subgradient,
    order_scale,
    order_side,
    worst,
)
from lighttouch.kernels.verbs.domains import clamp
from lighttouch.kernels.verbs.losses import level_of, slope
from lighttouch.kernels.verbs.objectives import (
    DenseExamples,
    SparseExamples,
    gathered_dot,
    penalty_residual,
    shifted,
    target_of,
    weight_of,
)

# -------------------------------------------------------------------------------------------------
# A fast pass over a run of sparse examples: read one, step on the coordinates it touches, read the
# next.


LINE = 64  # bytes that memory delivers at once
TINY = 1e-16  # squared gradients start here, so that the first step has the length eta


@verb
def fetch_rows(objective, first, last):
    """Ask for the examples first <= i < last, so that several runs are on their way while the first
    is being read.
    """


@verb
def fetch_coordinates(objective, first, last, w):
    """Ask for the coordinates that the examples first <= i < last touch."""


@verb
def step_on_rows(objective, first, last, w, squares, ridge, domain, eta):
    """An AdaGrad step for each of the examples first <= i < last, one after the other, on the
    coordinates that it touches.

    `ridge` is empty, or holds for each coordinate its share of the l2 term in an example that
    touches it.
    """


@verb
def penalty_count(objective):
    """How many terms the penalty has: rows D_r of ||D w - t||^2 / 2, then those of l1_j |w_j|."""


@verb
def step_on_penalty(objective, row, weight, w, squares, domain, eta):
    """An implicit (proximal) step on one term of the penalty in the metric of the AdaGrad steps.

    With m_j = eta / sqrt(squares_j) it is the exact minimum of weight times that term plus the sum
    of (w'_j - w_j)^2 / (2 m_j), and so never overshoots. For (D_r w - t_r)^2 / 2 it is
    w_j -= weight (D_r w - t_r) / (1 + weight sum_k D_rk^2 m_k) m_j D_rj;
    for l1_j |w_j| it brings w_j nearer to 0 by weight l1_j m_j, at most to 0.
    """


@lean_kernel
def adagrad_step(squares, j, value, eta):
    """Remember a gradient and return the step it asks for. A zero gradient passes through: no
    branch is as fast as none.
    """
    square = squares[j] + value * value
    squares[j] = square
    return eta / math.sqrt(square) * value


@lean_kernel
def shrunk(squares, j, value, ridge, eta):
    """An implicit step on (ridge / 2) value^2, which never overshoots, however rare the
    coordinate.
    """
    if squares[j] <= squares.dtype.type(2.0 * TINY):  # no gradient so far: this is the first
        return eased(squares, j, value, ridge, eta)
    return value / (1.0 + ridge * eta / math.sqrt(squares[j]))


@lean_kernel
def eased(squares, j, value, ridge, eta):
    """An AdaGrad step on (ridge / 2) value^2, at most to 0."""
    step = adagrad_step(squares, j, ridge * value, eta)
    return value - step if abs(step) < abs(value) else value - value


@lean_kernel
def mobility(squares, j):
    """How far coordinate j moves for a unit of force, up to a factor that all coordinates share."""
    return 1.0 / math.sqrt(squares[j])


@fetch_rows.register(object)
def _fetch_no_rows(objective, first, last):
    return None


@fetch_coordinates.register(object)
def _fetch_no_coordinates(objective, first, last, w):
    return None


@step_on_rows.register(object)
def _step_on_no_rows(objective, first, last, w, squares, ridge, domain, eta):
    return None


@fetch_rows.register(SparseExamples)
def _fetch_sparse_rows(objective, first, last):
    start = objective.indptr[first]
    stop = objective.indptr[last]
    for k in range(start, stop, LINE // objective.data.itemsize):
        stream(objective.data, k)
    for k in range(start, stop, LINE // objective.indices.itemsize):
        stream(objective.indices, k)


@fetch_coordinates.register(SparseExamples)
def _fetch_sparse_coordinates(objective, first, last, w):
    for k in range(objective.indptr[first], objective.indptr[last]):
        prefetch(w, objective.indices[k])


@step_on_rows.register(SparseExamples)
def _step_on_sparse_rows(objective, first, last, w, squares, ridge, domain, eta):
    number = w.dtype.type  # far coordinates are in single precision, and so is what is done to them
    eta = number(eta)
    plain = ridge.size == 0 and domain.lower.size == 1 and domain.upper.size == 1
    lower = number(domain.lower[0])
    upper = number(domain.upper[0])
    for example in range(first, last):
        row = objective.data[objective.indptr[example] : objective.indptr[example + 1]]
        places = objective.indices[objective.indptr[example] : objective.indptr[example + 1]]
        z = shifted(gathered_dot(row, places, w), objective.offsets, example)
        steepness = slope(
            objective.kind,
            level_of(objective.levels, example),
            z,
            target_of(objective.targets, example),
        )
        steepness *= weight_of(objective.weights, example)
        if plain:
            if steepness != 0.0:
                for k in range(row.size):
                    j = places[k]
                    w[j] = min(
                        max(
                            w[j] - adagrad_step(squares, j, number(steepness * row[k]), eta), lower
                        ),
                        upper,
                    )
        elif steepness != 0.0 or ridge.size > 0:
            for k in range(row.size):
                j = places[k]
                moved = w[j] - adagrad_step(squares, j, number(steepness * row[k]), eta)
                if ridge.size > 0:
                    moved = shrunk(squares, j, number(moved), number(ridge[j]), eta)
                w[j] = clamp(domain, j, moved)


@penalty_count.register(object)
def _no_penalty(objective):
    return 0


@step_on_penalty.register(object)
def _step_on_no_penalty(objective, row, weight, w, squares, domain, eta):
    return None


def _penalty_count(objective):
    return objective.penalty_target.size + objective.l1.size


def _step_on_penalty(objective, row, weight, w, squares, domain, eta):
    if row < objective.penalty_target.size:
        _step_on_row(objective, row, weight, w, squares, domain, eta)
        return
    j = row - objective.penalty_target.size
    shrinks = weight * objective.l1[j] * eta * mobility(squares, j)
    size = max(0.0, abs(w[j]) - shrinks)
    w[j] = clamp(domain, j, size if w[j] > 0.0 else -size)


@lean_kernel
def _step_on_row(objective, row, weight, w, squares, domain, eta):
    start = objective.penalty_indptr[row]
    stop = objective.penalty_indptr[row + 1]
    stiffness = 0.0
    for k in range(start, stop):
        entry = objective.penalty_data[k]
        stiffness += entry * entry * eta * mobility(squares, objective.penalty_indices[k])
    force = weight * penalty_residual(objective, row, w) / (1.0 + weight * stiffness)
    for k in range(start, stop):
        j = objective.penalty_indices[k]
        step = force * eta * mobility(squares, j) * objective.penalty_data[k]
        w[j] = clamp(domain, j, w[j] - step)


def register_penalty_steps(record_class):
    """For records with the fields of a penalty."""
    penalty_count.register(record_class)(_penalty_count)
    step_on_penalty.register(record_class)(_step_on_penalty)


register_penalty_steps(DenseExamples)
register_penalty_steps(SparseExamples)


# -------------------------------------------------------------------------------------------------
# Constraint steps that never overshoot: every violated member of a range is met exactly, in the
# metric of the steps.
#
# Each step projects w onto one half-space {g_j + <s, w' - w> <= 0} that holds every feasible point,
# in the norm in which AdaGrad measures distances, so it never moves away from any feasible point.


@verb
def sweep(constraints, start, stop, w, squares, domain, gradient):
    """Meet every violated constraint of a range, one after the other; returns the largest violation
    found on the way.
    """


@lean_kernel
def step_back(violation, w, squares, domain, gradient):
    """Project onto the half-space of the linearised constraint whose subgradient is given."""
    stiffness = 0.0
    for q in range(gradient.cursor[0]):
        j = gradient.touched[q]
        slope = gradient.values[j]
        stiffness += slope * slope * mobility(squares, j)
    if stiffness <= 0.0:
        return
    force = violation / stiffness
    for q in range(gradient.cursor[0]):
        j = gradient.touched[q]
        if gradient.values[j] != 0.0:
            w[j] = clamp(domain, j, w[j] - force * gradient.values[j] * mobility(squares, j))


@lean_kernel
def sweep_any(constraints, start, stop, w, squares, domain, gradient):
    largest = 0.0
    for j in range(start, stop):
        violation, _ = worst(constraints, j, j + 1, w)
        if violation > 0.0:
            largest = max(largest, violation)
            clear(gradient)
            add_subgradient(constraints, j, w, 1.0, gradient)
            step_back(violation, w, squares, domain, gradient)
    return largest


@lean_kernel
def sweep_order(constraints, start, stop, w, squares, domain, gradient):
    smaller = constraints.smaller
    larger = constraints.larger
    largest = 0.0
    for j in range(start, stop):
        low = smaller[j]
        high = larger[j]
        scale = order_scale(constraints, j)
        violation = scale * (w[low] - w[high]) - order_side(constraints, j)
        if violation > 0.0:
            largest = max(largest, violation)
            part_pair(violation / scale, low, high, w, squares, domain)
    return largest


@lean_kernel
def part_pair(excess, low, high, w, squares, domain):
    """Move w[low] down and w[high] up by `excess` together, each by its share."""
    low_root = math.sqrt(squares[low])
    high_root = math.sqrt(squares[high])
    share = high_root / (low_root + high_root)  # mobilities are the inverse roots
    w[low] = clamp(domain, low, w[low] - share * excess)
    w[high] = clamp(domain, high, w[high] + (1.0 - share) * excess)


sweep.register(OrderRows)(sweep_order.py_func)
sweep.register(object)(sweep_any.py_func)
