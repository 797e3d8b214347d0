"""Sums of products that are rounded once, at the very end: what makes predictions monotone to the
last bit.

Error-free transformations (Knuth's two-sum, Dekker's product 1971), a bound on what they discard,
and, where the bound leaves the rounding open, expansions without overlapping bits (Shewchuk 1997).

The products must neither overflow nor underflow: factors of magnitude 0 or 1e-280 .. 1e290 times
shares that are 0 or 2^-52 .. 1.
"""

from __future__ import annotations

from typing import Any

from numba import types
from numba.extending import intrinsic, overload

from lighttouch.kernels.compiler.compiled import lean_kernel

# twice the unit roundoff: the other half pays for the rounding of the bounds themselves
_ROUNDING = 2.0**-52


@lean_kernel
def exact_add(a, b):
    """(s, e) with s the rounded sum and s + e the exact one (Knuth)."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


@lean_kernel
def exact_multiply(a, b):
    """(p, e) with p the rounded product and p + e the exact one (Dekker)."""
    product = a * b
    return product, product_error(a, b, product)


@lean_kernel
def nearest_sum(parts, count):
    """The exact sum of parts[:count], rounded once to the nearest double (ties to even); uses up
    `parts`.
    """
    # parts[:kept] add up to everything seen so far, ascending and without overlapping bits
    # (Shewchuk)
    kept = 0
    for k in range(count):
        carried = parts[k]
        fresh = 0
        for m in range(kept):
            carried, left = exact_add(carried, parts[m])
            if left != 0.0:
                parts[fresh] = left
                fresh += 1
        parts[fresh] = carried
        kept = fresh + 1
    return _rounded(parts, kept)


@lean_kernel
def _rounded(parts, kept):
    k = kept - 1
    nearest = parts[k]
    left = 0.0
    while k > 0 and left == 0.0:
        k -= 1
        nearest, left = exact_add(nearest, parts[k])
    # a tie was broken without regard to the parts below it: where they point on past the middle,
    # the neighbour is nearer
    if left != 0.0 and k > 0 and (left > 0.0) == (parts[k - 1] > 0.0):
        neighbour = nearest + 2.0 * left
        if neighbour - nearest == 2.0 * left:
            nearest = neighbour
    return nearest


@lean_kernel
def nearest_weighted_sum(weights, indices, count, theta, parts):
    """sum_k weights[k] * theta[indices[k]], exact but for one final rounding; `parts` holds 2 count
    numbers.
    """
    high = 0.0
    low = 0.0
    discarded = 0.0
    for k in range(count):
        product, product_error = exact_multiply(weights[k], theta[indices[k]])
        high, sum_error = exact_add(high, product)
        low += sum_error + product_error
        discarded += abs(sum_error) + abs(product_error)
    doubt = _ROUNDING * (count + 2) * discarded
    lowest = high + (low - doubt)
    if lowest == high + (low + doubt):
        return lowest
    for k in range(count):
        parts[2 * k], parts[2 * k + 1] = exact_multiply(weights[k], theta[indices[k]])
    return nearest_sum(parts, 2 * count)


@lean_kernel
def quick_blend(a, b, share):
    """(1 - share) a + share b, where 1 - share is exact: the value, and whether that is the exact
    one but for one final rounding.
    """
    p, p_error = exact_multiply(1.0 - share, a)
    q, q_error = exact_multiply(share, b)
    high, sum_error = exact_add(p, q)
    errors = p_error + q_error
    low = sum_error + errors
    doubt = 2.0 * _ROUNDING * (abs(errors) + abs(low))
    lowest = high + (low - doubt)
    return lowest, lowest == high + (low + doubt)


@lean_kernel
def nearest_blend(a, b, share, parts):
    """(1 - share) a + share b, exact but for one final rounding, where 1 - share is exact; `parts`
    holds 4 numbers.
    """
    if a == b:
        return a
    value, sure = quick_blend(a, b, share)
    if sure:
        return value
    parts[0], parts[2] = exact_multiply(1.0 - share, a)
    parts[1], parts[3] = exact_multiply(share, b)
    return nearest_sum(parts, 4)


# -------------------------------------------------------------------------------------------------
# The rounding error of a product, by one fused multiply-add where code is compiled.
#
# Dekker's formula (1971) has seventeen operations and gives the same number, which is exact. A
# fused multiply-add is a single instruction of every processor of the last ten years; elsewhere the
# C library's function is called.


_HALVES = 134217729.0  # 2^27 + 1 cuts a double into two halves whose products are exact


def product_error(a: float, b: float, product: float) -> float:
    """a b - product, exactly, where `product` is the rounded a b (Dekker 1971)."""
    shifted = _HALVES * a
    a_high = shifted - (shifted - a)
    a_low = a - a_high
    shifted = _HALVES * b
    b_high = shifted - (shifted - b)
    b_low = b - b_high
    return a_low * b_low - (((product - a_high * b_high) - a_low * b_high) - a_high * b_low)


@intrinsic
def _fused_multiply_add(typing_context: Any, a: Any, b: Any, c: Any) -> Any:
    """a b + c, rounded once."""
    del typing_context, a, b, c

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.fma(*arguments)

    return types.float64(types.float64, types.float64, types.float64), generate


@overload(product_error, strict=False, inline="always")
def _compiled_product_error(a: Any, b: Any, product: Any) -> Any:
    return lambda a, b, product: _fused_multiply_add(a, b, -product)  # type: ignore[call-arg]
