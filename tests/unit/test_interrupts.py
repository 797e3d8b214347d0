"""A signal becomes a flag, inside and outside of nested runs."""

from __future__ import annotations

import ctypes
import signal
import sys

import numba
import pytest
from numba.core.compiler_lock import global_compiler_lock

from lighttouch import signals
from lighttouch.kernels.compiler import compiled
from lighttouch.signals import Interrupts, RaisedAtOnce


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_run_that_begins_after_the_signal_is_interrupted_too(number):
    with Interrupts() as outer:
        signal.raise_signal(number)
        with Interrupts() as inner:
            assert inner.raised and inner.number == number
    assert outer.raised


def test_a_run_outside_knows_of_a_signal_inside():
    with Interrupts() as outer:
        with Interrupts() as inner:
            signal.raise_signal(signal.SIGTERM)
            assert inner.raised
        assert outer.raised and outer.number == signal.SIGTERM


def test_a_second_signal_raises():
    with pytest.raises(KeyboardInterrupt), Interrupts():
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)


def swallowed(number: int) -> None:
    """The signal comes while C calls Python, which can only forget what is raised."""
    call = ctypes.CFUNCTYPE(None)(lambda: signal.raise_signal(number))
    call()


def test_what_a_callback_swallows_is_raised_where_a_run_begins(capfd):
    with pytest.raises(KeyboardInterrupt), RaisedAtOnce():
        swallowed(signal.SIGINT)
        with Interrupts():
            pytest.fail("the run began")
    assert capfd.readouterr().err == ""


def test_what_a_callback_swallows_is_raised_at_the_end(capfd):
    with pytest.raises(SystemExit) as ended, RaisedAtOnce(ends_program=True):
        swallowed(signal.SIGTERM)
    assert ended.value.code == 143
    assert capfd.readouterr().err == ""


def test_other_errors_in_callbacks_are_still_printed(monkeypatch):
    seen = []
    monkeypatch.setattr(sys, "unraisablehook", lambda what: seen.append(what.exc_type))
    with Interrupts():
        ctypes.CFUNCTYPE(None)(lambda: 1 / 0)()
    assert seen == [ZeroDivisionError] and sys.unraisablehook is not None


def test_before_a_run_ctrl_c_is_raised_at_once_and_other_handlers_stay():
    seen = []
    before = signal.signal(signal.SIGTERM, lambda number, frame: seen.append(number))
    try:
        with pytest.raises(KeyboardInterrupt), RaisedAtOnce(ends_program=True):
            signal.raise_signal(signal.SIGTERM)
            signal.raise_signal(signal.SIGINT)
            pytest.fail("it went on")
    finally:
        signal.signal(signal.SIGTERM, before)
    assert seen == [signal.SIGTERM]


def test_a_signal_in_a_compilation_ends_those_that_follow_too(monkeypatch):
    """Where a callback of the compiler swallowed it."""
    monkeypatch.setattr(compiled, "LONG", 0.0)
    with pytest.raises(KeyboardInterrupt), Interrupts():
        with global_compiler_lock:
            swallowed(signal.SIGINT)
        with global_compiler_lock:
            pytest.fail("another compilation began")
    with global_compiler_lock:  # the next run compiles as ever
        pass


@pytest.mark.skipif(numba.config.DISABLE_JIT, reason="nothing is compiled")
def test_after_a_signal_no_compilation_begins():
    """However short: one after the other they took longer than a second."""

    @numba.njit
    def twice(number):
        return 2 * number

    with pytest.raises(KeyboardInterrupt), Interrupts():
        signal.raise_signal(signal.SIGINT)
        twice(1)
    assert not twice.signatures
    assert twice(1) == 2, "the next run compiles as ever"


def test_after_long_work_a_compilation_ends_and_the_result_is_kept(monkeypatch):
    monkeypatch.setattr(compiled, "LONG", 0.0)
    monkeypatch.setattr(signals, "WORTH_WAITING", 0.0)
    with Interrupts() as interrupts:
        signal.raise_signal(signal.SIGINT)
        with global_compiler_lock:
            assert interrupts.raised


def test_what_is_ignored_stays_ignored():
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with RaisedAtOnce(), Interrupts() as interrupts:
            signal.raise_signal(signal.SIGINT)
            assert not interrupts.raised
    finally:
        signal.signal(signal.SIGINT, before)
