"""Every bad input gets one clear sentence: of the right type, raised by this package, naming the
argument, and without words of NumPy, SciPy or numba.
"""

from __future__ import annotations

import traceback
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse

import lighttouch as lt

RNG = np.random.default_rng(0)
X = RNG.normal(size=(30, 3))
Y = X @ [1.0, 2.0, -1.0]
LABELS = np.where(Y > 0, "u", "v")
FRAME = pd.DataFrame(X, columns=["age", "b", "c"])
HUGE = 10**400
FOREIGN = (
    "inhomogeneous", "object has no attribute", "not supported between", "unhashable",
    "could not convert", "cannot unpack", "SeedSequence", "int too", "Traceback", "numba",
    "not callable", "os.PathLike object, not", "axis 1 index",
)  # fmt: skip


def refused(call, *words: str) -> str:
    """The message of the error, which must be one of ours."""
    with warnings.catch_warnings(), pytest.raises((ValueError, TypeError, RuntimeError)) as caught:
        warnings.simplefilter("ignore")
        call()
    text, frames = str(caught.value), traceback.extract_tb(caught.value.__traceback__)
    assert "lighttouch" in frames[-1].filename, frames[-1]
    assert len(text) > 20 and not any(word in text for word in FOREIGN), text
    for word in words:
        assert word in text, text
    return text


# -------------------------------------------------------------------------------------------------
# arrays


def with_cell(array: np.ndarray, value) -> np.ndarray:
    changed = np.array(array, dtype=object if not isinstance(value, float) else float)
    changed[(0,) * changed.ndim] = value
    return changed


BAD_ARRAYS = {
    "nan": lambda a: with_cell(a, float("nan")),
    "infinity": lambda a: with_cell(a, float("inf")),
    "text cell": lambda a: with_cell(a, "abc"),
    "number as text": lambda a: a.astype(str),
    "bytes": lambda a: a.astype("S"),
    "complex": lambda a: a * 1j,
    "dates": lambda a: np.datetime64("2020-01-01") + np.arange(a.size).reshape(a.shape),
    "durations": lambda a: np.arange(a.size).reshape(a.shape).astype("m8[s]"),
    "masked": lambda a: np.ma.masked_array(a, mask=a == a.flat[0]),
    "ragged": lambda a: [[1.0, 2.0], [3.0]],
    "too large": lambda a: with_cell(a, HUGE),
    "None cell": lambda a: with_cell(a, None),
    "object cell": lambda a: with_cell(a, object()),
    "dict": lambda a: {"a": 1},
    "a word": lambda a: "abc",
    "three dimensions": lambda a: np.zeros((2, 2, 2)),
    "other length": lambda a: np.zeros((7,) * a.ndim),
}
ARRAYS = {
    "X": (X, lambda bad: lt.EmpiricalRisk(bad, Y)),
    "y": (Y, lambda bad: lt.EmpiricalRisk(X, bad)),
    "sample_weight": (np.ones(30), lambda bad: lt.EmpiricalRisk(X, Y, sample_weight=bad)),
    "offset": (Y, lambda bad: lt.EmpiricalRisk(X, Y, offset=bad)),
    "better": (X, lambda bad: lt.PairwiseRisk(bad, X)),
    "P": (np.eye(3), lambda bad: lt.Quadratic(bad, np.zeros(3))),
    "q": (np.ones(3), lambda bad: lt.Quadratic(np.eye(3), bad)),
    "A": (np.eye(3), lambda bad: lt.LinearConstraints(bad, np.ones(3))),
    "b": (np.ones(3), lambda bad: lt.LinearConstraints(np.eye(3), bad)),
    "A of equalities": (np.eye(3), lambda bad: lt.LinearEqualities(bad, np.ones(3))),
    "d": (np.ones(2), lambda bad: lt.NormConstraints(None, np.zeros((2, 3)), None, bad)),
    "r": (np.ones(2), lambda bad: lt.QuadraticConstraints(np.eye(3), np.zeros((2, 3)), bad)),
    "start": (np.ones(3), lambda bad: lt.solve(problem(), start=bad)),
    "w": (np.ones(3), lambda bad: lt.project(bad, lt.ordering(3))),
    "center": (np.ones(3), lambda bad: lt.Problem(risk(), None, lt.Ball(1.0, center=bad))),
    "lattice inputs": (
        np.full((4, 3), 0.5),
        lambda bad: lt.Lattice([2, 2, 2]).features(bad),
    ),
}
BLAMED = {"X": "y", "P": "q", "A": "b", "A of equalities": "b"}  # which of two lengths is told


def risk() -> lt.EmpiricalRisk:
    return lt.EmpiricalRisk(X, Y)


def problem() -> lt.Problem:
    return lt.Problem(risk(), lt.ordering(3))


@pytest.mark.parametrize("kind", BAD_ARRAYS)
@pytest.mark.parametrize("name", ARRAYS)
def test_bad_arrays(name, kind):
    good, call = ARRAYS[name]
    text = refused(lambda: call(BAD_ARRAYS[kind](good)))
    told = BLAMED.get(name, name) if kind == "other length" else name.partition(" of ")[0]
    assert told in text or "column" in text or "same dimension" in text, text


def test_the_good_arrays_are_good():
    for good, call in ARRAYS.values():
        call(good)
        call(np.ma.masked_array(good))


# -------------------------------------------------------------------------------------------------
# numbers

BAD_NUMBERS = {
    "text": "a",
    "a number as text": "1",
    "None": None,
    "nan": float("nan"),
    "minus infinity": float("-inf"),
    "negative": -1,
    "complex": 1j,
    "list": [1, 2],
    "too large": HUGE,
    "object": object(),
    "array": np.ones(3),
}
NUMBERS = {
    "penalty": lambda bad: lt.FullTouch(bad, 0.1),
    "step_size": lambda bad: lt.FullTouch(1.0, bad),
    "batch": lambda bad: lt.FullTouch(1.0, 0.1, batch=bad),
    "constraint_batch": lambda bad: lt.LightTouch(1.0, 0.1, bad),
    "first_phase": lambda bad: lt.MidTouch(1.0, 0.1, bad, 0.1),
    "strong_convexity": lambda bad: lt.MidTouch(1.0, bad, 10, 0.1),
    "tolerance": lt.Automatic,
    "eta": lt.InverseSqrt,
    "l2": lambda bad: lt.EmpiricalRisk(X, Y, l2=bad),
    "l1": lambda bad: lt.EmpiricalRisk(X, Y, l1=bad),
    "iterations": lambda bad: lt.solve(problem(), iterations=bad),
    "time_limit": lambda bad: lt.solve(problem(), time_limit=bad),
    "record_every": lambda bad: lt.solve(problem(), record_every=bad),
    "seed": lambda bad: lt.solve(problem(), seed=bad),
    "checkpoint_every": lambda bad: lt.solve(
        problem(), checkpoint="/tmp/never.ltc", checkpoint_every=bad
    ),
    "radius": lt.Ball,
    "total": lt.Simplex,
    "dimension": lt.ordering,
    "dimension of bounds": lambda bad: lt.bounds(bad, 0.0, 1.0),
    "size": lambda bad: lt.ordering(3).aggregated(bad),
    "threshold": lt.Huber,
    "epsilon": lt.EpsilonInsensitive,
    "level": lt.Quantile,
    "keypoints": lambda bad: lt.LatticeRegressor(keypoints=bad).fit(X, Y),
    "max_iter": lambda bad: lt.LatticeRegressor(max_iter=bad).fit(X, Y),
    "tol": lambda bad: lt.LatticeRegressor(tol=bad).fit(X, Y),
    "alpha": lambda bad: lt.ConstrainedLinearRegressor(alpha=bad).fit(X, Y),
    "verbose": lambda bad: lt.LatticeRegressor(verbose=bad).fit(X, Y),
    "diameter": lambda bad: lt.theory.Constants(10, bad, 1.0, 1.0, 1.0, 1.0, penalty=1.0),
}
ALLOWED = {
    ("iterations", "None"), ("time_limit", "None"), ("record_every", "None"), ("seed", "None"),
    ("seed", "too large"), ("level", "array"), ("level", "list"),
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "kind"),
    [(name, kind) for name in NUMBERS for kind in BAD_NUMBERS if (name, kind) not in ALLOWED],
)
def test_bad_numbers(name, kind):
    refused(lambda: NUMBERS[name](BAD_NUMBERS[kind]), name.partition(" of ")[0])


# -------------------------------------------------------------------------------------------------
# everything else


def custom(value, gradient=lambda i, w: np.zeros(3)) -> None:
    lt.solve(lt.Problem(lt.CustomObjective(3, value, gradient)), iterations=5)


def convex(value, subgradient=lambda j, w: np.array([1.0, 0.0, 0.0])) -> None:
    rows = lt.ConvexConstraints(3, 1, value, subgradient)
    lt.solve(lt.Problem(risk(), rows), iterations=5)


def missing_label() -> np.ndarray:
    labels = LABELS.astype(object)
    labels[3] = np.nan
    return labels


OTHERS = {
    "a solver by name": (lambda: lt.solve(problem(), "FullTouch"), "solver must be a solver"),
    "a solver's class": (lambda: lt.solve(problem(), lt.FullTouch), "the class FullTouch instead"),
    "no problem": (lambda: lt.solve(None), "problem must be a Problem"),
    "an objective as problem": (lambda: lt.solve(risk()), "problem must be a Problem"),
    "a number to resume": (lambda: lt.solve(problem(), resume=5), "result.state"),
    "a number as callback": (
        lambda: lt.solve(problem(), callback=5),
        "callback must be a function",
    ),
    "a word for a flag": (
        lambda: lt.solve(problem(), project="no"),
        "project must be True or False",
    ),
    "a word for progress": (lambda: lt.solve(problem(), progress="x"), "progress must be True"),
    "stacking a list": (lambda: lt.stack([lt.ordering(3)]), "stack(*parts)"),
    "stacking nothing": (lt.stack, "at least one"),
    "stacking None": (lambda: lt.stack(lt.ordering(3), None), "as part 1"),
    "projecting onto None": (lambda: lt.project(np.zeros(3), None), "constraints must be"),
    "projecting in 5": (lambda: lt.project(np.zeros(3), lt.ordering(3), 5), "domain"),
    "losses in a list": (lambda: lt.EmpiricalRisk(X, Y, loss=["hinge"]), "loss"),
    "an unknown loss": (lambda: lt.EmpiricalRisk(X, Y, loss="hing"), "hinge"),
    "unsigned indices": (
        lambda: lt.order(np.array([0], np.uint64), np.array([2**63], np.uint64)),
        "upper must hold indices below",
    ),
    "indices out of this world": (lambda: lt.order([0], [2**62]), "number the parameters from 0"),
    "sparse complex": (
        lambda: lt.LinearConstraints(scipy.sparse.csr_matrix(np.eye(3) * 1j), np.ones(3)),
        "A must hold real numbers",
    ),
    "norms of nothing": (
        lambda: lt.NormConstraints(np.zeros((1, 2, 0)), np.zeros((1, 2)), None, [1.0]),
        "at least one column",
    ),
    "a step that is a function": (lambda: lt.FullTouch(1.0, lambda t: 1 / t), "step_size"),
    "value None": (lambda: custom(lambda i, w: None), "value"),
    "value text": (lambda: custom(lambda i, w: "a"), "value"),
    "value array": (lambda: custom(lambda i, w: w), "value"),
    "value complex": (lambda: custom(lambda i, w: 1j), "value"),
    "value without arguments": (lambda: custom(lambda: 1.0), "the function"),
    "value nan": (lambda: custom(lambda i, w: float("nan")), "value"),
    "gradient None": (lambda: custom(lambda i, w: 0.0, lambda i, w: None), "gradient"),
    "gradient text": (lambda: custom(lambda i, w: 0.0, lambda i, w: "abc"), "gradient"),
    "gradient short": (lambda: custom(lambda i, w: 0.0, lambda i, w: w[:2]), "gradient"),
    "gradient complex": (lambda: custom(lambda i, w: 0.0, lambda i, w: w * 1j), "gradient"),
    "no functions": (lambda: lt.CustomObjective(3, None, None), "value must be a function"),
    "no gradient": (lambda: lt.CustomObjective(3, lambda i, w: 0.0, 5), "gradient must be"),
    "constraint None": (lambda: convex(lambda j, w: None), "value"),
    "constraint text": (lambda: convex(lambda j, w: "a"), "value"),
    "constraint array": (lambda: convex(lambda j, w: w), "value"),
    "constraint without arguments": (lambda: convex(lambda: 1.0), "the function"),
    "constraint nan": (lambda: convex(lambda j, w: float("nan")), "value"),
    "subgradient None": (lambda: convex(lambda j, w: w[0] + 1, lambda j, w: None), "subgradient"),
    "subgradient short": (lambda: convex(lambda j, w: w[0] + 1, lambda j, w: w[:1]), "subgradient"),
    "no constraint functions": (lambda: lt.ConvexConstraints(3, 1, None, None), "value must be"),
    "a misspelt column": (
        lambda: lt.LatticeClassifier(monotonic_cst={"agee": 1}).fit(FRAME, LABELS),
        "'agee' is not a column; did you mean 'age'?",
    ),
    "a name for an array": (
        lambda: lt.LatticeRegressor(monotonic_cst={"x0": 1}).fit(X, Y),
        'set_output(transform="pandas")',
    ),
    "a missing label": (lambda: lt.LatticeClassifier().fit(FRAME, missing_label()), "row 3"),
    "a missing label of pandas": (
        lambda: lt.LatticeClassifier().fit(FRAME, pd.array(missing_label(), dtype="string")),
        "row 3",
    ),
    "targets beyond squares": (lambda: lt.LatticeRegressor().fit(FRAME, Y * 1e300), "y"),
    "canonical 5": (lambda: lt.LatticeRegressor(canonical_examples=5).fit(X, Y), "a pair"),
    "linear canonical 5": (
        lambda: lt.ConstrainedLinearRegressor(canonical_examples=5).fit(X, Y),
        "a pair",
    ),
    "masked table": (
        lambda: lt.LatticeRegressor().fit(np.ma.masked_array(X, mask=X > 1), Y),
        "masked cells",
    ),
    "masked linear table": (
        lambda: lt.ConstrainedLinearRegressor().fit(np.ma.masked_array(X, mask=X > 1), Y),
        "masked cells",
    ),
    "masked targets": (
        lambda: lt.LatticeRegressor().fit(X, np.ma.masked_array(Y, mask=Y > 1)),
        "masked cells",
    ),
    "names twice": (
        lambda: lt.ConstrainedLinearRegressor().fit(FRAME.set_axis(list("aab"), axis=1), Y),
        "'a'",
    ),
    "dates in a linear model": (
        lambda: lt.ConstrainedLinearRegressor().fit(FRAME.assign(b=pd.Timestamp("2020-01-01")), Y),
        "column 'b' must hold numbers",
    ),
    "dates in a lattice model": (
        lambda: lt.LatticeRegressor().fit(FRAME.assign(b=pd.Timestamp("2020-01-01")), Y),
        "column 'b'",
    ),
    "a lattice of a million vertices": (
        lambda: lt.LatticeRegressor(lattice_size=10**6).fit(X, Y),
        "at most 1000",
    ),
    "a word for warm_start": (
        lambda: lt.LatticeRegressor(warm_start="x").fit(X, Y),
        "warm_start must be True or False",
    ),
    "loading 5": (lambda: lt.load(5), "named by a path"),
    "loading None": (lambda: lt.load(None), "named by a path"),
    "saving to None": (
        lambda: lt.ConstrainedLinearRegressor().fit(X, Y).save(None),
        "named by a path",
    ),
    "a plan of None": (lambda: lt.theory.plan_full(None, 0.1), "constants must be"),
    "a plan of text": (lambda: lt.theory.plan_light("a", 0.1), "constants must be"),
    "a plan of 5": (lambda: lt.theory.plan_mid(5, 0.1), "constants must be"),
    "a boundary of text": (lambda: lt.theory.boundary_gradient("a", 1.0), "interior_value"),
    "an objective as constraints": (lambda: lt.Problem(risk(), risk()), "constraints must be"),
    "a class as objective": (lambda: lt.Problem(lt.Quadratic), "the class Quadratic"),
    "a word as domain": (lambda: lt.Problem(risk(), None, "box"), "domain"),
}


@pytest.mark.parametrize("name", OTHERS)
def test_other_bad_inputs(name):
    call, word = OTHERS[name]
    refused(call, word)


def test_there_are_at_least_three_hundred():
    numbers = len(NUMBERS) * len(BAD_NUMBERS) - len(ALLOWED)
    assert len(ARRAYS) * len(BAD_ARRAYS) + numbers + len(OTHERS) >= 300


def test_what_the_caller_changes_later_changes_nothing():
    A, b, features, y = np.eye(3), np.ones(3), X.copy(), Y.copy()
    P, q, center = np.eye(3), np.ones(3), np.zeros(3)
    rows, sparse = lt.LinearConstraints(A, b), scipy.sparse.csr_matrix(np.eye(3))
    kept = lt.LinearConstraints(sparse, b)
    objective, quadratic, ball = (
        lt.EmpiricalRisk(features, y),
        lt.Quadratic(P, q),
        lt.Ball(1, center),
    )
    before = [rows.values(b), kept.values(b), objective.value(b), quadratic.value(b)]
    for array in (A, features, y, P, center, sparse.data):
        array.fill(99.0)
    after = [
        rows.values(np.ones(3)),
        kept.values(np.ones(3)),
        objective.value(b),
        quadratic.value(b),
    ]
    assert all(np.array_equal(old, new) for old, new in zip(before, after, strict=True))
    assert np.array_equal(ball.project(np.array([2.0, 0.0, 0.0])), [1.0, 0.0, 0.0])


@pytest.mark.parametrize("kind", [np.asarray, scipy.sparse.csr_matrix])
def test_a_row_whose_value_overflows_is_not_called_satisfied(kind):
    rows = lt.LinearConstraints(kind([[1e200, -1e200], [1.0, 0.0]]), [0.0, 1.0])
    with pytest.raises(ValueError, match="got nan for"):
        rows.values([1e200, 1e200])
    grouped = rows.aggregated(2)
    with pytest.raises(ValueError, match="got nan for"):
        grouped.values([1e200, 1e200])


@pytest.mark.parametrize("kind", [np.asarray, scipy.sparse.csr_matrix])
def test_rows_whose_squares_overflow_have_lengths(kind):
    rows = lt.LinearConstraints(kind([[1e200, 1e200], [1.0, 0.0]]), [0.0, 1.0])
    np.testing.assert_allclose(rows.row_scales(), [2**0.5 * 1e200, 1.0])
    problem = lt.Problem(lt.EmpiricalRisk(np.eye(2), [1.0, 1.0]), rows)
    assert problem.relative_violation([1.0, 1.0]) > 1.0
    assert lt.solve(problem).violation == 0.0
