"""Plans: how long to run, and with which hyperparameters, for a wanted accuracy."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

from lighttouch.theory.bounds import (
    full_bound,
    full_step_size,
    full_terms,
    light_bound,
    light_constraint_batch,
    light_root,
    light_step_size,
    mid_bound,
    mid_weight_step_size,
)
from lighttouch.theory.constants import Constants, of_constants
from lighttouch.theory.penalties import distance_to_feasible
from lighttouch.validation import positive

if TYPE_CHECKING:
    from lighttouch.solvers import FullTouch, LightTouch, MidTouch

SOLVER_WORDS = {
    "FullTouch": ("penalty", "step_size"),
    "LightTouch": ("penalty", "step_size", "constraint_batch", "weight_step_size"),
    "MidTouch": ("penalty", "strong_convexity", "first_phase", "weight_step_size"),
}


@dataclass(frozen=True)
class Plan:
    """A run that is proven to bring `measure` to at most `epsilon`.

    Print it, or run `solver()` for `iterations`.

    Parameters
    ----------
    algorithm : str
        "FullTouch", "LightTouch" or "MidTouch".
    measure : str
        What is brought to `epsilon`.
    epsilon : float
        The accuracy wanted.
    guarantee : float
        The lemma's bound at these iterations.
    iterations : int
        T, how many iterations are run.
    expected_checks : int
        Constraint checks of the whole run.
    penalty : float
        gamma, the weight of the violation in the relaxed objective.
    failure_probability : float, optional
        The guarantee holds with probability 1 minus this; None: in expectation.
    step_size : float, optional
        eta, for w.
    weight_step_size : float, optional
        eta, for p.
    constraint_batch : int, optional
        k, how many constraints each iteration checks.
    strong_convexity : float, optional
        lambda, the strong convexity of the objective.
    first_phase : int, optional
        T_1 of MidTouch.
    second_phase : int, optional
        T_2 of MidTouch.
    distance_to_feasible : float, optional
        How far the average iterate can be from its projection.
    note : str, optional
        What else to consider.

    Examples
    --------
    >>> constants = lt.theory.Constants(
    ...     constraints=1000, diameter=1.0, objective_gradient=1.0, constraint_gradient=1.0,
    ...     constraint_lipschitz=1.0, objective_lipschitz=1.0, penalty=1.0,
    ... )
    >>> plan = lt.theory.plan_full(constants, 0.1)
    >>> plan.solver()
    FullTouch(penalty=1.0, step_size=0.0016333939370024467, batch=1, incremental=False)
    """

    algorithm: str
    measure: str
    epsilon: float
    guarantee: float
    iterations: int
    expected_checks: int
    penalty: float
    failure_probability: float | None = None
    step_size: float | None = None
    weight_step_size: float | None = None
    constraint_batch: int | None = None
    strong_convexity: float | None = None
    first_phase: int | None = None
    second_phase: int | None = None
    distance_to_feasible: float | None = None
    note: str | None = None

    def solver(self) -> FullTouch | LightTouch | MidTouch:
        """The recommended solver with the plan's hyperparameters."""
        from lighttouch import solvers

        words = {word: getattr(self, word) for word in SOLVER_WORDS[self.algorithm]}
        solver: FullTouch | LightTouch | MidTouch = getattr(solvers, self.algorithm)(**words)
        return solver

    def __str__(self) -> str:
        given = [
            (field.name.replace("_", " "), getattr(self, field.name)) for field in fields(self)
        ]
        rows = [(label, value) for label, value in given if value is not None]
        width = max(len(label) for label, _ in rows) + 2
        return "\n".join(f"{label:<{width}}{_shown(value)}" for label, value in rows)


def _shown(value: float | str) -> str:
    if isinstance(value, str):
        return value
    return f"{value:,}" if isinstance(value, int) and value < 10**15 else f"{value:.4g}"


def _whole_iterations(wanted: float) -> int:
    if not math.isfinite(wanted):
        raise ValueError(
            "epsilon must be large enough for a countable number of iterations; try a "
            "larger epsilon or smaller constants"
        )
    return max(1, math.ceil(wanted))


def _iterations_until(epsilon: float, root: float, inverse: float) -> int:
    """T from which root / sqrt(T) + inverse / T <= epsilon, by Fujiwara's bound on roots (proofs of
    Theorems full and light).
    """
    least_root = 2 * root / epsilon
    return _whole_iterations(max(least_root * least_root, 2 * inverse / epsilon))


def _distance(constants: Constants, suboptimality: float) -> float | None:
    if constants.boundary_gradient is None:
        return None
    return distance_to_feasible(
        suboptimality,
        constants.chosen_penalty,
        constants.boundary_gradient,
        constants.objective_lipschitz,
    )


def _full_plan(
    constants: Constants,
    epsilon: float,
    failure_probability: float,
    iterations: int,
    note: str | None = None,
) -> Plan:
    guarantee = full_bound(constants, iterations, failure_probability)
    return Plan(
        algorithm="FullTouch",
        measure="f(w) - f(w*)",
        epsilon=epsilon,
        guarantee=guarantee,
        iterations=iterations,
        expected_checks=constants.constraints * iterations,
        penalty=constants.chosen_penalty,
        failure_probability=failure_probability,
        step_size=full_step_size(constants, iterations),
        distance_to_feasible=_distance(constants, guarantee),
        note=note,
    )


@of_constants
def plan_full(constants: Constants, epsilon: float, failure_probability: float = 0.05) -> Plan:
    """Plan FullTouch for f(w) - f(w*) <= epsilon (Theorem full).

    It checks all m constraints in every iteration.

    Parameters
    ----------
    constants : Constants
        The problem's constants: number of constraints, diameter, gradients, penalty.
    epsilon : float
        The accuracy wanted.
    failure_probability : float, default 0.05
        delta, the probability with which the bound may fail.

    Returns
    -------
    Plan
        Iterations and hyperparameters that are proven to suffice.

    Raises
    ------
    ValueError
        If epsilon is not positive, or so small that the iterations cannot be counted.

    Examples
    --------
    >>> constants = lt.theory.Constants(
    ...     constraints=1000, diameter=1.0, objective_gradient=1.0, constraint_gradient=1.0,
    ...     constraint_lipschitz=1.0, objective_lipschitz=1.0, penalty=1.0,
    ... )
    >>> print(lt.theory.plan_full(constants, 0.1))
    algorithm            FullTouch
    measure              f(w) - f(w*)
    epsilon              0.1
    guarantee            0.05009
    iterations           93,704
    expected checks      93,704,000
    penalty              1
    failure probability  0.05
    step size            0.001633
    """
    iterations = _iterations_until(
        positive(epsilon, "epsilon"), *full_terms(constants, failure_probability)
    )
    return _full_plan(constants, epsilon, failure_probability, iterations)


@of_constants
def plan_light(constants: Constants, epsilon: float, failure_probability: float = 0.05) -> Plan:
    """Plan LightTouch for f(w) - f(w*) <= epsilon (Theorem light).

    It checks k + 1 constraints per iteration. Where k would exceed m, the theorem runs FullTouch
    for the same number of iterations; `plan_full` then asks for fewer.

    Parameters
    ----------
    constants : Constants
        The problem's constants: number of constraints, diameter, gradients, penalty.
    epsilon : float
        The accuracy wanted.
    failure_probability : float, default 0.05
        delta, the probability with which the bound may fail.

    Returns
    -------
    Plan
        Iterations and hyperparameters that are proven to suffice.

    Raises
    ------
    ValueError
        If epsilon is not positive, or so small that the iterations cannot be counted.

    Examples
    --------
    >>> constants = lt.theory.Constants(
    ...     constraints=1000, diameter=1.0, objective_gradient=1.0, constraint_gradient=1.0,
    ...     constraint_lipschitz=1.0, objective_lipschitz=1.0, penalty=1.0,
    ... )
    >>> plan = lt.theory.plan_light(constants, 1e-3)
    >>> plan.algorithm, plan.constraint_batch
    ('LightTouch', 35)
    """
    wide = constants.widened
    root, (_, inverse) = (
        67 * light_root(wide, failure_probability),
        full_terms(wide, failure_probability),
    )
    iterations = _iterations_until(positive(epsilon, "epsilon"), root, inverse)
    k = light_constraint_batch(wide.constraints, iterations, failure_probability)
    if k > wide.constraints:
        too_many = (
            f"LightTouch would check {k:,} constraints per iteration, more than all "
            f"{wide.constraints:,}; compare plan_full"
        )
        return _full_plan(wide, epsilon, failure_probability, iterations, too_many)
    cheaper = _cheaper(plan_full(constants, epsilon, failure_probability), (k + 1) * iterations)
    return _light_plan(wide, epsilon, failure_probability, iterations, k, cheaper)


def _cheaper(full: Plan, light_checks: int) -> str | None:
    """Say so where FullTouch is proven with fewer checks, as LightTouch's large constants make it
    until epsilon is very small.
    """
    return (
        f"plan_full needs {_shown(full.expected_checks)} checks"
        if full.expected_checks < light_checks
        else None
    )


def _light_plan(
    constants: Constants,
    epsilon: float,
    failure_probability: float,
    iterations: int,
    k: int,
    note: str | None,
) -> Plan:
    guarantee = light_bound(constants, iterations, failure_probability)
    step_size = light_step_size(constants, iterations)
    return Plan(
        algorithm="LightTouch",
        measure="f(w) - f(w*)",
        epsilon=epsilon,
        guarantee=guarantee,
        iterations=iterations,
        expected_checks=(k + 1) * iterations,
        penalty=constants.chosen_penalty,
        failure_probability=failure_probability,
        step_size=step_size,
        weight_step_size=step_size,
        constraint_batch=k,
        distance_to_feasible=_distance(constants, guarantee),
        note=note,
    )


@of_constants
def plan_mid(constants: Constants, epsilon: float) -> Plan:
    """Plan MidTouch for E ||w - w*||^2 <= epsilon (Theorem mid).

    It checks m constraints per iteration in the first phase and 2 in the second.

    Parameters
    ----------
    constants : Constants
        The problem's constants: number of constraints, diameter, gradients, penalty.
    epsilon : float
        The accuracy wanted.

    Returns
    -------
    Plan
        Iterations of both phases and hyperparameters that are proven to suffice.

    Raises
    ------
    ValueError
        If epsilon is not positive, or so small that the iterations cannot be counted.

    Examples
    --------
    >>> constants = lt.theory.Constants(
    ...     constraints=1000, diameter=1.0, objective_gradient=1.0, constraint_gradient=1.0,
    ...     constraint_lipschitz=1.0, objective_lipschitz=1.0, penalty=1.0,
    ...     strong_convexity=0.1,
    ... )
    >>> plan = lt.theory.plan_mid(constants, 1.0)
    >>> plan.first_phase, plan.second_phase
    (3225315062, 5792395627)
    """
    tau = _phase_scale(_phase_target(constants, positive(epsilon, "epsilon")))
    T1, T2 = (
        _whole_iterations(constants.constraints * tau * tau),
        _whole_iterations(tau * tau * tau),
    )
    return Plan(
        algorithm="MidTouch",
        measure="E ||w - w*||^2",
        epsilon=epsilon,
        guarantee=mid_bound(constants, T1, T2),
        iterations=T1 + T2,
        expected_checks=constants.constraints * T1 + 2 * T2,
        penalty=constants.chosen_penalty,
        weight_step_size=mid_weight_step_size(constants),
        strong_convexity=constants.strong_convexity,
        first_phase=T1,
        second_phase=T2,
    )


def _phase_target(constants: Constants, epsilon: float) -> float:
    """What tau / (1 + ln tau)^(1/3) must reach, by Fujiwara's bound on roots (proof of Theorem
    mid).
    """
    reach = constants.step_gradient / constants.needed_strong_convexity / math.sqrt(epsilon)
    push = (
        reach
        + constants.chosen_penalty
        * constants.constraint_lipschitz
        / constants.needed_strong_convexity
        / math.sqrt(epsilon)
    )
    stale = constants.constraints * constants.log_constraints * reach
    return max(
        1.0,
        2 * math.cbrt(10 * constants.log_constraints * push * push),
        2 * math.sqrt(math.sqrt(1.5) * stale),
    )


def _phase_scale(target: float) -> float:
    """The least tau >= 1 with tau / (1 + ln tau)^(1/3) >= target: a fixed point, approached from
    above so that the inequality holds.
    """
    tau = target * math.sqrt(target)
    for _ in range(100):
        tau = target * math.cbrt(1 + math.log(tau))
    return tau
