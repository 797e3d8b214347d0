"""docs/clusters.md, word for word: its module and its program, in a folder of their own."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs/clusters.md"
FENCE = re.compile(r"^```python(?: file=(\S+))?\n(.*?)^```", re.DOTALL | re.MULTILINE)


def test_its_program_runs(tmp_path):
    program = ""
    for name, code in FENCE.findall(PAGE.read_text("utf-8")):
        if name:
            (tmp_path / name).write_text(code, encoding="utf-8")
        else:
            program += code + "\n"
    assert program.count("engine=") >= 2
    (tmp_path / "program.py").write_text(program, encoding="utf-8")
    found = subprocess.run(
        [sys.executable, "program.py"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert found.returncode == 0, found.stderr
    assert found.stdout.startswith("CONVERGED [")
