"""Model files of every released format load and predict the same bits.

`files/VERSION_KIND.lt` was saved by that version, `files/VERSION_KIND.json` holds rows and what it
predicted for them. When a format is released, its files are added; none is ever changed.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import lighttouch as lt

FILES = sorted((Path(__file__).parent / "files").glob("*.lt"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_an_old_file_predicts_the_same(path):
    model, told = lt.load(path), json.loads(path.with_suffix(".json").read_text())
    rows = np.array(told["X"]) if "X" in told else pd.DataFrame(told["rows"])
    found = model.predict(rows)
    assert np.array_equal(found, np.array(told["predictions"], dtype=found.dtype))
    assert model.check_constraints().violation == 0.0
    assert (model.training_record_ is None) == path.name.startswith("0.1")


def test_every_kind_and_version_is_there():
    versions = {path.stem.partition("_")[0] for path in FILES}
    assert {"0.1.0", "0.2.0"} <= versions and len(FILES) >= 11
