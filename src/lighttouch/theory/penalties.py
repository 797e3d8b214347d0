"""Penalties large enough that a minimizer of the relaxed objective is feasible: Lemma projection,
Lemma gamma, Section 2.2.
"""

from __future__ import annotations

import math

from lighttouch.validation import positive, positive_int

PENALTY_MARGIN = 0.01
"""How far above its least value a derived penalty lies: 1%."""


def boundary_gradient(interior_value: float, diameter: float) -> float:
    """A rho that every boundary subgradient of g reaches in norm: -g(v) / D_w for a strictly
    feasible v (Lemma gamma).
    """
    if not (math.isfinite(interior_value) and interior_value < 0):
        raise ValueError(
            f"interior_value must be below 0, got {interior_value}; it is max_i g_i(v) at "
            "a v that satisfies every constraint strictly"
        )
    return -interior_value / positive(diameter, "diameter")


def box_boundary_gradient(dimension: int) -> float:
    """Rho of lower <= w_i <= upper for all i: at most d orthogonal unit gradients meet, in a corner
    (Section 2.2).
    """
    return 1 / math.sqrt(positive_int(dimension, "dimension"))


def ordering_boundary_gradient(dimension: int) -> float:
    """Rho of (w_i - w_{i+1}) / sqrt(2) <= 0, m = d - 1 of them (Section 2.2).

    The paper takes the norm 1/m of the average gradient. For m >= 3 that is not the least norm of a
    convex combination: weights proportional to i (m + 1 - i) give sqrt(6 / (m (m + 1) (m + 2))),
    which is the least, and a penalty between the two bounds can fail.
    """
    m = positive_int(dimension, "dimension", least=2) - 1
    return math.sqrt(6 / (m * (m + 1) * (m + 2)))


def linear_boundary_gradient(radius: float, smallest_bound: float) -> float:
    """Rho of A w <= b in a ball around 0, with rows of norm 1 and min b > 0: Lemma gamma at v = 0
    (Section 2.2).
    """
    return boundary_gradient(
        -positive(smallest_bound, "smallest_bound"), 2 * positive(radius, "radius")
    )


def penalty_above(
    boundary_gradient: float, objective_lipschitz: float, margin: float = PENALTY_MARGIN
) -> float:
    """A penalty gamma > L_f / rho, for which every minimizer of the relaxed objective is feasible
    (Lemma projection).
    """
    least = positive(objective_lipschitz, "objective_lipschitz") / positive(
        boundary_gradient, "boundary_gradient"
    )
    return (1 + positive(margin, "margin")) * least


def penalty_from_interior_point(
    interior_value: float,
    diameter: float,
    objective_lipschitz: float,
    margin: float = PENALTY_MARGIN,
) -> float:
    """A sufficient penalty from one strictly feasible point v, given interior_value = max_i g_i(v)
    < 0 (Lemma gamma).
    """
    return penalty_above(boundary_gradient(interior_value, diameter), objective_lipschitz, margin)


def box_penalty(
    dimension: int, objective_lipschitz: float, margin: float = PENALTY_MARGIN
) -> float:
    """Just above sqrt(d) L_f, for bounds on every coordinate (Section 2.2)."""
    return penalty_above(box_boundary_gradient(dimension), objective_lipschitz, margin)


def ordering_penalty(
    dimension: int, objective_lipschitz: float, margin: float = PENALTY_MARGIN
) -> float:
    """Just above L_f / rho for w_1 <= ... <= w_d with unit gradients; see
    `ordering_boundary_gradient` (Section 2.2).
    """
    return penalty_above(ordering_boundary_gradient(dimension), objective_lipschitz, margin)


def linear_penalty(
    radius: float, smallest_bound: float, objective_lipschitz: float, margin: float = PENALTY_MARGIN
) -> float:
    """Just above (2 r / b_min) L_f, for unit rows A w <= b in a ball of that radius (Section
    2.2).
    """
    return penalty_above(
        linear_boundary_gradient(radius, smallest_bound), objective_lipschitz, margin
    )


def distance_to_feasible(
    suboptimality: float, penalty: float, boundary_gradient: float, objective_lipschitz: float
) -> float:
    """How far w can be from its projection when h(w) - h(projection) is at most `suboptimality`
    (Lemma projection).
    """
    least = positive(objective_lipschitz, "objective_lipschitz", zero=True) / positive(
        boundary_gradient, "boundary_gradient"
    )
    pull = positive(penalty, "penalty") * boundary_gradient - objective_lipschitz
    if penalty <= least or pull <= 0:
        raise ValueError(
            f"penalty must be above objective_lipschitz / boundary_gradient = {least:g}, "
            f"got {penalty:g}; try {2 * least:g}"
        )
    return positive(suboptimality, "suboptimality", zero=True) / pull
