"""The p side of LightTouch alone (Algorithm 2, lines 6 and 9 to 13), for models that are trained
elsewhere: drawing before the constraints are looked at, learning after.
"""

from __future__ import annotations

import math

import numpy as np

from lighttouch.kernels.compiler.compiled import lean_kernel
from lighttouch.kernels.compiler.generators import generator_at
from lighttouch.kernels.compiler.prefetch import prefetch
from lighttouch.kernels.loops.shared import learn_set
from lighttouch.kernels.state.distribution import (
    REFERENCES,
    descend_together,
    draw,
    draw_set,
    is_kept,
    tick,
)


@lean_kernel
def draw_touch(distribution, pushes, looks, state, draws, rests, out):
    """Write `pushes` draws from p into `out`, and behind them the set S of `looks` constraints;
    what is remembered of S is asked for, so that it is there when it is learned. The generator is
    at the addresses `state` and `draws` (`compiler/generators.py`).

    The draws are those of `draw`, begun together: which are kept is decided one by one, and after
    a new reference, with new bounds, the rest is drawn anew. `rests` is room for `pushes` numbers.
    """
    rng = generator_at(state, draws)
    descend_together(distribution, pushes, rng, rests, out)  # line 6
    references = distribution.clock[REFERENCES]
    for q in range(pushes):
        if distribution.clock[REFERENCES] != references or not is_kept(distribution, out[q], rng):
            out[q] = draw(distribution, rng)
    draw_set(distribution, looks, rng)  # line 9
    for q in range(looks):
        out[pushes + q] = distribution.chosen[q]
        prefetch(distribution.law, np.int64(distribution.chosen[q]))


@lean_kernel
def take_in(distribution, values, pushes, scale, found, weights):
    """Learn from the violations of one step, first those that push; False, and nothing is learned,
    where one is not finite. `weights` becomes the slope of the penalty in each of them.
    """
    for q in range(values.size):
        if not abs(values[q]) < math.inf:
            return False
    for q in range(pushes):
        weights[q] = scale if values[q] > 0.0 else 0.0
    for q in range(found.size):
        weights[pushes + q] = 0.0
        found[q] = values[pushes + q]
    return learn_touch(distribution, found)


@lean_kernel
def learn_touch(distribution, found):
    """Learn max{0, g_j} of the S that was drawn last from its g_j, which are changed in place;
    False, and nothing is learned, where one is not finite.
    """
    for q in range(found.size):
        if not abs(found[q]) < math.inf:
            return False
        found[q] = max(0.0, found[q])
    learn_set(distribution, found.size, found)  # lines 10 to 12
    tick(distribution)  # line 13
    return True
