"""The theory's numbers against separate arithmetic and against substitution into the bounds; what
it refuses.
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import brentq

import lighttouch as lt
from lighttouch import theory
from lighttouch.theory import Constants

EXAMPLE = Constants(
    constraints=100,
    diameter=2,
    objective_gradient=3,
    constraint_gradient=1,
    constraint_lipschitz=1.5,
    objective_lipschitz=2,
    boundary_gradient=0.5,
    penalty=5,
    strong_convexity=0.1,
)


def number(low: float, high: float) -> st.SearchStrategy[float]:
    return st.floats(math.log(low), math.log(high)).map(math.exp)


def some_constants() -> st.SearchStrategy[Constants]:
    return st.builds(
        Constants,
        constraints=number(1, 1e7).map(int),
        diameter=number(1e-3, 1e3),
        objective_gradient=st.just(0.0) | number(1e-3, 1e3),
        constraint_gradient=number(1e-3, 1e3),
        constraint_lipschitz=number(1e-3, 1e3),
        objective_lipschitz=number(1e-3, 1e3),
        boundary_gradient=number(1e-3, 1e3),
        strong_convexity=number(1e-3, 1e3),
    )


accuracies = number(1e-6, 1e3)
failures = st.floats(1e-9, 0.999)


# Numbers computed apart from this code, in another language, from the formulas of the appendix.


def test_full_bound_and_step_size() -> None:
    assert theory.full_bound(EXAMPLE, 10_000, 0.1) == pytest.approx(1.1168692123, rel=1e-9)
    assert theory.full_step_size(EXAMPLE, 10_000) == pytest.approx(0.0025, rel=1e-12)


def test_light_bound_batch_and_step_size() -> None:
    assert theory.light_constraint_batch(100, 10**12, 0.1) == 4
    assert theory.light_constraint_batch(24_576, 10**15, 0.05) == 317
    assert theory.light_bound(EXAMPLE, 10**12, 0.1) == pytest.approx(1.3260321207e-2, rel=1e-9)
    assert theory.light_bound(EXAMPLE, 10**12, 0.1, constraint_batch=20) == pytest.approx(
        1.4042656981e-3, rel=1e-9
    )
    assert theory.light_step_size(EXAMPLE, 10**12) == pytest.approx(2.05871657599e-7, rel=1e-9)


def test_staleness_bound() -> None:
    assert theory.staleness_bound(100, 20, 5000, 0.1) == pytest.approx(162.1809565096, rel=1e-9)


def test_mid_bound_and_weight_step_size() -> None:
    assert theory.mid_bound(EXAMPLE, 10**6, 10**7) == pytest.approx(60.3840292845, rel=1e-9)
    assert theory.mid_weight_step_size(EXAMPLE) == pytest.approx(0.1 / 112.5, rel=1e-12)


def test_plan_full_numbers() -> None:
    plan = theory.plan_full(EXAMPLE, 0.5, 0.1)
    assert (plan.algorithm, plan.iterations, plan.expected_checks) == (
        "FullTouch",
        198_269,
        19_826_900,
    )
    assert plan.step_size == pytest.approx(2 / (8 * math.sqrt(198_269)), rel=1e-12)
    assert plan.distance_to_feasible == pytest.approx(plan.guarantee / 0.5, rel=1e-12)


def test_plan_full_uses_its_second_term_when_the_first_is_small() -> None:
    loose = dataclasses.replace(
        EXAMPLE, penalty=5.0, constraint_gradient=1e-9, objective_lipschitz=0.1
    )
    epsilon, failure = 1e4, 1e-300
    second = 16 * 2 * 3 * 300 * math.log(10) / (3 * epsilon)
    assert second > 4 * (9 + 4 * math.sqrt(2)) * 4 * 9 * (1 + 300 * math.log(10)) / epsilon**2
    assert theory.plan_full(loose, epsilon, failure).iterations == math.ceil(second)


def test_plan_light_numbers() -> None:
    plan = theory.plan_light(EXAMPLE, 0.01, 0.1)
    assert plan.iterations == pytest.approx(7_033_444_740_388.24, rel=1e-12)
    logs = (
        (1 + math.log(100)) ** 0.75
        * math.sqrt(1 + math.log(10))
        * math.sqrt(1 + math.log(plan.iterations))
    )
    k = math.ceil(100 * logs / plan.iterations**0.25)
    assert (plan.algorithm, plan.constraint_batch) == ("LightTouch", k)
    assert plan.expected_checks == (k + 1) * plan.iterations
    assert (
        plan.weight_step_size == plan.step_size == theory.light_step_size(EXAMPLE, plan.iterations)
    )


def test_plan_mid_numbers() -> None:
    plan = theory.plan_mid(EXAMPLE, 0.01)
    target = 2 * (1.5 * 100**2 * (1 + math.log(100)) ** 2 * 8**2 / (0.1**2 * 0.01)) ** 0.25
    assert target == pytest.approx(1482.1501611986, rel=1e-9)
    tau = brentq(lambda t: t / (1 + math.log(t)) ** (1 / 3) - target, 1, 1e9, xtol=1e-9, rtol=1e-14)
    assert plan.first_phase == pytest.approx(100 * tau**2, rel=1e-9)
    assert plan.second_phase == pytest.approx(tau**3, rel=1e-9)
    assert plan.iterations == plan.first_phase + plan.second_phase
    assert plan.expected_checks == 100 * plan.first_phase + 2 * plan.second_phase
    assert plan.failure_probability is None


def test_plan_mid_follows_its_first_term_with_one_constraint() -> None:
    alone = dataclasses.replace(EXAMPLE, constraints=1)
    target = 2 * (10 * (8 + 5 * 1.5) ** 2 / (0.1**2 * 0.01)) ** (1 / 3)
    tau = theory.plan_mid(alone, 0.01).second_phase ** (1 / 3)
    assert tau / (1 + math.log(tau)) ** (1 / 3) == pytest.approx(target, rel=1e-6)


# The plans deliver what they promise, and behave as expected.


@given(some_constants(), accuracies, failures)
def test_full_iterations_bring_the_bound_below_epsilon(
    constants: Constants, epsilon: float, failure: float
) -> None:
    plan = theory.plan_full(constants, epsilon, failure)
    assert theory.full_bound(constants, plan.iterations, failure) <= epsilon * (1 + 1e-9)
    assert plan.guarantee == theory.full_bound(constants, plan.iterations, failure)


@given(some_constants(), accuracies, failures)
def test_light_iterations_bring_the_bound_below_epsilon(
    constants: Constants, epsilon: float, failure: float
) -> None:
    plan = theory.plan_light(constants, epsilon, failure)
    wide = dataclasses.replace(constants, diameter=max(1.0, constants.diameter))
    k = theory.light_constraint_batch(constants.constraints, plan.iterations, failure)
    assert (plan.algorithm == "LightTouch") == (k <= constants.constraints)
    if plan.algorithm == "LightTouch":
        assert theory.light_bound(constants, plan.iterations, failure) <= epsilon * (1 + 1e-9)
        assert theory.light_bound(constants, plan.iterations, failure, k) <= epsilon * (1 + 1e-9)
    else:
        assert theory.full_bound(wide, plan.iterations, failure) <= epsilon * (1 + 1e-9)
        assert plan.constraint_batch is None
        assert f"{k:,}" in str(plan.note)


@given(some_constants(), accuracies)
def test_mid_phases_bring_the_bound_below_epsilon(constants: Constants, epsilon: float) -> None:
    plan = theory.plan_mid(constants, epsilon)
    assert theory.mid_bound(constants, plan.first_phase or 0, plan.second_phase or 0) <= epsilon * (
        1 + 1e-9
    )


@given(some_constants(), number(1e3, 1e15).map(int), failures)
def test_the_final_form_is_never_below_the_three_terms_it_rounds_up(
    constants: Constants, iterations: int, failure: float
) -> None:
    k = theory.light_constraint_batch(constants.constraints, iterations, failure)
    if k <= constants.constraints:
        assert theory.light_bound(constants, iterations, failure, k) <= theory.light_bound(
            constants, iterations, failure
        ) * (1 + 1e-9)


@given(some_constants(), accuracies, number(1.01, 100), failures)
def test_a_smaller_epsilon_takes_more_iterations(
    constants: Constants, epsilon: float, factor: float, failure: float
) -> None:
    for plan in (theory.plan_full, theory.plan_light):
        assert (
            plan(constants, epsilon / factor, failure).iterations
            >= plan(constants, epsilon, failure).iterations
        )
    assert (
        theory.plan_mid(constants, epsilon / factor).iterations
        >= theory.plan_mid(constants, epsilon).iterations
    )


@given(number(1, 1e7).map(int), number(3, 1e14).map(int), number(1, 1e3), failures)
def test_more_iterations_need_a_smaller_batch(
    constraints: int, iterations: int, factor: float, failure: float
) -> None:
    longer = math.ceil(iterations * factor)
    assert theory.light_constraint_batch(
        constraints, longer, failure
    ) <= theory.light_constraint_batch(constraints, iterations, failure)


def test_light_checks_less_than_full_where_epsilon_is_small_and_constraints_many() -> None:
    many = dataclasses.replace(EXAMPLE, constraints=10**7)
    light, full = theory.plan_light(many, 1e-9), theory.plan_full(many, 1e-9)
    assert light.expected_checks < full.expected_checks
    assert light.note is None
    light, full = theory.plan_light(EXAMPLE, 0.01), theory.plan_full(EXAMPLE, 0.01)
    assert light.algorithm == "LightTouch"
    assert full.expected_checks < light.expected_checks
    assert f"{full.expected_checks:,} checks" in str(light)


def test_light_falls_back_to_full_touch_where_the_batch_would_exceed_the_constraints() -> None:
    plan = theory.plan_light(EXAMPLE, 1e3, 0.1)
    assert plan.algorithm == "FullTouch"
    assert plan.iterations == math.ceil(
        134**2 * (1 + math.log(100)) * 4 * 23**2 * (1 + math.log(10)) / 1e6
    )
    assert plan.step_size == pytest.approx(2 / (8 * math.sqrt(plan.iterations)), rel=1e-12)
    assert plan.expected_checks == 100 * plan.iterations


def test_light_takes_the_diameter_to_be_at_least_one_and_full_does_not() -> None:
    small, one = (dataclasses.replace(EXAMPLE, diameter=diameter) for diameter in (0.25, 1.0))
    assert theory.plan_light(small, 0.01).iterations == theory.plan_light(one, 0.01).iterations
    assert theory.plan_light(small, 0.01).step_size == theory.plan_light(one, 0.01).step_size
    assert theory.plan_light(small, 1e4) == theory.plan_light(one, 1e4)
    assert theory.plan_full(small, 0.01).iterations == pytest.approx(
        theory.plan_full(one, 0.01).iterations / 16, abs=1
    )


def test_a_plan_prints_as_an_aligned_table() -> None:
    lines = str(theory.plan_light(EXAMPLE, 0.01, 0.1)).splitlines()
    assert lines[0].split() == ["algorithm", "LightTouch"]
    assert "iterations            7,033,444,740,389" in lines
    assert not any("None" in line or "phase" in line for line in lines)
    assert len({len(line) - len(line.split("  ", 1)[1].lstrip()) for line in lines}) == 1


def test_numbers_of_numpy_plan_like_python_ones() -> None:
    numpy_constants = Constants(
        np.int64(100),
        *(np.float64(x) for x in (2, 3, 1, 1.5, 2)),
        np.float64(0.5),
        np.float64(5),
        np.float64(0.1),
    )  # type: ignore[arg-type]
    assert numpy_constants == EXAMPLE
    assert (
        theory.plan_light(numpy_constants, 1e-6).expected_checks
        == theory.plan_light(EXAMPLE, 1e-6).expected_checks
    )


# Refusals.


@pytest.mark.parametrize("field", [field.name for field in dataclasses.fields(Constants)])
@pytest.mark.parametrize("value", [-1.0, math.nan, math.inf])
def test_constants_refuse_what_cannot_be_a_bound(field: str, value: float) -> None:
    with pytest.raises(ValueError, match=field):
        dataclasses.replace(EXAMPLE, **{field: value})


@pytest.mark.parametrize("value", [0, 2.5])
def test_constants_refuse_counts_that_are_none(value: float) -> None:
    with pytest.raises(ValueError, match="constraints must be a whole number"):
        dataclasses.replace(EXAMPLE, constraints=value)  # type: ignore[arg-type]


@pytest.mark.parametrize("penalty", [1.0, 3.9, 4.0])
def test_a_penalty_at_most_the_lipschitz_ratio_is_refused(penalty: float) -> None:
    with pytest.raises(ValueError, match=r"penalty must be above .* = 4, got"):
        dataclasses.replace(EXAMPLE, penalty=penalty)
    with pytest.raises(ValueError, match="penalty must be above"):
        theory.distance_to_feasible(1.0, penalty, 0.5, 2.0)


def test_a_penalty_that_only_rounding_lifts_above_the_ratio_is_refused() -> None:
    assert 0.7 / 0.3 * 0.3 > 0.7
    with pytest.raises(ValueError, match="penalty must be above"):
        theory.distance_to_feasible(1.0, 0.7 / 0.3, 0.3, 0.7)


def test_constants_need_a_penalty_or_what_it_follows_from() -> None:
    with pytest.raises(ValueError, match="penalty or boundary_gradient"):
        dataclasses.replace(EXAMPLE, penalty=None, boundary_gradient=None)
    with pytest.raises(ValueError, match="any penalty above 0"):
        dataclasses.replace(EXAMPLE, penalty=None, objective_lipschitz=0.0)
    assert dataclasses.replace(EXAMPLE, penalty=None).chosen_penalty == pytest.approx(
        4.04, rel=1e-12
    )
    alone = dataclasses.replace(EXAMPLE, boundary_gradient=None)
    assert alone.chosen_penalty == 5
    assert theory.plan_full(alone, 0.5).distance_to_feasible is None


@pytest.mark.parametrize("epsilon", [0.0, -1.0, math.nan, math.inf])
def test_plans_refuse_an_accuracy_that_cannot_be_reached(epsilon: float) -> None:
    for plan in (theory.plan_full, theory.plan_light, theory.plan_mid):
        with pytest.raises(ValueError, match="epsilon"):
            plan(EXAMPLE, epsilon)


def test_plans_refuse_an_accuracy_that_takes_forever() -> None:
    for plan in (theory.plan_full, theory.plan_light, theory.plan_mid):
        with pytest.raises(ValueError, match="larger epsilon"):
            plan(EXAMPLE, 5e-324)


@pytest.mark.parametrize("failure", [0.0, 1.0, -0.1, 1.5, math.nan])
def test_failure_probabilities_lie_strictly_between_zero_and_one(failure: float) -> None:
    for refused in (
        lambda: theory.plan_full(EXAMPLE, 0.1, failure),
        lambda: theory.plan_light(EXAMPLE, 0.1, failure),
        lambda: theory.full_bound(EXAMPLE, 10, failure),
        lambda: theory.light_bound(EXAMPLE, 10**12, failure),
        lambda: theory.staleness_bound(10, 2, 100, failure),
    ):
        with pytest.raises(ValueError, match="failure_probability"):
            refused()


def test_mid_needs_strong_convexity() -> None:
    convex = dataclasses.replace(EXAMPLE, strong_convexity=None)
    with pytest.raises(ValueError, match="strong_convexity"):
        theory.plan_mid(convex, 0.1)
    with pytest.raises(ValueError, match="strong_convexity"):
        theory.mid_bound(convex, 1, 1)
    with pytest.raises(ValueError, match="strong_convexity"):
        theory.mid_weight_step_size(convex)


def test_batches_and_iterations_out_of_range_are_refused() -> None:
    with pytest.raises(ValueError, match="constraint_batch must be at most"):
        theory.light_bound(EXAMPLE, 10**12, 0.1, constraint_batch=101)
    with pytest.raises(ValueError, match="iterations must be enough"):
        theory.light_bound(EXAMPLE, 1000, 0.1)
    with pytest.raises(ValueError, match="constraint_batch must be at most"):
        theory.staleness_bound(10, 11, 100)
    with pytest.raises(ValueError, match="iterations"):
        theory.full_bound(EXAMPLE, 0)
    with pytest.raises(ValueError, match="first_phase"):
        theory.mid_bound(EXAMPLE, 0, 5)


@pytest.mark.parametrize("value", [0.0, 1.0, math.nan])
def test_an_interior_point_is_strictly_feasible(value: float) -> None:
    with pytest.raises(ValueError, match="interior_value must be below 0"):
        theory.penalty_from_interior_point(value, 2.0, 1.0)


def test_each_plan_builds_the_solver_it_recommends() -> None:
    full, light, mid = (
        theory.plan_full(EXAMPLE, 0.5),
        theory.plan_light(EXAMPLE, 0.01),
        theory.plan_mid(EXAMPLE, 0.01),
    )
    assert full.solver() == lt.FullTouch(penalty=5.0, step_size=full.step_size)
    assert light.solver() == lt.LightTouch(
        penalty=5.0,
        step_size=light.step_size,
        constraint_batch=light.constraint_batch,
        weight_step_size=light.step_size,
    )
    assert mid.solver() == lt.MidTouch(
        penalty=5.0,
        strong_convexity=0.1,
        first_phase=mid.first_phase,
        weight_step_size=theory.mid_weight_step_size(EXAMPLE),
    )
    assert theory.plan_light(EXAMPLE, 1e3).solver() == lt.FullTouch(
        penalty=5.0, step_size=theory.plan_light(EXAMPLE, 1e3).step_size
    )
