"""A NumPy generator in a kernel by the addresses of its state and of the function that draws.

Unpacking the object itself takes numba ten microseconds per call, more than the draws of a short
loop. The draws and the state are those of the object.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba.core import cgutils, types
from numba.extending import intrinsic, overload


class HeldGenerator:
    """A generator with its addresses; a copy has a generator and addresses of its own."""

    def __init__(self, generator: np.random.Generator) -> None:
        self.generator = generator
        interface: Any = generator.bit_generator.ctypes
        self.state = int(interface.state.value)
        self.draws = int(ctypes.cast(interface.next_double, ctypes.c_void_p).value or 0)

    def __reduce__(self) -> tuple[Any, ...]:
        return HeldGenerator, (self.generator,)


class _Interpreted:
    """What `generator_at` gives where nothing is compiled."""

    def __init__(self, state: int, draws: int) -> None:
        self._state, self._draws = state, ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_void_p)(draws)

    def random(self) -> float:
        return float(self._draws(self._state))


def generator_at(state, draws):
    """The generator with these addresses; only `random()` may be asked of it."""
    return _Interpreted(state, draws)


@intrinsic
def _generator_at(typing_context: Any, state: Any, draws: Any) -> Any:
    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        null = ir.Constant(cgutils.voidptr_t, None)
        bits = cgutils.create_struct_proxy(types.NumPyRandomBitGeneratorType("bit_generator"))(
            context, builder
        )
        bits.parent = null
        bits.state_address, bits.fnptr_next_double = arguments
        bits.state = arguments[0]
        whole = cgutils.create_struct_proxy(types.npy_rng)(context, builder)
        whole.bit_generator, whole.parent = bits._getvalue(), null
        whole.meminfo = null
        return whole._getvalue()

    return types.npy_rng(types.uintp, types.uintp), emit


@overload(generator_at)
def _compiled_generator_at(state, draws):
    def found(state, draws):
        return _generator_at(np.uintp(state), np.uintp(draws))

    return found
