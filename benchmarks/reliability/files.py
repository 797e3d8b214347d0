"""Mutated model files and checkpoints: refused, or the same as before; never wrong, never another
error.
"""

from __future__ import annotations

import copy
import hashlib
import json
import struct
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import lighttouch as lt

_PREFIX = struct.Struct("<8sIQ")
BAD_VALUES: tuple[Any, ...] = (
    None, -1, 0, 1, 2, 10**9, 1e308, float("nan"), float("inf"), "", "x", True, [], {}, [[]],
    [1, 2, 3], {"__array__": 0}, {"__array__": 10**6},
)  # fmt: skip
BAD_NUMBERS = (np.nan, np.inf, -np.inf, 1e308, -1.0, 0.0, 1e9)


def table(rows: int = 120) -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        {
            "age": rng.uniform(18, 80, rows),
            "income": rng.lognormal(10, 1, rows),
            "job": rng.choice(["a", "b", "c"], rows),
        }
    )
    return X, X.age.to_numpy() / 10 + (X.job == "b") + np.log(X.income) * X.age / 50


def models() -> list[tuple[Any, Any]]:
    """Fitted estimators of every kind with rows to predict."""
    X, y = table()
    numbers = X[["age", "income"]]
    rules: dict[str, Any] = {"monotonic_cst": {"age": 1}}
    lattices = rules | {"lattices": [["age", "income"]], "keypoints": 5}
    shapes = [lt.Concave("income"), lt.CategoryOrder("job", [("a", "b")])]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [
            (lt.LatticeRegressor(shape_constraints=shapes, **lattices).fit(X, y), X),
            (lt.LatticeClassifier(trees=2, **lattices).fit(X, np.where(y > y.mean(), "u", "v")), X),
            (lt.LatticeRanker(**lattices).fit(X, y, qid=np.arange(120) // 12), X),
            (
                lt.ConstrainedLinearRegressor(constraints=([[0.0, 1.0]], [5.0]), **rules).fit(
                    numbers, y
                ),
                numbers,
            ),
            (lt.ConstrainedLinearClassifier(**rules).fit(numbers, y > y.mean()), numbers),
        ]


def damaged(content: bytes, rng: np.random.Generator) -> bytes:
    """Bits flipped, bytes changed, cut, inserted, removed, swapped or appended."""
    kind, size = int(rng.integers(7)), len(content)
    place, length = int(rng.integers(size)), int(rng.integers(1, 64))
    changed = bytearray(content)
    if kind == 0:
        changed[place] ^= 1 << int(rng.integers(8))
    elif kind == 1:
        changed[place : place + length] = rng.bytes(length)
    elif kind == 2:
        changed = changed[:place]
    elif kind == 3:
        changed[place:place] = rng.bytes(length)
    elif kind == 4:
        del changed[place : place + length]
    elif kind == 5:
        other = int(rng.integers(size))
        changed[place], changed[other] = changed[other], changed[place]
    else:
        changed += rng.bytes(length)
    return bytes(changed)


def resealed(content: bytes, rng: np.random.Generator, drop_seal: bool = True) -> bytes:
    """One value of the header, or one number of an array, replaced, and the checksum redone."""
    _, _, length = _PREFIX.unpack_from(content)
    header = json.loads(content[_PREFIX.size : _PREFIX.size + length])
    data = bytearray(content[_PREFIX.size + length : -32])
    if drop_seal:
        header.pop("seal", None)
    if rng.random() < 0.3 and len(data) >= 8:
        place = 8 * int(rng.integers(len(data) // 8))
        data[place : place + 8] = struct.pack("<d", BAD_NUMBERS[rng.integers(len(BAD_NUMBERS))])
    else:
        paths = list(_paths(header))
        _replace(header, paths[rng.integers(len(paths))], BAD_VALUES[rng.integers(len(BAD_VALUES))])
    text = json.dumps(header).encode("ascii")
    body = _PREFIX.pack(content[:8], 1, len(text)) + text + bytes(data)
    return body + hashlib.sha256(body).digest()


def _paths(tree: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if path:
        yield path
    items = (
        tree.items()
        if isinstance(tree, dict)
        else enumerate(tree)
        if isinstance(tree, list)
        else ()
    )
    for key, value in items:
        yield from _paths(value, (*path, key))


def _replace(tree: Any, path: tuple[Any, ...], value: Any) -> None:
    for key in path[:-1]:
        tree = tree[key]
    tree[path[-1]] = copy.deepcopy(value)


def answers(model: Any, X: Any) -> bytes:
    """All that a user may ask of a loaded model."""
    found = [np.asarray(model.predict(X))]
    if hasattr(model, "predict_proba"):
        found.append(model.predict_proba(X))
    model.check_constraints(X)
    model.drift(X) if model.training_record_ is not None else None
    return b"".join(repr(each.tolist()).encode() for each in found)


def judge(content: bytes, path: Path, X: Any, expected: bytes) -> str:
    """Refused, same, other (it loads and answers something else), or what went wrong."""
    path.write_bytes(content)
    try:
        model = lt.load(path)
    except lt.ModelFileError:
        return "refused"
    except Exception as error:
        return f"load raised {type(error).__name__}: {error}"
    try:
        found = answers(model, X)
    except Exception as error:
        return f"later {type(error).__name__}: {error}"
    if b"nan" in found or b"inf" in found:
        return "predicts NaN"
    return "same" if found == expected else "other"


def fuzz(count: int, seed: int = 0, redone: bool = True) -> dict[str, int]:
    """How often mutated model files ended how."""
    rng, outcomes = np.random.default_rng(seed), {}
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path = Path(folder) / "model.lt"
        contents = []
        for model, X in models():
            model.save(path)
            contents.append((path.read_bytes(), X, answers(model, X)))
        for trial in range(count):
            content, X, expected = contents[trial % len(contents)]
            changed = resealed(content, rng) if redone else damaged(content, rng)
            if changed == content:
                continue
            ending = judge(changed, path, X, expected)
            outcomes[ending] = outcomes.get(ending, 0) + 1
    return outcomes
