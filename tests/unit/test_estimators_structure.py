"""Which terms a model chooses, and how strongly it smooths them."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from scipy import sparse

import lighttouch as lt
from lighttouch import losses
from lighttouch.cholesky import Cholesky
from lighttouch.estimators import growing, smoothing, structure
from lighttouch.estimators.costs import LIMITS, PULL
from lighttouch.estimators.examples import independent_pairs, noise_of_pairs
from lighttouch.estimators.judged import Judged
from lighttouch.estimators.model import AdditiveModel, Term, whole_positions
from lighttouch.estimators.penalties import roughness_of
from lighttouch.estimators.structure import Leftover, Screen
from lighttouch.interior import pivoting
from lighttouch.interior.pivoting import KnownRows, quadratic_minimum
from lighttouch.projections.splitting import solver_by_parts
from lighttouch.solvers.quadratic_model import gram


def lattices(model) -> list[tuple[int, ...]]:
    return [term.columns for term in model.model_.terms if len(term.columns) > 1]


def test_three_columns_that_act_together_share_a_lattice():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, size=(1500, 5)).astype(float)
    y = 2.0 * ((X[:, 0] + X[:, 2] + X[:, 3]) % 2) + rng.normal(0.0, 0.3, 1500)
    model = lt.LatticeRegressor().fit(X, y)
    assert any({0, 2, 3} <= set(columns) for columns in lattices(model))
    assert model.score(X, y) > 0.85, "no pair of these columns explains anything"


def test_columns_of_two_values_are_screened():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.integers(0, 2, 1000), rng.integers(0, 3, 1000), rng.random(1000)])
    residual = np.where(X[:, 0] == 1, 1.0, -1.0) * np.where(X[:, 1] == 1, 1.0, -1.0)
    left = Leftover(residual, np.full(1000, 1e-3), float(np.mean(residual**2)))
    gains = Screen([(X, 1.0)], 1000.0).gains([(0, 1), (0, 2), (1, 2)], (3, 8), left)
    assert gains[0, 1].significance() > 5.0 * gains[1, 2].significance()
    assert gains[0, 1].significance() > 5.0 * gains[0, 2].significance()


@pytest.mark.slow
def test_a_product_far_among_many_columns_is_found():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(2000, 60))
    y = X[:, 0] + 1.5 * X[:, 50] * X[:, 51] + rng.normal(size=2000)
    assert (50, 51) in lattices(lt.LatticeRegressor().fit(X, y))


@pytest.mark.slow
def test_more_columns_than_rows_are_not_followed_row_by_row():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1150, 200))
    y = X[:, :5].sum(axis=1) + rng.normal(0.0, 0.25, 1150)
    model = lt.LatticeRegressor().fit(X[:150], y[:150])
    assert np.sqrt(np.mean((model.predict(X[150:]) - y[150:]) ** 2)) < 0.7


def test_more_columns_per_lattice_are_never_much_worse():
    rng = np.random.default_rng(2)
    X = rng.random((1500, 4))
    y = X[:, 0] * X[:, 1] + np.sin(4.0 * X[:, 2]) * X[:, 3] + rng.normal(0.0, 0.1, 1500)
    two, three = (
        lt.LatticeRegressor(columns_per_lattice=size)
        .fit(X[:1000], y[:1000])
        .score(X[1000:], y[1000:])
        for size in (2, 3)
    )
    assert three > two - 0.01


def test_a_curve_gets_more_keypoints_only_where_its_residual_asks():
    rng = np.random.default_rng(0)
    X = rng.random((6000, 2))
    y = np.sin(60.0 * X[:, 0]) + X[:, 1] + rng.normal(0.0, 0.2, 6000)
    model = lt.LatticeRegressor(lattices=0).fit(X, y)
    wavy, straight = (term.maps[0].keypoints.size for term in model.model_.terms)
    assert wavy > 50 and straight == 20
    assert model.score(X, y) > 0.9


def test_vertices_of_lattices_are_keypoints_of_curves():
    rng = np.random.default_rng(0)
    X = rng.random((2000, 2))
    model = lt.LatticeRegressor(lattices=[(0, 1)]).fit(X, X[:, 0] * X[:, 1])
    curves = {term.columns[0]: term for term in model.model_.terms if term.calibrator}
    (lattice,) = [term for term in model.model_.terms if not term.calibrator]
    for axis, column in enumerate(lattice.columns):
        own = set(curves[column].maps[0].keypoints.tolist())
        assert set(lattice.maps[axis].keypoints.tolist()) <= own


def test_gram_matrices_of_terms_are_those_of_the_matrix():
    rng = np.random.default_rng(0)
    X = rng.random((400, 3))
    model = lt.LatticeRegressor(lattices=[(0, 1), (0, 1, 2)]).fit(X, X.sum(axis=1))
    features, weights = model.model_.features(X), rng.random(400)
    full = features.toarray()
    np.testing.assert_allclose(
        gram(features, weights), full.T @ (weights[:, None] * full), atol=1e-12
    )


def first_guess(dual, held):
    return held, dual.multipliers(held)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("method", ["interior point", "pivots", "pivots, downhill"])
def test_the_quadratic_minimum_satisfies_the_conditions_of_optimality(monkeypatch, method, seed):
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(30, 30))
    H, c = root @ root.T + 0.1 * np.eye(30), rng.normal(size=30)
    chain = sparse.csr_matrix(np.diff(np.eye(30), axis=0) * -1.0)
    A, b = sparse.vstack([chain, chain[5:9]], format="csr"), np.zeros(33)  # some rows twice
    free = np.linalg.solve(H, c)
    if method == "interior point":
        found = quadratic_minimum(H, c, A, b, free, 1e-9)
    else:
        if method == "pivots, downhill":
            monkeypatch.setattr(pivoting, "_all_at_once", first_guess)
        found = pivoting.pivoted_minimum(KnownRows(Cholesky.of(H.copy()), A), c, b, free, 1e-9)
    assert found is not None
    assert (A @ found.w).max() <= 1e-7 and found.multipliers.min() >= 0.0
    np.testing.assert_allclose(H @ found.w - c + A.T @ found.multipliers, 0.0, atol=1e-5)
    assert abs(found.multipliers @ (A @ found.w)) < 1e-6


@pytest.mark.parametrize("seed", range(20))
def test_downhill_pivots_keep_multipliers_above_zero(monkeypatch, seed):
    """Also those of rows that a first guess held with a negative one."""
    monkeypatch.setattr(pivoting, "_all_at_once", first_guess)
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(8, 8))
    H, c = root @ root.T + 0.1 * np.eye(8), 3.0 * rng.normal(size=8)
    A, b = sparse.csr_matrix(rng.normal(size=(7, 8))), np.zeros(7)
    with np.errstate(divide="raise"):
        known = KnownRows(Cholesky.of(H.copy()), A)
        found = pivoting.pivoted_minimum(known, c, b, np.linalg.solve(H, c), 1e-9)
    assert found is not None and found.multipliers.min() >= 0.0
    np.testing.assert_allclose(H @ found.w - c + A.T @ found.multipliers, 0.0, atol=1e-8)
    assert (A @ found.w).max() <= 1e-8 and abs(found.multipliers @ (A @ found.w)) < 1e-8


@pytest.mark.parametrize("seed", range(20))
def test_a_step_downhill_lets_a_row_go_whatever_the_rounding(seed):
    """Two multipliers on prices of computers took 22 factors to fall to 0, from 1e-18 to 1e-305."""

    class Flat:
        def objective(self, v):
            return 0.0

    rng = np.random.default_rng(seed)
    v, found = rng.random(100), rng.normal(size=100)
    there = pivoting._towards(Flat(), v, found)
    zero_at = np.where(found < 0.0, v / (v - found), np.inf)
    assert there[np.argmin(zero_at)] == 0.0 and np.count_nonzero(there) == 99


def test_pivots_meet_the_rows_where_the_matrix_is_nearly_singular():
    """As where kinks are rounded within a narrow width: G = A H^-1 A' is inexact then, and its
    multipliers alone met the rows of 3 of these 40 problems.
    """
    met = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        root = rng.normal(size=(40, 40)) * np.logspace(0, -3, 40)
        H, c = root @ root.T, root @ rng.normal(size=40)
        known = KnownRows(Cholesky.of(H.copy()), sparse.csr_matrix(rng.normal(size=(15, 40))))
        b, free = np.zeros(15), np.linalg.solve(H, c)
        met += pivoting.pivoted_minimum(known, c, b, free, 1e-8) is not None
    assert met > 30


@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e8])
def test_pivots_do_not_mind_the_units_where_rows_depend_on_each_other(scale):
    """Products of rows that are small beside 1 lost their digits in the factor's diagonal."""
    rng = np.random.default_rng(0)
    X, order = rng.normal(size=(120, 30)), lt.ordering(30).A
    A = sparse.vstack([order, order[:-1] + order[1:]], format="csr")  # w_i <= w_i+2 says no more
    y = X @ rng.normal(size=30) + rng.normal(size=120)
    H, c = scale**2 * (X.T @ X / 120 + 1e-3 * np.eye(30)), scale * X.T @ y / 120
    known = KnownRows(Cholesky.of(H.copy()), A, once=True)
    found = pivoting.pivoted_minimum(known, c, np.zeros(57), np.linalg.solve(H, c), 1e-12)
    assert found is not None and found.multipliers.min() >= 0.0
    assert (A @ found.w).max() <= 1e-9 / scale
    pull = H @ found.w - c + A.T @ found.multipliers
    np.testing.assert_allclose(pull, 0.0, atol=1e-9 * scale)


@pytest.mark.parametrize("seed", [1, 5, 7, 1022])
def test_downhill_pivots_never_go_in_circles(seed):
    """Rows that were just held were all let go again where one of them had a negative multiplier:
    on the first three of these problems, and on prices of computers, for ever.
    """
    rng = np.random.default_rng(seed)
    d = int(rng.integers(6, 16))
    m = int(rng.integers(d, 3 * d))
    root = rng.normal(size=(2 * d, d))
    root[:, d // 2 :] *= 0.05 if seed % 2 else 1.0
    H, c = root.T @ root / d + 1e-4 * np.eye(d), 0.3 * rng.normal(size=d)
    A = sparse.csr_matrix(rng.normal(size=(m, d)) * (rng.random((m, d)) < 0.5))
    b = np.full(m, 0.1 if seed % 3 else 0.0)
    known = KnownRows(Cholesky.of(H.copy()), A)
    found = pivoting.pivoted_minimum(known, c, b, np.linalg.solve(H, c), 1e-9)
    assert found is not None and found.multipliers.min() >= 0.0
    np.testing.assert_allclose(H @ found.w - c + A.T @ found.multipliers, 0.0, atol=1e-8)
    assert (A @ found.w - b).max() <= 1e-8 and abs(found.multipliers @ (A @ found.w - b)) < 1e-8


def test_pivots_begin_with_the_equalities_of_a_minimum_nearby():
    rng = np.random.default_rng(0)
    root, A, b = rng.normal(size=(40, 40)), lt.ordering(40).A, np.zeros(39)
    H, c = root @ root.T + 0.1 * np.eye(40), rng.normal(size=40)
    known, looks = KnownRows(Cholesky.of(H.copy()), A), []

    def minimum(c, near=None):
        looks.clear()
        free = np.linalg.solve(H, c)
        return pivoting.pivoted_minimum(known, c, b, free, 1e-9, lambda: looks.append(1), near)

    first = minimum(c)
    alone, cold = minimum(1.001 * c), len(looks)
    warm = minimum(1.001 * c, first.w)
    assert len(looks) < cold
    np.testing.assert_allclose(warm.w, alone.w, atol=1e-10)
    flat = minimum(1.001 * c, np.zeros(40))  # where every row holds with equality
    np.testing.assert_allclose(flat.w, alone.w, atol=1e-10)


def test_pivots_give_up_on_rows_that_contradict_each_other():
    A, b = lt.ordering(3).A, np.array([-1.0, -1.0])  # a rise of at least 1 each ...
    both = sparse.vstack([A, -A], format="csr")  # ... and of at most -1
    known = KnownRows(Cholesky(np.eye(3)), both)
    found = pivoting.pivoted_minimum(known, np.ones(3), np.append(b, b), np.ones(3), 1e-9)
    assert found is None


def test_rows_are_the_same_bits_however_they_came_to_be_known():
    rng = np.random.default_rng(0)
    root = rng.normal(size=(300, 300))
    factor = Cholesky.of(root @ root.T + np.eye(300))
    A = sparse.random(400, 300, 0.02, format="csr", random_state=0)
    one, other = KnownRows(factor, A), KnownRows(factor, A)
    one.learn(np.arange(400))
    for asked in ([399], [5, 130], [260]):
        other.learn(np.array(asked))
    only = KnownRows(factor, A, once=True)
    for asked in (np.arange(100), np.arange(90, 300), np.array([350, 340]), np.arange(400)):
        only.learn(asked)
    assert [block.rows.size for block in only.blocks] == [128, 128, 128, 16]
    rows = np.arange(400)
    assert np.array_equal(one.in_order(rows), rows)
    np.testing.assert_array_equal(one.products(rows), other.products(rows))
    G = A @ (A @ np.linalg.inv(root @ root.T + np.eye(300))).T
    for known in (one, only):
        for some in (rows, np.array([399, 7, 200])):
            held = known.in_order(some)
            np.testing.assert_allclose(known.products(held), G[np.ix_(held, held)], atol=1e-8)


def test_a_matrix_is_solved_with_part_by_part():
    rng = np.random.default_rng(0)
    rows = sparse.random(30, 30, 0.04, format="csr", random_state=1)
    matrix, right = rows.T @ rows + sparse.identity(30), rng.normal(size=30)
    found = solver_by_parts(matrix)(right)
    np.testing.assert_allclose(matrix @ found, right, atol=1e-12)
    np.testing.assert_allclose(solver_by_parts(2.0 * sparse.identity(30))(right), 0.5 * right)
    for other in (matrix, sparse.identity(30)):
        with pytest.raises(np.linalg.LinAlgError):
            solver_by_parts(other - 10.0 * sparse.identity(30))


def test_curves_and_lattices_share_a_budget():
    """Forty columns of fine curves had more parameters than can be factored, and took a minute."""
    limits = LIMITS
    assert structure.room_for(1e6, 250) == limits.most_parameters - 250
    assert structure.room_for(1e6, limits.most_parameters) == limits.least_parameters
    assert structure.room_for(100, 250) == limits.least_parameters
    assert structure.room_while_searching(4, 250) == 4 * limits.searched_parameters
    assert structure.room_while_searching(4, limits.most_parameters) == 4 * limits.least_cells


def small_model() -> AdditiveModel:
    """Two curves and a lattice over both of their columns."""
    axis = whole_positions(np.linspace(0.0, 1.0, 5))
    curves = [Term((column,), (axis,), lt.Lattice((6,))) for column in range(2)]
    return AdditiveModel([*curves, Term((0, 1), (axis, axis), lt.Lattice((5, 5), "hypercube"))])


def test_degrees_of_freedom_are_those_of_the_whole_inverse():
    rng = np.random.default_rng(0)
    model = small_model()
    roughness = roughness_of(model, [False, False], 100.0)
    strengths, w = rng.random(len(roughness.penalties)), rng.normal(size=model.dimension)
    H = gram(model.features(rng.random((300, 2))), np.full(300, 1.0 / 300.0))
    one = np.eye(strengths.size)
    wide = [np.asarray(roughness.rows(each).todense()) for each in one]
    pulled = np.diag(roughness.pull - PULL)
    squares = [D.T @ D - pulled for D in wide]
    whole = H + sum(s * square for s, square in zip(strengths, squares, strict=True))
    whole += np.diag(roughness.pull)
    inverse = np.linalg.inv(whole)
    factor = smoothing.factored(H.copy, roughness, strengths)
    lost, _ = smoothing._lost(factor, roughness, strengths)
    expected = [s * np.trace(inverse @ D) for s, D in zip(strengths, squares, strict=True)]
    np.testing.assert_allclose(lost, expected, rtol=1e-5)
    np.testing.assert_allclose(roughness.sizes(w), [w @ D @ w for D in squares], rtol=1e-6)


def test_an_old_matrix_leaves_the_gradient_exact():
    rng = np.random.default_rng(1)
    model, row = small_model(), losses.LOSSES["logistic"]
    X, y = model.features(rng.random((3000, 2))), np.where(rng.random(3000) < 0.4, 1.0, -1.0)
    examples = Judged(X, y, np.full(3000, 1.0 / 3000.0), row, 3000.0)
    first = 0.1 * rng.normal(size=model.dimension)
    w = 1.1 * first
    old, _ = examples.quadratic(first)
    kept, c = examples.quadratic(w)
    assert kept is old
    slopes = losses.quadratic(row, X @ w, y, 0.0)[0]
    np.testing.assert_allclose(kept @ w - c, X.T @ slopes / 3000.0, atol=1e-12)
    assert examples.near[0] is first, "the point whose curvatures it has"
    assert examples.quadratic(100.0 * first)[0] is not old, "far away it is formed anew"


@pytest.mark.parametrize("kind", ["simplex", "hypercube"])
def test_lattices_are_evaluated_alike_alone_and_in_models(kind):
    rng = np.random.default_rng(2)
    lattice = lt.Lattice((3, 4, 2), kind)
    positions = rng.uniform(-0.5, 4.0, size=(2000, 3))
    positions[:200] = np.round(positions[:200])
    theta = rng.normal(size=lattice.parameter_count)
    alone = lattice.evaluate(positions, theta)
    maps = tuple(whole_positions(np.arange(size, dtype=np.float64)) for size in lattice.sizes)
    term = Term((0, 1, 2), maps, lattice)
    np.testing.assert_array_equal(term.evaluate(positions, theta), alone)
    model = AdditiveModel([term, term])
    both = model.evaluate_terms(positions, np.concatenate([[7.0], theta, 2.0 * theta]))
    np.testing.assert_array_equal(both, np.column_stack([alone, 2.0 * alone]))


def test_lattices_that_hold_nothing_leave_the_search(monkeypatch):
    """Noise that looks like an interaction is added, smoothed away, and not tried again."""
    asked = []
    plain = growing.structure.candidates

    def watched(plan, columns, size, chosen, refused):
        found = list(plain(plan, columns, size, chosen, refused))
        asked.append((set(refused), found))
        return found

    monkeypatch.setattr(growing.structure, "candidates", watched)
    gone = set()
    for seed in range(30):  # noise does not look like one in every table
        rng = np.random.default_rng(seed)
        X = rng.random((1500, 8))
        y = X[:, 0] + X[:, 1] + rng.normal(0.0, 1.0, 1500) > 1.0
        asked.clear()
        model = lt.LatticeClassifier(random_state=0, trees=0).fit(X, y)
        assert not asked[-1][0] & set(lattices(model))
        assert not any(refused & set(found) for refused, found in asked)
        gone |= asked[-1][0]
    assert gone


def test_fewer_rows_are_searched_where_columns_are_many():
    limits = LIMITS
    assert structure.rows_to_search(12, labels=False) == limits.searched
    assert structure.rows_to_search(12, labels=True) == limits.searched_labels
    assert structure.rows_to_search(60, labels=True) == limits.searched_cells // 60
    assert structure.rows_to_search(1000, labels=True) == limits.least_searched


def test_subsets_that_explained_little_are_not_looked_at_again(monkeypatch):
    seen = []
    plain = growing.structure.Screen.gains

    def noting(self, subsets, *rest):
        seen.append(list(subsets))
        return plain(self, subsets, *rest)

    monkeypatch.setattr(growing.structure.Screen, "gains", noting)
    monkeypatch.setattr(growing, "LIMITS", dataclasses.replace(growing.LIMITS, promising=4))
    rng = np.random.default_rng(0)
    X = rng.random((2000, 6))
    y = X[:, 0] * X[:, 1] + X[:, 2] * X[:, 3] + 0.1 * rng.normal(size=2000)
    model = lt.LatticeRegressor(trees=0, columns_per_lattice=2).fit(X, y)
    assert {(0, 1), (2, 3)} <= set(lattices(model))
    assert len(seen[0]) == 15 and len(seen) > 1 and len(seen[1]) <= 4


def test_a_triple_is_worth_more_than_the_pairs_within_it():
    rng = np.random.default_rng(0)
    X = rng.random((3000, 4))
    noise = 0.1 * rng.normal(size=3000)
    pair = lt.LatticeRegressor().fit(X, np.sin(6 * X[:, 0]) * X[:, 1] + noise)
    assert lattices(pair) == [(0, 1)]
    whole = np.sin(4 * X[:, 0]) * np.cos(4 * X[:, 1]) * X[:, 2]
    assert (0, 1, 2) in lattices(lt.LatticeRegressor().fit(X, whole + noise))


def test_idle_columns_of_wide_tables_have_no_curve():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 60))
    y = X[:, 0] + np.abs(X[:, 1]) + 1.5 * X[:, 50] * X[:, 51] + rng.normal(0.0, 0.5, 600)
    model = lt.LatticeRegressor(monotonic_cst={7: 1}).fit(X, y)
    curves = {term.columns[0] for term in model.model_.terms if term.calibrator}
    assert (50, 51) in lattices(model)
    assert {0, 1, 7, 50, 51} <= curves, "effects, rules and lattices keep theirs"
    assert len(curves) < 30


def test_narrow_tables_keep_every_curve():
    rng = np.random.default_rng(0)
    X = rng.random((300, 20))
    model = lt.LatticeRegressor().fit(X, X[:, 0] + rng.normal(0.0, 0.1, 300))
    assert {term.columns[0] for term in model.model_.terms if term.calibrator} == set(range(20))


def test_missing_cells_that_matter_keep_the_curve():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 60))
    missing = rng.random(500) < 0.3
    X[missing, 5] = np.nan
    y = 2.0 * missing + rng.normal(0.0, 0.5, 500)
    assert lt.LatticeRegressor(trees=0).fit(X, y).score(X, y) > 0.7


def test_an_interaction_must_explain_more_among_many_candidates():
    gain = structure.Gain(explained=14.0, freedom=4.0)
    assert gain.significance() == gain.significance(100) > 1.0
    assert gain.significance(50_000) < 1.0


def test_pairs_are_screened_by_their_rows():
    rng = np.random.default_rng(0)
    X = rng.random((80, 4))
    better, worse = rng.integers(0, 80, size=(2, 500))
    left = Leftover(rng.normal(size=500), np.full(500, 2e-3), 1.0)
    tables = [(X[better], 1.0), (X[worse], -1.0)]
    pairs, by_rows = Screen(tables, 80.0), Screen(tables, 80.0, (X, [better, worse]))
    codes = np.zeros((1, 4, 80), dtype=np.int16)
    for side, rows in enumerate((better, worse)):
        codes[0][:, rows] = pairs._grid(3)[0][side]
    by_rows._grids[3] = codes, pairs._grid(3)[1]
    for subset in ((0, 1), (2, 3)):
        one, other = (each.gains([subset], (3,), left)[subset] for each in (pairs, by_rows))
        assert one.explained == pytest.approx(other.explained)
        assert one.freedom == other.freedom


def test_pairs_count_as_much_as_they_tell():
    """Pairs apart count as many as they are, one relevant row among many as two at most."""
    ones, places = np.ones(10), np.arange(10)
    noise = noise_of_pairs(places, places + 10, ones)
    assert independent_pairs(10.0, noise) == 10
    noise = noise_of_pairs(np.zeros(10, dtype=np.int64), places + 1, ones)
    assert independent_pairs(10.0, noise) == 2


def test_a_fit_that_goes_on_sees_columns_that_had_no_curve(monkeypatch):
    limits = dataclasses.replace(structure.LIMITS, idle=20.0)
    monkeypatch.setattr("lighttouch.estimators.growing.LIMITS", limits)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 30))
    model = lt.LatticeRegressor(warm_start=True, trees=0, lattices=0).fit(X, 2.0 * X[:, 0])
    assert model.model_.calibrator_of(7) is None
    y = 2.0 * X[:, 0] + 2.0 * X[:, 7]
    assert model.fit(X, y).score(X, y) > 0.95
    assert model.set_params(monotonic_cst={7: -1}).fit(X, y).constraint_report_.rules[0].rows > 0
