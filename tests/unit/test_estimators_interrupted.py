"""Ctrl-C and SIGTERM while fitting: a usable model stays, and the signal still reaches who it was
meant for.
"""

from __future__ import annotations

import dataclasses
import os
import signal
import threading

import numpy as np
import pytest

import lighttouch as lt
from lighttouch import signals
from lighttouch.estimators import fitting, training
from lighttouch.signals import Interrupts


@pytest.fixture(autouse=True)
def after_long_work(monkeypatch):
    """What must be compiled after the signal is waited for."""
    monkeypatch.setattr(signals, "WORTH_WAITING", 0.0)


def data(columns: int = 4) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(1500, columns))
    return X, np.sin(5 * X[:, 0]) - X[:, 1] + rng.normal(0, 0.3, 1500)


def slow(**options):
    """Takes far longer than the test waits: a kinked loss, a tolerance out of reach."""
    return lt.LatticeRegressor(
        loss="absolute", monotonic_cst=[-1, 1, 0, 0], max_iter=100_000, tol=1e-300, **options
    )


def send_when(condition, number: int) -> threading.Thread:
    def wait() -> None:
        condition.wait(20)
        os.kill(os.getpid(), number)

    thread = threading.Thread(target=wait)
    thread.start()
    return thread


def started(monkeypatch) -> threading.Event:
    """Set when training proper begins."""
    event, train = threading.Event(), fitting.train

    def noting(*given):
        event.set()
        return train(*given)

    monkeypatch.setattr(fitting, "train", noting)
    return event


@pytest.mark.filterwarnings("ignore:training")
def test_ctrl_c_leaves_a_usable_model_and_raises(monkeypatch):
    X, y = data()
    slow(time_limit=0.1).fit(X, y)  # compiled
    thread = send_when(started(monkeypatch), signal.SIGINT)
    model = slow()
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    thread.join()
    assert model.status_ == "interrupted"
    assert model.constraint_report_.violation == 0.0 and np.isfinite(model.predict(X)).all()


@pytest.mark.filterwarnings("ignore:training")
def test_sigterm_reaches_the_handler_that_was_there_with_a_usable_model(monkeypatch):
    X, y = data()
    seen = []
    before = signal.signal(signal.SIGTERM, lambda number, frame: seen.append(number))
    try:
        thread = send_when(started(monkeypatch), signal.SIGTERM)
        model = slow().fit(X, y)
        thread.join()
    finally:
        signal.signal(signal.SIGTERM, before)
    assert seen == [signal.SIGTERM]
    assert model.status_ == "interrupted" and model.check_constraints().violation == 0.0


@pytest.mark.filterwarnings("ignore:training")
def test_a_signal_during_solve_is_not_swallowed_by_it(monkeypatch):
    sampling = dataclasses.replace(training.COSTS, sampled_entries=0.0)
    monkeypatch.setattr(training, "COSTS", sampling)
    X, y = data(12)
    seen = []
    before = signal.signal(signal.SIGTERM, lambda number, frame: seen.append(number))
    try:
        thread = send_when(started(monkeypatch), signal.SIGTERM)
        model = lt.LatticeRegressor(lattices="single", monotonic_cst=[-1, *[1] * 11]).fit(X, y)
        thread.join()
    finally:
        signal.signal(signal.SIGTERM, before)
    assert seen == [signal.SIGTERM]
    assert model.constraint_report_.violation == 0.0


def test_an_inner_listener_tells_the_outer_one():
    with Interrupts() as outer:
        with Interrupts() as inner:
            signal.raise_signal(signal.SIGTERM)
        assert inner.raised and outer.raised and outer.number == signal.SIGTERM
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
