"""
Quantiles that never cross
==========================

*Who has this problem:* whoever forecasts with bands: demand, load, delivery times, losses. A 90%
quantile below the 50% quantile makes a stock plan or a capital rule absurd. *What they use today:*
one model per level (``QuantileRegressor``, LightGBM with ``objective="quantile"``), sorted
afterwards. Sorting hides the crossing; it does not mend the models. Here is one model of
non-crossing quantiles: all levels are fitted together.

1,500 generated days: demand rises with temperature, promotions raise it, and its spread grows with
both.
"""

# sphinx_gallery_slow = True

import numpy as np

rng = np.random.default_rng(0)
n = 1_500
X = np.column_stack([rng.uniform(-5, 35, n), rng.uniform(0, 1, n), rng.uniform(0, 1, n)])
y = (
    20
    + 0.6 * X[:, 0]
    + 15 * X[:, 1]
    + (1 + 0.2 * X[:, 0] + 8 * X[:, 1]).clip(1) * rng.gumbel(size=n)
)
train, test = slice(0, 500), slice(500, n)
levels = [0.05, 0.25, 0.5, 0.75, 0.95]

# %%
# **One model with five levels**, fitted together in one convex problem: each increasing in
# temperature and promotion, and no level above the next, *everywhere*, not only at these rows.

import lighttouch as lt

model = lt.LatticeRegressor(loss="quantile", quantile=levels, monotonic_cst={0: 1, 1: 1})
model.fit(X[train], y[train])
print(model.constraint_report_)

# %%
# **Beside it**: scikit-learn's boosted trees, one per level, with the same directions. (Its linear
# ``QuantileRegressor`` crosses outside the data by geometry: lines that are not parallel meet.)

from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.metrics import mean_pinball_loss

trees = [
    HistGradientBoostingRegressor(
        loss="quantile", quantile=level, monotonic_cst=[1, 1, 0], random_state=0
    ).fit(X[train], y[train])
    for level in levels
]
predictions = {
    "lighttouch": model.predict(X[test]),
    "trees, one per level": np.column_stack([tree.predict(X[test]) for tree in trees]),
}
for name, P in predictions.items():
    pinball = np.mean([mean_pinball_loss(y[test], P[:, k], alpha=levels[k]) for k in range(5)])
    crossing = np.mean((np.diff(P, axis=1) < 0).any(axis=1))
    cover = np.mean((P[:, 0] <= y[test]) & (y[test] <= P[:, -1]))
    print(
        f"{name:21} pinball loss {pinball:.3f}, days with a crossing {crossing:.1%}, "
        f"within the outer band {cover:.1%} (90% is meant)"
    )

# %%
# The trees fit faster. Each of them obeys the two directions, and the levels cross all the same.

import matplotlib.pyplot as plt

temperature = np.linspace(-5, 35, 200)
days = np.column_stack([temperature, np.full(200, 0.5), np.full(200, 0.5)])
near = np.abs(X[:, 1] - 0.5) < 0.15
figure, axes = plt.subplots(1, 2, figsize=(8, 3.6), sharey=True)
shown = {
    "lighttouch": model.predict(days),
    "trees, one per level": np.column_stack([tree.predict(days) for tree in trees]),
}
for axis, (name, P) in zip(axes, shown.items(), strict=True):
    axis.plot(X[near, 0], y[near], ".", color="grey", alpha=0.4, markersize=3)
    for k, level in enumerate(levels):
        axis.plot(temperature, P[:, k], color="C0" if k == 2 else "C1", lw=2.0 if k == 2 else 1.2)
        axis.annotate(
            f"{level:.0%}",
            (35, P[-1, k]),
            xytext=(4, -3),
            textcoords="offset points",
            fontsize=8,
            color="grey",
        )
    axis.set(xlabel="temperature, °C", title=name, xlim=(-7, 41))
axes[0].set_ylabel("demand at half promotion")
figure.tight_layout()
plt.show()
