"""Model files: the same predictions back, no damage unnoticed, old files still readable."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

import lighttouch as lt
from lighttouch.persistence import read_state, write_state


def table(rows: int = 80) -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        {
            "a": rng.uniform(size=rows),
            "b\n<i>": rng.uniform(size=rows),
            "kind": rng.choice(["u", "v"], rows),
        }
    )
    return X, (X.a * 2 + (X.kind == "v")).to_numpy()


def models() -> list:
    X, y = table()
    numeric = X[["a", "b\n<i>"]]
    rules = [lt.Convex("a"), lt.CategoryOrder("kind", [("u", "v")])]
    return [
        (
            lt.LatticeRegressor(monotonic_cst={"a": 1}, shape_constraints=rules, keypoints=5).fit(
                X, y
            ),
            X,
        ),
        (
            lt.LatticeRegressor(loss=lt.Quantile(0.3), canonical_examples=(X.head(2), y[:2])).fit(
                X, y
            ),
            X,
        ),
        (lt.LatticeClassifier(monotonic_cst=[1, 0, 0]).fit(X, np.where(y > 1, "yes", "no")), X),
        (lt.LatticeRanker(lattices=0).fit(numeric, y, qid=np.arange(80) // 8), numeric),
        (
            lt.ConstrainedLinearRegressor(
                monotonic_cst={"a": 1}, constraints=(np.eye(2), [5.0, 0.1])
            ).fit(numeric, y),
            numeric,
        ),
        (
            lt.ConstrainedLinearClassifier(loss="hinge").fit(numeric.to_numpy(), y > 1),
            numeric.to_numpy(),
        ),
    ]


@pytest.mark.parametrize("place", range(6))
def test_saved_models_predict_the_same_bits_and_keep_their_rules(tmp_path, place):
    model, X = models()[place]
    path = tmp_path / "model.lt"
    model.save(path)
    again = lt.load(path)
    assert type(again) is type(model)
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    assert str(again.constraint_report_) == str(model.constraint_report_)
    assert again.check_constraints().violation == 0.0
    assert again.get_params().keys() == model.get_params().keys()
    again.save(tmp_path / "again.lt")
    assert (tmp_path / "again.lt").read_bytes() == path.read_bytes()
    assert list(tmp_path.iterdir()) and not list(tmp_path.glob(".*"))


def test_every_single_damage_is_noticed(tmp_path):
    model, _ = models()[0]
    path = tmp_path / "model.lt"
    model.save(path)
    content = path.read_bytes()
    rng = np.random.default_rng(0)
    damaged = tmp_path / "damaged.lt"
    for _ in range(300):
        bad = bytearray(content)
        match rng.integers(3):
            case 0:
                bad[rng.integers(len(bad))] ^= 1 << int(rng.integers(8))
            case 1:
                bad = bad[: rng.integers(len(bad))]
            case _:
                bad += bytes(rng.integers(256, size=int(rng.integers(1, 50)), dtype=np.uint8))
        damaged.write_bytes(bytes(bad))
        with pytest.raises(lt.ModelFileError):
            lt.load(damaged)


def test_a_hostile_header_allocates_nothing(tmp_path):
    import hashlib
    import struct

    def sealed(header: bytes, data: bytes = b"", version: int = 1) -> Path:
        body = struct.pack("<8sIQ", b"LTMODEL\n", version, len(header)) + header + data
        path = tmp_path / "hostile.lt"
        path.write_bytes(body + hashlib.sha256(body).digest())
        return path

    huge = {"kind": "LatticeRegressor", "state": {}, "arrays": [{"type": "<f8", "shape": [2**60]}]}
    odd = {"kind": "LatticeRegressor", "state": {"__array__": 5}, "arrays": []}
    for header in (
        huge,
        odd,
        {"kind": "os.system", "state": {}, "arrays": []},
        {},
        [],
        {"kind": 3, "state": 3, "arrays": []},
    ):
        with pytest.raises(lt.ModelFileError):
            lt.load(sealed(json.dumps(header).encode()))
    with pytest.raises(lt.ModelFileError):
        lt.load(sealed(b"[" * 100_000))
    with pytest.raises(lt.ModelFileError, match="version 9"):
        lt.load(sealed(b"{}", version=9))


def test_what_cannot_be_written_leaves_the_old_file(tmp_path):
    path = tmp_path / "state.lt"
    write_state(path, "kind", {"numbers": np.arange(3)})
    with pytest.raises(lt.ModelFileError, match="cannot be saved"):
        write_state(path, "kind", {"function": print})
    kind, state = read_state(path)
    assert kind == "kind" and state["numbers"].tolist() == [0, 1, 2]
    with pytest.raises(lt.ModelFileError, match="cannot be written"):
        write_state(tmp_path / "no folder" / "state.lt", "kind", {})
    with pytest.raises(lt.ModelFileError, match="cannot be read"):
        read_state(tmp_path / "nothing.lt")


def test_examples_rows_and_seeds_are_saved_too(tmp_path):
    X, y = table()
    numbers = X[["a", "b\n<i>"]]
    wanted = (X.head(3), y[:3])
    model = lt.LatticeRegressor(
        canonical_examples=wanted, canonical_margin=5.0, random_state=7
    ).fit(X, y)
    model.save(tmp_path / "model.lt")
    again = lt.load(tmp_path / "model.lt")
    assert again.random_state == 7
    np.testing.assert_array_equal(again.canonical_examples[1], y[:3])
    np.testing.assert_array_equal(clone(again).fit(X, y).predict(X), model.predict(X))
    rows = lt.LinearConstraints(np.ones((1, numbers.shape[1])), [0.5])
    linear = lt.ConstrainedLinearRegressor(
        constraints=rows, canonical_examples=(numbers.to_numpy()[:2], y[:2]), canonical_margin=50.0
    )
    linear.fit(numbers.to_numpy(), y).save(tmp_path / "linear.lt")
    same = clone(lt.load(tmp_path / "linear.lt")).fit(numbers.to_numpy(), y)
    np.testing.assert_array_equal(same.coef_, linear.coef_)
    pair = lt.ConstrainedLinearRegressor(constraints=([[1.0] * numbers.shape[1]], [0.5])).fit(
        numbers, y
    )
    pair.save(tmp_path / "pair.lt")
    np.testing.assert_array_equal(
        clone(lt.load(tmp_path / "pair.lt")).fit(numbers, y).coef_, pair.coef_
    )
