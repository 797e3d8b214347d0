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


def test_our_side_of_the_page_for_users_of_cooper_runs():
    import torch

    (block,) = [
        code for code in blocks("docs/coming_from_cooper.md", "py") if "lighttouch.torch" in code
    ]
    rows, count = torch.rand(50, 4), 1_000
    model = torch.nn.Linear(4, 1)
    known = {"torch": torch, "model": model, "count": count}
    known["score"] = lambda chosen: model(rows[chosen])[:, 0]
    known["loss"] = lambda: model(rows).square().mean()
    known["worse"], known["better"] = torch.randint(0, 50, (2, count))
    exec(compile(block.replace("1_000", "20"), "coming_from_cooper.md", "exec"), known)
    assert known["touch"].calls == 20


def test_the_readme_shows_the_same_twenty_lines():
    first = blocks("docs/pytorch.md", "python")[0]
    assert blocks("README.md", "py") == [first]
    assert len([line for line in first.splitlines() if line and "import" not in line]) <= 20
