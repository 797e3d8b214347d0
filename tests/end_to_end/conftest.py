"""What the end-to-end tests share."""

from __future__ import annotations

import pytest

REFITS = ("test_report", "test_example_diabetes")


@pytest.fixture(autouse=True, scope="module")
def models_are_trained_once(request):
    """Outside the tests of the report no model is trained again for it, which takes long."""
    with pytest.MonkeyPatch.context() as patch:
        if request.module.__name__.rpartition(".")[2] not in REFITS:
            patch.setattr("lighttouch.cli.reporting.seconds_for_refits", lambda *asked: 0.0)
        yield
