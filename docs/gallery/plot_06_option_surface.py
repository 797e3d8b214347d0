"""
An option surface without arbitrage
===================================

*Who has this problem:* trading desks, risk and model validation. Quotes of call options come with
noise, stale prices and rounding; taken as they are they contradict each other, and a local
volatility or a density made of them is nonsense. *What they use today:* parametric slices (SVI,
SABR), smoothing splines by slice, or a linear program that repairs the quotes (Cohen, Reisinger and
Wang 2020).

With interest at 0, no static arbitrage means: the price of a call falls with the strike, by at most
one per unit; it is convex in the strike (a butterfly costs something); and it does not fall with
the expiry (a calendar spread costs something). The quotes are generated.
"""

import numpy as np
from scipy.stats import norm

rng = np.random.default_rng(0)
strikes = np.concatenate([np.arange(60, 90, 5), np.arange(90, 110, 2.5), np.arange(110, 161, 5)])
expiries = np.array([1, 2, 3, 6, 9, 12, 18, 24]) / 12
K, T = np.meshgrid(strikes, expiries, indexing="ij")
moneyness = np.log(K / 100)
volatility = 0.2 + 0.1 * (np.sqrt((moneyness + 0.05) ** 2 + 0.02) - moneyness) * np.exp(-T / 2)
d1 = -moneyness / (volatility * np.sqrt(T)) + volatility * np.sqrt(T) / 2
price = 100 * norm.cdf(d1) - K * norm.cdf(d1 - volatility * np.sqrt(T))
spread = 0.05 + 0.02 * price
quotes = np.maximum(0.05, (price + spread * rng.normal(size=price.shape)) / 0.05).round() * 0.05

# %%
# **The rules**, as rows on the prices at all strikes and expiries: every rule is a lattice shape or
# a linear row. Strikes are not equally far apart, so convexity compares slopes.

import scipy.sparse as sp

import lighttouch as lt

step = 1 / np.diff(strikes)
slope = sp.diags([-step, step], [0, 1], shape=(strikes.size - 1, strikes.size))
every = sp.eye(expiries.size)
slopes = sp.kron(slope, every).tocsr()  # one per neighbouring strikes and expiry
bend = sp.kron(sp.diags([1, -1], [0, 1], shape=(strikes.size - 2, strikes.size - 1)) @ slope, every)
calendar = sp.kron(
    sp.eye(strikes.size), sp.diags([1, -1], [0, 1], shape=(expiries.size - 1, expiries.size))
)
A = sp.vstack([slopes, -slopes, bend, calendar]).tocsr()
b = np.concatenate(
    [
        np.zeros(slopes.shape[0]),
        np.ones(slopes.shape[0]),
        np.zeros(bend.shape[0] + calendar.shape[0]),
    ]
)
intrinsic = np.maximum(100 - K, 0).ravel()
rules, domain = lt.LinearConstraints(A, b), lt.Box(intrinsic, 100.0)
print(
    f"{quotes.size} quotes, {rules.count} rules, of which the quotes break "
    f"{(rules.values(quotes.ravel()) > 1e-9).sum()}"
)

weight = 1 / spread.ravel()
nearest = lt.EmpiricalRisk(
    sp.eye(quotes.size).tocsr(), quotes.ravel(), loss="absolute", sample_weight=weight
)
result = lt.solve(lt.Problem(nearest, rules, domain), lt.Automatic(tolerance=1e-8))
print(result)

# %%
# **Beside it**: the same repair as a linear program by HiGHS (what the literature does), and a
# smoothing spline per expiry, which knows no rules. Objectives are mean weighted deviations.

import time

from scipy.interpolate import make_smoothing_spline
from scipy.optimize import linprog

m, size = A.shape
eye = sp.eye(size)
began = time.process_time()
program = linprog(
    np.concatenate([np.zeros(size), weight / weight.sum()]),
    A_ub=sp.vstack(
        [sp.hstack([A, sp.csr_matrix((m, size))]), sp.hstack([eye, -eye]), sp.hstack([-eye, -eye])]
    ),
    b_ub=np.concatenate([b, quotes.ravel(), -quotes.ravel()]),
    bounds=[*((low, 100.0) for low in intrinsic), *[(0, None)] * size],
)
took = time.process_time() - began
smooth = np.column_stack(
    [
        make_smoothing_spline(strikes, quotes[:, t], 1 / spread[:, t] ** 2)(strikes)
        for t in range(expiries.size)
    ]
)
for name, w, seconds in [
    ("lighttouch", result.w, f"{result.seconds:.2f} s"),
    ("linear program", program.x[:size], f"{took:.2f} s"),
    ("splines", smooth.ravel(), ""),
]:
    error = np.mean(weight * np.abs(w - price.ravel())) / np.mean(weight)
    print(
        f"{name:15} objective {nearest.value(w):.6f}, from the true prices {error:.4f}, "
        f"broken rules {(rules.values(w) > 1e-9).sum()} {seconds}"
    )

# %%
# The two programs find the same optimum. HiGHS is the faster one on a problem this small, and needs
# no library beyond SciPy. What it does not take is a curved objective: with ``loss="squared"`` or
# ``"huber"`` the program here changes in one word, and repairs come out smoother.

import matplotlib.pyplot as plt

rounder = lt.solve(
    lt.Problem(
        lt.EmpiricalRisk(sp.eye(quotes.size).tocsr(), quotes.ravel(), sample_weight=weight**2),
        rules,
        domain,
    )
)
middle = (strikes[1:] + strikes[:-1]) / 2


def density(prices):
    return -np.diff(np.diff(prices[:, 3]) / np.diff(strikes)) * -1 / np.diff(middle)


figure, axes = plt.subplots(1, 2, figsize=(8, 3.6))
axes[0].axhline(0, color="grey", lw=1)
for name, prices, style in [
    ("quotes", quotes, {"color": "C1", "marker": "."}),
    ("repaired", rounder.w.reshape(K.shape), {"color": "C0"}),
    ("truth", price, {"color": "grey", "linestyle": ":"}),
]:
    axes[0].plot(strikes[1:-1], density(prices), label=name, **style)
axes[0].set(xlabel="strike", ylabel="implied density", title="expiry 6 months")
axes[0].legend(frameon=False)
for t, shade in [(0, 0.35), (3, 0.65), (7, 1.0)]:
    axes[1].plot(strikes, quotes[:, t], ".", color="C1", markersize=4)
    axes[1].plot(strikes, rounder.w.reshape(K.shape)[:, t], color="C0", alpha=shade)
    axes[1].annotate(
        f"{12 * expiries[t]:.0f} months",
        (100, price[14, t]),
        fontsize=8,
        color="grey",
        xytext=(4, 4),
        textcoords="offset points",
    )
axes[1].set(xlabel="strike", ylabel="price of a call")
figure.tight_layout()
plt.show()
