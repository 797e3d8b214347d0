"""Pictures are made for every kind of column, and hostile names stay text."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import lighttouch as lt

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")


def fitted():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        {
            "a": rng.uniform(size=120),
            "$\\frac{x$\n": rng.uniform(size=120),
            "kind": rng.choice(["u", "v", "w"], 120),
        }
    )
    y = X.a * X.iloc[:, 1] + (X.kind == "u")
    return lt.LatticeRegressor(
        monotonic_cst={"a": 1}, shape_constraints=[lt.EdgeworthTrust("a", 1)]
    ).fit(X, y), X


def test_curves_slices_and_rules_are_drawn():
    from lighttouch.estimators import plots

    model, X = fitted()
    curves = plots.plot_calibrators(model)
    assert len(curves.axes) == 3
    line = curves.axes[0].lines[0]
    assert np.all(np.diff(line.get_ydata()) >= 0)
    slice_axis = plots.plot_slice(model, X, "a").axes[0]
    assert len(slice_axis.lines) == 31 and np.all(np.diff(slice_axis.lines[-1].get_ydata()) >= 0)
    figures = [
        curves,
        plots.plot_slice(model, X, ["a", "kind"]),
        plots.plot_slice(model, X, [0, 1]),
        plots.plot_constraints(model),
    ]
    for figure in figures:
        figure.canvas.draw()
    assert len(figures[-1].axes[0].patches) == 4
    with pytest.raises(ValueError, match="one or two"):
        plots.plot_slice(model, X, [0, 1, 2])
    matplotlib.pyplot.close("all")
