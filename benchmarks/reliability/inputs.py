"""Rows about what comes in: bad inputs, mutated files, hostile names, outside problems."""

from __future__ import annotations

import csv
import hashlib
import importlib.util
import sys
import tempfile
import warnings
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import lighttouch as lt
from benchmarks.reliability.card import Outcome, row
from benchmarks.reliability.files import damaged, fuzz

HERE = Path(__file__).resolve().parents[2]
HOSTILE = (
    "<script>alert(1)</script>", "'\"><img src=x onerror=alert(1)>", "</title><script>x</script>",
    "=1+1", "@SUM(A1)", "\u202eevil", "\x1b[31mred", "a\nb", "a\tb", "{title}", "{{7*7}}", "%s%n",
    "../../etc/passwd", "javascript:alert(1)", "<svg onload=alert(1)>", "&lt;b&gt;", "]]>", "-->",
    "\u0000", "\ufeffbom", "\U0001f600", "Ω≈ç√", "\u200bzero", "NULL", "nan", "`id`",
)  # fmt: skip


def _module(path: Path) -> Any:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


@row("bad-inputs")
def bad_inputs(quick: bool) -> Outcome:
    """Every case of tests/unit/test_bad_inputs.py: a clear error of ours."""
    tests = _module(HERE / "tests" / "unit" / "test_bad_inputs.py")
    cases = [
        (f"{name}: {kind}", lambda name=name, kind=kind: tests.test_bad_arrays(name, kind))
        for name in tests.ARRAYS
        for kind in tests.BAD_ARRAYS
    ]
    cases += [
        (f"{name}: {kind}", lambda name=name, kind=kind: tests.test_bad_numbers(name, kind))
        for name in tests.NUMBERS
        for kind in tests.BAD_NUMBERS
        if (name, kind) not in tests.ALLOWED
    ]
    cases += [(name, lambda name=name: tests.test_other_bad_inputs(name)) for name in tests.OTHERS]
    ok, worst = 0, ""
    cases = cases[:: 20 if quick else 1]
    for name, call in cases:
        try:
            call()
            ok += 1
        except BaseException as error:
            worst = f"{name}: {error}"[:200]
    return len(cases), ok, worst


@row("file-fuzz")
def file_fuzz(quick: bool) -> Outcome:
    """Mutated model files and checkpoints, plain and with the checksum redone."""
    count = 60 if quick else 10_400  # some change nothing and do not count
    plain = fuzz(count // 2, seed=1, redone=False)
    redone = fuzz(count // 4, seed=2)
    checkpoints = _mutated_checkpoints(count // 4)
    tried = sum([*plain.values(), *redone.values(), *checkpoints.values()])
    ok = plain.get("refused", 0) + checkpoints.get("refused", 0) + plain.get("same", 0)
    ok += sum(redone.get(name, 0) for name in ("refused", "same", "other"))
    wrong = {**plain, **checkpoints, **redone}
    odd = [name for name in wrong if name not in ("refused", "same", "other")]
    return (
        tried,
        ok,
        odd[:2] or f"consistent changes of a file without seal: {redone.get('other', 0)}",
    )


def _mutated_checkpoints(count: int) -> dict[str, int]:
    rng, found = np.random.default_rng(3), {}
    X = rng.normal(size=(40, 3))
    problem = lt.Problem(lt.EmpiricalRisk(X, X[:, 0]), lt.ordering(3))
    solver = lt.LightTouch(1.0, 0.01, 2)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.ltc"
        lt.solve(problem, solver, iterations=50, checkpoint=path)
        content = path.read_bytes()
        for trial in range(count):
            changed = damaged(content, rng)
            if trial % 2 and len(changed) > 32:
                changed = changed[:-32] + hashlib.sha256(changed[:-32]).digest()
            if changed == content:
                continue
            path.write_bytes(changed)
            try:
                lt.solve(problem, solver, iterations=60, checkpoint=path)
                ending = "checkpoint loaded"
            except (lt.ModelFileError, lt.CheckpointMismatchError):
                ending = "refused"
            except Exception as error:
                ending = f"checkpoint {type(error).__name__}"
            found[ending] = found.get(ending, 0) + 1
    return found


class _Tags(HTMLParser):
    """Elements and attributes of a page, as a browser's parser sees them."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        names = [name for name, _ in attributes]
        if tag in ("img", "iframe", "object", "embed", "link") or any(
            n.startswith("on") for n in names
        ):
            self.found.append(tag)
        if tag == "script":
            self.found.append("script")


@row("report-escape")
def report_escape(quick: bool) -> Outcome:
    """Hostile strings as column, category, class and target: the page has one script and no other
    active element.
    """
    from lighttouch.cli import main

    tried = ok = 0
    worst = ""
    strings = HOSTILE[:4] if quick else HOSTILE
    rng = np.random.default_rng(0)
    for hostile in strings:
        frame = pd.DataFrame(
            {
                hostile: rng.random(60),
                "kind": rng.choice([hostile, "plain"], 60),
                "target": np.where(rng.random(60) < 0.5, hostile, "other"),
            }
        )
        with tempfile.TemporaryDirectory() as folder:
            data, model = Path(folder) / "d.parquet", Path(folder) / "m.lt"
            try:
                frame.to_parquet(data)
            except Exception:
                continue
            words = ["train", str(data), "--target", "target", "-o", str(model), "--quiet"]
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                code = main(words)
            tried += 1
            if code == 2:  # refused with a message, which is fine
                ok += 1
                continue
            tags = _Tags()
            tags.feed((Path(folder) / "m.html").read_text(encoding="utf-8"))
            good = code == 0 and tags.found == ["script"]
            ok += good
            worst = worst if good else f"{hostile!r}: {code} {tags.found}"
    return tried, ok, worst


@row("qp-truth")
def qp_truth(quick: bool) -> Outcome:
    """Outside quadratic programs: never claimed solved and more than 1% off."""
    folder = HERE.parent / "shared" / "data" / "qp"
    if not (folder / "optima.csv").exists():
        return 1, 1, "the outside problems are not here"
    tests = _module(HERE / "tests" / "outside" / "test_quadratic_programs.py")
    with (folder / "optima.csv").open() as lines:
        optima = {each["problem"]: float(each["optimum"]) for each in csv.DictReader(lines)}
    names = list(optima)[:2] if quick else list(optima)
    right = honest = 0
    wrong = []
    for name in names:
        problem, constant = tests.quadratic_program(name)
        result = lt.solve(problem, time_limit=8.0)
        near = abs(tests.off(result, constant, optima[name])) <= 0.01
        claimed = result.status is lt.Status.CONVERGED
        right += claimed and near
        honest += not claimed
        if claimed and not near:
            wrong.append(name)
    return len(names), right + honest, f"{right} right, {len(wrong)} wrong, {honest} honest {wrong}"
