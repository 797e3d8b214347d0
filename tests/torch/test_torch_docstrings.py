"""The public names of lighttouch.torch are documented as those of the core, and their examples
run.
"""

from __future__ import annotations

import doctest

import numpy as np
import pytest
import torch

import lighttouch as lt
import lighttouch.torch as ours
from unit.test_docstrings import faults

NAMES = sorted(ours.__all__)


@pytest.mark.parametrize("name", NAMES)
def test_described(name):
    assert faults(getattr(ours, name)) == []


@pytest.mark.parametrize("name", NAMES)
def test_examples_run(name):
    known = {"lt": lt, "np": np, "torch": torch, **{each: getattr(ours, each) for each in NAMES}}
    finder = doctest.DocTestFinder(recurse=False)
    (test,) = finder.find(getattr(ours, name), name, globs=known)
    assert test.examples
    assert doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(test).failed == 0


def test_the_reference_lists_them():
    from pathlib import Path

    text = (Path(__file__).parents[2] / "docs" / "reference.md").read_text("utf-8")
    assert [name for name in NAMES if f"`{name}" not in text] == []
