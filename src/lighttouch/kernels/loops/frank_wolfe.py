"""Stochastic gradients as the Frank-Wolfe methods want them: dense, of new examples or of all
examples seen so far.
"""

from __future__ import annotations

import math

from lighttouch.kernels.compiler.compiled import kernel
from lighttouch.kernels.state.iterate import SAMPLES, add_dense, clear, dot, next_example
from lighttouch.kernels.verbs.objectives import add_gradient


@kernel
def dense(gradient, out):
    out[:] = 0.0
    for q in range(gradient.cursor[0]):
        j = gradient.touched[q]
        out[j] = gradient.values[j]


@kernel
def new_examples_gradient(objective, l2, batch, w, visits, gradient, counters, rng, out):
    """The mean gradient of the next `batch` examples at w."""
    clear(gradient)
    for _ in range(batch):
        add_gradient(objective, next_example(visits, rng), w, 1.0 / batch, gradient)
    if l2 > 0.0:
        add_dense(gradient, w, l2)
    counters[SAMPLES] += batch
    dense(gradient, out)


@kernel
def seen_examples_gradient(
    objective, l2, batch, w, radius, visits, seen, gradient, counters, rng, out
):
    """See `batch` more examples, then the mean gradient of all seen so far, each at a point of its
    own in the ball around w.
    """
    for _ in range(batch):
        seen[next_example(visits, rng)] += 1
    total = 0
    for example in range(seen.size):
        total += seen[example]
    clear(gradient)
    point = w.copy()
    for example in range(seen.size):
        if seen[example] > 0:
            if radius > 0.0:
                draw_near(w, radius, rng, point)
            add_gradient(objective, example, point, seen[example] / total, gradient)
            counters[SAMPLES] += 1
    if l2 > 0.0:
        add_dense(gradient, w, l2)
    dense(gradient, out)


@kernel
def draw_near(center, radius, rng, point):
    """A point drawn uniformly from the ball around the centre."""
    dimension = center.size
    for j in range(dimension):
        point[j] = rng.standard_normal()
    length = math.sqrt(dot(point, point))
    factor = radius * rng.random() ** (1.0 / dimension) / length if length > 0.0 else 0.0
    for j in range(dimension):
        point[j] = center[j] + factor * point[j]


@kernel
def combination(weights, vertices, out):
    """The sum of weights times vertices, row by row: rounding keeps every order that all vertices
    keep.
    """
    out[:] = 0.0
    for k in range(weights.size):
        for j in range(out.size):
            out[j] += weights[k] * vertices[k, j]
