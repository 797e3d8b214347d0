"""Feasible sets: the facts that choose a method, what is refused, and what is proven."""

from __future__ import annotations

import gc
import pickle
import weakref
from typing import NamedTuple

import numpy as np
import pytest

import lighttouch as lt
from lighttouch.projections.methods import METHODS
from lighttouch.projections.sets import feasible_set
from lighttouch.result import certified, not_certified
from lighttouch.running import OutOfTimeError, within

RNG_SEED = 5
EVERYWHERE, BOX = lt.Everywhere(), lt.Box(-1.0, 1.0)


def general_rows(count: int = 6, dimension: int = 4) -> lt.LinearConstraints:
    A = np.random.default_rng(RNG_SEED).standard_normal((count, dimension))
    return lt.LinearConstraints(A, np.ones(count))


def two_balls() -> lt.NormConstraints:
    return lt.NormConstraints(None, np.array([[0.0] * 4, [0.5] * 4]), None, [1.0, 1.0])


def nested_rows() -> lt.LinearConstraints:
    return lt.lattice.dominance([2] * 9, 0, 1)


FACTS = ("is_box", "is_halfspace", "is_order", "has_nested", "is_general", "is_curved")
SETS = {
    "nothing": (lt.bounds(4), EVERYWHERE, "is_box", "clipping"),
    "bounds in a box": (lt.bounds(4, 0.0), BOX, "is_box", "clipping"),
    "one row": (general_rows(1), EVERYWHERE, "is_halfspace", "one half-space"),
    "one row in a box": (general_rows(1), BOX, "is_general", "general rows"),
    "a chain": (lt.ordering(4), EVERYWHERE, "is_order", "orders on a graph"),
    "a chain, aggregated": (lt.ordering(4).aggregated(2), BOX, "is_order", "orders on a graph"),
    "a lattice": (lt.lattice.increasing([2, 2]), BOX, "is_order", "orders on a lattice"),
    "rows": (general_rows(), EVERYWHERE, "is_general", "general rows"),
    "nested rows": (nested_rows(), EVERYWHERE, "has_nested", "nested rows"),
    "rows in a ball": (general_rows(), lt.Ball(1.0), "is_curved", "rows in a ball"),
    "balls": (two_balls(), EVERYWHERE, "is_curved", "curved constraints"),
    "balls in a ball": (two_balls(), lt.Ball(1.0), "is_curved", "curved constraints"),
    "balls and rows": (
        lt.stack(general_rows(), two_balls()), BOX, "is_curved", "curved constraints",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", SETS)
def test_one_fact_holds_and_the_first_method_that_takes_the_set_is_the_expected_one(name):
    constraints, domain, fact, method = SETS[name]
    feasible = feasible_set(constraints, domain)
    assert [each for each in FACTS if getattr(feasible, each)] == [fact]
    assert feasible.is_linear != feasible.is_curved
    assert next(choice.name for choice in METHODS if choice.takes(feasible)) == method


def test_the_set_is_made_once_and_its_bounds_are_those_of_rows_and_domain():
    constraints = lt.stack(lt.bounds(4, lower=[0.5, 0.0, -np.inf, -3.0]), general_rows())
    feasible = feasible_set(constraints, BOX)
    assert feasible_set(constraints, lt.Box(-1.0, 1.0)) is feasible
    assert feasible_set(constraints, EVERYWHERE) is not feasible
    np.testing.assert_array_equal(feasible.lower, [0.5, 0.0, -1.0, -1.0])
    np.testing.assert_array_equal(feasible.upper, np.ones(4))
    np.testing.assert_array_equal(feasible.diameter(), [0.5, 1.0, 2.0, 2.0])
    np.testing.assert_array_equal(feasible_set(constraints, lt.Ball(2.0)).diameter()[3], 4.0)


def test_all_linear_rows_are_stacked_in_order():
    first, second = lt.ordering(4), general_rows()
    mixed = lt.stack(first, two_balls(), second)
    assert feasible_set(mixed, EVERYWHERE).matrix is None
    np.testing.assert_array_equal(
        feasible_set(mixed, EVERYWHERE).constraint_of_row, [0, 1, 2, *range(5, 11)]
    )
    feasible = feasible_set(lt.stack(first, second), EVERYWHERE)
    np.testing.assert_array_equal(
        feasible.matrix.toarray(), np.vstack([first.A.toarray(), second.A])
    )
    np.testing.assert_array_equal(feasible.right, np.concatenate([first.b, second.b]))


def test_a_contradiction_of_bounds_or_orders_is_found_when_the_set_is_made():
    with pytest.raises(lt.InfeasibleConstraintsError, match=r"coordinate 2 .*\[row 2: .* w\[2\]"):
        feasible_set(lt.bounds(4, lower=[0.0, 0.0, 5.0, 0.0]), BOX)
    with pytest.raises(lt.InfeasibleConstraintsError, match="cycle"):
        feasible_set(lt.order([0, 1], [1, 0], 1.0), EVERYWHERE)


def test_factor_costs_are_of_sparse_rows():
    assert 0.0 < feasible_set(lt.lattice.convex([50], 0), EVERYWHERE).factor_cost < np.inf
    assert feasible_set(general_rows(), EVERYWHERE).factor_cost == np.inf


def test_what_is_prepared_dies_with_the_constraints_and_is_not_pickled():
    constraints = lt.lattice.increasing([3, 3])
    feasible_set(constraints, EVERYWHERE)
    again = pickle.loads(pickle.dumps(constraints))
    assert not vars(again)["_prepared"]
    np.testing.assert_array_equal(
        lt.project(np.arange(9.0)[::-1], again).w, lt.project(np.arange(9.0)[::-1], constraints).w
    )
    alive = weakref.ref(constraints)
    del constraints
    gc.collect()
    assert alive() is None


class Stay:
    """A domain of a user: everything the old protocol asked for."""

    def project(self, w):
        return np.zeros_like(w)

    def record(self, dimension):
        return EVERYWHERE.record(dimension)

    def objection_to(self, dimension):
        return None


class WholeNumbers(lt.Box):
    """A subclass with a projection of its own."""

    def project(self, w):
        return np.round(super().project(w))


@pytest.mark.parametrize("domain", [Stay(), WholeNumbers(-1.0, 1.0), lt.Box, None, "box"])
def test_a_domain_that_would_be_ignored_is_refused(domain):
    said = "domain must be Box, Ball, Simplex or Everywhere, got"
    with pytest.raises(lt.DataError, match=said):
        lt.project(np.zeros(4), lt.ordering(4), domain)
    if domain is not None:
        with pytest.raises(lt.DataError, match=said):
            lt.Problem(lt.Quadratic(np.eye(4), np.zeros(4)), lt.ordering(4), domain)


def test_domains_know_their_bounds_and_their_diameter():
    for domain, lower, diameter in (
        (EVERYWHERE, -np.inf, np.inf), (BOX, -1.0, 4.0), (lt.Ball(2.0), -2.0, 4.0),
    ):  # fmt: skip
        low, high = domain.bounds(4)
        assert np.all(low == lower) and np.all(high == -lower)
        assert domain.diameter(4) == diameter


class Level(NamedTuple):
    level: float


def nan_of_one(record, j, w):
    return np.nan if j == 1 else w[0] - record.level


def slope_of_one(record, j, w, out):
    out[0] = 1.0


def nan_in_python(j, w):
    return float("nan") if j == 1 else float(w[0])


FAMILIES = {
    "nan_in_python": lt.ConvexConstraints(4, 3, nan_in_python, lambda j, w: np.eye(4)[0]),
    "nan_of_one": lt.ConvexConstraints(4, 3, nan_of_one, slope_of_one, record=Level(0.5)),
}


@pytest.mark.parametrize("wrap", ["alone", "aggregated", "stacked first", "stacked last"])
@pytest.mark.parametrize("function", FAMILIES)
def test_a_constraint_function_that_returns_nan_is_named(function, wrap):
    family = FAMILIES[function]
    constraints = {
        "alone": family,
        "aggregated": family.aggregated(3),
        "stacked first": lt.stack(family, two_balls()).aggregated(4),
        "stacked last": lt.stack(two_balls(), family).aggregated(4),
    }[wrap]
    problem = lt.Problem(lt.EmpiricalRisk(np.eye(4), np.ones(4), "squared"), constraints)
    for ask in (
        lambda: constraints.values(np.ones(4)),
        lambda: constraints.largest(np.ones(4)),
        lambda: constraints.largest_relative(np.ones(4)),
        lambda: lt.project(np.ones(4), constraints),
        lambda: lt.solve(problem, lt.FullTouch(1.0, 0.1), iterations=3),
    ):
        with pytest.raises(lt.ConstraintError, match=f"'{function}' returned nan for constraint 1"):
            ask()


def test_running_out_of_time_is_no_runtime_error():
    assert not issubclass(OutOfTimeError, RuntimeError)
    hard = lt.lattice.supermodular([8, 8, 4])
    v = np.random.default_rng(0).standard_normal(256)
    with pytest.raises(OutOfTimeError, match="time limit"), within(1e-9):
        try:
            feasible_set(hard, EVERYWHERE).nearest(v)
        except RuntimeError:  # pragma: no cover: would swallow it
            pytest.fail("a RuntimeError")


def test_certificates_are_data_and_make_the_words():
    assert lt.project([2.0, 1.0], lt.ordering(2)).certificate.kind == "exact"
    rows = lt.project(np.full(4, 5.0), general_rows())
    assert rows.certificate.kind == "certified" and rows.gap == rows.certificate.gap <= 1e-9
    assert certified().words() == "" and not_certified().words() == " (not certified)"
    assert "still 0.2 outside" in not_certified(excess=0.2).words()
    assert not not_certified().holds and certified(0.1).holds
