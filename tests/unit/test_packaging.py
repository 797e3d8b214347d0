"""What the package declares is what it is: dependencies, types, and no demonstration in it."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from pathlib import Path

import lighttouch as lt

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
PACKAGE = ROOT / "src" / "lighttouch"
DISTRIBUTIONS = {"sklearn": "scikit-learn"}


def names(requirements: list[str]) -> set[str]:
    return {re.split(r"[<>=!~ ]", each, maxsplit=1)[0] for each in requirements}


def imported(statements: list[ast.stmt]) -> set[str]:
    """The distributions that these statements import themselves."""
    found = set()
    for each in statements:
        if isinstance(each, ast.Import):
            found |= {alias.name.split(".")[0] for alias in each.names}
        elif isinstance(each, ast.ImportFrom) and each.level == 0:
            found.add(str(each.module).split(".")[0])
    ours = {"lighttouch", *sys.stdlib_module_names}
    return {DISTRIBUTIONS.get(name, name) for name in found - ours}


def test_dependencies_are_what_is_imported():
    trees = {path: ast.parse(path.read_text("utf-8")) for path in PACKAGE.rglob("*.py")}
    core = [tree for path, tree in trees.items() if PACKAGE / "torch" not in path.parents]
    needed = set().union(*(imported(tree.body) for tree in core))
    everywhere = set().union(
        *(
            imported([n for n in ast.walk(tree) if isinstance(n, ast.stmt)])
            for tree in trees.values()
        )
    )
    declared = names(PROJECT["dependencies"])
    extras = PROJECT["optional-dependencies"]
    ours = ("conic", "frames", "plot", "torch")
    optional = names([each for name in ours for each in extras[name]])
    assert needed <= declared <= everywhere
    assert everywhere - declared <= optional


def test_numba_has_an_upper_bound():
    (numba,) = (each for each in PROJECT["dependencies"] if each.startswith("numba"))
    assert re.search(r"<0\.\d+", numba)


def test_types_are_shipped():
    assert "Typing :: Typed" in PROJECT["classifiers"]
    assert (PACKAGE / "py.typed").exists() and Path(lt.__file__).parent == PACKAGE


def test_messages_and_documents_name_what_can_be_installed():
    """The package is not on PyPI, so its extras cannot be asked for by name."""
    texts = [*PACKAGE.rglob("*.py"), *(ROOT / "docs").glob("*.md"), ROOT / "README.md"]
    assert not [path for path in texts if "install 'lighttouch[" in path.read_text("utf-8")]
    assert not [path for path in texts if "install lighttouch[" in path.read_text("utf-8")]
