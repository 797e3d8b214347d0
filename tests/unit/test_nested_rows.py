"""Simplex-exact dominance and joint monotonicity, said with few rows: the same set, projected onto
exactly, trained in seconds.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import linprog

import lighttouch as lt
from lighttouch.projections.rows import nested, read_rows
from lighttouch.projections.rows.portfolio import GeneralRows
from lighttouch.projections.sets import feasible_set

BUILDERS = {"dominance": lt.lattice.dominance, "joint": lt.lattice.joint_monotonicity}


def worst_by_forms(forms, w: np.ndarray) -> float:
    """The largest row of a nested family, from running maxima: M is raised along the edges until it
    stands still.
    """
    M = np.full(forms.nodes, -np.inf)
    np.maximum.at(M, forms.below_at, forms.below @ w)
    while True:
        raised = M.copy()
        np.maximum.at(raised, forms.upper, M[forms.lower])
        if np.array_equal(raised, M):
            return float(np.max(M[forms.above_at] - forms.above @ w))
        M = raised


@pytest.mark.parametrize("name", BUILDERS)
@pytest.mark.parametrize("sizes", [[2, 2], [2] * 5, [2, 3, 2, 2], [3, 2, 3, 2, 3]])
def test_forms_say_what_the_rows_say(name, sizes):
    rules = BUILDERS[name](sizes, 1, 0)
    (block,) = rules.nested
    rng = np.random.default_rng(0)
    for _ in range(20):
        w = rng.normal(size=rules.dimension)
        by_forms = max(worst_by_forms(forms, w) for forms in block.families)
        assert by_forms == pytest.approx(float(rules.values(w).max()), abs=1e-12)


def test_stacking_and_widening_keep_track_of_the_rows():
    sizes = [2] * 4
    whole = lt.stack(
        lt.lattice.increasing(sizes),
        lt.lattice.dominance(sizes, 0, 1),
        lt.lattice.joint_monotonicity(sizes, 2, 3),
    )
    assert [(block.first, block.count) for block in whole.nested] == [(32, 18), (50, 18)]
    wide = whole.nested[1].wide(3, 20)
    w = np.random.default_rng(1).normal(size=20)
    expected = whole.values(w[3:19])[50:].max()
    assert max(worst_by_forms(forms, w) for forms in wide.families) == pytest.approx(
        float(expected), abs=1e-12
    )


def split_method(rules, box=(-np.inf, np.inf)):
    rest, blocks = nested.without_nested([rules], fewest=0)
    return nested.split_rows(rules.A, rules.b, rest, blocks, *box)


@pytest.mark.parametrize("box", [(-np.inf, np.inf), (-0.3, 0.6)])
@pytest.mark.parametrize("seed", range(3))
def test_nearest_points_agree_with_the_method_for_any_rows(box, seed):
    sizes = [2] * 6
    rules = lt.stack(
        lt.lattice.increasing(sizes),
        lt.lattice.dominance(sizes, 0, 1),
        lt.lattice.joint_monotonicity(sizes, 2, 3),
        lt.lattice.edgeworth(sizes, 4, 5),
    )
    v = np.random.default_rng(seed).normal(size=64)
    found = split_method(rules, box).nearest(v).w
    expected = GeneralRows.of(read_rows(rules.A, rules.b, *box)).nearest(v).w
    assert float((rules.A @ found - rules.b).max()) <= 0.0, "no violation at all"
    assert found.min() >= box[0] and found.max() <= box[1]
    np.testing.assert_allclose(found, expected, atol=2e-6)
    assert np.linalg.norm(found - v) <= np.linalg.norm(expected - v) * (1 + 1e-6)


def test_a_right_side_is_kept():
    sizes = [2] * 5
    rules = lt.lattice.dominance(sizes, 0, 1)
    strict = lt.LinearConstraints(rules.A, rules.b - 0.5, nested=rules.nested)
    found = split_method(strict).nearest(np.zeros(32)).w
    assert float(strict.values(found).max()) <= 0.0
    expected = (
        GeneralRows.of(read_rows(strict.A, strict.b, -np.inf, np.inf)).nearest(np.zeros(32)).w
    )
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_contradictions_name_rows_that_contradict_each_other():
    sizes = [2] * 4
    whole = lt.stack(lt.lattice.dominance(sizes, 0, 1), lt.bounds(16, -0.1, 0.1))
    right = np.where(np.arange(whole.count) < 18, -1.0, whole.b)
    impossible = lt.LinearConstraints(whole.A, right, nested=whole.nested)
    with pytest.raises(lt.InfeasibleConstraintsError) as caught:
        split_method(impossible).nearest(np.zeros(16))
    rows = list(caught.value.rows)
    alone = linprog(
        np.zeros(16),
        A_ub=sparse.csr_matrix(impossible.A)[rows],
        b_ub=impossible.b[rows],
        bounds=(None, None),
    )
    assert alone.status == 2, "the rows named must be infeasible on their own"


def test_warm_starts_reach_the_same_point():
    sizes = [2] * 6
    method = split_method(lt.stack(lt.lattice.increasing(sizes), lt.lattice.dominance(sizes, 0, 1)))
    rng = np.random.default_rng(3)
    v = rng.normal(size=64)
    first = method.nearest(v)
    moved = v + 0.01 * rng.normal(size=64)
    np.testing.assert_allclose(
        method.nearest(moved, first.warm).w, method.nearest(moved).w, atol=1e-5
    )
    again = method.nearest(v).w
    np.testing.assert_array_equal(again, first.w)


def test_project_uses_it_where_rows_are_many():
    sizes = [2] * 10
    rules = lt.stack(lt.lattice.increasing(sizes), lt.lattice.dominance(sizes, 0, 1))
    assert feasible_set(rules, lt.Everywhere()).has_nested
    v = np.random.default_rng(0).normal(size=1024)
    found = lt.project(v, rules)
    assert found.violation == 0.0 and "nested" in found.method
    expected = GeneralRows.of(read_rows(rules.A, rules.b, -np.inf, np.inf)).nearest(v).w
    assert found.distance == pytest.approx(float(np.linalg.norm(expected - v)), rel=1e-6)


def columns(rows: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Column 1 matters more than column 0, against the rule, and most where columns 2 and 3 are
    high.
    """
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(rows, 12))
    y = (
        0.3 * X[:, 0]
        + X[:, 1] * (1 + X[:, 2] * X[:, 3])
        + X[:, 4:].mean(axis=1)
        + rng.normal(0, 0.2, rows)
    )
    return X, y


def advantage(predict, X: np.ndarray, step: float = 1e-3) -> np.ndarray:
    """How much more a step along column 0 is worth than one along column 1."""
    raised = [X + step * (np.arange(12) == column) for column in (0, 1)]
    return predict(raised[0]) - predict(raised[1])


@pytest.mark.slow
def test_twelve_columns_train_in_seconds_and_hold_where_plain_rows_fail():
    X, y = columns(3000, 0)
    model = lt.LatticeRegressor(lattices="single", shape_constraints=[lt.Dominates(0, 1)]).fit(X, y)
    report = model.constraint_report_
    assert report.violation == 0.0 and report.rows > 118_098 and report.price > 0.0
    points = 0.02 + 0.96 * columns(20_000, 1)[0]
    assert advantage(model.predict, points).min() >= -1e-12

    sizes = [2] * 12
    plain = lt.stack(
        lt.lattice.increasing(sizes, [0, 1]),
        lt.lattice.dominance(sizes, 0, 1, interpolation="hypercube"),
    )
    lattice = lt.Lattice(sizes)
    theta = model.parameters_[-4096:] + np.random.default_rng(2).normal(0, 0.05, 4096)
    fixed = lt.project(theta, plain)
    assert fixed.violation <= 1e-9
    worst = advantage(lambda Z: lattice.evaluate(Z, fixed.w), points).min()
    assert worst < -1e-6, "rows for multilinear interpolation do not make a simplex lattice obey"


@pytest.mark.parametrize(
    ("loss", "domain"),
    [("squared", lt.Everywhere()), ("logistic", lt.Box(-0.5, 2.0)), ("huber", lt.Everywhere())],
)
def test_solve_agrees_with_the_method_for_any_rows_and_its_bounds_are_bounds(loss, domain):
    sizes = [2] * 9
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(300, 9))
    y = (
        0.5 * X[:, 0]
        + 1.5 * X[:, 1]
        + X[:, 2:].sum(axis=1) / 4
        + X[:, 0] * X[:, 2]
        + rng.normal(0, 0.3, 300)
    )
    targets = np.where(y > np.median(y), 1.0, -1.0) if loss == "logistic" else y
    risk = lt.EmpiricalRisk(
        lt.Lattice(sizes).features(X),
        targets,
        loss=loss,
        l2=1e-3,
        sample_weight=rng.uniform(1, 2, 300),
    )
    rules = lt.stack(lt.lattice.increasing(sizes), lt.lattice.dominance(sizes, 0, 1))
    result = lt.solve(lt.Problem(risk, rules, domain))
    assert result.violation == 0.0
    assert result.status in (lt.Status.CONVERGED, lt.Status.STALLED)
    assert "alternating directions" in result.notes[0]
    one_by_one = lt.solve(
        lt.Problem(risk, lt.LinearConstraints(rules.A, rules.b), domain), lt.Automatic(1e-4)
    )
    assert abs(result.objective - one_by_one.objective) <= 1e-3 * one_by_one.objective
    state = result.state.solver_state.inner
    assert max(state.bound, state.likely_bound) <= one_by_one.objective, "a bound that is not one"
    assert result.w.min() >= -0.5 - 1e-12 or not isinstance(domain, lt.Box)


def test_solve_in_chunks_is_the_same_run():
    sizes = [2] * 9
    rng = np.random.default_rng(1)
    risk = lt.EmpiricalRisk(
        lt.Lattice(sizes).features(rng.uniform(size=(300, 9))), rng.normal(size=300), l2=1e-3
    )
    problem = lt.Problem(
        risk, lt.stack(lt.lattice.increasing(sizes), lt.lattice.dominance(sizes, 0, 1))
    )
    whole = lt.solve(problem, iterations=4)
    part = lt.solve(problem, iterations=2)
    np.testing.assert_array_equal(lt.solve(problem, iterations=4, resume=part.state).w, whole.w)
