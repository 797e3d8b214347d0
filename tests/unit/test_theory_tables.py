"""The paper's Tables 2 and 3 as numbers, and the documents that show the theory."""

from __future__ import annotations

import contextlib
import dataclasses
import io
import math
import re
from pathlib import Path

import pytest

from lighttouch import theory
from lighttouch.theory import Constants, Sizes

DOCS = Path(__file__).parents[2] / "docs"
TABLE = Sizes(
    constraints=1000, penalty=3.0, diameter=2.0, epsilon=0.01, dimension=50, oracle_ratio=1.5
)
LOG = math.log(1000)


@pytest.mark.parametrize(
    ("algorithm", "iterations", "checks"),
    [
        ("FullTouch", 9 * 4 / 1e-4, 1000 * 9 * 4 / 1e-4),
        (
            "LightTouch",
            LOG * 9 * 16 / 1e-4,
            LOG * 9 * 16 / 1e-4 + 1000 * LOG**1.5 * 3**1.5 * 8 / 1e-3,
        ),
        ("ProjectedSGD", 4 / 1e-4, "projection"),
        ("OnlineFrankWolfe", 8 / 1e-6, "linear optimization"),
        ("LocalFrankWolfe", 50 * 2.25 * 4 / 1e-4, "local linear oracle"),
        ("LLO-FW", 50 * 2.25 * 4 / 1e-4, "local linear oracle"),
    ],
)
def test_table_2(algorithm: str, iterations: float, checks: float | str) -> None:
    assert theory.iterations_table(algorithm, TABLE) == pytest.approx(iterations, rel=1e-12)
    found = theory.checks_table(algorithm, TABLE)
    assert found == checks if isinstance(checks, str) else found == pytest.approx(checks, rel=1e-12)


def mid_entry(first_power: int) -> float:
    m, penalty, diameter, convexity, epsilon = 1000, 3.0, 2.0, 0.5, 0.01
    return (
        LOG * penalty**2 * diameter**2 / (convexity**2 * epsilon)
        + m**1.5 * LOG**1.5 * penalty**1.5 * diameter**1.5 / (convexity**1.5 * epsilon**0.75)
        + m**first_power
        * LOG ** (2 / 3)
        * penalty ** (4 / 3)
        * diameter ** (4 / 3)
        / (convexity ** (4 / 3) * epsilon ** (2 / 3))
        + m ** (first_power + 1) * LOG * penalty * diameter / (convexity * math.sqrt(epsilon))
    )


@pytest.mark.parametrize(
    ("algorithm", "iterations", "checks"),
    [
        ("FullTouch", 9 * 4 / (0.25 * 0.01), 1000 * 9 * 4 / (0.25 * 0.01)),
        ("MidTouch", mid_entry(1), mid_entry(2)),
        ("ProjectedSGD", 4 / (0.25 * 0.01), "projection"),
        ("LLO-FW", 50 * 2.25 * 4 / (0.25 * 0.01), "local linear oracle"),
    ],
)
def test_table_3(algorithm: str, iterations: float, checks: float | str) -> None:
    sizes = dataclasses.replace(TABLE, strong_convexity=0.5)
    assert theory.iterations_table(algorithm, sizes) == pytest.approx(iterations, rel=1e-12)
    found = theory.checks_table(algorithm, sizes)
    assert found == checks if isinstance(checks, str) else found == pytest.approx(checks, rel=1e-12)


def test_tables_refuse_algorithms_they_do_not_hold() -> None:
    with pytest.raises(
        ValueError, match=r"Table 2, got 'MidTouch'; try one of FullTouch, LightTouch"
    ):
        theory.iterations_table("MidTouch", TABLE)
    with pytest.raises(ValueError, match=r"Table 3 .* got 'OnlineFrankWolfe'"):
        theory.checks_table("OnlineFrankWolfe", dataclasses.replace(TABLE, strong_convexity=0.5))
    with pytest.raises(ValueError, match="epsilon"):
        dataclasses.replace(TABLE, epsilon=0.0)


def test_the_whole_table_prints_aligned() -> None:
    rows = theory.comparison_table(dataclasses.replace(TABLE, dimension=None))
    assert [row.algorithm for row in rows] == [
        "FullTouch",
        "LightTouch",
        "ProjectedSGD",
        "OnlineFrankWolfe",
        "LocalFrankWolfe",
    ]
    assert rows[-1].iterations is None
    assert str(rows[0]) == "FullTouch              3.6e+05  3.6e+08"
    assert str(rows[-1]) == "LocalFrankWolfe                 N/A (local linear oracle)"
    strong = theory.comparison_table(dataclasses.replace(TABLE, strong_convexity=0.5))
    assert [row.algorithm for row in strong] == [
        "FullTouch",
        "MidTouch",
        "ProjectedSGD",
        "LocalFrankWolfe",
    ]


def test_the_examples_in_the_documents_print_what_they_show() -> None:
    blocks = re.findall(
        r"```python\n(.*?)```\n```\n(.*?)```\n",
        (DOCS / "theory.md").read_text(encoding="utf-8"),
        flags=re.DOTALL,
    )
    names: dict[str, object] = {}
    assert len(blocks) >= 7
    for code, shown in blocks:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(code, names)
        assert printed.getvalue() == shown


def test_every_field_has_its_letter_in_the_notation() -> None:
    notation = (DOCS / "notation.md").read_text(encoding="utf-8")
    explained_elsewhere = {"algorithm", "measure", "note"}
    for record in (Constants, theory.Plan, Sizes):
        for field in dataclasses.fields(record):
            assert field.name in explained_elsewhere or f"`{field.name}`" in notation
