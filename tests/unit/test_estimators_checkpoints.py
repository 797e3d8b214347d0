"""Estimators: fits that go on after a kill, and fits that start from an earlier model."""

from __future__ import annotations

import numpy as np
import pytest

import lighttouch as lt
from lighttouch import checkpoints


def data() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(300, 3))
    return X, np.sin(5 * X[:, 0]) - X[:, 1] * X[:, 2] + rng.normal(0, 0.1, 300)


RULES = {"monotonic_cst": [0, -1, 0]}
MODELS = {
    "regressor": lambda **o: lt.LatticeRegressor(loss="absolute", **RULES, **o).fit(*data()),
    "classifier": lambda **o: lt.LatticeClassifier(**RULES, **o).fit(data()[0], data()[1] > 0),
    "with trees": lambda **o: lt.LatticeClassifier(trees=3, **RULES, **o).fit(
        data()[0], data()[1] > 0
    ),
    "ranker": lambda **o: lt.LatticeRanker(**RULES, **o).fit_pairs(data()[0][::2], data()[0][1::2]),
    "linear regressor": lambda **o: lt.ConstrainedLinearRegressor(
        loss="absolute", **RULES, **o
    ).fit(*data()),
    "linear classifier": lambda **o: lt.ConstrainedLinearClassifier(**RULES, **o).fit(
        data()[0], data()[1] > 0
    ),
}


POINTS = {
    "monotone": lambda **o: lt.MonotoneRegressor(monotonic_cst=[1, -1, 0], **o).fit(*data()),
    "convex": lambda **o: lt.ConvexRegressor(**o).fit(data()[0][:40], data()[1][:40]),
}


@pytest.mark.parametrize("name", POINTS)
def test_models_of_points_keep_a_checkpoint_and_a_record(name, tmp_path, monkeypatch):
    path, whole = tmp_path / "fit.ltc", POINTS[name]()
    with monkeypatch.context() as kept:
        kept.setattr(checkpoints.CheckpointFile, "remove", lambda self: None)
        POINTS[name](checkpoint=path)
    assert path.exists()
    again = POINTS[name](checkpoint=path)  # from its end
    X = data()[0]
    assert again.predict(X).tobytes() == whole.predict(X).tobytes() and not path.exists()
    again.save(tmp_path / "m.lt")
    assert lt.load(tmp_path / "m.lt").drift(X).largest == whole.drift(X).largest


class Killed(BaseException):
    """As sudden as a kill: nothing of the package catches it."""


@pytest.mark.parametrize("name", MODELS)
def test_a_fit_killed_again_and_again_ends_with_the_same_bits(name, tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoints, "EVERY", 0.0)
    monkeypatch.setattr(checkpoints.CheckpointFile, "is_due", True)
    whole = MODELS[name]()
    path, written = tmp_path / "fit.ltc", checkpoints.CheckpointFile.write
    kills = 0  # a run that has come this far is killed

    def write_and_die(self, snapshot):
        written(self, snapshot)
        self.finish_writing()
        if kills < 6 and snapshot.state.solver_state.iteration >= kills:
            raise Killed

    monkeypatch.setattr(checkpoints.CheckpointFile, "write", write_and_die)
    again = None
    while again is None:
        try:
            again = MODELS[name](checkpoint=path)
        except Killed:
            assert path.exists()
            kills += 1
    assert kills >= 1
    X = data()[0]
    assert again.predict(X).tobytes() == whole.predict(X).tobytes()
    assert str(again.constraint_report_) == str(whole.constraint_report_)
    assert not list(tmp_path.iterdir())


def test_a_fit_refuses_the_checkpoint_of_another(tmp_path, monkeypatch):
    path = tmp_path / "fit.ltc"
    monkeypatch.setattr(checkpoints.CheckpointFile, "remove", lambda self: None)
    X, y = data()
    lt.LatticeRegressor(checkpoint=path).fit(X, y)
    with pytest.raises(lt.CheckpointMismatchError, match=r"fit\.ltc: .*the data differ"):
        lt.LatticeRegressor(checkpoint=path).fit(X, y + X[:, 0])


def test_a_warm_start_begins_anew_where_there_are_several_outputs_now():
    X, y = np.random.default_rng(0).random((200, 3)), np.arange(200.0)
    levels = {"loss": "quantile", "quantile": [0.1, 0.5, 0.9]}
    warm = lt.LatticeRegressor(warm_start=True).fit(X, y).set_params(**levels).fit(X, y)
    cold = lt.LatticeRegressor(**levels).fit(X, y)
    np.testing.assert_array_equal(warm.predict(X), cold.predict(X))


def test_a_warm_start_keeps_the_structure_and_starts_near(tmp_path):
    X, y = data()
    rng = np.random.default_rng(1)
    more = rng.uniform(size=(100, 3))
    X2 = np.vstack([X, more])
    y2 = np.concatenate([y, np.sin(5 * more[:, 0]) - more[:, 1] * more[:, 2]])
    model = lt.LatticeRegressor(loss="huber", **RULES, warm_start=True).fit(X, y)
    terms = model.model_
    model.save(tmp_path / "m.lt")
    model.fit(X2, y2)
    assert model.model_ is terms
    cold = lt.LatticeRegressor(loss="huber", **RULES).fit(X2, y2)
    error = np.abs(model.predict(X2) - cold.predict(X2)).mean()
    assert error < 0.05 and model.constraint_report_.violation == 0.0
    loaded = lt.load(tmp_path / "m.lt").fit(X2, y2)
    assert loaded.predict(X2).tobytes() == model.predict(X2).tobytes()
    other = np.hstack([X2, X2[:, :1]])
    model.set_params(monotonic_cst=[0, -1, 0, 0]).fit(other, y2)
    assert model.model_ is not terms and model.n_features_in_ == 4
