"""Rules on the sum of terms: moves change no prediction, and cost a model nothing that is monotone
although its lattices are not.
"""

from __future__ import annotations

import numpy as np
import pytest

import lighttouch as lt
from lighttouch.estimators import fitting
from lighttouch.estimators.model import AdditiveModel, Term, whole_positions
from lighttouch.estimators.rules.rows import monotone, moves_of, no_moves
from lighttouch.lattice import Lattice

KNOTS = np.arange(5.0)
ORDER = lt.CategoryOrder(2, [("a", "b"), ("b", "c")])


def curve(column: int, knots: np.ndarray) -> Term:
    return Term((column,), (whole_positions(knots),), Lattice((knots.size + 1,)))


def lattice(columns: tuple[int, ...], knots: list[list[float]], interpolation: str) -> Term:
    maps = tuple(whole_positions(np.array(each), missing=0.5) for each in knots)
    return Term(columns, maps, Lattice(tuple(map(len, knots)), interpolation))


def by_hand(interpolation: str) -> AdditiveModel:
    """Column 0 has a curve and lies in two lattices, whose knots are some of the curve's."""
    first = lattice((0, 1), [[0.0, 2.0, 4.0], [0.0, 1.0]], interpolation)
    second = lattice((0, 2), [[0.0, 1.0, 4.0], [0.0, 1.0]], interpolation)
    return AdditiveModel([curve(0, KNOTS), first, second])


def least_rises(model: AdditiveModel, w: np.ndarray) -> np.ndarray:
    """Of the predictions from every knot of column 0 to the next, wherever the others are."""
    corners = [(y, z) for y in (0.0, 1.0) for z in (0.0, 1.0)]
    values = [model.evaluate(np.array([[x, *c] for x in KNOTS]), w) for c in corners]
    return np.min(np.diff(values, axis=1), axis=0)


def lent(model: AdditiveModel, w: np.ndarray) -> np.ndarray:
    """The moves that take from each lattice its least slope in every cell of column 0."""
    found = []
    for place in (1, 2):
        theta = w[model.part(place)].reshape(3, 2)
        found.append(np.cumsum(np.diff(theta, axis=0).min(axis=1)))
    return -np.concatenate(found)


@pytest.mark.parametrize("interpolation", ["simplex", "hypercube"])
def test_the_sum_rises_exactly_where_a_move_makes_every_term_rise(interpolation):
    model, rng = by_hand(interpolation), np.random.default_rng(0)
    moves = moves_of(model, {0}, [False] * 3)
    assert moves.count == 4  # two vertices of each lattice axis
    held = 0
    for _ in range(40):
        w = rng.normal(size=model.dimension)
        w[1:6] = np.cumsum(rng.uniform(0.0, 2.5, 5))
        moved = w + moves.matrix @ lent(model, w)
        (rows,) = monotone(model, {0: 1})
        curve_falls, lattices_fall = np.split(rows @ moved, [len(KNOTS) - 1])
        assert lattices_fall.size == 8 and lattices_fall.max() < 1e-12
        np.testing.assert_allclose(-curve_falls, least_rises(model, w), atol=1e-12)
        held += bool(curve_falls.max() <= 0.0)
        assert np.max(rows @ w) > 0.0, "no term rises by itself"
    assert 5 < held < 35


def test_no_moves_where_a_lattice_bends_elsewhere_or_no_rule_asks():
    elsewhere = lattice((0, 1), [[0.0, 1.5, 4.0], [0.0, 1.0]], "hypercube")
    model = AdditiveModel([curve(0, KNOTS), elsewhere])
    assert moves_of(model, {0}, [False] * 2).count == 0
    assert moves_of(by_hand("simplex"), set(), [False] * 3).count == 0
    flat = AdditiveModel([curve(0, KNOTS[:1]), *by_hand("simplex").terms[1:]])
    assert moves_of(flat, {0}, [False] * 3).count == 0


def table(rows: int, rng: np.random.Generator) -> np.ndarray:
    """Numbers with missing cells, a free column, and categories."""
    numbers = rng.uniform(-0.1, 1.1, size=(rows, 2))
    numbers[rng.random(rows) < 0.1, 0] = np.nan
    found = np.empty((rows, 3), dtype=object)
    found[:, :2], found[:, 2] = numbers, rng.choice(["a", "b", "c"], rows)
    return found


@pytest.fixture(scope="module", params=["simplex", "hypercube", "single"])
def fitted(request):
    rng = np.random.default_rng(1)
    X = table(500, rng)
    x, z = np.nan_to_num(X[:, 0].astype(float)), X[:, 1].astype(float)
    step = np.searchsorted(["a", "b", "c"], X[:, 2].astype(str))
    y = x + (x - 0.5) * (z - 0.5) + step * (1.5 * z - 0.2) + rng.normal(0.0, 0.3, 500)
    if request.param == "single":
        options = {"lattices": "single"}
    else:
        options = {"lattices": [(0, 1), (1, 2), (0, 2)], "interpolation": request.param}
    model = lt.LatticeRegressor(monotonic_cst={0: 1}, shape_constraints=[ORDER], **options)
    return model.fit(X, y)


def test_moves_change_no_prediction_at_missing_cells_and_categories_either(fitted):
    rng = np.random.default_rng(2)
    categorical = [column.categorical for column in fitted.columns_.columns]
    moves = moves_of(fitted.model_, {0, 2}, categorical)
    assert moves.count > 0
    rows = fitted.read_rows(table(400, rng))
    assert np.isnan(rows).any()
    w = rng.normal(size=fitted.model_.dimension)
    moved = w + moves.matrix @ rng.normal(size=moves.count)
    assert np.abs(moved - w).max() > 0.1
    before, after = (fitted.model_.evaluate(rows, each) for each in (w, moved))
    np.testing.assert_allclose(after, before, atol=1e-12)


def test_rules_hold_to_the_last_bit_after_saving_too(fitted, tmp_path):
    fitted.save(tmp_path / "model.ltm")
    X = table(20_000, np.random.default_rng(3))  # two increases of every row
    for model in (fitted, lt.load(tmp_path / "model.ltm")):
        report = model.check_constraints(X)
        assert report.violation == 0.0 and len(report.rules) == 4


@pytest.fixture(scope="module")
def tilted() -> tuple[np.ndarray, np.ndarray]:
    """Rises in column 0 everywhere, by 0.4 to 1.6; without the average rise it falls in half of the
    table.
    """
    X = np.random.default_rng(0).uniform(size=(600, 2))
    return X, X[:, 0] + 0.6 * (X[:, 0] - 0.5) * (2.0 * X[:, 1] - 1.0)


def test_a_model_whose_sum_obeys_anyway_is_fitted_as_without_rules(tilted, monkeypatch):
    X, y = tilted
    options = {"lattices": [(0, 1)], "smoothing": (1e-3, 1e-1), "trees": 0}
    free = lt.LatticeRegressor(**options).fit(X, y)
    model = lt.LatticeRegressor(monotonic_cst=[1, 0], **options)
    ours = model.fit(X, y).predict(X)
    report = model.constraint_report_
    assert np.abs(ours - free.predict(X)).max() < 1e-3
    assert report.violation == 0.0 and report.price < 1e-3 * report.objective
    monkeypatch.setattr(fitting, "moves_of", lambda model, *_: no_moves(model.dimension))
    piecewise = model.fit(X, y).predict(X)
    assert np.sqrt(np.mean((piecewise - y) ** 2)) > 1.2 * np.sqrt(np.mean((ours - y) ** 2))
    assert model.constraint_report_.price > 0.01 * model.constraint_report_.objective
