"""Why a prediction is what it is: effects that add up, importances, bands."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import lighttouch as lt


def table(rows: int = 1500) -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.random((rows, 4)), columns=list("abcd"))
    X["kind"] = rng.choice(["u", "v", "w"], rows)
    X.loc[rng.random(rows) < 0.1, "d"] = np.nan
    y = 2.0 * X.a + np.sin(4.0 * X.b) + 5.0 * (X.a - 0.5) * (X.c - 0.5) + 0.5 * (X.kind == "u")
    return X, (y + 0.2 * rng.normal(size=rows)).to_numpy()


MODELS = {
    "default": lt.LatticeRegressor(monotonic_cst={"a": 1}),
    "simplex": lt.LatticeRegressor(
        lattices=[("a", "b", "c"), ("c", "d")], interpolation="simplex", lattice_size=3
    ),
    "single": lt.LatticeRegressor(lattices="single"),
    "gamma": lt.LatticeRegressor(loss="gamma"),
    "quantiles": lt.LatticeRegressor(loss="quantile", quantile=[0.2, 0.8]),
    "classes": lt.LatticeClassifier(),
    "ordered": lt.LatticeClassifier(ordinal=True),
    "ranker": lt.LatticeRanker(pairs_per_query=300),
}


def fitted(name: str):
    X, y = table(600)
    model = MODELS[name]
    if name in ("classes", "ordered"):
        y = np.digitize(y, np.quantile(y, [0.3, 0.7]))
    return model.fit(X, np.exp(y) if name == "gamma" else y), X


@pytest.mark.parametrize("name", MODELS)
def test_effects_add_up_to_the_score(name, tmp_path):
    model, X = fitted(name)
    found = model.explain(X)
    scores = model.scores_of(model.read_rows(X))
    np.testing.assert_allclose(found.scores, scores, rtol=0.0, atol=1e-12 * np.abs(scores).max())
    assert set(found.names) >= {"a", "b", "c", "d", "kind"}
    model.save(tmp_path / "model.lt")
    again = lt.load(tmp_path / "model.lt")
    np.testing.assert_array_equal(again.explain(X).contributions, found.contributions)
    assert again.importances_ == model.importances_ != {}


def test_the_scale_is_named():
    told = {
        name: fitted(name)[0].explain(table(5)[0]).scale for name in ("default", "gamma", "ordered")
    }
    assert told == {"default": "prediction", "gamma": "log-mean", "ordered": "cumulative log-odds"}


def test_limits_cut_off_what_is_explained():
    X, y = table(200)
    least = float(np.quantile(y, 0.3))
    model = lt.LatticeRegressor(output_min=least, trees=0).fit(X, y)
    why = model.explain(X)
    assert why.scale == "prediction before limits" and why.scores.min() < least
    np.testing.assert_allclose(np.maximum(why.scores, least), model.predict(X))
    counts = lt.LatticeRegressor(loss="poisson", output_max=2.0, trees=0).fit(X, np.exp(y))
    assert counts.explain(X).scale == "log-mean before limits"


def test_effects_are_centred_and_interactions_pure():
    model, X = fitted("default")
    found = model.explain(X)
    means = np.abs(found.contributions.mean(axis=0))
    single = [k for k, columns in enumerate(found.columns) if len(columns) == 1]
    assert means[single].max() < 0.02
    place = found.names.index("a x c")
    pair = found.contributions[:, place]
    wanted = 5.0 * (X.a - 0.5) * (X.c - 0.5)
    assert np.corrcoef(pair, wanted)[0, 1] > 0.97
    assert abs(np.corrcoef(pair, X.a)[0, 1]) < 0.1, "the effect of a alone is not in it"


def test_importances_rank_what_matters():
    model, _ = fitted("default")
    names = list(model.importances_)
    assert names[:2] == ["a", "b"] and "a x c" in names[:4]
    sizes = list(model.importances_.values())
    assert sizes == sorted(sizes, reverse=True)


def test_a_frame_of_contributions():
    model, X = fitted("default")
    frame = model.explain(X[:7]).to_frame()
    np.testing.assert_allclose(frame.sum(axis=1), model.predict(X[:7]))
    assert frame.columns[0] == "intercept"
    several, _ = fitted("quantiles")
    with pytest.raises(ValueError, match="single output"):
        several.explain(X[:7]).to_frame()


def test_bands_hold_the_curve_and_widen_with_fewer_rows():
    X, y = table(600)
    few, many = X[:100], X
    model = lt.LatticeRegressor(lattices=None)
    narrow = model.fit(many, y).curve_bands(many, y, refits=8)
    wide = model.fit(few, y[:100]).curve_bands(few, y[:100], refits=8)
    assert [band.column for band in narrow] == list(X.columns)
    for band in narrow:
        assert (band.lower <= band.upper).all() and band.effect.shape == band.values.shape
    width = [float(np.mean(bands[0].upper - bands[0].lower)) for bands in (narrow, wide)]
    assert width[0] < width[1]
    inside = (narrow[0].lower - 0.05 <= narrow[0].effect) & (
        narrow[0].effect <= narrow[0].upper + 0.05
    )
    assert inside.mean() > 0.8


def test_bands_that_cannot_be():
    model, X = fitted("quantiles")
    with pytest.raises(ValueError, match="single score"):
        model.curve_bands(X, np.zeros(len(X)))
    with pytest.raises(ValueError, match="level must"):
        fitted("default")[0].curve_bands(X, np.zeros(len(X)), level=1.5)
