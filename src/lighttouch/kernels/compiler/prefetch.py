"""Asking for memory before it is needed: a loop that knows its next addresses need not wait for
each of them in turn.

Prefetch instructions change no result; interpreted, they do nothing.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba.core import cgutils, types
from numba.extending import intrinsic, overload


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
