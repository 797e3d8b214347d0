"""The documentation site: `make docs` builds it into docs/_build/html.

LIGHTTOUCH_DOCS=quick leaves out what takes long: slow gallery pieces are shown without being run,
and so is the code of the pages. (The tests run the code of the pages in any case.)
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_ext"))

import lighttouch as lt  # noqa: E402

QUICK = os.environ.get("LIGHTTOUCH_DOCS") == "quick"

project = "lighttouch"
author = "the lighttouch contributors"
project_copyright = "the lighttouch contributors, Apache-2.0"
version = release = lt.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.viewcode",
    "numpydoc",
    "sphinx_gallery.gen_gallery",
    "sphinx_copybutton",
    "names",
    "families",
    "running_pages",
    "breakable",
]
exclude_patterns = ["_build", "README.md", "gallery/*", "Thumbs.db"]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
nitpicky = True
default_role = "name"
smartquotes = False  # "squared" in a docstring is a value to type

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 4
suppress_warnings = ["config.cache"]  # what the gallery is told cannot be pickled

autodoc_typehints = "none"  # the docstrings say the types in words
autodoc_member_order = "bysource"
autodoc_class_signature = "mixed"
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False
names_of_pages = {  # pages about one module: its names are links however they are written
    "lattice": "lighttouch.lattice",
    "theory": "lighttouch.theory",
    "pytorch": "lighttouch.torch",
    "coming_from_cooper": "lighttouch.torch",
}
run_pages = not QUICK
pages_run_elsewhere = {
    "clusters": "by tests/unit/test_clusters_page.py, as a program: it starts processes",
    "experiments": "by tests/end_to_end/test_experiments.py: it takes minutes",
    "pytorch": "by tests/torch/test_documents.py, with fewer steps: it takes minutes",
}


def fast_pieces() -> str:
    """A pattern that fits the gallery pieces without the line `# sphinx_gallery_slow = True`."""
    pieces = sorted((HERE / "gallery").glob("*.py"))
    fast = [piece.name for piece in pieces if "sphinx_gallery_slow" not in piece.read_text("utf-8")]
    return "|".join(fast).replace(".", r"\.") or "none"


sphinx_gallery_conf = {
    "examples_dirs": ["gallery"],
    "gallery_dirs": ["gallery_pages"],
    "filename_pattern": fast_pieces() if QUICK else r"\.py$",
    "within_subsection_order": "FileNameSortKey",
    "doc_module": ("lighttouch",),
    "backreferences_dir": "gallery_pages/used",
    "prefer_full_module": {r"lighttouch\.torch"},
    "abort_on_example_error": True,
    "remove_config_comments": True,
    "show_signature": False,
    "download_all_examples": False,
    "write_computation_times": False,
    "min_reported_time": 0,
    "thumbnail_size": (480, 300),
    "image_srcset": ["2x"],
    "reset_modules": ("matplotlib", "gallery_style.use"),
    "plot_gallery": "True",
}

html_theme = "furo"
html_title = f"lighttouch {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_js_files = ["from_a_folder.js"]
html_favicon = "_static/icon.svg"
html_show_sphinx = False
html_copy_source = False
html_show_sourcelink = False
pygments_style = "friendly"
pygments_dark_style = "monokai"
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
