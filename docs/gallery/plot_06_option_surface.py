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
# **The rules** are rows on the prices at all strikes and expiries. Strikes are not equally far
# apart, so convexity compares slopes.

import scipy.sparse as sp

import lighttouch as lt


def differences(size):
    return sp.diags([-np.ones(size - 1), np.ones(size - 1)], [0, 1], shape=(size - 1, size))


per_unit = sp.diags(1 / np.diff(strikes)) @ differences(strikes.size)
slopes = sp.kron(per_unit, sp.eye(expiries.size))
bends = sp.kron(differences(strikes.size - 1) @ per_unit, sp.eye(expiries.size))
calendars = sp.kron(sp.eye(strikes.size), differences(expiries.size))
A = sp.vstack([slopes, -slopes, -bends, -calendars]).tocsr()
b = np.zeros(A.shape[0])
b[slopes.shape[0] : 2 * slopes.shape[0]] = 1.0  # -slope <= 1
rules = lt.LinearConstraints(A, b)
payoff = np.maximum(100 - K, 0).ravel()  # a call is worth at least what it pays today
domain = lt.Box(payoff, 100.0)
broken = int((rules.values(quotes.ravel()) > 1e-9).sum())
print(f"{quotes.size} quotes, {rules.count} rules, of which the quotes break {broken}")


def repaired(loss):
    weights = 1 / spread.ravel() ** (1 if loss == "absolute" else 2)
    near = lt.EmpiricalRisk(sp.eye(K.size).tocsr(), quotes.ravel(), loss, sample_weight=weights)
    return lt.solve(lt.Problem(near, rules, domain), lt.Automatic(tolerance=1e-6))


smooth, sparse = repaired("squared"), repaired("absolute")
print(smooth)

# %%
# Squared errors spread a repair over many quotes; absolute ones change few quotes and leave the
# others as they are.
#
# **Beside it**: the same absolute repair as a linear program by HiGHS, which is what the literature
# does, and a smoothing spline per expiry, which knows no rules.

import time

from scipy.interpolate import make_smoothing_spline
from scipy.optimize import linprog

eye, none = sp.eye(K.size), sp.csr_matrix(A.shape)
began = time.process_time()
program = linprog(  # prices, then their distances from the quotes
    np.concatenate([np.zeros(K.size), 1 / spread.ravel()]),
    sp.vstack([sp.hstack([A, none]), sp.hstack([eye, -eye]), sp.hstack([-eye, -eye])]),
    np.concatenate([b, quotes.ravel(), -quotes.ravel()]),
    bounds=[*((low, 100) for low in payoff), *[(0, None)] * K.size],
)
took = time.process_time() - began
splines = [
    make_smoothing_spline(strikes, quotes[:, t], 1 / spread[:, t] ** 2)(strikes)
    for t in range(expiries.size)
]
print(f"{'':25} {'from the quotes':>15} {'from the truth':>15} {'broken rules':>13}")
for name, prices in [
    ("lighttouch, squared", smooth.w),
    ("lighttouch, absolute", sparse.w),
    (f"HiGHS in {took:.2f} s, absolute", program.x[: K.size]),
    ("splines", np.column_stack(splines).ravel()),
    ("quotes", quotes.ravel()),
]:
    far = [np.mean(np.abs(prices - other.ravel()) / spread.ravel()) for other in (quotes, price)]
    broken = int((rules.values(prices) > 1e-9).sum())
    print(f"{name:25} {far[0]:15.5f} {far[1]:15.5f} {broken:13}")

# %%
# Distances are means, in spreads. HiGHS finds the same optimum as the absolute repair, and is much
# faster on a problem this small. What a linear program cannot state is the squared repair, which
# comes nearer to the true prices.

import matplotlib.pyplot as plt

prices = smooth.w.reshape(K.shape)
figure, axes = plt.subplots(1, 2, figsize=(8, 3.6), layout="constrained")
axes[0].axhline(0, color="grey", lw=0.8)
for name, each, style in [
    ("quotes", quotes, {"color": "C1", "marker": "."}),
    ("repaired, squared", prices, {"color": "C0"}),
    ("truth", price, {"color": "grey", "linestyle": ":"}),
]:
    axes[0].plot(strikes[1:-1], np.diff(per_unit @ each[:, 3]), label=name, **style)
axes[0].set(xlabel="strike", ylabel="cost of a butterfly", title="expiry 6 months")
axes[0].legend(frameon=False)
for t in (0, 3, 7):
    axes[1].plot(strikes, quotes[:, t], ".", color="C1", markersize=4)
    axes[1].plot(strikes, prices[:, t], color="C0")
axes[1].set(xlabel="strike", ylabel="price of a call", title="1, 6 and 24 months, from below")
plt.show()
