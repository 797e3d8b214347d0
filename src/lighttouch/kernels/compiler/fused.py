"""The rounding error of a product, by one fused multiply-add where code is compiled.

Dekker's formula (1971) has seventeen operations and gives the same number, which is exact. A fused
multiply-add is a single instruction of every processor of the last ten years; elsewhere the C
library's function is called.
"""

from __future__ import annotations

from typing import Any

from numba import types
from numba.extending import intrinsic, overload

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
