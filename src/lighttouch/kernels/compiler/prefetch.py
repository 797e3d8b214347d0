"""Asking for memory before it is needed: a loop that knows its next addresses need not wait for
each of them in turn.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba.core import cgutils, types
from numba.extending import intrinsic, overload


def prefetch(array, index):
    """A hint that array[index] is about to be read and written; it changes nothing."""


def stream(array, index):
    """A hint that array[index] is about to be read, and then not for long, so that it need not push
    anything out of the caches.
    """


@overload(prefetch)
def _compiled_prefetch(array, index):
    def hint(array, index):
        _keep(array, index)

    return hint


@overload(stream)
def _compiled_stream(array, index):
    def hint(array, index):
        _pass(array, index)

    return hint


@intrinsic
def _keep(typing_context: Any, array: Any, index: Any) -> Any:
    return types.void(array, types.intp), lambda *emitting: _emit_hint(
        *emitting, for_writing=1, locality=3
    )


@intrinsic
def _pass(typing_context: Any, array: Any, index: Any) -> Any:
    return types.void(array, types.intp), lambda *emitting: _emit_hint(
        *emitting, for_writing=0, locality=0
    )


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
