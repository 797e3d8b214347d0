"""
Credit scores that a validator can sign
=======================================

*Who has this problem:* lenders. A score must never improve because an applicant missed more
payments, and somebody must be able to show that it does not. *What they use today:* scorecards
(logistic regression on binned columns), or boosted trees with monotone constraints (LightGBM,
XGBoost, scikit-learn).

The columns and their directions are those of FICO's HELOC table, whose data dictionary states for
each column which way risk must go. The table itself may not be passed on, so the 8,000 applicants
are generated.
"""

# sphinx_gallery_slow = True

import numpy as np
import pandas as pd

rng = np.random.default_rng(1)
n = 8_000
care = rng.normal(size=n)  # what nobody sees


def noisy(weight):
    return weight * care + np.sqrt(1 - weight**2) * rng.normal(size=n)


X = pd.DataFrame(
    {
        "external_risk_estimate": np.clip(70 + 10 * noisy(0.8), 33, 94).round(),
        "months_oldest_trade": np.exp(5.2 + 0.5 * noisy(0.3)).round(),
        "percent_never_delinquent": np.clip(100 - np.exp(1.7 - 1.2 * noisy(0.6)), 0, 100).round(),
        "months_since_delinquency": np.exp(2.5 + 0.9 * noisy(0.4)).round(),
        "inquiries_6_months": rng.poisson(np.exp(0.2 - 0.5 * noisy(0.4))).astype(float),
        "revolving_burden": np.clip(35 - 22 * noisy(0.5) + 9 * rng.normal(size=n), 0, 150).round(),
    }
)
risk = (
    -0.06 * (X["external_risk_estimate"] - 70)
    - 0.7 * np.log(X["months_oldest_trade"] / 180)
    - 0.02 * (X["percent_never_delinquent"] - 93)
    - 0.02 * np.minimum(X["months_since_delinquency"], 40)
    + 0.25 * np.minimum(X["inquiries_6_months"], 6)
    + 1.2 / (1 + np.exp(-(X["revolving_burden"] - 45) / 9))
)
bad = (rng.random(n) < 1 / (1 + np.exp(-(risk - risk.mean())))).astype(int)
X.loc[rng.random(n) < 0.4, "months_since_delinquency"] = np.nan  # never delinquent, or unknown
train, test = slice(0, 3_000), slice(3_000, n)

# %%
# **The model.** Directions by column name, and one rule more: how much inquiries matter grows with
# the revolving burden. Nothing is tuned.

import lighttouch as lt

directions = {
    "external_risk_estimate": -1,
    "months_oldest_trade": -1,
    "percent_never_delinquent": -1,
    "months_since_delinquency": -1,
    "inquiries_6_months": 1,
    "revolving_burden": 1,
}
trust = lt.EdgeworthTrust("inquiries_6_months", "revolving_burden")
model = lt.LatticeClassifier(monotonic_cst=directions, shape_constraints=[trust])
model.fit(X[train], bad[train])

# %%
# **The validator's report.** Every rule is recomputed from the stored parameters, and tried on
# predictions around applicants the model has not seen. ``lighttouch check model.lt table.csv`` does
# the same from the shell, and ``lighttouch.report.write_report`` writes it as an HTML page with
# every column's curve.

print(model.check_constraints(X[test]))

# %%
# **Beside it**: logistic regression, and scikit-learn's boosted trees with the same directions and
# without. Log loss and AUC on 5,000 applicants that no model has seen. The last column asks how
# many of them would get a *lower* risk for one more inquiry.

from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

models = {
    "lighttouch": model,
    "logistic regression": make_pipeline(
        SimpleImputer(add_indicator=True), StandardScaler(), LogisticRegression()
    ),
    "trees, monotone": HistGradientBoostingClassifier(monotonic_cst=directions, random_state=0),
    "trees, free": HistGradientBoostingClassifier(random_state=0),
}
more = X[test].assign(inquiries_6_months=X[test]["inquiries_6_months"] + 1)
print(f"{'':20} log loss    AUC  better for one more inquiry")
for name, each in models.items():
    each.fit(X[train], bad[train]) if each is not model else None
    chance = each.predict_proba(X[test])[:, 1]
    wrong = np.mean(each.predict_proba(more)[:, 1] < chance)
    loss, area = log_loss(bad[test], chance), roc_auc_score(bad[test], chance)
    print(f"{name:20} {loss:8.4f} {area:6.4f} {wrong:10.1%}")

# %%
# Boosted trees keep the directions too. They fit more quickly, and have no rule for trust. On few
# and smooth data like these a sum of curves is the more accurate; on data made of steps trees are.
# Logistic regression is the simplest; nothing forbids it a wrong sign.

import matplotlib.pyplot as plt

applicants = X[test].dropna().sample(200, random_state=0)
figure, axes = plt.subplots(1, 2, figsize=(8, 3.4), sharey=True)
shown = [("trees, free", "C1"), ("trees, monotone", "grey"), ("lighttouch", "C0")]
for axis, column, values in (
    (axes[0], "revolving_burden", np.arange(0, 101, 4)),
    (axes[1], "months_since_delinquency", np.arange(0, 81, 4)),
):
    for name, color in shown:
        tables = [applicants.assign(**{column: float(value)}) for value in values]
        mean = [models[name].predict_proba(table)[:, 1].mean() for table in tables]
        axis.plot(values, mean, color=color, label=name)
    axis.set_xlabel(column.replace("_", " "))
axes[0].set_ylabel("mean predicted risk")
axes[0].legend(frameon=False)
figure.tight_layout()
plt.show()
