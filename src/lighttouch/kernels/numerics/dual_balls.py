"""The nearest point of many balls by exact dual coordinate ascent, as Hildreth (1957) did for
half-spaces.

With multipliers u >= 0 of (|w - c_j|^2 - r_j^2) / 2 <= 0 the point is w = (v + sum u_j c_j) / (1 +
sum u_j). The best u_j for the others held fixed has a closed form, so a sweep needs one distance
per ball and no memory but u.
"""

from __future__ import annotations

import numpy as np

from lighttouch.kernels.compiler.compiled import kernel, lean_kernel


@lean_kernel
def distance_to(w, center):
    """|w - center|; four sums side by side, because one sum alone waits for itself."""
    a = b = c = d = 0.0
    whole = w.size - w.size % 4
    for k in range(0, whole, 4):
        a += (w[k] - center[k]) ** 2
        b += (w[k + 1] - center[k + 1]) ** 2
        c += (w[k + 2] - center[k + 2]) ** 2
        d += (w[k + 3] - center[k + 3]) ** 2
    for k in range(whole, w.size):
        a += (w[k] - center[k]) ** 2
    return np.sqrt((a + b) + (c + d))


@lean_kernel
def ball_step(w, weight, multiplier, centers, radii, j):
    """Set multiplier j to its best value and move w; `weight` is 1 + sum of multipliers. Returns
    the new weight.
    """
    old = multiplier[j]
    rest = weight - old
    # the distance to c_j of the point without this ball
    length = distance_to(w, centers[j]) * weight / rest
    new = rest * max(0.0, length / radii[j] - 1.0)
    if new == old:
        return weight
    share = (new - old) / (rest + new)
    for k in range(w.size):
        w[k] += share * (centers[j, k] - w[k])
    multiplier[j] = new
    return rest + new


@kernel
def sweep_balls(v, centers, radii, multiplier, w, sweeps, tolerance):
    """Sweeps until no ball is exceeded by more than the tolerance and no multiplier is slack;
    returns the sweeps made.

    Between sweeps over all balls, the few with positive multipliers are swept several times: only
    they move the point.
    """
    held = np.empty(radii.size, np.int64)
    for turn in range(sweeps):
        weight = rebuild(v, centers, multiplier, w)
        worst = 0.0
        count = 0
        for j in range(radii.size):
            distance = distance_to(w, centers[j])
            if distance > radii[j] or multiplier[j] > 0.0:
                worst = max(worst, abs(distance - radii[j]))
                weight = ball_step(w, weight, multiplier, centers, radii, j)
                held[count] = j
                count += 1
        if worst <= tolerance:
            return turn + 1
        for _ in range(10):
            for t in range(count):
                weight = ball_step(w, weight, multiplier, centers, radii, held[t])
    return sweeps


@lean_kernel
def rebuild(v, centers, multiplier, w):
    """The point of the multipliers, afresh so that rounding does not pile up; returns 1 + their
    sum.
    """
    weight = 1.0
    for k in range(w.size):
        w[k] = v[k]
    for j in range(multiplier.size):
        if multiplier[j] > 0.0:
            weight += multiplier[j]
            for k in range(w.size):
                w[k] += multiplier[j] * centers[j, k]
    for k in range(w.size):
        w[k] /= weight
    return weight
