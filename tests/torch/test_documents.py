"""The code about PyTorch in the documents runs, with fewer steps and pairs."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
SHORTER = (("1_500", "120"), ("14_000_000", "14_000"), ("10_000_000", "10_000"))


def blocks(name: str, fence: str) -> list[str]:
    text = (ROOT / name).read_text("utf-8")
    return re.findall(rf"^```{fence}\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


def shorter(code: str) -> str:
    for long, short in SHORTER:
        assert long in code
        code = code.replace(long, short)
    return code


def test_the_page_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # it writes a model file
    first, *others = blocks("docs/pytorch.md", "python")
    known: dict[str, object] = {}
    exec(compile(shorter(first), "pytorch.md", "exec"), known)
    assert known["head"].certificate().holds
    assert known["touch"].calls == 120
    for block in others:
        exec(compile(block, "pytorch.md", "exec"), known)


def test_the_readme_has_the_same_code_in_about_twenty_lines():
    (block,) = blocks("README.md", "py")
    assert block == blocks("docs/pytorch.md", "python")[0]
    assert len([line for line in block.splitlines() if line and "import" not in line]) <= 20
