"""A signal becomes a flag, inside and outside of nested runs."""

from __future__ import annotations

import signal

import pytest

from lighttouch.running import Interrupts


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
