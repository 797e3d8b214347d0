"""How a plain loop becomes a compiled one.

The kernel decorators, verbs that choose their implementation by a record's class, and a clock that
says how long numba has been compiling.
"""

from __future__ import annotations

import functools
import inspect
import threading
import time
import types
from collections.abc import Callable
from typing import Any, TypeVar

import numba
from numba.core import event
from numba.core.compiler_lock import global_compiler_lock
from numba.extending import overload, typeof_impl

from lighttouch.kernels.compiler.cache import open_cache

Function = TypeVar("Function", bound=Callable[..., Any])

_ALWAYS = {"error_model": "numpy", "nogil": True}
LONG = 0.2  # seconds: reading machine code from disk takes less, compiling a loop more
_NO_ENTRY = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}


class Kernel:
    """A function that is compiled on first use; `interpreted(kernel)` runs it in Python.

    What Python calls (`entry`) and what other kernels call (`part`) are compiled apart: a part
    needs no code that unpacks Python's objects, which took a third of the time of compiling.
    """

    def __init__(self, function: Callable[..., Any], **options: Any) -> None:
        functools.update_wrapper(self, function)
        self.py_func = function
        self._options = {**_ALWAYS, **options}

    def __call__(self, *arguments: Any) -> Any:
        return self.entry(*arguments)

    @functools.cached_property
    def entry(self) -> Any:
        return self._compiled("")

    @functools.cached_property
    def part(self) -> Any:
        return self._compiled("_part", **_NO_ENTRY)

    def _compiled(self, ending: str, **options: Any) -> Any:
        dispatcher = numba.njit(self.py_func, **self._options, **options)
        if dispatcher is not self.py_func:  # it is under NUMBA_DISABLE_JIT
            dispatcher._cache = open_cache(self.py_func, ending)
        return dispatcher


@typeof_impl.register(Kernel)
def _type_of_kernel(kernel: Kernel, _: Any) -> Any:
    """Within another kernel, a kernel is its part."""
    return numba.types.Dispatcher(kernel.part)


def kernel(function: Callable[..., Any]) -> Any:
    """Compile on first call and keep the machine code on disk."""
    return Kernel(function)


def lean_kernel(function: Callable[..., Any]) -> Any:
    """A kernel that allocates nothing, and so needs no reference counts, which would cost more than
    the work in a short loop.
    """
    return Kernel(function, _nrt=False)


def vector_kernel(function: Callable[..., Any]) -> Any:
    """A kernel whose maxima may vectorise: NaN and the sign of zero are ignored, so results stay
    the same bits.
    """
    return Kernel(function, fastmath={"nnan", "nsz"})


def _unregistered(stub: Callable[..., Any], record_class: type) -> TypeError:
    return TypeError(
        f"the verb {stub.__name__!r} must be registered for {record_class.__name__}: write "
        f"@{stub.__name__}.register({record_class.__name__}) and its loop (CONTRIBUTING.md, "
        '"Add a constraint family")'
    )


def verb(stub: Function) -> Any:
    """A function whose implementation is chosen by the class of its first argument, compiled or
    not.

    `@the_verb.register(Record)` adds the implementation for one class of records (NamedTuples of
    arrays); `register(object)` one for all others.
    """
    implementations: dict[type, Callable[..., Any]] = {}
    names = list(inspect.signature(stub).parameters)

    def call(*arguments: Any) -> Any:
        kind = type(arguments[0])
        try:
            implementation = implementations[kind if kind in implementations else object]
        except KeyError:
            raise _unregistered(stub, kind) from None
        return implementation(*arguments)

    def register(record_class: type) -> Callable[[Function], Function]:
        def add(implementation: Function) -> Function:
            implementations[record_class] = implementation
            return implementation

        return add

    def choose(record: Any) -> Callable[..., Any]:
        kind = getattr(record, "instance_class", object)
        found = implementations.get(kind, implementations.get(object))
        if found is None:
            raise _unregistered(stub, kind)
        return found

    functools.update_wrapper(call, stub)
    call.register = register  # type: ignore[attr-defined]
    call.implementations = implementations  # type: ignore[attr-defined]
    namespace = {"choose": choose}
    exec(f"def chosen({', '.join(names)}):\n    return choose({names[0]})", namespace)
    options: Any = {"error_model": "numpy", "forceinline": True, **_NO_ENTRY}
    overload(call, strict=False, jit_options=options)(namespace["chosen"])
    return call


_INTERPRETED: dict[Callable[..., Any], Callable[..., Any]] = {}


def interpreted(compiled: Callable[..., Any]) -> Callable[..., Any]:
    """The same function, and every kernel it calls, as ordinary Python: for records that hold
    Python callables.
    """
    function = getattr(compiled, "py_func", compiled)
    if function not in _INTERPRETED:
        names: dict[str, Any] = {}
        twin = types.FunctionType(
            function.__code__, names, function.__name__, function.__defaults__, function.__closure__
        )
        _INTERPRETED[function] = twin
        for name, value in function.__globals__.items():
            names[name] = interpreted(value) if hasattr(value, "py_func") else value
    return _INTERPRETED[function]


class _CompileClock(event.Listener):
    """Adds up, for each thread, the time between taking and releasing numba's compiler lock.

    Reading machine code from the disk cache happens under the same lock and is counted too.
    """

    def __init__(self) -> None:
        self._own = threading.local()  # `asked`: what to raise in a compilation that takes long

    def ask(self, error: BaseException) -> None:
        """Raise it, now and at every further part: callbacks of the compiler swallow it."""
        self._own.asked = error
        self._raise_if_long()

    def go_on(self) -> None:
        self._own.asked = None

    def _raise_if_long(self) -> None:
        error = getattr(self._own, "asked", None)
        if error is not None and self.held >= LONG:
            raise error

    def raise_if_asked(self) -> None:
        error = getattr(self._own, "asked", None)
        if error is not None:
            raise error

    def on_start(self, event: Any) -> None:
        depth = getattr(self._own, "depth", 0)
        if depth == 0:
            self._own.began = time.perf_counter()
        self._own.depth = depth + 1
        self._raise_if_long()

    def on_end(self, event: Any) -> None:
        self._own.depth = max(0, getattr(self._own, "depth", 0) - 1)
        if self._own.depth == 0:
            self._own.total = self.total + time.perf_counter() - self._own.began

    @property
    def held(self) -> float:
        """Seconds since the lock was taken; 0 where this thread does not hold it."""
        if not global_compiler_lock.is_locked():
            self._own.depth = 0  # what a signal raised within these lines may have left
        if getattr(self._own, "depth", 0) == 0:
            return 0.0
        return time.perf_counter() - float(self._own.began)

    @property
    def total(self) -> float:
        return float(getattr(self._own, "total", 0.0))


class _Gate(event.Listener):
    """Lets no further compilation begin once one is asked to end; what is on disk is still read."""

    def on_start(self, event: Any) -> None:
        _clock.raise_if_asked()

    def on_end(self, event: Any) -> None:
        """Nothing: only beginnings are asked about."""


_clock = _CompileClock()
event.register("numba:compiler_lock", _clock)
event.register("numba:compile", _Gate())


def compile_seconds() -> float:
    """What this thread has spent so far compiling, or reading what was compiled before."""
    return _clock.total + _clock.held


def end_compilation(error: BaseException) -> None:
    """Raise the error in a compilation of this thread that takes long, now or at its next part, and
    where another one begins, until `go_on_compiling`.
    """
    _clock.ask(error)


def go_on_compiling() -> None:
    """Forget what `end_compilation` was asked for."""
    _clock.go_on()
