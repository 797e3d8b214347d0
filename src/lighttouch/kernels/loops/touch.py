"""The p side of LightTouch alone (Algorithm 2, lines 6 and 9 to 13), for models that are trained
elsewhere: drawing before the constraints are looked at, learning after.
"""

from __future__ import annotations

import math

import numpy as np

from lighttouch.kernels.compiler.compiled import lean_kernel
from lighttouch.kernels.compiler.prefetch import prefetch
from lighttouch.kernels.loops.shared import learn_set
from lighttouch.kernels.state.distribution import draw, draw_set, tick


@lean_kernel
def draw_touch(distribution, pushes, looks, rng, out):
    """Write `pushes` draws from p into `out`, and behind them the set S of `looks` constraints;
    what is remembered of S is asked for, so that it is there when it is learned.
    """
    for q in range(pushes):
        out[q] = draw(distribution, rng)  # line 6
    draw_set(distribution, looks, rng)  # line 9
    for q in range(looks):
        out[pushes + q] = distribution.chosen[q]
        prefetch(distribution.law, np.int64(distribution.chosen[q]))


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
