"""What numba cannot say by itself: hints to memory, and generators by their addresses."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba.core import cgutils, types
from numba.extending import intrinsic, overload

# -------------------------------------------------------------------------------------------------
# Asking for memory before it is needed: a loop that knows its next addresses need not wait for each
# of them in turn.
#
# Prefetch instructions change no result; interpreted, they do nothing.


def prefetch(array, index):
    """A hint that array[index] is about to be read and written."""


def prefetch_read(array, index):
    """A hint that array[index] is about to be read."""


def stream(array, index):
    """A hint that array[index] is about to be read, and then not for long, so that it need not push
    anything out of the caches.
    """


def _hint(for_writing: int, locality: int) -> Any:
    """LLVM's prefetch of one array entry, for reading (0) or writing (1), with locality 0 to 3."""

    @intrinsic
    def emit(typing_context: Any, array: Any, index: Any) -> Any:
        return types.void(array, types.intp), lambda *emitting: _emit_hint(
            *emitting, for_writing=for_writing, locality=locality
        )

    return emit


_write, _read, _pass = _hint(1, 3), _hint(0, 3), _hint(0, 0)


@overload(prefetch)
def _compiled_prefetch(array, index):
    def hint(array, index):
        _write(array, index)

    return hint


@overload(prefetch_read)
def _compiled_prefetch_read(array, index):
    def hint(array, index):
        _read(array, index)

    return hint


@overload(stream)
def _compiled_stream(array, index):
    def hint(array, index):
        _pass(array, index)

    return hint


def _emit_hint(
    context: Any, builder: Any, signature: Any, arguments: Any, *, for_writing: int, locality: int
) -> Any:
    kind = signature.args[0]
    record = context.make_array(kind)(context, builder, arguments[0])
    stride = builder.extract_value(record.strides, 0)
    address = cgutils.pointer_add(
        builder, record.data, builder.mul(arguments[1], stride), ir.IntType(8).as_pointer()
    )
    flag = ir.IntType(32)
    hint = ir.FunctionType(ir.VoidType(), [address.type, flag, flag, flag])
    flags = [ir.Constant(flag, value) for value in (for_writing, locality, 1)]  # 1: data, not code
    builder.call(
        cgutils.get_or_insert_function(builder.module, hint, "llvm.prefetch.p0i8"),
        [address, *flags],
    )
    return context.get_dummy_value()


# -------------------------------------------------------------------------------------------------
# A NumPy generator in a kernel by the addresses of its state and of the function that draws.
#
# Unpacking the object itself takes numba ten microseconds per call, more than the draws of a short
# loop. The draws and the state are those of the object.


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
