"""
Isotonic regression in many columns
===================================

*Who has this problem:* dose and response, pricing, scores made of scores: the response is known to
rise with each input, and no formula is known. *What they use today:* scikit-learn's
``IsotonicRegression``, which takes one column; additive isotonic models; monotone boosted trees.

Here nothing is assumed but the order: of all functions that rise in every column, the one with the
smallest squared error. There is one row for each pair of points with no other between them.
"""

import numpy as np

import lighttouch as lt

rng = np.random.default_rng(0)


def response(doses):
    return np.maximum(np.minimum(doses[:, 0], doses[:, 1]), doses[:, 2] ** 3)


X = rng.random((600, 3))
y = response(X) + 0.15 * rng.normal(size=600)
model = lt.MonotoneRegressor(monotonic_cst=[1, 1, 1]).fit(X, y)
print(model.constraint_report_)

# %%
# **Beside it**: isotonic regression of the one column that works best, monotone boosted trees, and
# this package's smooth model with the same directions, on new points without noise. *Wrong pairs*
# are those where one point has more of everything and gets less.

from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.isotonic import IsotonicRegression

new = rng.random((2_000, 3))
one = max(range(3), key=lambda c: np.corrcoef(X[:, c], y)[0, 1])
column = IsotonicRegression(out_of_bounds="clip").fit(X[:, one], y)
trees = HistGradientBoostingRegressor(monotonic_cst=[1, 1, 1], random_state=0).fit(X, y)
lattice = lt.LatticeRegressor(monotonic_cst=[1, 1, 1]).fit(X, y)
predictions = {
    "MonotoneRegressor": model.predict(new),
    "LatticeRegressor": lattice.predict(new),
    "trees, monotone": trees.predict(new),
    "one column": column.predict(new[:, one]),
}
above = (new[:, None, :] >= new[None, :, :]).all(axis=2)
for name, p in predictions.items():
    error = np.sqrt(np.mean((p - response(new)) ** 2))
    wrong = int((above & (p[:, None] < p[None, :])).sum())
    print(f"{name:17} error {error:.4f}, wrong pairs {wrong} of {above.sum() - new.shape[0]:,}")

# %%
# Isotonic regression assumes nothing else and smooths nothing, so where the truth is smooth, as
# here, models that do smooth come nearer to it, and with more columns fewer points can be compared.
# It is the right tool where the best monotone fit itself is wanted: for calibration, for tests of
# monotonicity, where the truth may jump anywhere. There is nothing to tune.

import matplotlib.pyplot as plt

side = np.linspace(0, 1, 60)
first, second = np.meshgrid(side, side, indexing="ij")
points = np.column_stack([first.ravel(), second.ravel(), np.full(3600, 0.5)])
figure, axes = plt.subplots(1, 3, figsize=(9, 3.2), sharey=True, layout="constrained")
pictures = [
    ("truth", response(points)),
    ("MonotoneRegressor", model.predict(points)),
    ("LatticeRegressor", lattice.predict(points)),
]
for axis, (name, values) in zip(axes, pictures, strict=True):
    drawn = axis.pcolormesh(side, side, values.reshape(60, 60).T, vmin=0, vmax=1, cmap="viridis")
    axis.set(xlabel="first dose", title=name)
axes[0].set_ylabel("second dose")
figure.colorbar(drawn, ax=axes, label="response, third dose 0.5")
plt.show()
