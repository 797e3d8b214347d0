"""One BLAS thread: the same bits on every machine, and no slow-down where cores are shared."""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()


def one_blas_thread() -> AbstractContextManager[Any]:
    return _controller().limit(limits=1, user_api="blas")  # type: ignore[no-any-return]
