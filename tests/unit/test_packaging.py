"""What the package declares is what it is: dependencies, types, and no demonstration in it."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from pathlib import Path

import pytest

import lighttouch as lt
from tools.try_distributions import EXTRAS, PROGRAMS

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
    optional = names([each for name in EXTRAS for each in extras[name]])
    assert needed <= declared <= everywhere
    assert everywhere - declared <= optional


def test_numba_has_an_upper_bound():
    (numba,) = (each for each in PROJECT["dependencies"] if each.startswith("numba"))
    assert re.search(r"<0\.\d+", numba)


def test_types_are_shipped():
    assert "Typing :: Typed" in PROJECT["classifiers"]
    assert (PACKAGE / "py.typed").exists() and Path(lt.__file__).parent == PACKAGE


TEXTS = [
    *PACKAGE.rglob("*.py"),
    *(ROOT / "docs").rglob("*.md"),
    *(ROOT / "docs/gallery").glob("*.py"),
    *(ROOT / "examples").glob("*.py"),
    *ROOT.glob("*.md"),
    ROOT / "benchmarks/README.md",
    ROOT / ".pre-commit-config.yaml",
]
# Besides what pyproject.toml names.
ON_PYPI = {"pre-commit", "rehline", "glum", "cooper-optim", "uv"}
WHEEL = re.compile(
    r"[\w./-]*lighttouch-(?P<version>[\d.]+)-py3-none-any\.whl(\[(?P<extras>[\w,]+)\])?"
)
CLONE = re.compile(r"\.(\[(?P<extras>[\w,]+)\])?")


def install_commands(text: str) -> list[list[str]]:
    """The words after each `pip install`: to the end of inline code, or of the command's line."""
    text = text.replace("```", "\n\n")
    code = r"`(?:[^`\n]|\n(?!\n))+`"
    inline = [re.search(r"pip\s+install\s+([^`]+)", each) for each in re.findall(code, text)]
    others = re.findall(r"pip install +((?:'[^'\n]*'|[^\"'#&;,:()\n])+)", re.sub(code, "", text))
    found = [*(each[1] for each in inline if each), *others]
    return [each.replace("'", "").split() for each in found]


def may_be_installed(word: str) -> bool:
    """Whether pip finds this: it is on PyPI, or it is this clone or its wheel with known extras."""
    extras = PROJECT["optional-dependencies"]
    for form in (WHEEL, CLONE):
        if own := form.fullmatch(word):
            asked = (own["extras"] or "").split(",") if own["extras"] else []
            right = form is CLONE or own["version"] == lt.__version__
            return right and set(asked) <= set(extras)
    everything = [*PROJECT["dependencies"], *(each for group in extras.values() for each in group)]
    return word == "-e" or word in names(everything) | ON_PYPI


def test_messages_and_documents_name_what_can_be_installed():
    """The package is not on PyPI, so neither it nor its extras can be asked for by name."""
    commands = [
        (path.name, words) for path in TEXTS for words in install_commands(path.read_text("utf-8"))
    ]
    assert len(commands) >= 8
    assert not [each for each in commands if not all(may_be_installed(word) for word in each[1])]


@pytest.mark.parametrize("word", ["lighttouch", "lighttouch[frames]", ".[frame]", "no-such-thing"])
def test_a_command_that_does_not_work_is_seen(word):
    ((found,),) = install_commands(f"try pip install '{word}', or `something` else")
    assert not may_be_installed(found)


def test_no_two_test_files_share_a_name():
    """Otherwise pytest cannot run both in one process, as `make docs` does."""
    names = [path.name for path in (ROOT / "tests").rglob("test_*.py")]
    assert len(names) == len(set(names))


def test_each_extra_has_a_program_that_make_dist_runs():
    assert {f"with_{extra}.py" for extra in EXTRAS} < {path.name for path in PROGRAMS.glob("*.py")}


@pytest.mark.parametrize("name", sorted(path.name for path in (ROOT / "docs/gallery").glob("*.py")))
def test_gallery_pieces_have_their_parts(name):
    """A title, who has the problem, what they use, a comparison, and a picture at the end."""
    text = (ROOT / "docs/gallery" / name).read_text("utf-8")
    lines = text.splitlines()
    assert lines[0] == '"""' and set(lines[2]) == {"="} and len(lines[2]) == len(lines[1])
    for part in ("Who has this problem", "What they use today", "**Beside it**", "plt.show()"):
        assert part in text, f"{name} lacks {part}"
    assert len([line for line in lines if line and not line.startswith("#")]) <= 110
