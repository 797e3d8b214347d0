"""Runs that survive their process: when a state is written, in which form, and whose it is.

`Belonging` says what a run was made with, as fingerprints: data, loss, constraints, domain, solver,
start, seed and version. `encoded` and `decoded` turn a solver's state into plain values and back.
`CheckpointFile` is a file of the runs of one call, in order: `solve` makes one, an estimator's
`fit` several. It is written by a thread of its own, from a copy of the state.
"""

from __future__ import annotations

import dataclasses
import enum
import logging
import os
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from lighttouch.errors import CheckpointMismatchError, ModelFileError
from lighttouch.files import refuse_unwritable, sweep
from lighttouch.fingerprints import fingerprint
from lighttouch.interfaces import AnySolver
from lighttouch.persistence import (
    CHECKPOINT,
    packed,
    read_state,
    unpacked,
    write_state,
)
from lighttouch.problem import Problem
from lighttouch.result import RunState
from lighttouch.validation import positive, told

LOG = logging.getLogger("lighttouch")
SHOWN = 32  # hexadecimal digits of a fingerprint that are written; the rest is part of the key
PLURAL = ("the data", "the constraints")
EVERY = 30.0  # seconds between two checkpoints, by default: what a kill may cost


def own_version() -> str:
    """Of this lighttouch: files say who wrote them."""
    return str(sys.modules["lighttouch"].__version__)


class Belonging:
    """What a run belongs to: numbers to compare in words, and fingerprints.

    Fingerprints read all data, so they are taken when they are first asked for.
    """

    def __init__(self, problem: Problem, solver: AnySolver) -> None:
        self.problem: Problem | None = problem
        self.words: dict[str, Any] = {
            "the solver": repr(solver),
            "the number of parameters": problem.dimension,
            "the number of examples": problem.objective.examples,
            "the number of constraints": problem.constraints.count,
            "the version of lighttouch": own_version(),
        }

    @cached_property
    def prints(self) -> dict[str, str]:
        """Full fingerprints, by what they are of."""
        assert self.problem is not None
        objective = self.problem.objective
        return {
            "the loss": fingerprint(_losses(objective)),
            "the data": fingerprint([_record(objective.record), objective.examples]),
            "the constraints": fingerprint(_record(self.problem.constraints.record)),
            "the domain": fingerprint(_record(self.problem.domain.record(self.problem.dimension))),
        }

    def refuse_other(self, known: Belonging) -> None:
        """Raise, naming everything that differs."""
        prints = {} if known.problem is self.problem else known.prints
        refuse(self.differences(known.words, prints))

    def differences(self, words: Mapping[str, Any], prints: Mapping[str, str]) -> list[str]:
        """What was other words, or has another fingerprint; these may be shortened."""
        in_words = [
            f"{name} was {words.get(name)}, now it is {value}"
            for name, value in self.words.items()
            if words.get(name) != value
        ]
        return in_words or [
            f"{name} {'differ' if name in PLURAL else 'differs'} from what the run began with"
            for name, digest in prints.items()
            if len(digest) < SHOWN or self.prints.get(name, "")[: len(digest)] != digest
        ]

    def __getstate__(self) -> dict[str, Any]:
        """Without the problem: of that the fingerprints are enough."""
        return {"problem": None, "words": self.words, "prints": self.prints}


def refuse(different: list[str]) -> None:
    if different:
        raise CheckpointMismatchError(
            f"this run cannot be resumed: {'; '.join(different)}. Use what it began with, or begin "
            "anew"
        )


def _losses(objective: Any) -> Any:
    """What is minimised, without the examples."""
    if parts := getattr(objective, "objectives", None):
        return [[_losses(part) for part in parts], objective.weights]
    row = getattr(objective, "loss_row", None)
    loss = getattr(objective, "loss", None)
    own = loss if dataclasses.is_dataclass(loss) else None
    return [type(objective).__name__, objective.l2, row and [row.name, row.levels], own]


def _record(record: Any) -> Any:
    """A record without what says only which loss it is."""
    if not hasattr(record, "_fields"):
        return record
    return {
        name: _record(value)
        for name, value in zip(record._fields, record, strict=True)
        if name not in ("kind", "levels")
    }


# -------------------------------------------------------------------------------------------------
# states as plain values


def encoded(value: object) -> Any:
    """Records, dataclasses, tuples and members of enumerations as dicts with a tag; arrays and
    numbers as they are.
    """
    if isinstance(value, list):
        return [encoded(part) for part in value]
    for tag, is_one, content in _ENCODERS:
        if is_one(value):
            return {tag: content(value)}
    return value


def _is_turned(value: Any) -> bool:
    turned = isinstance(value, np.ndarray) and value.ndim > 1
    return turned and value.flags.f_contiguous and not value.flags.c_contiguous


def _is_record(value: object) -> bool:
    return isinstance(value, tuple) and hasattr(value, "_fields")


def _is_state(value: object) -> bool:
    return dataclasses.is_dataclass(value) and not isinstance(value, type)


def _parts(state: Any) -> list[Any]:
    kept = {f.name: encoded(getattr(state, f.name)) for f in dataclasses.fields(state) if f.init}
    return [*_address(type(state)), kept]


_ENCODERS: list[tuple[str, Callable[[Any], bool], Callable[[Any], Any]]] = [
    ("__turned__", _is_turned, lambda value: value.T),
    ("__scalar__", lambda value: isinstance(value, np.generic), np.asarray),
    (
        "__member__",
        lambda value: isinstance(value, enum.Enum),
        lambda value: [*_address(type(value)), value.name],
    ),
    (
        "__record__",
        _is_record,
        lambda value: [*_address(type(value)), [encoded(part) for part in value]],
    ),
    (
        "__tuple__",
        lambda value: isinstance(value, tuple),
        lambda value: [encoded(part) for part in value],
    ),
    (
        "__dict__",
        lambda value: isinstance(value, dict),
        lambda value: [[encoded(key), encoded(part)] for key, part in value.items()],
    ),
    ("__dataclass__", _is_state, _parts),
]


def decoded(value: object, modules: tuple[str, ...]) -> Any:
    """What `encoded` was given; classes are looked up in `modules` only, and nothing is
    imported.
    """
    if isinstance(value, list):
        return [decoded(part, modules) for part in value]
    if not isinstance(value, dict):
        return value
    ((tag, content),) = value.items()
    if tag not in _DECODERS:
        raise ModelFileError(f"it holds something unknown: {tag}")
    return _DECODERS[tag](content, modules)


def _state(content: list[Any], modules: tuple[str, ...]) -> Any:
    parts = {name: decoded(part, modules) for name, part in content[2].items()}
    return _class(content, object, modules)(**parts)


_DECODERS: dict[str, Callable[[Any, tuple[str, ...]], Any]] = {
    "__turned__": lambda content, _: np.asfortranarray(content.T),
    "__scalar__": lambda content, _: content[()],
    "__member__": lambda content, modules: _class(content, enum.Enum, modules)[content[2]],
    "__record__": lambda content, modules: _class(content, tuple, modules)(
        *decoded(content[2], modules)
    ),
    "__tuple__": lambda content, modules: tuple(decoded(content, modules)),
    "__dict__": lambda content, modules: {
        decoded(key, modules): decoded(part, modules) for key, part in content
    },
    "__dataclass__": _state,
}


def _address(kind: type) -> tuple[str, str]:
    return kind.__module__, kind.__qualname__


def _class(address: list[Any], base: type, modules: tuple[str, ...]) -> type[Any]:
    """A class of states, of this package or of the user's own solver."""
    module, name = address[:2]
    found = None
    if module.split(".")[0] == "lighttouch" or module in modules:
        found = getattr(sys.modules.get(module), name, None)
    if not isinstance(found, type) or not issubclass(found, base):
        raise ModelFileError(f"it holds a {module}.{name}, which this lighttouch does not know")
    if base is object and not dataclasses.is_dataclass(found):
        raise ModelFileError(f"it holds a {module}.{name}, which is no state")
    return found


# -------------------------------------------------------------------------------------------------
# the file


@dataclasses.dataclass(frozen=True)
class Snapshot:
    """A run at one moment: all that going on needs."""

    state: RunState
    start: str  # fingerprint
    history: list[Mapping[str, float]]

    def plain(self) -> dict[str, Any]:
        belonging: Belonging = self.state.belongs_to
        return {
            "words": belonging.words,
            "prints": {name: digest[:SHOWN] for name, digest in belonging.prints.items()},
            "start": self.start,
            "seed": self.state.seed,
            "seconds": self.state.seconds,
            "generator": encoded(self.state.generator),
            "history": [dict(row) for row in self.history],
            "solver_state": encoded(self.state.solver_state),
        }


class CheckpointFile:
    """The runs of one call in a file: those that have ended, then the one that goes on."""

    def __init__(self, path: str | os.PathLike[str], every: float) -> None:
        self.path, self.every = _path(path), positive(every, "checkpoint_every", zero=True)
        refuse_unwritable(self.path, "checkpoint")
        sweep(self.path)
        self._runs: list[bytes] = self._read() if self.path.exists() else []
        self._place = -1  # of the run that goes on
        self._key = b""
        self._thread: threading.Thread | None = None
        self._written = time.perf_counter()
        self._complained = False
        self._left_off = False
        self._failure: ModelFileError | None = None

    def _read(self) -> list[bytes]:
        _, tree = read_state(self.path, CHECKPOINT)
        runs = tree.get("runs")
        if not isinstance(runs, list) or not all(
            isinstance(run, np.ndarray) and run.dtype == np.uint8 and run.ndim == 1 for run in runs
        ):
            raise ModelFileError(f"{self.path} holds no runs; {CHECKPOINT.remedy}")
        return [run.tobytes() for run in runs]

    def open_run(
        self, belonging: Belonging, solver: AnySolver, start: str, seed: int | None
    ) -> Snapshot | None:
        """The next run of this call: where it stood, or None if it has not begun."""
        if self._left_off:
            return None
        self.finish_writing()
        self._place += 1
        self._key = "".join(belonging.prints.values()).encode()
        if self._place >= len(self._runs):
            return None

        def key(tree: dict[str, Any]) -> bytes:
            refuse(_differences(tree, belonging, start, seed))
            return self._key

        try:
            _, tree = unpacked(memoryview(self._runs[self._place]), CHECKPOINT, key)
            return _snapshot(tree, belonging, solver, start)
        except (CheckpointMismatchError, ModelFileError) as error:
            raise type(error)(f"{self.path}: {error}") from None
        except Exception as error:
            raise ModelFileError(
                f"{self.path} is not a whole checkpoint: {type(error).__name__}: {error}; "
                f"{CHECKPOINT.remedy}"
            ) from None

    @property
    def is_due(self) -> bool:
        """Whether it is time to write, and nothing is being written."""
        if self._thread is not None and self._thread.is_alive():
            return False
        return time.perf_counter() - self._written >= self.every

    def write(self, snapshot: Snapshot) -> None:
        """Hand a copy to a thread that writes it; runs after this one are forgotten."""
        if self._left_off:
            return
        self.finish_writing()
        self._thread = threading.Thread(
            target=self._write, args=(snapshot, self._place, self._key), name="checkpoint"
        )
        self._thread.start()

    def _write(self, snapshot: Snapshot, place: int, key: bytes) -> None:
        try:
            self._runs[place:] = [packed("run", snapshot.plain(), CHECKPOINT, key)]
            runs = [np.frombuffer(run, dtype=np.uint8) for run in self._runs]
            write_state(self.path, "checkpoint", {"runs": runs}, CHECKPOINT)
            LOG.debug("checkpoint written: %s", self.path)
        except ModelFileError as error:
            self._failure = error
        self._written = time.perf_counter()

    def leave_off(self) -> None:
        """Keep the runs before this moment, and none after it: what they solve depends on how much
        time was left, so that no other call could go on with them.
        """
        self.finish_writing()
        self._left_off = True

    def finish_writing(self) -> None:
        """Wait for the thread; a run goes on where its checkpoint cannot be written, but not in
        silence.
        """
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        failure, self._failure = self._failure, None
        if failure is not None and not self._complained:
            self._complained = True
            LOG.warning("no checkpoint: %s", failure)
            warnings.warn(f"no checkpoint: {failure}", RuntimeWarning, stacklevel=3)

    def remove(self) -> None:
        """After what it was for is done."""
        self.finish_writing()
        self.path.unlink(missing_ok=True)


def _path(path: object) -> Path:
    if not isinstance(path, str | os.PathLike):
        raise ValueError(f"checkpoint must be a path, such as 'run.ltc', or None; got {told(path)}")
    return Path(path)


def _differences(
    tree: dict[str, Any], belonging: Belonging, start: str, seed: int | None
) -> list[str]:
    prints = {name: str(tree["prints"].get(name, "")) for name in belonging.prints}
    different = belonging.differences(tree["words"], prints)
    if tree["start"] != start:
        different.append("the start differs from what the run began with")
    if tree["seed"] != seed and seed is not None:
        different.append(f"the seed was {tree['seed']}, now it is {seed}")
    return different


def _snapshot(
    tree: dict[str, Any], belonging: Belonging, solver: AnySolver, start: str
) -> Snapshot:
    modules = (type(solver).__module__,)
    state = RunState(
        decoded(tree["solver_state"], modules),
        decoded(tree["generator"], ()),
        float(tree["seconds"]),
        belonging,
        tree["seed"],
    )
    return Snapshot(state, start, [dict(row) for row in tree["history"]])


_ambient: ContextVar[CheckpointFile | None] = ContextVar("checkpoint", default=None)


def ambient() -> CheckpointFile | None:
    """The file of the call that this run is part of."""
    return _ambient.get()


@contextmanager
def checkpointing(
    path: str | os.PathLike[str] | None, every: float | None = None
) -> Iterator[CheckpointFile | None]:
    """Every `solve` in the block is a run of one file; None is no file, or the one outside."""
    if path is None:
        yield ambient()
        return
    file = CheckpointFile(path, EVERY if every is None else every)
    token = _ambient.set(file)
    try:
        yield file
    finally:
        _ambient.reset(token)
        file.finish_writing()
