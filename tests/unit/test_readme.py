"""The documents tell the truth: code runs, links lead somewhere, every public name is described."""

from __future__ import annotations

import contextlib
import fnmatch
import re
from pathlib import Path

import pytest

import lighttouch as lt
from lighttouch import report

ROOT = Path(__file__).parents[2]
DOCUMENTS = (
    "README.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "SECURITY.md",
    "benchmarks/README.md",
    *sorted(f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md")),
)


def python_blocks(name: str) -> list[str]:
    return re.findall(
        r"^```python\n(.*?)^```", (ROOT / name).read_text("utf-8"), re.DOTALL | re.MULTILINE
    )


RUN_ELSEWHERE = {
    "docs/clusters.md",  # by test_clusters_page.py: its program starts processes
    "docs/experiments.md",  # by tests/end_to_end/test_experiments.py: it takes minutes
    "docs/pytorch.md",  # by tests/torch/test_documents.py: it needs PyTorch
}
WRITTEN_BY_THE_SITE = ("api/", "gallery_pages/")  # `make docs` writes them, and checks the links
WITH_CODE = [name for name in DOCUMENTS if python_blocks(name) and name not in RUN_ELSEWHERE]


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    """A function that runs a document's code from top to bottom and returns its variables."""
    import matplotlib

    matplotlib.use("Agg")
    known: dict[str, dict[str, object]] = {}

    def run(name: str) -> dict[str, object]:
        if name not in known:
            known[name] = {"__name__": "document"}
            with contextlib.chdir(tmp_path_factory.mktemp("document")):
                for block in python_blocks(name):
                    exec(compile(block, name, "exec"), known[name])
        return known[name]

    return run


@pytest.mark.parametrize("name", WITH_CODE)
def test_code_runs(name, ran):
    ran(name)


def test_documents_that_show_code_are_found():
    named = {"README", "index", "get_started", "problems", "own_constraints", "estimators"}
    assert named <= {Path(name).stem for name in WITH_CODE}


@pytest.mark.parametrize("name", DOCUMENTS)
def test_prose_is_within_100_columns(name):
    """Tables cannot be wrapped, and links to pictures have no place to break."""
    lines = (ROOT / name).read_text("utf-8").splitlines()
    assert not [line for line in lines if len(line) > 100 and not line.startswith(("|", "!["))]


@pytest.mark.parametrize("name", DOCUMENTS)
def test_no_line_of_a_sentence_becomes_a_list(name):
    """Markdown takes "1) " at the beginning of a line for a list."""
    text = (ROOT / name).read_text("utf-8")
    assert not re.findall(r"^ *\d+\) .*", text, re.MULTILINE)


def test_the_quick_start_keeps_its_rules(ran):
    names = ran("README.md")
    result, problem, model = names["result"], names["problem"], names["model"]
    assert result.violation == 0.0 == problem.violation(result.w)
    table = result.w.reshape(model.sizes)
    assert (table[1:] >= table[:-1]).all() and (table[:, 1:] <= table[:, :-1]).all()
    assert result.objective < 0.52  # half the noise's variance is 0.5, so this is a fit


def test_the_readme_is_short():
    """Two programs of about ten lines, one of twenty, and no more than two screens around them."""
    first, second = python_blocks("README.md")
    assert max(len(block.split("\n")) for block in (first, second)) <= 12
    assert len((ROOT / "README.md").read_text("utf-8").splitlines()) <= 130


@pytest.mark.parametrize("name", DOCUMENTS)
def test_links_lead_somewhere(name):
    for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", (ROOT / name).read_text("utf-8")):
        if not target.startswith(("http", "mailto", *WRITTEN_BY_THE_SITE)):
            assert ((ROOT / name).parent / target).exists(), f"{name} links to {target}"


def test_the_first_page_runs_twelve_lines(ran):
    (block,) = python_blocks("docs/index.md")
    assert len([line for line in block.splitlines() if line.strip()]) <= 12
    assert ran("docs/index.md")["model"].check_constraints().violation == 0.0


def test_every_public_name_has_an_api_page():
    """The build asks this again, with the names of lighttouch.torch."""
    import tomllib

    told = tomllib.loads((ROOT / "docs/families.toml").read_text("utf-8"))["family"]
    listed = [(each.get("module", "lighttouch"), name) for each in told for name in each["names"]]
    given = set(listed)
    assert len(listed) == len(given)
    modules = {"lighttouch": lt, "lighttouch.report": report}
    modules |= {"lighttouch.lattice": lt.lattice, "lighttouch.theory": lt.theory}
    public = {(key, name) for key, module in modules.items() for name in module.__all__}
    not_own = {
        ("lighttouch", "lattice"),
        ("lighttouch", "theory"),
        ("lighttouch.lattice", "Lattice"),
    }
    assert public - not_own == {pair for pair in given if pair[0] in modules}


def test_every_page_is_in_the_contents():
    contents = (ROOT / "docs/index.md").read_text("utf-8")
    entries = re.findall(r"^(?:.* <)?([\w\[\]*]+)>?$", contents, re.MULTILINE)
    pages = {path.stem for path in (ROOT / "docs").glob("*.md")} - {"README", "index"}
    assert not [
        page for page in pages if not any(fnmatch.fnmatch(page, entry) for entry in entries)
    ]


def test_every_public_name_is_in_the_reference():
    text = (ROOT / "docs/reference.md").read_text("utf-8")
    public = [*lt.__all__, *lt.lattice.__all__, *lt.theory.__all__, *report.__all__]
    assert not [name for name in public if f"`{name}" not in text and f".{name}`" not in text]


def test_commands_named_in_the_readme_exist():
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    named = set(
        re.findall(
            r"(?:`|^    )make ([a-z-]+)\b",
            (ROOT / "README.md").read_text("utf-8") + (ROOT / "CONTRIBUTING.md").read_text("utf-8"),
            re.MULTILINE,
        )
    )
    assert {"run", "test"} <= named <= targets


def test_versions_agree():
    """The package has the version; documents that name one name that."""
    version = lt.__version__
    assert f"version: {version}\n" in (ROOT / "CITATION.cff").read_text("utf-8")
    newest = re.search(r"^## .*$", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE)
    assert newest and re.fullmatch(rf"## {re.escape(version)} \(\d{{4}}-\d\d-\d\d\)", newest[0])
