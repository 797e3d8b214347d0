"""Suboptimality after a number of iterations, and the hyperparameters for which it is proven."""

from __future__ import annotations

import math

from lighttouch.theory.checks import batch_of, log_failure
from lighttouch.theory.constants import Constants
from lighttouch.validation import positive_int


def full_step_size(constants: Constants, iterations: int) -> float:
    """FullTouch's eta (Lemma full-suboptimality)."""
    return constants.diameter / (
        constants.step_gradient * math.sqrt(positive_int(iterations, "iterations"))
    )


def full_terms(constants: Constants, failure_probability: float) -> tuple[float, float]:
    """What is divided by sqrt(T), and what by T, in U_F."""
    log = log_failure(failure_probability)
    root = (
        (1 + 2 * math.sqrt(2)) * constants.diameter * constants.step_gradient * math.sqrt(1 + log)
    )
    return root, 8 / 3 * constants.diameter * constants.objective_gradient * log


def full_bound(constants: Constants, iterations: int, failure_probability: float = 0.05) -> float:
    """U_F: with probability 1 - delta, h(average) - h(w*) after T iterations of FullTouch is at
    most this (Lemma full-suboptimality).
    """
    T = positive_int(iterations, "iterations")
    root, inverse = full_terms(constants, failure_probability)
    return root / math.sqrt(T) + inverse / T


def light_step_size(constants: Constants, iterations: int) -> float:
    """LightTouch's eta, for w and for p (Lemma light-suboptimality)."""
    wide = constants.widened
    return (
        math.sqrt(wide.log_constraints / positive_int(iterations, "iterations"))
        * wide.diameter
        / wide.saddle_gradient
    )


def light_constraint_batch(
    constraints: int, iterations: int, failure_probability: float = 0.05
) -> int:
    """LightTouch's k for m constraints and T iterations; above m, FullTouch is the better choice
    (Lemma light-suboptimality).
    """
    m, T = positive_int(constraints, "constraints"), positive_int(iterations, "iterations")
    logs = math.pow(1 + math.log(m), 0.75) * math.sqrt(
        (1 + log_failure(failure_probability)) * (1 + math.log(T))
    )
    return math.ceil(m * logs / math.pow(T, 0.25))


def light_root(constants: Constants, failure_probability: float) -> float:
    """What is multiplied by a constant (7 or 67) and divided by sqrt(T) in U_L."""
    wide = constants.widened
    return (
        math.sqrt(wide.log_constraints * (1 + log_failure(failure_probability)))
        * wide.diameter
        * wide.saddle_gradient
    )


def light_bound(
    constants: Constants,
    iterations: int,
    failure_probability: float = 0.05,
    constraint_batch: int | None = None,
) -> float:
    """U_L: with probability 1 - delta, h(average) - h(w*) after T iterations of LightTouch is at
    most this (Lemma light-suboptimality).

    Without `constraint_batch` it is the lemma's final form (constant 67), which holds at k =
    `light_constraint_batch(...)` <= m. With it, the sum of three terms (constants 7, 19 and 41) of
    the proof, which holds for every k <= m.
    """
    root = light_root(constants, failure_probability) / math.sqrt(
        positive_int(iterations, "iterations")
    )
    if constraint_batch is not None:
        return 7 * root + _stale_terms(
            constants,
            iterations,
            failure_probability,
            batch_of(constants.constraints, constraint_batch),
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
    """With probability 1 - delta, no remembered violation is ever older than this many iterations
    (Lemma coupon).
    """
    m, T = positive_int(constraints, "constraints"), positive_int(iterations, "iterations")
    return 1 + 2 * m / batch_of(m, constraint_batch) * (
        math.log(2 * m * T) + log_failure(failure_probability)
    )


def mid_weight_step_size(constants: Constants) -> float:
    """MidTouch's eta for p (Lemma mid-suboptimality)."""
    scale = constants.chosen_penalty * constants.constraint_lipschitz
    return constants.needed_strong_convexity / scale / scale / 2


def mid_bound(constants: Constants, first_phase: int, second_phase: int) -> float:
    """E ||average - w*||^2 after T_1 and T_2 iterations of MidTouch's two phases is at most this
    (Lemma mid-suboptimality).
    """
    T1, T2, m = (
        positive_int(first_phase, "first_phase"),
        positive_int(second_phase, "second_phase"),
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
