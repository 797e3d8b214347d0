"""Penalties large enough that a minimizer of the relaxed objective is feasible: Lemma projection,
Lemma gamma, Section 2.2.
"""

from __future__ import annotations

import math
from numbers import Real

from lighttouch.validation import positive, positive_int

PENALTY_MARGIN = 0.01
"""How far above its least value a derived penalty lies: 1%."""


def boundary_gradient(interior_value: float, diameter: float) -> float:
    """A norm that every boundary subgradient of max g reaches (Lemma gamma).

    Parameters
    ----------
    interior_value : float
        max_i g_i(v) at a point v that satisfies every constraint strictly; below 0.
    diameter : float
        D_w, the diameter of the domain.

    Returns
    -------
    float
        rho = -g(v) / D_w for the strictly feasible point v.

    Raises
    ------
    ValueError
        If `interior_value` is not negative, or the diameter not positive.

    Examples
    --------
    >>> lt.theory.boundary_gradient(-0.5, diameter=2.0)
    0.25
    """
    if not (
        isinstance(interior_value, Real) and math.isfinite(interior_value) and interior_value < 0
    ):
        raise ValueError(
            f"interior_value must be below 0, got {interior_value}; it is max_i g_i(v) at "
            "a v that satisfies every constraint strictly"
        )
    return -interior_value / positive(diameter, "diameter")


def box_boundary_gradient(dimension: int) -> float:
    """rho of lower <= w_i <= upper for all i (Section 2.2).

    At most d orthogonal unit gradients meet, in a corner.

    Parameters
    ----------
    dimension : int
        d, the number of coordinates of w.

    Returns
    -------
    float
        1 / sqrt(d).

    Raises
    ------
    ValueError
        If a number is not positive.

    Examples
    --------
    >>> lt.theory.box_boundary_gradient(4)
    0.5
    """
    return 1 / math.sqrt(positive_int(dimension, "dimension", most=math.inf))


def ordering_boundary_gradient(dimension: int) -> float:
    """rho of the m = d - 1 rows (w_i - w_{i+1}) / sqrt(2) <= 0 (Section 2.2).

    The paper takes the norm 1/m of the average gradient. For m >= 3 that is not the least norm of a
    convex combination: weights proportional to i (m + 1 - i) give sqrt(6 / (m (m + 1) (m + 2))),
    which is the least, and a penalty between the two bounds can fail.

    Parameters
    ----------
    dimension : int
        d, the number of coordinates of w.

    Returns
    -------
    float
        sqrt(6 / (m (m + 1) (m + 2))).

    Raises
    ------
    ValueError
        If a number is not positive.

    Examples
    --------
    >>> lt.theory.ordering_boundary_gradient(2)
    1.0
    """
    m = positive_int(dimension, "dimension", least=2, most=math.inf) - 1
    return math.sqrt(6 / (m * (m + 1) * (m + 2)))


def linear_boundary_gradient(radius: float, smallest_bound: float) -> float:
    """rho of A w <= b in a ball around 0, with rows of norm 1 and min b > 0 (Section 2.2).

    This is Lemma gamma at v = 0.

    Parameters
    ----------
    radius : float
        r, the radius of the ball.
    smallest_bound : float
        min b, the smallest right side; above 0.

    Returns
    -------
    float
        min b / (2 r).

    Raises
    ------
    ValueError
        If a number is not positive.

    Examples
    --------
    >>> lt.theory.linear_boundary_gradient(radius=10.0, smallest_bound=1.0)
    0.05
    """
    return boundary_gradient(
        -positive(smallest_bound, "smallest_bound"), 2 * positive(radius, "radius")
    )


def penalty_above(
    boundary_gradient: float, objective_lipschitz: float, margin: float = PENALTY_MARGIN
) -> float:
    """A penalty above L_f / rho (Lemma projection).

    Under it every minimizer of the relaxed objective is feasible.

    Parameters
    ----------
    boundary_gradient : float
        rho, which every subgradient of max g on the boundary reaches in norm.
    objective_lipschitz : float
        L_f, the Lipschitz constant of the objective.
    margin : float, default 0.01
        How far above its least value the penalty lies.

    Returns
    -------
    float
        A penalty, `margin` above the least one that is proven to suffice.

    Raises
    ------
    ValueError
        If a number is not positive.

    Examples
    --------
    >>> lt.theory.penalty_above(boundary_gradient=0.5, objective_lipschitz=1.0)
    2.02
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
    """A sufficient penalty from one strictly feasible point v (Lemma gamma).

    Parameters
    ----------
    interior_value : float
        max_i g_i(v) at a point v that satisfies every constraint strictly; below 0.
    diameter : float
        D_w, the diameter of the domain.
    objective_lipschitz : float
        L_f, the Lipschitz constant of the objective.
    margin : float, default 0.01
        How far above its least value the penalty lies.

    Returns
    -------
    float
        A penalty, `margin` above the least one that is proven to suffice.

    Raises
    ------
    ValueError
        If a number is not positive.

    Examples
    --------
    >>> lt.theory.penalty_from_interior_point(-1.0, diameter=2.0, objective_lipschitz=1.0)
    2.02
    """
    return penalty_above(boundary_gradient(interior_value, diameter), objective_lipschitz, margin)


def box_penalty(
    dimension: int, objective_lipschitz: float, margin: float = PENALTY_MARGIN
) -> float:
    """A penalty just above sqrt(d) L_f, for bounds on every coordinate (Section 2.2).

    Parameters
    ----------
    dimension : int
        d, the number of coordinates of w.
    objective_lipschitz : float
        L_f, the Lipschitz constant of the objective.
    margin : float, default 0.01
        How far above its least value the penalty lies.

    Returns
    -------
    float
        A penalty, `margin` above the least one that is proven to suffice.

    Raises
    ------
    ValueError
        If a number is not positive.

    Examples
    --------
    >>> lt.theory.box_penalty(4, objective_lipschitz=1.0)
    2.02
    """
    return penalty_above(box_boundary_gradient(dimension), objective_lipschitz, margin)


def ordering_penalty(
    dimension: int, objective_lipschitz: float, margin: float = PENALTY_MARGIN
) -> float:
    """A penalty just above L_f / rho for w_1 <= ... <= w_d with unit gradients (Section 2.2).

    rho is that of `ordering_boundary_gradient`.

    Parameters
    ----------
    dimension : int
        d, the number of coordinates of w.
    objective_lipschitz : float
        L_f, the Lipschitz constant of the objective.
    margin : float, default 0.01
        How far above its least value the penalty lies.

    Returns
    -------
    float
        A penalty, `margin` above the least one that is proven to suffice.

    Raises
    ------
    ValueError
        If a number is not positive.

    Examples
    --------
    >>> lt.theory.ordering_penalty(2, objective_lipschitz=1.0)
    1.01
    """
    return penalty_above(ordering_boundary_gradient(dimension), objective_lipschitz, margin)


def linear_penalty(
    radius: float, smallest_bound: float, objective_lipschitz: float, margin: float = PENALTY_MARGIN
) -> float:
    """A penalty just above (2 r / min b) L_f, for unit rows A w <= b in a ball (Section 2.2).

    Parameters
    ----------
    radius : float
        r, the radius of the ball.
    smallest_bound : float
        min b, the smallest right side; above 0.
    objective_lipschitz : float
        L_f, the Lipschitz constant of the objective.
    margin : float, default 0.01
        How far above its least value the penalty lies.

    Returns
    -------
    float
        A penalty, `margin` above the least one that is proven to suffice.

    Raises
    ------
    ValueError
        If a number is not positive.

    Examples
    --------
    >>> lt.theory.linear_penalty(radius=10.0, smallest_bound=1.0, objective_lipschitz=1.0)
    20.2
    """
    return penalty_above(
        linear_boundary_gradient(radius, smallest_bound), objective_lipschitz, margin
    )


def distance_to_feasible(
    suboptimality: float, penalty: float, boundary_gradient: float, objective_lipschitz: float
) -> float:
    """How far w can be from its projection (Lemma projection).

    Parameters
    ----------
    suboptimality : float
        A bound on h(w) - h(projection of w).
    penalty : float
        gamma, the weight of the violation in the relaxed objective.
    boundary_gradient : float
        rho, which every subgradient of max g on the boundary reaches in norm.
    objective_lipschitz : float
        L_f, the Lipschitz constant of the objective.

    Returns
    -------
    float
        suboptimality / (gamma rho - L_f).

    Raises
    ------
    ValueError
        If the penalty is too small for the guarantee.

    Examples
    --------
    >>> lt.theory.distance_to_feasible(0.1, 2.0, boundary_gradient=1.0, objective_lipschitz=1.0)
    0.1
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
