"""Slacks and slopes of an interior point, row by row: what NumPy would take dozens of passes for.

A row has a slope s, its distances `low` and `high` from the bounds, and the slacks n and p; n low
and p high are its products. Rows without a bound have 1 and 0 there (`interior/path.py`).
"""

from __future__ import annotations

import numpy as np

from lighttouch.kernels.compiler.compiled import lean_kernel


@lean_kernel
def slack_changes(below, above, lower, upper, n, p, low, high, ds, dn, dp, dlow, dhigh):
    """The changes that go with those of the slopes such that, to first order, products change by
    `lower` and `upper`; returns the share of them that brings the first number to zero.
    """
    share = np.inf
    for k in range(ds.size):
        dn[k] = 0.0
        dp[k] = 0.0
        dlow[k] = 0.0
        dhigh[k] = 0.0
        if below[k]:
            dn[k] = (lower[k] - n[k] * ds[k]) / low[k]
            dlow[k] = ds[k]
            if dn[k] < 0.0 and n[k] < -share * dn[k]:
                share = -n[k] / dn[k]
            if dlow[k] < 0.0 and low[k] < -share * dlow[k]:
                share = -low[k] / dlow[k]
        if above[k]:
            dp[k] = (upper[k] + p[k] * ds[k]) / high[k]
            dhigh[k] = -ds[k]
            if dp[k] < 0.0 and p[k] < -share * dp[k]:
                share = -p[k] / dp[k]
            if dhigh[k] < 0.0 and high[k] < -share * dhigh[k]:
                share = -high[k] / dhigh[k]
    return share


@lean_kernel
def products_after(n, p, low, high, dn, dp, dlow, dhigh, share):
    """The sum of all products after a share of the changes."""
    total = 0.0
    for k in range(n.size):
        total += (n[k] + share * dn[k]) * (low[k] + share * dlow[k])
        total += (p[k] + share * dp[k]) * (high[k] + share * dhigh[k])
    return total


@lean_kernel
def aim_at(below, above, dn, dp, dlow, dhigh, centre, lower, upper):
    """Lower what is left of the products by what second order adds, and aim at the centre."""
    for k in range(lower.size):
        lower[k] = lower[k] - dn[k] * dlow[k] + centre if below[k] else 0.0
        upper[k] = upper[k] - dp[k] * dhigh[k] + centre if above[k] else 0.0


@lean_kernel
def towards_centre(product, least, most):
    """What brings a product back between two bounds, or part of the way (Gondzio 1996)."""
    return max(min(max(product, least), most) - product, -most)


@lean_kernel
def aim_nearer(
    below, above, n, p, low, high, dn, dp, dlow, dhigh, share, least, most, lower, upper, out
):
    """lower and upper, into the two rows of `out`, with products after `share` brought back."""
    for k in range(lower.size):
        out[0, k] = lower[k]
        out[1, k] = upper[k]
        if below[k]:
            product = (n[k] + share * dn[k]) * (low[k] + share * dlow[k])
            out[0, k] += towards_centre(product, least, most)
        if above[k]:
            product = (p[k] + share * dp[k]) * (high[k] + share * dhigh[k])
            out[1, k] += towards_centre(product, least, most)
