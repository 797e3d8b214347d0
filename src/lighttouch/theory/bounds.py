"""Suboptimality after a number of iterations, and the hyperparameters for which it is proven."""

from __future__ import annotations

import math

from lighttouch.theory.constants import Constants, of_constants
from lighttouch.validation import positive_int


@of_constants
def full_step_size(constants: Constants, iterations: int) -> float:
    """FullTouch's step size eta (Lemma full-suboptimality).

    Parameters
    ----------
    constants : Constants
        The problem's constants: number of constraints, diameter, gradients, penalty.
    iterations : int
        T, how many iterations are run.

    Returns
    -------
    float
        eta = D_w / ((G_f + gamma G_g) sqrt(T)).

    Raises
    ------
    ValueError
        If a count is not positive, or the failure probability not strictly between 0 and 1.

    Examples
    --------
    >>> constants = lt.theory.Constants(
    ...     constraints=1000, diameter=1.0, objective_gradient=1.0, constraint_gradient=1.0,
    ...     constraint_lipschitz=1.0, objective_lipschitz=1.0, penalty=1.0,
    ... )
    >>> lt.theory.full_step_size(constants, 10_000)
    0.005
    """
    return constants.diameter / (
        constants.step_gradient * math.sqrt(positive_int(iterations, "iterations", most=math.inf))
    )


@of_constants
def full_terms(constants: Constants, failure_probability: float) -> tuple[float, float]:
    """What is divided by sqrt(T), and what by T, in U_F."""
    log = log_failure(failure_probability)
    root = (
        (1 + 2 * math.sqrt(2)) * constants.diameter * constants.step_gradient * math.sqrt(1 + log)
    )
    return root, 8 / 3 * constants.diameter * constants.objective_gradient * log


@of_constants
def full_bound(constants: Constants, iterations: int, failure_probability: float = 0.05) -> float:
    """U_F, the suboptimality of FullTouch after T iterations (Lemma full-suboptimality).

    Parameters
    ----------
    constants : Constants
        The problem's constants: number of constraints, diameter, gradients, penalty.
    iterations : int
        T, how many iterations are run.
    failure_probability : float, default 0.05
        delta, the probability with which the bound may fail.

    Returns
    -------
    float
        With probability 1 - delta, h(average) - h(w*) is at most this.

    Raises
    ------
    ValueError
        If a count is not positive, or the failure probability not strictly between 0 and 1.

    Examples
    --------
    >>> constants = lt.theory.Constants(
    ...     constraints=1000, diameter=1.0, objective_gradient=1.0, constraint_gradient=1.0,
    ...     constraint_lipschitz=1.0, objective_lipschitz=1.0, penalty=1.0,
    ... )
    >>> round(lt.theory.full_bound(constants, 10_000), 4)
    0.1539
    """
    T = positive_int(iterations, "iterations", most=math.inf)
    root, inverse = full_terms(constants, failure_probability)
    return root / math.sqrt(T) + inverse / T


@of_constants
def light_step_size(constants: Constants, iterations: int) -> float:
    """LightTouch's step size eta, for w and for p (Lemma light-suboptimality).

    Parameters
    ----------
    constants : Constants
        The problem's constants: number of constraints, diameter, gradients, penalty.
    iterations : int
        T, how many iterations are run.

    Returns
    -------
    float
        eta = sqrt((1 + ln m) / T) D_w / (G_f + gamma G_g + gamma L_g D_w).

    Raises
    ------
    ValueError
        If a count is not positive, or the failure probability not strictly between 0 and 1.

    Examples
    --------
    >>> constants = lt.theory.Constants(
    ...     constraints=1000, diameter=1.0, objective_gradient=1.0, constraint_gradient=1.0,
    ...     constraint_lipschitz=1.0, objective_lipschitz=1.0, penalty=1.0,
    ... )
    >>> round(lt.theory.light_step_size(constants, 10_000), 5)
    0.00937
    """
    wide = constants.widened
    return (
        math.sqrt(wide.log_constraints / positive_int(iterations, "iterations", most=math.inf))
        * wide.diameter
        / wide.saddle_gradient
    )


def light_constraint_batch(
    constraints: int, iterations: int, failure_probability: float = 0.05
) -> int:
    """LightTouch's k for m constraints and T iterations (Lemma light-suboptimality).

    Parameters
    ----------
    constraints : int
        m, how many constraints there are.
    iterations : int
        T, how many iterations are run.
    failure_probability : float, default 0.05
        delta, the probability with which the bound may fail.

    Returns
    -------
    int
        How many constraints each iteration checks; above m, FullTouch is the better choice.

    Raises
    ------
    ValueError
        If a count is not positive, or the failure probability not strictly between 0 and 1.

    Examples
    --------
    >>> lt.theory.light_constraint_batch(1000, 10**12)
    51
    """
    m, T = (
        positive_int(constraints, "constraints", most=math.inf),
        positive_int(iterations, "iterations", most=math.inf),
    )
    logs = math.pow(1 + math.log(m), 0.75) * math.sqrt(
        (1 + log_failure(failure_probability)) * (1 + math.log(T))
    )
    return math.ceil(m * logs / math.pow(T, 0.25))


@of_constants
def light_root(constants: Constants, failure_probability: float) -> float:
    """What is multiplied by a constant (7 or 67) and divided by sqrt(T) in U_L."""
    wide = constants.widened
    return (
        math.sqrt(wide.log_constraints * (1 + log_failure(failure_probability)))
        * wide.diameter
        * wide.saddle_gradient
    )


@of_constants
def light_bound(
    constants: Constants,
    iterations: int,
    failure_probability: float = 0.05,
    constraint_batch: int | None = None,
) -> float:
    """U_L, the suboptimality of LightTouch after T iterations (Lemma light-suboptimality).

    Without `constraint_batch` it is the lemma's final form (constant 67), which holds at k =
    `light_constraint_batch(...)` <= m. With it, it is the sum of the three terms of the proof
    (constants 7, 19 and 41), which holds for every k <= m.

    Parameters
    ----------
    constants : Constants
        The problem's constants: number of constraints, diameter, gradients, penalty.
    iterations : int
        T, how many iterations are run.
    failure_probability : float, default 0.05
        delta, the probability with which the bound may fail.
    constraint_batch : int, optional
        k, how many constraints each iteration checks; None: the lemma's own.

    Returns
    -------
    float
        With probability 1 - delta, h(average) - h(w*) is at most this.

    Raises
    ------
    ValueError
        If a count is not positive, or the failure probability not strictly between 0 and 1.

    Examples
    --------
    >>> constants = lt.theory.Constants(
    ...     constraints=1000, diameter=1.0, objective_gradient=1.0, constraint_gradient=1.0,
    ...     constraint_lipschitz=1.0, objective_lipschitz=1.0, penalty=1.0,
    ... )
    >>> round(lt.theory.light_bound(constants, 10**8, constraint_batch=100), 4)
    7.0092
    """
    root = light_root(constants, failure_probability) / math.sqrt(
        positive_int(iterations, "iterations", most=math.inf)
    )
    if constraint_batch is not None:
        return 7 * root + _stale_terms(
            constants,
            iterations,
            failure_probability,
            _batch(constants.constraints, constraint_batch),
        )
    k = light_constraint_batch(constants.constraints, iterations, failure_probability)
    if k > constants.constraints:
        raise ValueError(
            "iterations must be enough for a constraint batch of at most "
            f"{constants.constraints}, got {iterations}, which asks for {k};"
            " try more iterations, full_bound, or a constraint_batch of your own"
        )
    return 67 * root


def _stale_terms(
    constants: Constants, iterations: int, failure_probability: float, k: int
) -> float:
    """What the age of the remembered violations adds to U_L: the proof's terms with constants 19
    and 41.
    """
    wide, log = constants.widened, 1 + log_failure(failure_probability)
    age = (wide.constraints / k) ** 2 * (1 + math.log(iterations)) / iterations
    second = 19 * math.pow(wide.log_constraints * log, 1.5) * age
    third = 41 * math.pow(wide.log_constraints, 3.5) * log**2 * age**2 * math.sqrt(iterations)
    return wide.diameter * wide.step_gradient * (second + third)


def staleness_bound(
    constraints: int, constraint_batch: int, iterations: int, failure_probability: float = 0.05
) -> float:
    """The age that no remembered violation ever exceeds (Lemma coupon).

    Parameters
    ----------
    constraints : int
        m, how many constraints there are.
    constraint_batch : int
        k, how many constraints each iteration checks; at most `constraints`.
    iterations : int
        T, how many iterations are run.
    failure_probability : float, default 0.05
        delta, the probability with which the bound may fail.

    Returns
    -------
    float
        With probability 1 - delta, no remembered violation is older than so many iterations.

    Raises
    ------
    ValueError
        If a count is not positive, or the failure probability not strictly between 0 and 1.

    Examples
    --------
    >>> round(lt.theory.staleness_bound(1000, 100, 10_000), 1)
    397.1
    """
    m, T = (
        positive_int(constraints, "constraints", most=math.inf),
        positive_int(iterations, "iterations", most=math.inf),
    )
    return 1 + 2 * m / _batch(m, constraint_batch) * (
        math.log(2 * m * T) + log_failure(failure_probability)
    )


@of_constants
def mid_weight_step_size(constants: Constants) -> float:
    """MidTouch's step size eta for p (Lemma mid-suboptimality).

    Parameters
    ----------
    constants : Constants
        The problem's constants: number of constraints, diameter, gradients, penalty.

    Returns
    -------
    float
        eta = lambda / (2 gamma^2 L_g^2).

    Raises
    ------
    ValueError
        If `strong_convexity` was not given.

    Examples
    --------
    >>> constants = lt.theory.Constants(
    ...     constraints=1000, diameter=1.0, objective_gradient=1.0, constraint_gradient=1.0,
    ...     constraint_lipschitz=1.0, objective_lipschitz=1.0, penalty=1.0,
    ...     strong_convexity=0.1,
    ... )
    >>> lt.theory.mid_weight_step_size(constants)
    0.05
    """
    scale = constants.chosen_penalty * constants.constraint_lipschitz
    return constants.needed_strong_convexity / scale / scale / 2


@of_constants
def mid_bound(constants: Constants, first_phase: int, second_phase: int) -> float:
    """The squared distance of MidTouch to the optimum (Lemma mid-suboptimality).

    Parameters
    ----------
    constants : Constants
        The problem's constants: number of constraints, diameter, gradients, penalty.
    first_phase : int
        T_1, iterations that check every constraint.
    second_phase : int
        T_2, iterations that check one constraint of each kind.

    Returns
    -------
    float
        E ||average - w*||^2 after T_1 and T_2 iterations is at most this.

    Raises
    ------
    ValueError
        If a count is not positive, or `strong_convexity` was not given.

    Examples
    --------
    >>> constants = lt.theory.Constants(
    ...     constraints=1000, diameter=1.0, objective_gradient=1.0, constraint_gradient=1.0,
    ...     constraint_lipschitz=1.0, objective_lipschitz=1.0, penalty=1.0,
    ...     strong_convexity=0.1,
    ... )
    >>> round(lt.theory.mid_bound(constants, 10**8, 10**8), 2)
    7.5
    """
    T1, T2, m = (
        positive_int(first_phase, "first_phase", most=math.inf),
        positive_int(second_phase, "second_phase", most=math.inf),
        constants.constraints,
    )
    step = constants.step_gradient / constants.needed_strong_convexity
    push = (
        constants.chosen_penalty
        * constants.constraint_lipschitz
        / constants.needed_strong_convexity
    )
    learning = (
        2 * step * step * (2 + math.log(T1) + math.log(T2)) + 8 * push * push * math.log(m)
    ) / T2
    stale = step * m * m * constants.log_constraints / T1
    return learning + 3 * stale * stale


def _batch(constraints: int, constraint_batch: int) -> int:
    """k, refused unless it is a whole number from 1 to m."""
    k = positive_int(constraint_batch, "constraint_batch", most=math.inf)
    if k > constraints:
        raise ValueError(
            f"constraint_batch must be at most the {constraints} constraints, got {k}; try "
            "FullTouch, which checks them all"
        )
    return k


def log_failure(failure_probability: float) -> float:
    """The ln(1/delta) of every high-probability bound."""
    if not 0 < failure_probability < 1:
        raise ValueError(
            f"failure_probability must lie strictly between 0 and 1, got {failure_probability}"
        )
    return -math.log(failure_probability)
